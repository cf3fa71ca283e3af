"""Which targets fail in the same tests, since when, and when their news is posted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations

import pytest

from bot.news.message import News
from bot.results.store.failures.failures import FailureEnd
from handlers.regressions.decide import EvaluatedRun, EvaluatedTarget
from handlers.regressions.group_text import group_body, group_news, group_title, joined_news
from handlers.regressions.groups import ACTIVE, grouped_members, is_time_to_post, newest_good, oldest_since
from handlers.regressions.nightly_news import joined_members
from handlers.regressions.records import Ends, GroupMember, RegressionGroup, WaitingNews
from tests.results.reported import ABOUT, AT, SHA

PAGE = "https://github.example/octocat/compiler"
A, B, SINCE = "- `lab/a`: ", "- ``lab/b`c``: ", ", since `2222222`"
WAIT = 1800.0


def sha(number: int) -> str:
    return f"{number:x}" * 40


def member(
    target_name: str, tests: Sequence[str], good: int = 1, since: int = 2, suite: str = "operators"
) -> GroupMember:
    """Return the failures of a target since a commit; commits are numbered in order, and 0 means none."""
    lab, _, target = target_name.partition("/")
    return GroupMember(lab, target, suite, sha(since), since, sha(good) if good else "", good, tuple(tests))


def group(*members: GroupMember) -> RegressionGroup:
    return RegressionGroup.of(members, PAGE, AT)


def all_of(target_name: str, ends: Mapping[str, FailureEnd]) -> Ends:
    """Return how failures of tests on a target ended, or that they continue."""
    return {(target_name, failure): ends[failure.test] for failure in member(target_name, list(ends)).failures}


def listed(body: str) -> list[str]:
    """Return the lines of an issue about its targets."""
    return [line for line in body.splitlines() if "lab/" in line and line.startswith("- ")]


def target_names(groups: Sequence[Sequence[GroupMember]]) -> list[list[str]]:
    return sorted(sorted(member.full_name for member in members) for members in groups)


def numbered_tests(count: int, first: int = 0) -> list[str]:
    return [f"test_{number}" for number in range(first, first + count)]


@pytest.mark.parametrize(
    ("tests", "other_tests", "is_grouped"),
    [
        pytest.param(numbered_tests(2), numbered_tests(2), True, id="the same tests"),
        pytest.param(numbered_tests(20), numbered_tests(18), True, id="all of the smaller set"),
        pytest.param(numbered_tests(20), numbered_tests(20, 2), True, id="nine of ten tests"),
        pytest.param(numbered_tests(20), numbered_tests(20, 3), False, id="fewer than nine of ten"),
        pytest.param(numbered_tests(20), numbered_tests(10), True, id="half as many tests"),
        pytest.param(numbered_tests(20), numbered_tests(9), False, id="fewer than half as many"),
        pytest.param(numbered_tests(1), numbered_tests(1, 1), False, id="other tests"),
    ],
)
def test_targets_are_grouped_if_they_share_most_of_their_failures(
    tests: list[str], other_tests: list[str], is_grouped: bool
) -> None:
    for first, second in ((tests, other_tests), (other_tests, tests)):
        groups = grouped_members([member("lab/a", first), member("lab/b", second)])
        assert (len(groups) == 1) is is_grouped


def test_suites_and_tests_of_a_single_target_are_not_grouped() -> None:
    members = [member("lab/a", "x"), member("lab/b", "x", suite="relax"), member("lab/a", "x", 3, 4)]
    assert len(grouped_members(members)) == 3


@pytest.mark.parametrize(
    ("ranges", "good", "since"),
    [
        pytest.param([(1, 4), (2, 4)], 2, 4, id="a newer pass"),
        pytest.param([(1, 4), (1, 3)], 1, 3, id="an older failure"),
        pytest.param([(1, 4), (2, 5), (0, 6)], 2, 4, id="a test that never passed"),
    ],
)
def test_the_range_is_the_smallest_that_fits_all_targets(
    ranges: Sequence[tuple[int, int]], good: int, since: int
) -> None:
    members = [member(f"lab/{number}", "x", *commits) for number, commits in enumerate(ranges)]
    for order in permutations(members):
        (members_of_group,) = grouped_members(order)
        assert (newest_good(members_of_group)[1], oldest_since(members_of_group)[1]) == (sha(good), sha(since))


def test_targets_with_contradictory_ranges_get_their_own_messages() -> None:
    members = [member("lab/a", "x", 1, 2), member("lab/b", "x", 3, 4), member("lab/c", "x", 3, 5)]
    for order in permutations(members):
        assert target_names(grouped_members(order)) == [["lab/a"], ["lab/b", "lab/c"]]


def test_any_order_of_arrival_makes_the_same_groups() -> None:
    members = [member(f"lab/{name}", tests) for name, tests in zip("abcde", ("xy", "xy", "z", "z", "v"), strict=True)]
    expected = [["lab/a", "lab/b"], ["lab/c", "lab/d"], ["lab/e"]]
    names = set()
    for order in permutations(members):
        groups = grouped_members(order)
        assert target_names(groups) == expected
        names.add(group(*groups[0]).name)
    assert len(names) == 1


def test_later_targets_join_a_group_for_a_week() -> None:
    existing = group(member("lab/a", "xy"), member("lab/b", "xy"))
    later, unrelated = member("lab/c", "xy", 1, 3), member("lab/d", "z")
    assert joined_members([existing], [later, unrelated], AT + 86_400) == ({existing.name: [later]}, [unrelated])
    assert joined_members([existing], [later], AT + 8 * 86_400) == ({}, [later])
    assert joined_members([existing], [member("lab/a", "xy", 4, 5)], AT + 1)[0] == {}


NEWS = WaitingNews(
    EvaluatedTarget(ABOUT, SHA, AT), AT, "key", (member("lab/a", "x"),), news=News("1 test began to fail")
)
ENDED = replace(NEWS, began=(), news=News("1 test recovered"))
REFRESH = replace(NEWS, began=(), news=None)
EVALUATED, EARLIER = EvaluatedRun(SHA, AT), EvaluatedRun("0" * 40, AT - 86_400)


@pytest.mark.parametrize(
    ("waiting", "evaluated", "posted_at", "seconds", "is_posted"),
    [
        pytest.param([NEWS], [EVALUATED, EVALUATED], None, 1.0, True, id="all were judged"),
        pytest.param([NEWS], [EVALUATED, EARLIER], None, 1.0, False, id="one was not judged"),
        pytest.param([NEWS], [EVALUATED, EARLIER], None, WAIT, True, id="the wait is over"),
        pytest.param(
            [NEWS], [replace(EARLIER, committed_at=AT - ACTIVE - 9)], None, 1.0, True, id="one target is silent"
        ),
        pytest.param([NEWS], [EVALUATED], -60.0, 1.0, False, id="a message was posted just now"),
        pytest.param([NEWS], [EVALUATED], -60.0, WAIT, True, id="the wait after a message is over"),
        pytest.param([NEWS], [EVALUATED], -WAIT, 1.0, True, id="a message was posted long ago"),
        pytest.param([ENDED], [EARLIER], -60.0, 1.0, True, id="only recoveries wait"),
        pytest.param([NEWS, ENDED], [EARLIER], None, 1.0, False, id="a recovery waits for failures"),
        pytest.param([REFRESH], [EARLIER], -60.0, 1.0, True, id="only issue updates wait"),
        pytest.param([], [EVALUATED], None, WAIT, False, id="nothing waits"),
    ],
)
def test_news_is_posted_when_all_targets_were_judged_or_the_wait_is_over(
    waiting: list[WaitingNews],
    evaluated: list[EvaluatedRun],
    posted_at: float | None,
    seconds: float,
    is_posted: bool,
) -> None:
    groups = [] if posted_at is None else [replace(group(member("lab/a", "x")), news_at=AT + posted_at)]
    by_target = {f"lab:{number}": run for number, run in enumerate(evaluated)}
    assert is_time_to_post(waiting, groups, by_target, AT + seconds, WAIT) is is_posted


def test_the_message_names_targets_tests_and_the_commits_in_between() -> None:
    targets = group(member("lab/a", "xyz", 1, 3), member("lab/b", "xyz", 0, 2))
    news = group_news(targets)
    assert news.title == group_title(targets) == "3 tests failing on 2 targets since 2222222"
    assert news.url == f"{PAGE}/compare/{sha(1)}...{sha(2)}"
    assert [(item.name, item.text) for item in news.items] == [
        ("lab/a", "operators, since 3333333; it passed at 1111111"),
        ("lab/b", "operators, failing since 2222222; it has never passed"),
    ]
    assert news.notes == (
        "The tests: x, y, z.",
        "The cause is between 1111111, where they passed, and 2222222.",
        "New failures are confirmed: they failed in two runs in a row.",
    )


def test_tests_that_never_passed_have_no_range() -> None:
    news = group_news(group(member("lab/a", numbered_tests(5), 0), member("lab/b", numbered_tests(5), 0)))
    assert (news.url, len(news.notes)) == ("", 2)
    assert news.notes[0] == "The tests: test_0, test_1, test_2 and 2 more."


def test_a_follow_up_names_only_the_targets_that_joined() -> None:
    joined = [member("lab/c", "x")]
    news = joined_news(group(member("lab/a", "x"), member("lab/b", "x"), *joined), joined)
    assert news.title == "1 more target fails in the same tests: 1 test failing since 2222222"
    assert [item.name for item in news.items] == ["lab/c"]
    joined.append(member("lab/d", "x"))
    news = joined_news(group(member("lab/a", "x"), member("lab/b", "x"), *joined), joined)
    assert news.title == "2 more targets fail in the same tests: 1 test failing since 2222222"
    assert [item.name for item in news.items] == ["lab/c", "lab/d"]


def test_the_issue_lists_current_failures_before_ended_ones() -> None:
    ends = {test: FailureEnd("", "") for test in "xyz"}
    targets = group(member("lab/a", "xyz"), member("lab/b`c", "xyz")).after(all_of("lab/a", ends))
    assert listed(group_body(targets)) == [f"{A}3 tests{SINCE}", f"{B}3 tests{SINCE}; no longer failing"]
    ends |= {"x": FailureEnd("recovered", sha(4)), "z": FailureEnd("removed", sha(5))}
    targets = targets.after(all_of("lab/a", ends))
    body = group_body(targets)
    assert listed(body) == [
        f"{A}1 test{SINCE}",
        f"{B}3 tests{SINCE}; no longer failing",
        f"{A}1 test{SINCE}; recovered at `4444444`",
        f"{A}1 test{SINCE}; removed without a pass at `5555555`",
    ]
    assert [f"- `{test}`" in body for test in "xyz"] == [False, True, False]
    assert f"[these changes]({PAGE}/compare/{sha(1)}...{sha(2)})" in body
    assert body.endswith("I'll close this issue when none of these tests fails on any of the targets.")


def test_the_closed_issue_lists_all_targets_and_tests() -> None:
    ends = {test: FailureEnd("recovered", sha(4)) for test in "xy"}
    targets = group(member("lab/a", "xy"), member("lab/b`c", "x"))
    body = group_body(targets.after({**all_of("lab/a", ends), **all_of("lab/b`c", ends)}))
    assert listed(body) == [f"{A}2 tests{SINCE}; recovered at `4444444`", f"{B}1 test{SINCE}; recovered at `4444444`"]
    assert [f"- `{test}`" in body for test in "xy"] == [True, True]
    assert f"[these changes]({PAGE}/compare/{sha(1)}...{sha(2)})" in body
    assert body.endswith("I closed this issue because none of these tests fails on any of the targets now.")


def test_a_test_that_fails_again_does_not_rejoin_the_group() -> None:
    lasts, recovered = {"x": FailureEnd("", "")}, {"x": FailureEnd("recovered", sha(4))}
    lasting = all_of("lab/b", lasts)
    targets = group(member("lab/a", "x"), member("lab/b", "x")).after({**all_of("lab/a", recovered), **lasting})
    assert (len(targets.members), len(targets.ended)) == (1, 1)
    assert targets.after({**all_of("lab/a", lasts), **lasting}) == targets


def test_many_targets_and_tests_fit_into_a_message_and_an_issue() -> None:
    large = group(*(member(f"lab/{number}", numbered_tests(3_000)) for number in range(60)))
    assert (len(group_news(large).items), group_news(large).more) == (10, 50)
    recovered = FailureEnd("recovered", sha(4))
    ends = {(target.full_name, failure): recovered for target in large.members for failure in target.failures}
    for targets in (large, large.after(ends)):
        body = group_body(targets)
        assert len(body) < 10_000
        assert "- and 2,970 more" in body
        assert "- and 40 more" in body
