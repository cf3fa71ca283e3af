"""The durations of a suite's tests, over all its runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from nightjar_formats.columns.collect import collect
from nightjar_formats.model import Case, Claims, RunKey, Status, TargetKey

from bot.results.state import Admission, Run, RunState
from bot.results.store.commit import durations_of_commit
from bot.results.store.lists.earlier_durations import DAY, EarlierDurations, commits_per_day, earlier_durations
from bot.results.store.store import ResultsStore
from tests.tables import with_tables

ABOUT = TargetKey("octocat/compiler", "ci", "linux")
SHA, OTHER = "a" * 40, "b" * 40


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultsStore]:
    store = ResultsStore(with_tables(f"sqlite:///{tmp_path}/nightjar.db"))
    store.open()
    yield store
    store.close()


def put(
    store: ResultsStore,
    run_id: str,
    *,
    sha: str = SHA,
    attempt: int = 1,
    committed_at: float = 1_795_152_000.0,
    **seconds: float | None,
) -> None:
    """Store a run of tests with these durations."""
    key = RunKey(ABOUT.repository, ABOUT.lab, ABOUT.target, sha, run_id)
    claims, admission = Claims("ops", attempt=attempt), Admission(committed_at, mainline=True)
    run = Run(key, "v1", RunState.STORED, "", 1_795_152_000.0, 0, claims, admission)
    cases = [Case(name, Status.PASSED, seconds=took) for name, took in seconds.items()]
    store.put(run, collect(cases, lambda case: (case.name, "")))


def near(**seconds: float) -> object:
    return pytest.approx(seconds, rel=0.03)


def test_each_timed_test_has_its_seconds(store: ResultsStore) -> None:
    put(store, "1", add=1.5, mul=None, div=120.0, none=0.0)
    durations = store.read(durations_of_commit, ABOUT, "ops", SHA)
    assert durations == near(add=1.5, div=120.0, none=0.0)
    assert store.read(durations_of_commit, ABOUT, "ops", OTHER) == {}
    assert store.read(durations_of_commit, ABOUT, "te", SHA) == {}
    assert store.read(durations_of_commit, TargetKey("octocat/compiler", "ci", "mac"), "ops", SHA) == {}


def test_of_several_runs_the_last_one_that_timed_a_test_counts(store: ResultsStore) -> None:
    put(store, "2", attempt=2, add=3.0, mul=None)
    put(store, "1", add=1.0, mul=2.0, div=4.0)
    put(store, "0", sha=OTHER, add=9.0)
    assert store.read(durations_of_commit, ABOUT, "ops", SHA) == near(add=3.0, mul=2.0, div=4.0)


def test_the_last_runs_of_a_branch_have_totals_and_the_longest_time_of_each_test(store: ResultsStore) -> None:
    shas = [letter * 40 for letter in "abcd"]
    for number, (sha, add) in enumerate(zip(shas, (5.0, 90.0, 20.0, 70.0), strict=True)):
        put(store, "1", sha=sha, committed_at=1_795_152_000.0 + number, add=add, mul=10.0)
    earlier = store.read(earlier_durations, ABOUT, "ops", shas[2], 2)
    assert earlier.totals == pytest.approx((100.0, 30.0), rel=0.03)
    assert earlier.longest == near(add=90.0, mul=10.0)
    assert store.read(earlier_durations, ABOUT, "te", shas[2], 2) == EarlierDurations()
    moment = 1_795_152_000.0 + 7 * DAY
    assert store.read(commits_per_day, ABOUT, moment, 8) == 4 / 8
    assert store.read(commits_per_day, ABOUT, moment, 6) == 0.0
