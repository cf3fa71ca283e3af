"""Write about the regressions of a target: the message of a nightly run, and the issue while anything fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from bot.core.listing import counted, listed, middle_cut
from bot.github.text.markdown import code
from bot.news.message import News, NewsItem
from bot.plan.page_links import HistoryLink, no_history
from bot.results.compare.context import FailureContext
from bot.results.compare.health import RunFlips, SuiteHealth
from bot.results.compare.lasting import STEADY_RUNS
from bot.results.compare.owners import OwnersOf, no_owners
from bot.results.report.check_run import MOST_CONTACTS
from bot.results.report.sentences import MOST_ALSO_ON, passes_elsewhere
from bot.results.report.texts import ALSO_ON, CONTACTS, FAILED_BEFORE, unreliable_means
from bot.results.store.failures.failures import Failure
from handlers.regressions import texts
from handlers.regressions.decide import EvaluatedTarget, Regression, RegressionChanges, group_failures

GROUPED_TESTS = 10
"""With this many tests or more, those that began or ended together share one line of a message."""
MOST_ITEMS = 10
MOST_LISTED, GROUP_LISTED = 30, 3
"""The most tests that the issue lists, in all and of one group. Even escaped, they fit into an issue."""
MOST_SUITES = 10
"""The most unreliable suites that the issue explains."""
MOST_OWNERS = 3
"""The most owners that the issue names for a test."""
OWNERS_FIT = 400
"""Characters of an escaped ID that leave room for owners in the longest issue."""
SHOWN_ID = 150
"""Characters of a test's ID that are shown: the beginning has the file, the end has the parameters."""
SHORT = 7
"""Characters of a commit's SHA."""
COMMIT_PAGE = "/commit/"
COMPARE_PAGE, CHECKS_PAGE = "{page}/compare/{good}...{since}", "{page}/commit/{sha}/checks"
"""https://docs.github.com/en/pull-requests/committing-changes-to-your-project/viewing-and-comparing-commits"""

Contexts = Mapping[tuple[str, str], FailureContext]
"""The contexts of failures, by suite and test."""
NO_CONTEXTS: Contexts = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DetailsOfTests:
    """What an issue says about each test that it lists: `history` links its page, `owners` finds its owners."""

    history: HistoryLink = no_history
    owners: OwnersOf = no_owners

    def line(self, test: str, target: str = "") -> str:
        """Return the line of a test that fails on a target (LAB/TARGET), empty if it fails on several."""
        name, url = code(shown_test(test)), self.history(test, target)
        line = texts.TEST_WITH_HISTORY.format(test=name, url=url) if url else texts.TEST.format(test=name)
        # As code, an owner mentions nobody.
        names = [code(owner) for owner in self.owners(test)] if len(name) <= OWNERS_FIT else []
        owners = listed(names, MOST_OWNERS)
        return line + texts.OWNERS.format(owners=owners) if owners else line


NO_DETAILS = DetailsOfTests()


def regression_news(
    target: EvaluatedTarget, changes: RegressionChanges, failing: Sequence[Failure], contexts: Contexts = NO_CONTEXTS
) -> News:
    """Return the message of a nightly run; `failing` has all failures that are reported after it.

    `contexts` are the contexts of new failures; some may not have been read.
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


def issue_title(target: EvaluatedTarget) -> str:
    """Return the title of the issue that is open as long as anything fails."""
    return texts.ISSUE_TITLE.format(where=target.about.full_name)


def issue_body(target: EvaluatedTarget, failing: Sequence[Failure], details: DetailsOfTests = NO_DETAILS) -> str:
    """Return the Markdown of the target's issue; empty if nothing fails now and the results are reliable.

    `details` are those of each test.
    """
    if not (failing or target.unreliable):
        return ""
    lines = "\n".join(_failing_lines(target, group_failures(failing), details))
    names = {"lab": code(target.about.lab), "target": code(target.about.target)}
    paragraphs = [texts.ISSUE.format(**names, failing=lines)] if failing else [texts.ISSUE_UNRELIABLE.format(**names)]
    if target.unreliable:
        suites = sorted(target.unreliable.items())[:MOST_SUITES]
        suite_lines = [
            texts.UNRELIABLE_SUITE.format(suite=code(suite), what=_unreliable(health)) for suite, health in suites
        ]
        paragraphs += ["\n".join(suite_lines), unreliable_means()]
    text = "\n\n".join(paragraphs)
    contacts = ", ".join(code(contact) for contact in target.contacts[:MOST_CONTACTS])
    return f"{text}\n\n{CONTACTS.format(contacts=contacts)}" if contacts else text


def _counts(changes: RegressionChanges) -> str:
    health = [texts.BECAME_UNRELIABLE] * bool(changes.unreliable) + [texts.RELIABLE_AGAIN] * bool(changes.reliable)
    counts = [
        (sum(bool(failure.good) for failure in changes.began), *texts.BEGAN_COUNT),
        (sum(not failure.good for failure in changes.began), *texts.NEVER_PASSED_COUNT),
        (len(changes.recovered), *texts.RECOVERED_COUNT),
        (len(changes.removed), *texts.REMOVED_COUNT),
    ]
    return ", ".join([*health, *(counted(*count) for count in counts if count[0])])


def _items(target: EvaluatedTarget, changes: RegressionChanges, contexts: Contexts) -> Iterator[NewsItem]:
    """Yield a line for each test, or for each group if there are many; tests that passed before come first."""
    for suite in changes.unreliable:
        yield NewsItem(suite, _unreliable(target.unreliable[suite]))
    yield from (NewsItem(suite, texts.RELIABLE) for suite in changes.reliable)
    began = sorted(group_failures(changes.began), key=lambda regression: not regression.good)
    for regression in began:
        commits = {"since": regression.since[:SHORT], "good": regression.good[:SHORT]}
        url = _compare_url(target, regression)
        if len(changes.began) >= GROUPED_TESTS:
            template = texts.BEGAN_TOGETHER if regression.good else texts.NEVER_PASSED_TOGETHER
            tests = counted(len(regression.tests), "test failing", "tests failing")
            text = template.format(tests=tests, **commits) + _other_targets(regression, regression.tests, contexts)
            yield NewsItem(regression.suite, text, url)
        else:
            template = texts.BEGAN if regression.good else texts.NEVER_PASSED
            beginning = template.format(suite=regression.suite, **commits)
            for test in regression.tests:
                earlier = _earlier_failures(contexts.get((regression.suite, test)))
                text = beginning + earlier + _other_targets(regression, [test], contexts)
                yield NewsItem(shown_test(test), text, url)
    yield from _ended(changes.recovered, texts.RECOVERED, texts.RECOVERED_COUNT)
    yield from _ended(changes.removed, texts.REMOVED, texts.REMOVED_COUNT)


def _unreliable(health: SuiteHealth) -> str:
    newest = health.newest or RunFlips("", 0, 0)
    tests = f"{newest.flipped_back:,} of {counted(newest.tests, 'test')}"
    return texts.UNRELIABLE.format(since=health.since[:SHORT], tests=tests, run=newest.sha[:SHORT])


def _earlier_failures(context: FailureContext | None) -> str:
    """Say how often a test failed before it began to fail for good."""
    if context is None or not context.failed:
        return ""
    return f"; {FAILED_BEFORE.format(failed=context.failed, runs=counted(context.runs, 'earlier run'))}"


def _other_targets(regression: Regression, tests: Sequence[str], contexts: Contexts) -> str:
    """Name the other targets on which all of these tests of a regression fail, and paired ones on which they pass."""
    # The bot reads at most `MOST_CONTEXTS` contexts. If one of these tests has none, no target is known to fail in all.
    targets = [contexts[regression.suite, test].also_on for test in tests if (regression.suite, test) in contexts]
    if not targets or len(targets) < len(tests):
        return ""
    common = [target for target in targets[0] if all(target in test_targets for test_targets in targets)]
    template = ALSO_ON if len(tests) == 1 else texts.ALSO_ON_TOGETHER
    also_on = f"; {template.format(targets=listed(common, MOST_ALSO_ON))}" if common else ""
    passing = passes_elsewhere([contexts[regression.suite, test] for test in tests], str)
    return also_on + "".join(f"; {phrase}" for phrase in passing)


def _ended(failures: Sequence[Failure], template: str, count_forms: tuple[str, str]) -> Iterator[NewsItem]:
    """Yield a line for each test, or for each suite if there are many; `count_forms` are singular and plural."""
    tests: dict[str, list[str]] = {}
    for failure in sorted(failures, key=lambda failure: (failure.suite, failure.test)):
        tests.setdefault(failure.suite, []).append(failure.test)
    for suite, suite_tests in tests.items():
        if len(failures) >= GROUPED_TESTS:
            yield NewsItem(suite, counted(len(suite_tests), *count_forms))
        else:
            yield from (NewsItem(shown_test(test), template.format(suite=suite)) for test in suite_tests)


def _notes(target: EvaluatedTarget, changes: RegressionChanges, failing: Sequence[Failure]) -> Iterator[str]:
    if changes.unreliable:
        yield unreliable_means()
    if changes.began:
        yield texts.CONFIRMED
        if steady := sorted({failure.suite for failure in changes.began if failure.suite in target.unreliable}):
            yield texts.STEADY.format(suites=listed(steady, MOST_SUITES), runs=STEADY_RUNS)
        if target.late:
            sha, committed_at = target.late
            yield texts.LATE.format(sha=sha[:SHORT], date=f"{datetime.fromtimestamp(committed_at, UTC):%Y-%m-%d}")
    if still_failing := len(failing) - len(changes.began):
        yield texts.STILL.format(tests=counted(still_failing, "test fails", "tests fail"))
    if target.held:
        yield texts.HELD.format(changes=counted(target.held, "change"))
    if target.quarantined:
        tests = counted(target.quarantined, "quarantined test fails", "quarantined tests fail")
        yield texts.QUARANTINED.format(tests=tests)
    if target.contacts:
        yield CONTACTS.format(contacts=", ".join(target.contacts[:MOST_CONTACTS]))


def _failing_lines(target: EvaluatedTarget, failing: Sequence[Regression], details: DetailsOfTests) -> Iterator[str]:
    """Yield the lines of the issue about failing tests, limited to `MOST_LISTED` tests."""
    room = MOST_LISTED
    for index, regression in enumerate(failing):
        if not room:
            yield texts.MORE.format(count=_count_tests(failing[index:]))
            return
        tests, since = counted(len(regression.tests), "test"), code(regression.since[:SHORT])
        url = _compare_url(target, regression)
        changed = texts.CHANGED.format(url=url) if url else ""
        never = "" if regression.good else texts.NEVER
        yield texts.FAILING.format(suite=code(regression.suite), tests=tests, since=since, changed=changed, never=never)
        limit = min(room, GROUP_LISTED) if len(regression.tests) >= GROUPED_TESTS else room
        listed_tests = regression.tests[:limit]
        room -= len(listed_tests)
        yield from (details.line(test, target.about.full_name) for test in listed_tests)
        if unlisted := len(regression.tests) - len(listed_tests):
            yield texts.MORE_TESTS.format(count=unlisted)


def _count_tests(regressions: Iterable[Regression]) -> int:
    return sum(len(regression.tests) for regression in regressions)


def _compare_url(target: EvaluatedTarget, regression: Regression) -> str:
    """Return the page of the changes from the last pass to the first failure, empty if one of them is not known."""
    if not (target.page and regression.good):
        return ""
    return COMPARE_PAGE.format(page=target.page, good=regression.good, since=regression.since)


def shown_test(test: str) -> str:
    """Return a test's ID as people read it: its beginning and its end."""
    return middle_cut(test, SHOWN_ID)
