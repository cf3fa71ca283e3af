"""The words about several targets that fail in the same tests: the message, its follow-ups, and the issue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.core.listing import listed
from bot.github.markdown import code
from bot.news.message import News, NewsItem
from bot.plan.page_links import HistoryLink, no_history
from bot.results.report.texts import counted
from handlers.hardware import texts
from handlers.hardware.news_groups import GroupMember, RegressionGroup, newest_good, oldest_since, shared_tests
from handlers.hardware.regression_text import COMPARE_PAGE, MOST_ITEMS, MOST_LISTED, SHORT, shown_test, test_line

MOST_TARGETS = 20
"""Targets that a message or an issue lists."""
MOST_NAMED = 3
"""Tests that a message names."""


def group_news(group: RegressionGroup) -> News:
    """Return the message about targets that begin to fail in the same tests."""
    return News(
        title=_title(group),
        items=_items(group.members),
        more=_more(group.members),
        url=_range(group),
        notes=_notes(group),
    )


def joined_news(group: RegressionGroup, joined: Sequence[GroupMember]) -> News:
    """Return the message about further targets of a group."""
    targets = counted(len(joined), "more target fails", "more targets fail")
    title = texts.JOINED_TITLE.format(
        targets=targets, tests=_tests(group), since=oldest_since(group.members)[1][:SHORT]
    )
    return News(title=title, items=_items(joined), more=_more(joined), url=_range(group), notes=_notes(group))


def group_title(group: RegressionGroup) -> str:
    """Return the title of the issue of a group."""
    return _title(group)


def group_body(group: RegressionGroup, failing: Mapping[str, Sequence[str]], history: HistoryLink = no_history) -> str:
    """Return what the issue of a group says, in Markdown; `failing` has the tests that still fail, by target.

    `history` links the page of each test.
    """
    still = [one for one in group.members if failing.get(one.where)]
    if not still:
        return ""
    lines = [
        texts.GROUP_TARGET.format(
            target=code(one.where), tests=counted(len(failing[one.where]), "test"), since=code(one.since[:SHORT])
        )
        for one in still[:MOST_TARGETS]
    ]
    if len(still) > MOST_TARGETS:
        lines.append(texts.MORE.format(count=len(still) - MOST_TARGETS))
    tests = sorted({test for one in still for test in failing[one.where]})
    named = [test_line(test, history(test, "")).strip() for test in tests[:MOST_LISTED]]
    more = [texts.MORE.format(count=len(tests) - len(named))] if len(tests) > len(named) else []
    url = _range(group)
    between = texts.GROUP_RANGE.format(url=url) if url else ""
    return texts.GROUP_ISSUE.format(
        suite=code(group.members[0].suite), targets="\n".join(lines), tests="\n".join([*named, *more]), range=between
    ).strip()


def _title(group: RegressionGroup) -> str:
    targets = counted(len(group.members), "target")
    return texts.GROUP_TITLE.format(tests=_tests(group), targets=targets, since=oldest_since(group.members)[1][:SHORT])


def _tests(group: RegressionGroup) -> str:
    return counted(len(shared_tests(group.members)), "test failing", "tests failing")


def _items(members: Sequence[GroupMember]) -> tuple[NewsItem, ...]:
    return tuple(
        NewsItem(
            one.where,
            (texts.BEGAN if one.good else texts.NEVER_PASSED).format(
                suite=one.suite, since=one.since[:SHORT], good=one.good[:SHORT]
            ),
        )
        for one in members[:MOST_ITEMS]
    )


def _more(members: Sequence[GroupMember]) -> int:
    return len(members[MOST_ITEMS:])


def _notes(group: RegressionGroup) -> tuple[str, ...]:
    tests = [shown_test(test) for test in shared_tests(group.members)]
    good, since = newest_good(group.members)[1], oldest_since(group.members)[1]
    between = texts.GROUP_BETWEEN.format(good=good[:SHORT], since=since[:SHORT])
    return (texts.GROUP_TESTS.format(tests=listed(tests, MOST_NAMED)), *([between] if good else []), texts.CONFIRMED)


def _range(group: RegressionGroup) -> str:
    """Return the page of what changed between the newest pass and the oldest failure, empty if it is not known."""
    good, since = newest_good(group.members)[1], oldest_since(group.members)[1]
    return COMPARE_PAGE.format(page=group.page, good=good, since=since) if good and group.page else ""
