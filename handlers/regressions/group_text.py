"""Write about several targets that fail in the same tests: the message, its follow-ups, and the issue."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.listing import listed
from bot.github.markdown import code
from bot.news.message import News, NewsItem
from bot.plan.page_links import HistoryLink, no_history
from bot.results.report.texts import counted
from handlers.regressions import texts
from handlers.regressions.decide import RECOVERED, REMOVED
from handlers.regressions.groups import (
    EndedTests,
    GroupMember,
    RegressionGroup,
    newest_good,
    oldest_since,
    shared_tests,
)
from handlers.regressions.target_text import COMPARE_PAGE, MOST_ITEMS, MOST_LISTED, SHORT, shown_test, test_line

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


def group_body(group: RegressionGroup, history: HistoryLink = no_history) -> str:
    """Return what the issue of a group says, in Markdown; it names all targets, also once their tests recovered.

    `history` links the page of each test.
    """
    lines = [_target(one) for one in group.members]
    lines += [_target(one.member) + _ended(one) for one in group.ended]
    if (more_lines := len(lines) - MOST_TARGETS) > 0:
        lines[MOST_TARGETS:] = [texts.MORE.format(count=more_lines)]
    # The closed issue names the tests that had failed.
    tests = shared_tests(group.members or group.every)
    named = [test_line(test, history(test, "")).strip() for test in tests[:MOST_LISTED]]
    more = [texts.MORE.format(count=len(tests) - len(named))] if len(tests) > len(named) else []
    url = _range(group)
    return texts.GROUP_ISSUE.format(
        suite=code(group.every[0].suite),
        targets="\n".join(lines),
        tests="\n".join([*named, *more]),
        range=texts.GROUP_RANGE.format(url=url) if url else "",
        end=texts.GROUP_OPEN if group.members else texts.GROUP_CLOSED,
    )


def _target(member: GroupMember) -> str:
    tests, since = counted(len(member.tests), "test"), code(member.since[:SHORT])
    return texts.GROUP_TARGET.format(target=code(member.where), tests=tests, since=since)


def _ended(tests: EndedTests) -> str:
    text = {RECOVERED: texts.GROUP_RECOVERED, REMOVED: texts.GROUP_REMOVED}.get(tests.how, texts.GROUP_ENDED)
    return text.format(sha=code(tests.sha[:SHORT]))


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
    # Of all members, because a closed issue has none whose failure lasts.
    good, since = newest_good(group.every)[1], oldest_since(group.every)[1]
    return COMPARE_PAGE.format(page=group.page, good=good, since=since) if good and group.page else ""
