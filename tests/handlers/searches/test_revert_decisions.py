"""Whether a culprit is reverted, and what tests without it say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handlers.searches.records import (
    AskedRun,
    CulpritSearch,
    SearchAnswer,
    SearchedCommit,
    SearchRequest,
    SearchRunState,
)
from handlers.searches.revert.decide import repeats_without, reverted_pull, stage_after
from handlers.searches.revert.records import CulpritRevert, RevertStage
from handlers.searches.revert.texts import (
    HEADING,
    NEVER_MERGED,
    draft_body,
    revert_section,
    revert_sentence,
    with_notice,
    without_notice,
)

TEST, OTHER, HEXAGON, ADRENO = "test_add", "test_mul", "example-lab/hexagon-v73", "example-lab/adreno"
RESULTS, LOST, WAITING = SearchRunState.RESULTS, SearchRunState.LOST, SearchRunState.WAITING


def ran(number: int, target: str = HEXAGON, state: SearchRunState = RESULTS, **counts: tuple[int, int]) -> AskedRun:
    return AskedRun(number, 2, target, 5, 0.0, state, counts=counts)


def searched(answer: SearchAnswer | None, *runs: AskedRun) -> CulpritSearch:
    request = SearchRequest("operators", (TEST,), (HEXAGON,), "a" * 40, "c" * 40)
    commits = (SearchedCommit("b" * 40, "One"), SearchedCommit("c" * 40, "Two"))
    return CulpritSearch(request, commits, {}, 0.0, runs, answer)


@pytest.mark.parametrize(
    ("answer", "pull"),
    [
        (None, 0),
        (SearchAnswer("culprit", 0.99, 2, 2, 12), 12),
        (SearchAnswer("culprit", 0.9899, 2, 2, 12), 0),
        (SearchAnswer("culprit", 0.999, 2, 2), 0),
        (SearchAnswer("range", 0.999, 1, 2), 0),
        (SearchAnswer("environment", 0.999, 0, 0), 0),
    ],
)
def test_only_one_pull_request_with_99_percent_is_reverted(answer: SearchAnswer | None, pull: int) -> None:
    assert reverted_pull(searched(answer)) == pull


@pytest.mark.parametrize(
    ("runs", "stage"),
    [
        ([], RevertStage.WAITING),
        ([ran(1, test_add=(0, 5), test_mul=(0, 5))], RevertStage.OPENED),
        ([ran(1, test_add=(0, 5))], RevertStage.WAITING),
        ([ran(1, test_add=(0, 5)), ran(2, ADRENO, test_mul=(0, 5))], RevertStage.OPENED),
        ([ran(1, test_add=(0, 5), test_mul=(1, 4))], RevertStage.FAILED),
        ([ran(1, test_add=(0, 5), test_mul=(0, 5)), ran(2, ADRENO, test_mul=(1, 0))], RevertStage.FAILED),
        ([ran(1, test_add=(0, 5), test_mul=(0, 5), unrelated=(9, 0))], RevertStage.OPENED),
        ([ran(1, test_add=(1, 0)), ran(2, ADRENO, WAITING)], RevertStage.TESTING),
        ([ran(1, test_add=(0, 5), test_mul=(0, 5)), ran(2, ADRENO, LOST)], RevertStage.OPENED),
        ([ran(1, HEXAGON, LOST), ran(2, HEXAGON, LOST)], RevertStage.WAITING),
        ([ran(1, HEXAGON, LOST), ran(2, HEXAGON, LOST), ran(3, HEXAGON, LOST)], RevertStage.UNKNOWN),
    ],
)
def test_all_tests_must_pass_without_the_culprit(runs: list[AskedRun], stage: RevertStage) -> None:
    assert stage_after(runs, [TEST, OTHER]) is stage


@pytest.mark.parametrize(
    ("failed", "passed", "repeats"), [(10, 0, 2), (9, 1, 2), (5, 5, 7), (2, 8, 21), (1, 9, 44), (1, 19, 50)]
)
def test_a_test_that_rarely_fails_runs_often(failed: int, passed: int, repeats: int) -> None:
    answer = SearchAnswer("culprit", 0.99, 2, 2, 12)
    before = AskedRun(1, 1, HEXAGON, 5, 0.0, RESULTS, counts={TEST: (0, 100)})
    assert repeats_without(searched(answer, before, ran(2, test_add=(failed, passed)))) == repeats


def test_the_notice_above_a_description_comes_and_goes() -> None:
    body = "<!-- nightjar:revert:12 -->\nReverts octocat/compiler#12"
    closed = with_notice(body, "It was wrong.", is_ours=True)
    assert "**Closed.** It was wrong." in closed
    assert without_notice(closed) == (body, True)
    assert with_notice(*without_notice(closed)[:1], "", is_ours=True) == body
    assert without_notice(with_notice(body, "It was wrong.", is_ours=False)) == (body, False)


@pytest.mark.parametrize("stage", RevertStage)
def test_each_stage_is_a_sentence(stage: RevertStage) -> None:
    runs = (ran(1, test_add=(1, 4)),)
    revert = CulpritRevert("abc", 12, stage, "main", "a" * 40, "b" * 40, runs, 45, is_own=True, reason="No.")
    sentence = revert_sentence(revert)
    assert "{" not in sentence
    assert sentence.endswith(".")


def test_the_draft_compares_the_runs_of_each_target_and_links_the_log_and_the_search() -> None:
    answer = SearchAnswer("culprit", 0.99987, 2, 2, 12)
    before = [ran(1, test_add=(4, 1), test_mul=(3, 2)), replace(ran(2, test_add=(0, 5)), commit=1)]
    runs = (
        replace(ran(1, test_add=(0, 20)), log_url="https://example.org/log"),
        replace(ran(2, ADRENO, LOST), log_url="javascript:1"),
    )
    revert = CulpritRevert("1a", 12, RevertStage.OPENED, "main", "d" * 40, "e" * 40, runs, 13, is_own=True)
    body = f"""\
<!-- nightjar:revert:12 -->
Reverts octocat/compiler#12

Since #12, the test `test_add` of `operators` fails on `example-lab/hexagon-v73`, with a probability of 99.9%.

I reverted it upon `dddddddddd`, the head of `main` then, and ran the tests at that commit, `eeeeeeeeee`. They pass:

| target | at `cccccccccc`, with #12 | at `eeeeeeeeee`, without it | log |
| --- | --- | --- | --- |
| `example-lab/hexagon-v73` | failed 7 of 10 | failed 0 of 20 | [log](https://example.org/log) |
| `example-lab/adreno` |  | no lab ran it |  |

{NEVER_MERGED}"""
    search = searched(answer, *before)
    assert draft_body(search, revert, "octocat/compiler", "") == body
    linked = draft_body(search, revert, "octocat/compiler", "https://example.org/s")
    assert linked == f"{body}\n\n[The search, step by step](https://example.org/s)"
    both = replace(search, request=replace(search.request, tests=(TEST, OTHER), targets=(HEXAGON, ADRENO)))
    assert (
        "Since #12, the tests `test_add`, `test_mul` of `operators` fail on `example-lab/hexagon-v73`, "
        "`example-lab/adreno`, with"
    ) in draft_body(both, revert, "octocat/compiler", "")
    assert revert_section(revert) == f"{HEADING}\n\n{revert_sentence(revert)}"
