"""What the end of a job says about its commit, and which search a request means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handlers.device_tests.model import DeviceJobState, JobEnd
from handlers.regressions.records import GroupMember
from handlers.searches.decide import settled
from handlers.searches.records import (
    SEARCHED_TEST,
    AskedRun,
    CulpritSearch,
    SearchRequest,
    SearchRunState,
    searched_test_key,
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
