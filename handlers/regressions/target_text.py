"""Write about regressions: the message of a nightly run, and the issue that is open as long as anything fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType

from bot.core.listing import listed
from bot.github.markdown import code
from bot.news.message import News, NewsItem
from bot.plan.page_links import HistoryLink, no_history
from bot.results.compare.context import FailureContext
from bot.results.compare.health import RunFlips, SuiteHealth
from bot.results.compare.lasting import STEADY_RUNS
from bot.results.report.check_run import MOST_CONTACTS
from bot.results.report.sentences import MOST_ALSO_ON
from bot.results.report.tables import middle_cut
from bot.results.report.texts import ALSO_ON, CONTACTS, FAILED_BEFORE, counted, unreliable_means
from bot.results.store.failures import Failure
from handlers.regressions import texts
from handlers.regressions.decide import JudgedTarget, Regression, RegressionChanges, grouped

GROUPED_TESTS = 10
"""With this many tests or more, those that began or ended together share one line of a message."""
MOST_ITEMS = 10
MOST_LISTED, GROUP_LISTED = 30, 3
"""Tests that the issue lists, and those of a group among them: escaped, they are still less than an issue may have."""
MOST_SUITES = 10
"""The most unreliable suites that the issue explains."""
SHOWN_ID = 150
"""Characters of a test's ID that are shown: the beginning has the file, the end has the parameters."""
SHORT = 7
"""Characters of a commit's SHA."""
COMPARE_PAGE, CHECKS_PAGE = "{page}/compare/{good}...{since}", "{page}/commit/{sha}/checks"
"""https://docs.github.com/en/pull-requests/committing-changes-to-your-project/viewing-and-comparing-commits"""

Contexts = Mapping[tuple[str, str], FailureContext]
"""The contexts of failures, by suite and test."""
_NONE: Contexts = MappingProxyType({})


def regression_news(
    target: JudgedTarget, changes: RegressionChanges, failing: Sequence[Failure], contexts: Contexts = _NONE
) -> News:
    """Return the message of a nightly run; `failing` is everything that people know to fail after it.

    `contexts` are those of new failures, as far as they were read.
    """
    items = list(_items(target, changes, contexts))
    return News(
        title=texts.NEWS_TITLE.format(changes=_counts(changes), where=target.about.full_name, sha=target.sha[:SHORT]),
        items=tuple(items[:MOST_ITEMS]),
        more=len(items[MOST_ITEMS:]),
        url=CHECKS_PAGE.format(page=target.page, sha=target.sha) if target.page else "",
        notes=tuple(_notes(target, changes, failing)),
        good=not (failing or target.unreliable),
    )


def issue_title(target: JudgedTarget) -> str:
    """Return the title of the issue that is open as long as anything fails."""
    return texts.ISSUE_TITLE.format(where=target.about.full_name)


def issue_body(target: JudgedTarget, failing: Sequence[Failure], history: HistoryLink = no_history) -> str:
    """Return what that issue says, in Markdown; empty if nothing fails now and the results are reliable.

    `history` links the page of each test.
    """
    if not (failing or target.unreliable):
        return ""
    lines = "\n".join(_listed(target, grouped(failing), history))
    where = {"lab": code(target.about.lab), "target": code(target.about.target)}
    parts = [texts.ISSUE.format(**where, failing=lines)] if failing else [texts.ISSUE_UNRELIABLE.format(**where)]
    if target.unreliable:
        suites = sorted(target.unreliable.items())[:MOST_SUITES]
        said = [texts.UNRELIABLE_SUITE.format(suite=code(suite), what=_unreliable(one)) for suite, one in suites]
        parts += ["\n".join(said), unreliable_means()]
    text = "\n\n".join(parts)
    contacts = ", ".join(code(contact) for contact in target.contacts[:MOST_CONTACTS])
    return f"{text}\n\n{CONTACTS.format(contacts=contacts)}" if contacts else text


def _counts(changes: RegressionChanges) -> str:
    health = [texts.BECAME_UNRELIABLE] * bool(changes.unreliable) + [texts.RELIABLE_AGAIN] * bool(changes.reliable)
    parts = [
        (sum(bool(one.good) for one in changes.began), *texts.BEGAN_COUNT),
        (sum(not one.good for one in changes.began), *texts.NEVER_PASSED_COUNT),
        (len(changes.recovered), *texts.RECOVERED_COUNT),
        (len(changes.removed), *texts.REMOVED_COUNT),
    ]
    return ", ".join([*health, *(counted(*part) for part in parts if part[0])])


def _items(target: JudgedTarget, changes: RegressionChanges, contexts: Contexts) -> Iterator[NewsItem]:
    """Yield a line for each test, or for each group if there are many; tests that passed before come first."""
    for suite in changes.unreliable:
        yield NewsItem(suite, _unreliable(target.unreliable[suite]))
    yield from (NewsItem(suite, texts.RELIABLE) for suite in changes.reliable)
    began = sorted(grouped(changes.began), key=lambda one: not one.good)
    for one in began:
        commits = {"since": one.since[:SHORT], "good": one.good[:SHORT]}
        url = _changed(target, one)
        if len(changes.began) >= GROUPED_TESTS:
            words = texts.BEGAN_TOGETHER if one.good else texts.NEVER_PASSED_TOGETHER
            tests = counted(len(one.tests), "test failing", "tests failing")
            text = words.format(tests=tests, **commits) + _elsewhere(one, one.tests, contexts)
            yield NewsItem(one.suite, text, url)
        else:
            words = texts.BEGAN if one.good else texts.NEVER_PASSED
            said = words.format(suite=one.suite, **commits)
            for test in one.tests:
                text = said + _before(contexts.get((one.suite, test))) + _elsewhere(one, [test], contexts)
                yield NewsItem(shown_test(test), text, url)
    yield from _ended(changes.recovered, texts.RECOVERED, texts.RECOVERED_COUNT)
    yield from _ended(changes.removed, texts.REMOVED, texts.REMOVED_COUNT)


def _unreliable(health: SuiteHealth) -> str:
    newest = health.newest or RunFlips("", 0, 0)
    tests = f"{newest.flipped_back:,} of {counted(newest.tests, 'test')}"
    return texts.UNRELIABLE.format(since=health.since[:SHORT], tests=tests, run=newest.sha[:SHORT])


def _before(context: FailureContext | None) -> str:
    """Say how often a test failed before it began to fail for good."""
    if context is None or not context.failed:
        return ""
    return f"; {FAILED_BEFORE.format(failed=context.failed, runs=counted(context.runs, 'earlier run'))}"


def _elsewhere(one: Regression, tests: Sequence[str], contexts: Contexts) -> str:
    """Say on which other targets all of some tests fail."""
    # Contexts are read for `MOST_CONTEXTS` failures only. Without all of them, no target is known to fail in all tests.
    known = [contexts[one.suite, test].also_on for test in tests if (one.suite, test) in contexts]
    if not known or len(known) < len(tests):
        return ""
    everywhere = [where for where in known[0] if all(where in others for others in known)]
    words = ALSO_ON if len(tests) == 1 else texts.ALSO_ON_TOGETHER
    return f"; {words.format(targets=listed(everywhere, MOST_ALSO_ON))}" if everywhere else ""


def _ended(failures: Sequence[Failure], words: str, together: tuple[str, str]) -> Iterator[NewsItem]:
    tests: dict[str, list[str]] = {}
    for one in sorted(failures, key=lambda one: (one.suite, one.test)):
        tests.setdefault(one.suite, []).append(one.test)
    for suite, those in tests.items():
        if len(failures) >= GROUPED_TESTS:
            yield NewsItem(suite, counted(len(those), *together))
        else:
            yield from (NewsItem(shown_test(test), words.format(suite=suite)) for test in those)


def _notes(target: JudgedTarget, changes: RegressionChanges, failing: Sequence[Failure]) -> Iterator[str]:
    if changes.unreliable:
        yield unreliable_means()
    if changes.began:
        yield texts.CONFIRMED
        if steady := sorted({one.suite for one in changes.began if one.suite in target.unreliable}):
            yield texts.STEADY.format(suites=listed(steady, MOST_SUITES), runs=STEADY_RUNS)
        if target.late:
            sha, committed_at = target.late
            yield texts.LATE.format(sha=sha[:SHORT], date=f"{datetime.fromtimestamp(committed_at, UTC):%Y-%m-%d}")
    if before := len(failing) - len(changes.began):
        yield texts.STILL.format(tests=counted(before, "test fails", "tests fail"))
    if target.held:
        yield texts.HELD.format(changes=counted(target.held, "change"))
    if target.quarantined:
        tests = counted(target.quarantined, "quarantined test fails", "quarantined tests fail")
        yield texts.QUARANTINED.format(tests=tests)
    if target.contacts:
        yield CONTACTS.format(contacts=", ".join(target.contacts[:MOST_CONTACTS]))


def _listed(target: JudgedTarget, failing: Sequence[Regression], history: HistoryLink) -> Iterator[str]:
    room = MOST_LISTED
    for place, one in enumerate(failing):
        if not room:
            yield texts.MORE.format(count=_number(failing[place:]))
            return
        tests, since = counted(len(one.tests), "test"), code(one.since[:SHORT])
        url = _changed(target, one)
        changed = texts.CHANGED.format(url=url) if url else ""
        never = "" if one.good else texts.NEVER
        yield texts.FAILING.format(suite=code(one.suite), tests=tests, since=since, changed=changed, never=never)
        shown = one.tests[: min(room, GROUP_LISTED) if len(one.tests) >= GROUPED_TESTS else room]
        room -= len(shown)
        yield from (test_line(test, history(test, target.about.full_name)) for test in shown)
        if more := len(one.tests) - len(shown):
            yield texts.MORE_TESTS.format(count=more)


def _number(regressions: Iterable[Regression]) -> int:
    return sum(len(regression.tests) for regression in regressions)


def _changed(target: JudgedTarget, one: Regression) -> str:
    """Return the page of what changed from the last pass to the first failure, empty where that is not known."""
    known = target.page and one.good
    return COMPARE_PAGE.format(page=target.page, good=one.good, since=one.since) if known else ""


def test_line(test: str, url: str) -> str:
    """Return the line of a test in a list of the issue; `url` is its page, empty where there is none."""
    shown = code(shown_test(test))
    return texts.TEST_WITH_HISTORY.format(test=shown, url=url) if url else texts.TEST.format(test=shown)


def shown_test(test: str) -> str:
    """Return a test's ID as people read it: its beginning and its end."""
    return middle_cut(test, SHOWN_ID)
