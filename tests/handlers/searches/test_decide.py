"""What the end of a job says about its commit, and which search a request means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handlers.device_tests.model import DeviceJobState, JobEnd
from handlers.searches.decide import settled
from handlers.searches.records import AskedRun, CulpritSearch, SearchRequest, SearchRunState
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
