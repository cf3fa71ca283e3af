"""The words of regressions: what people are told of a night, and what the issue says as long as anything fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bot.github.markdown import code
from bot.news.message import News, NewsItem
from bot.results.compare.diff import MASS_TESTS
from bot.results.report.check_run import MOST_CONTACTS
from bot.results.report.findings import Findings
from bot.results.report.tables import middle_cut
from bot.results.report.texts import CONTACTS, counted
from handlers.hardware import texts
from handlers.hardware.regression_state import COMMIT_PAGE, Regression, RegressionChanges

MOST_ITEMS = 10
MOST_LISTED, MASS_LISTED = 30, 3
"""Tests that the issue lists, and those of a mass among them: escaped, they are still less than an issue may have."""
SHOWN_ID = 150
"""Characters of a test's ID: both of its ends, for they tell file and parameters."""
SHORT = 7
"""Characters of a commit's SHA."""


def news_of(findings: Findings, changes: RegressionChanges, failing: Sequence[Regression]) -> News:
    """Return what people are told of a night; `failing` is everything that they know to fail after it."""
    items = list(_items(changes))
    return News(
        title=texts.NEWS_TITLE.format(changes=_counts(changes), where=_where(findings), sha=findings.state.sha[:SHORT]),
        items=tuple(items[:MOST_ITEMS]),
        more=len(items[MOST_ITEMS:]),
        url=_page(findings),
        notes=tuple(_notes(findings, changes, failing)),
        good=not failing,
    )


def issue_title(findings: Findings) -> str:
    """Return the title of the issue that is open as long as anything fails."""
    return texts.ISSUE_TITLE.format(where=_where(findings))


def issue_body(findings: Findings, failing: Sequence[Regression]) -> str:
    """Return what that issue says, in Markdown; nothing where nothing fails any more."""
    if not failing:
        return ""
    about = findings.state.about
    lines = "\n".join(_listed(failing))
    text = texts.ISSUE.format(lab=code(about.lab), target=code(about.target), failing=lines)
    contacts = ", ".join(code(contact) for contact in findings.contacts[:MOST_CONTACTS])
    return f"{text}\n\n{CONTACTS.format(contacts=contacts)}" if contacts else text


def _counts(changes: RegressionChanges) -> str:
    mass = [regression for regression in changes.began if regression.mass]
    parts = [
        (_number(one for one in changes.began if not one.mass), *texts.BEGAN_COUNT),
        (_number(mass), *texts.BEGAN_AT_ONCE_COUNT),
        (_number(changes.well), *texts.RECOVERED_COUNT),
        (_number(changes.removed), *texts.REMOVED_COUNT),
    ]
    return ", ".join(counted(*part) for part in parts if part[0])


def _number(regressions: Iterable[Regression]) -> int:
    return sum(len(regression.tests) for regression in regressions)


def _items(changes: RegressionChanges) -> Iterator[NewsItem]:
    """Yield a line for each test, and one for many together; what is confirmed comes first."""
    for one in sorted(changes.began, key=lambda one: one.mass):
        names = {"suite": one.suite, "since": one.since[:SHORT], "good": one.good[:SHORT]}
        if one.mass:
            text = texts.BEGAN_AT_ONCE.format(tests=counted(len(one.tests), "test fails", "tests fail"), **names)
            yield NewsItem(one.suite, text, one.url)
        else:
            yield from (NewsItem(_shown(test), texts.BEGAN.format(**names), one.url) for test in one.tests)
    for ended, words, many in (
        (changes.well, texts.RECOVERED, texts.RECOVERED_MANY),
        (changes.removed, texts.REMOVED, texts.REMOVED_MANY),
    ):
        for one in ended:
            if len(one.tests) >= MASS_TESTS:
                yield NewsItem(one.suite, counted(len(one.tests), many, many))
            else:
                yield from (NewsItem(_shown(test), words.format(suite=one.suite)) for test in one.tests)


def _notes(findings: Findings, changes: RegressionChanges, failing: Sequence[Regression]) -> Iterator[str]:
    if any(not one.mass for one in changes.began):
        yield texts.CONFIRMED
    if before := _number(failing) - _number(changes.began):
        yield texts.STILL.format(tests=counted(before, "test fails", "tests fail"))
    if findings.contacts:
        yield CONTACTS.format(contacts=", ".join(findings.contacts[:MOST_CONTACTS]))


def _listed(failing: Sequence[Regression]) -> Iterator[str]:
    room = MOST_LISTED
    for place, one in enumerate(failing):
        if not room:
            yield texts.MORE.format(count=_number(failing[place:]))
            return
        tests, since = counted(len(one.tests), "test"), code(one.since[:SHORT])
        changed = texts.CHANGED.format(url=one.url) if one.url else ""
        mass = texts.AT_ONCE if one.mass else ""
        yield texts.FAILING.format(suite=code(one.suite), tests=tests, since=since, changed=changed, mass=mass)
        shown = one.tests[: min(room, MASS_LISTED) if one.mass else room]
        room -= len(shown)
        yield from (texts.TEST.format(test=code(_shown(test))) for test in shown)
        if more := len(one.tests) - len(shown):
            yield texts.MORE_TESTS.format(count=more)


def _shown(test: str) -> str:
    return middle_cut(test, SHOWN_ID)


def _where(findings: Findings) -> str:
    return f"{findings.state.about.lab}/{findings.state.about.target}"


def _page(findings: Findings) -> str:
    """Return the page of the night's checks, made from that of a commit that it was compared with."""
    known = [text.baseline.url for text in findings.compared.values() if text.baseline]
    repository, is_page, _ = known[0].partition(COMMIT_PAGE) if known else ("", "", "")
    return f"{repository}{COMMIT_PAGE}{findings.state.sha}/checks" if is_page else ""
