"""What the end of a job says about its commit, and which search a request means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.results.culprit.priors import CommitTraits
from bot.results.few_tests import FewTestsOutcome, MedianValue, TestAttempts
from bot.results.measurements.levels import MeasuredLevels
from handlers.device_tests.model import DeviceJobState, JobEnd
from handlers.regressions.records import GroupMember
from handlers.searches.decide import MOST_RUNS, MOST_UNKNOWN, MOST_WITHOUT_RESULTS, advance, settled, traits_of
from handlers.searches.records import (
    SEARCHED_TEST,
    AskedRun,
    CulpritSearch,
    SearchAnswer,
    SearchedCommit,
    SearchRequest,
    SearchRunState,
    searched_test_key,
    series_name,
)
from handlers.searches.requests import MOST_TESTS, chosen_members, request_of
from tests.handlers.device_tests.cases import NOW, few_tests_job

ASKED = AskedRun(1, 5, "example-lab/hexagon-v73", 3, NOW)
REQUEST = SearchRequest("operators", ("a", "b"), ("example-lab/hexagon-v73",), "a" * 40, "b" * 40)
SEARCH = CulpritSearch(REQUEST, (), {}, NOW)


@pytest.mark.parametrize("end", JobEnd)
def test_only_a_lab_that_tried_says_that_a_commit_gives_no_results(end: JobEnd) -> None:
    job = replace(few_tests_job("search:1:1"), state=DeviceJobState.ENDED, end=end, ended_at=NOW)
    tried = end in {JobEnd.NONE, JobEnd.LAB_FAILED, JobEnd.TOO_LONG}
    assert settled(SEARCH, ASKED, job, NOW).state is (SearchRunState.NO_RESULTS if tried else SearchRunState.LOST)


def test_a_search_for_failures_keeps_the_id_it_had_before_measurements_were_searched() -> None:
    assert REQUEST.id == "3b2babee687e"
    assert replace(REQUEST, measurement="latency").id != REQUEST.id


def test_each_test_of_a_suite_on_a_target_of_a_repository_has_its_own_newest_search() -> None:
    test = (5, "example-lab/hexagon-v73", "operators", "a")
    others = [(6, *test[1:]), (5, "example-lab/mali", *test[2:]), (*test[:2], "relax", "a"), (*test[:3], "b")]
    assert len({searched_test_key(*parts) for parts in (test, *others)}) == 5
    assert searched_test_key(*test) == SEARCHED_TEST.of(5, "2a4cae7d05401a5b562f2f4a")


def test_a_request_names_the_tests_and_targets_and_the_range_that_all_members_share() -> None:
    member = GroupMember("example-lab", "mali", "operators", "b" * 40, 20.0, "a" * 40, 10.0, ("t2", "t1"))
    earlier = replace(member, target="adreno", since="d" * 40, since_at=15.0, tests=("t1", "t3"))
    newer = replace(member, good="c" * 40, good_at=12.0)
    assert request_of([member, earlier, newer], "latency") == SearchRequest(
        "operators", ("t1", "t2", "t3"), ("example-lab/adreno", "example-lab/mali"), "c" * 40, "d" * 40, "latency"
    )
    many = request_of([replace(member, tests=tuple(f"t{number:02}" for number in range(MOST_TESTS + 1)))])
    assert many is not None
    assert (many.tests[-1], many.measurement) == ("t09", "")
    assert request_of([replace(member, good="", good_at=0.0)]) is None


def test_the_failures_that_somebody_means_and_those_that_began_with_them() -> None:
    mali = GroupMember("example-lab", "mali", "operators", "b" * 40, 20.0, "a" * 40, 10.0, ("t1", "t2"))
    adreno = replace(mali, target="adreno")
    other_suite, never_passed = replace(adreno, suite="relax"), replace(mali, good="", tests=("t1",))
    members = [mali, adreno, other_suite, never_passed]
    assert chosen_members(members, "Example-Lab/Mali", "") == [[mali, adreno]]
    assert chosen_members(members, "example-lab/mali", "t2") == [[mali, adreno]]
    assert chosen_members(members, "example-lab/mali", "t3") == []
    assert chosen_members(members, "example-lab/adreno", "t1") == [[adreno, mali, never_passed], [other_suite]]


def test_a_run_whose_job_is_not_known_is_lost_after_a_while() -> None:
    assert settled(SEARCH, ASKED, None, NOW + MOST_UNKNOWN) == ASKED
    lost = replace(ASKED, state=SearchRunState.LOST, ended_at=NOW + MOST_UNKNOWN + 1)
    assert settled(SEARCH, ASKED, None, NOW + MOST_UNKNOWN + 1) == lost
    ended = replace(ASKED, state=SearchRunState.RESULTS, ended_at=NOW)
    assert settled(SEARCH, ended, None, NOW + 2 * MOST_UNKNOWN) == ended
    assert settled(SEARCH, ASKED, few_tests_job("search:1:1"), NOW + 2 * MOST_UNKNOWN) == ASKED


def test_a_run_has_what_its_job_measured_or_counted() -> None:
    head = {"a": TestAttempts(2, 1, 0, medians=(MedianValue("latency", "ms", 467.0),)), "b": TestAttempts(0, 0, 0)}
    ended = replace(few_tests_job("search:1:1"), state=DeviceJobState.ENDED, log_url="https://logs.example.org/7")
    job = replace(ended, outcome=FewTestsOutcome(head, {}, 12.5).dump())
    run = replace(ASKED, state=SearchRunState.RESULTS, seconds=12.5, log_url="https://logs.example.org/7")
    counted = replace(run, counts={"a": (1, 2)}, ended_at=NOW)
    assert settled(SEARCH, ASKED, job, NOW) == counted
    assert settled(SEARCH, ASKED, replace(job, ended_at=NOW - 9), NOW) == replace(counted, ended_at=NOW - 9)
    measured = replace(
        SEARCH,
        request=replace(REQUEST, measurement="latency"),
        levels={ASKED.target: MeasuredLevels(412.0, 467.0, "ms")},
    )
    assert settled(measured, ASKED, job, NOW) == replace(run, ended_at=NOW, counts={"a": (1, 0)}, value=467.0)
    other_unit = replace(measured, levels={ASKED.target: MeasuredLevels(412.0, 467.0, "s")})
    assert settled(other_unit, ASKED, job, NOW) == replace(run, ended_at=NOW, state=SearchRunState.NO_RESULTS)


COMMITS = tuple(SearchedCommit(f"{number:040x}", f"Change {number}") for number in range(1, 5))
RANGE = replace(SEARCH, commits=COMMITS, histories={}, began_at=NOW)


def run_of(number: int, commit: int, state: SearchRunState, counts: tuple[int, int] = (0, 0)) -> AskedRun:
    results = {"a": counts, "other": (9, 9)} if state is SearchRunState.RESULTS else {}
    return AskedRun(number, commit, ASKED.target, 3, NOW, state, NOW + number, results)


def test_a_search_asks_next_for_the_ends_of_the_range_and_names_a_commit_in_the_end() -> None:
    search = replace(RANGE, request=replace(REQUEST, tests=("a",)), histories={series_name(ASKED.target, "a"): (0, 90)})
    first = advance(search, [ASKED.target, ASKED.target], is_stopped=False, moment=NOW)
    assert [(run.number, run.commit, run.target, run.asked_at) for run in first.new_runs] == [
        (1, 4, ASKED.target, NOW),
        (2, 0, ASKED.target, NOW),
    ]
    assert (first.search.runs, first.search.step, first.search.answer) == (first.new_runs, 2, None)
    results = SearchRunState.RESULTS
    ended = [run_of(1, 4, results, (3, 0)), run_of(2, 0, results, (0, 3)), run_of(3, 2, results, (3, 0))]
    ended += [run_of(4, 1, results, (0, 3)), run_of(5, 2, results, (3, 0)), run_of(6, 1, results, (0, 3))]
    last = advance(replace(search, runs=tuple(ended)), [ASKED.target], is_stopped=False, moment=NOW + 9)
    assert last.search.answer == SearchAnswer("culprit", last.posterior.chance_of_culprit(1), 2, 2)
    assert (last.search.ended_at, last.search.step, last.new_runs) == (NOW + 9, 2, ())
    repeats = advance(replace(search, request=replace(search.request, measurement="latency")), [ASKED.target],
                      is_stopped=False, moment=NOW)  # fmt: skip
    assert [run.repeat for run in repeats.new_runs] == [3]


@pytest.mark.parametrize(
    ("states", "is_stopped", "goes_on"),
    [
        ([SearchRunState.NO_RESULTS] * (MOST_WITHOUT_RESULTS - 1), False, True),
        ([SearchRunState.NO_RESULTS] * (MOST_WITHOUT_RESULTS - 1) + [SearchRunState.LOST], False, False),
        ([SearchRunState.RESULTS] + [SearchRunState.LOST] * (MOST_WITHOUT_RESULTS - 1), False, True),
        ([SearchRunState.LOST] * MOST_WITHOUT_RESULTS + [SearchRunState.RESULTS], False, True),
        ([], True, False),
        ([SearchRunState.RESULTS] * (MOST_RUNS - 1), False, True),
        ([SearchRunState.RESULTS] * MOST_RUNS, False, False),
    ],
)
def test_a_search_ends_without_an_answer_after_many_jobs_without_results_or_too_many(
    states: list[SearchRunState], is_stopped: bool, goes_on: bool
) -> None:
    search = replace(RANGE, request=replace(REQUEST, tests=("a",)), histories={series_name(ASKED.target, "a"): (0, 90)})
    runs = tuple(run_of(number, 4, state, (1, 1)) for number, state in enumerate(states, 1))
    progress = advance(replace(search, runs=runs), [ASKED.target], is_stopped=is_stopped, moment=NOW)
    assert (progress.search.answer is None, bool(progress.new_runs)) == (goes_on, goes_on)


def test_titles_say_which_commit_reverts_another() -> None:
    titles = ["Faster (#12)", 'Revert "Faster" (#14)', 'Revert "Other"', "Docs (#x", 'Revert "Docs (#x"', "Faster"]
    commits = [SearchedCommit(f"{number:040x}", title) for number, title in enumerate(titles)]
    assert [traits.reverts for traits in traits_of(commits)] == [None, 0, None, None, 3, None]
    docs = replace(commits[0], only_docs=True)
    assert traits_of([docs, replace(commits[0], only_other_targets=True)]) == [
        CommitTraits(only_docs=True),
        CommitTraits(only_other_targets=True),
    ]
