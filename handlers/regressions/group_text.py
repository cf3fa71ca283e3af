"""Write about several targets that fail in the same tests: the message, its follow-ups, and the issue."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.listing import counted, listed
from bot.github.text.markdown import code
from bot.news.message import News, NewsItem
from bot.results.store.failures.failures import RECOVERED
from handlers.regressions import texts
from handlers.regressions.decide import REMOVED
from handlers.regressions.groups import newest_good, oldest_since, shared_tests
from handlers.regressions.records import EndedTests, GroupMember, RegressionGroup
from handlers.regressions.target_text import (
    COMPARE_PAGE,
    MOST_ITEMS,
    MOST_LISTED,
    NO_DETAILS,
    SHORT,
    DetailsOfTests,
    shown_test,
)

MOST_TARGETS = 20
"""Targets that a message or an issue lists."""
MOST_NAMED = 3
"""Tests that a message names."""


def group_news(group: RegressionGroup) -> News:
    """Return the message about targets that begin to fail in the same tests."""
    return News(
        title=_title(group),
        items=_items(group.members),
        more=_count_unlisted(group.members),
        url=_range_url(group),
        notes=_notes(group),
    )


def joined_news(group: RegressionGroup, joined: Sequence[GroupMember]) -> News:
    """Return the message about further targets of a group."""
    targets = counted(len(joined), "more target fails", "more targets fail")
    title = texts.JOINED_TITLE.format(
        targets=targets, tests=_tests(group), since=oldest_since(group.members)[1][:SHORT]
    )
    return News(
        title=title, items=_items(joined), more=_count_unlisted(joined), url=_range_url(group), notes=_notes(group)
    )


def group_title(group: RegressionGroup) -> str:
    """Return the title of the issue of a group."""
    return _title(group)


def group_body(group: RegressionGroup, details: DetailsOfTests = NO_DETAILS) -> str:
    """Return the Markdown of a group's issue, which names all targets, also after their tests recovered.

    `details` are those of each test.
    """
    lines = [_target_line(member) for member in group.members]
    lines += [_target_line(ended.member) + _end_text(ended) for ended in group.ended]
    if (unlisted_lines := len(lines) - MOST_TARGETS) > 0:
        lines[MOST_TARGETS:] = [texts.MORE.format(count=unlisted_lines)]
    # The closed issue names the tests that had failed.
    tests = shared_tests(group.members or group.all_members)
    test_lines = [details.line(test).strip() for test in tests[:MOST_LISTED]]
    if (unlisted_tests := len(tests) - len(test_lines)) > 0:
        test_lines.append(texts.MORE.format(count=unlisted_tests))
    url = _range_url(group)
    return texts.GROUP_ISSUE.format(
        suite=code(group.all_members[0].suite),
        targets="\n".join(lines),
        tests="\n".join(test_lines),
        range=texts.GROUP_RANGE.format(url=url) if url else "",
        end=texts.GROUP_OPEN if group.members else texts.GROUP_CLOSED,
    )


def _target_line(member: GroupMember) -> str:
    tests, since = counted(len(member.tests), "test"), code(member.since[:SHORT])
    return texts.GROUP_TARGET.format(target=code(member.full_name), tests=tests, since=since)


def _end_text(ended: EndedTests) -> str:
    template = {RECOVERED: texts.GROUP_RECOVERED, REMOVED: texts.GROUP_REMOVED}.get(ended.how, texts.GROUP_ENDED)
    return template.format(sha=code(ended.sha[:SHORT]))


def _title(group: RegressionGroup) -> str:
    targets = counted(len(group.members), "target")
    return texts.GROUP_TITLE.format(tests=_tests(group), targets=targets, since=oldest_since(group.members)[1][:SHORT])


def _tests(group: RegressionGroup) -> str:
    return counted(len(shared_tests(group.members)), "test failing", "tests failing")


def _items(members: Sequence[GroupMember]) -> tuple[NewsItem, ...]:
    return tuple(
        NewsItem(
            member.full_name,
            (texts.BEGAN if member.good else texts.NEVER_PASSED).format(
                suite=member.suite, since=member.since[:SHORT], good=member.good[:SHORT]
            ),
        )
        for member in members[:MOST_ITEMS]
    )


def _count_unlisted(members: Sequence[GroupMember]) -> int:
    return len(members[MOST_ITEMS:])


def _notes(group: RegressionGroup) -> tuple[str, ...]:
    tests = [shown_test(test) for test in shared_tests(group.members)]
    good, since = newest_good(group.members)[1], oldest_since(group.members)[1]
    between = texts.GROUP_BETWEEN.format(good=good[:SHORT], since=since[:SHORT])
    return (texts.GROUP_TESTS.format(tests=listed(tests, MOST_NAMED)), *([between] if good else []), texts.CONFIRMED)


def _range_url(group: RegressionGroup) -> str:
    """Return the page of the changes from the newest pass to the oldest failure, empty if one is not known."""
    # From all members, because no failure of a closed issue lasts.
    good, since = newest_good(group.all_members)[1], oldest_since(group.all_members)[1]
    return COMPARE_PAGE.format(page=group.page, good=good, since=since) if good and group.page else ""
