"""Runs have the same result whatever their order, their pieces and their repetitions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nightjar_formats.columns import status_byte
from nightjar_formats.measurements import Measurement
from nightjar_formats.model import Status, TargetKey
from nightjar_formats.runs.few_tests import FEW_TESTS

from bot.results.state import Run, RunState
from bot.results.store.commit import commit_state, seen_tests
from bot.results.store.history.history import history
from bot.results.store.lists.run_lists import newest_arrivals
from bot.results.store.measurements.read import measured_series
from bot.results.store.store import ResultsStore
from tests.results.snapshot import snapshot_of
from tests.results.uploads import LAB, SUITE, Upload, Verdict, changes, merged, series, sha

# Each example has its own repository in the test's only database.
on_one_database = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
numbers = itertools.count()

NAMES = [f"te/test_ops.py::test_{name}" for name in ("add", "mul", "div", "sub")]
STATUSES = [status.value for status in Status]
TARGETS = ("adreno", "hexagon-v73")

results = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(STATUSES), min_size=1)
latencies = st.floats(allow_nan=False, allow_infinity=False) | st.integers(3900, 4200).map(lambda number: number / 10)
measured = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(Measurement, st.just("latency"), latencies, st.sampled_from(("ms", "s"))).map(lambda number: (number,)),
)


@st.composite
def uploads(draw: st.DrawFn) -> list[Upload]:
    """Draw runs of a few commits: some in shards with some missing, some of pull requests, some repeated."""
    uploads = []
    for number in range(draw(st.integers(1, 6))):
        commit = draw(st.integers(1, 4))
        upload = Upload(
            commit,
            draw(results),
            f"run-{number}",
            target=draw(st.sampled_from(TARGETS)),
            attempt=draw(st.integers(1, 2)),
            # Commits 3 and 4 were made in the same second.
            at=1000.0 * min(commit, 3),
            mainline=commit != 2,
            pull_request=7 if commit == 2 else None,
            flaky=frozenset(draw(st.sets(st.sampled_from(NAMES), max_size=1))),
            measured=draw(measured),
        )
        shards = upload.in_shards(draw(st.integers(1, 3)))
        uploads += shards[: draw(st.integers(1, len(shards)))]
    return uploads


def stored(store: ResultsStore, repository: str, uploads: Iterable[Upload]) -> None:
    for upload in uploads:
        renamed = replace(upload, repository=repository)
        store.put(renamed.run, renamed.columns)


def fresh() -> str:
    return f"octocat/compiler-{next(numbers)}"


def snapshot(store: ResultsStore, repository: str) -> Any:
    """Return all contents of the store, as if the repository had another name."""
    return json.loads(json.dumps(store.read(snapshot_of, repository)).replace(repository, "octocat/compiler"))


@pytest.mark.exhaustive("sqlite")
@on_one_database
@given(uploads(), st.data())
def test_any_order_and_any_repetition_give_the_same_records(
    store: ResultsStore, uploads: list[Upload], data: st.DataObject
) -> None:
    first, second = fresh(), fresh()
    stored(store, first, uploads)
    repeated = data.draw(st.lists(st.sampled_from(uploads), max_size=3))
    shuffled = data.draw(st.permutations(uploads + repeated))
    for upload in repeated:
        store.put_state(replace(upload, repository=second).without_results(RunState.WAITING))
    stored(store, second, shuffled)
    assert snapshot(store, first) == snapshot(store, second)
    for target, commit in itertools.product(TARGETS, range(1, 5)):
        first_state, second_state = (
            store.read(commit_state, TargetKey(name, LAB, target), sha(commit)) for name in (first, second)
        )
        assert _plain(first_state.suites, first) == _plain(second_state.suites, second)


@pytest.mark.exhaustive("sqlite")
@on_one_database
@given(uploads(), st.data())
def test_runs_of_a_few_tests_change_nothing_else(
    store: ResultsStore, uploads: list[Upload], data: st.DataObject
) -> None:
    alone, together = fresh(), fresh()
    stored(store, alone, uploads)
    states = st.sampled_from([RunState.FEW_TESTS, RunState.WAITING, RunState.REFUSED])
    for number, upload in enumerate(uploads):
        renamed = replace(upload, repository=together)
        # As the ingester stores them: without a suite and an admission.
        key = replace(renamed.run.key, run_id=f"{FEW_TESTS}{number}-1")
        few_tests = Run(key, "version", data.draw(states), "", renamed.run.received_at)
        if before := data.draw(st.booleans()):
            store.put_state(few_tests)
        store.put(renamed.run, renamed.columns)
        if not before:
            store.put_state(few_tests)
    contents = snapshot(store, together)
    few_tests_runs = [folder for folder in contents["runs"] if f"/{FEW_TESTS}" in folder]
    assert len(few_tests_runs) == len(uploads)
    for folder in few_tests_runs:
        del contents["runs"][folder]
    assert contents == snapshot(store, alone)
    for target, commit in itertools.product(TARGETS, range(1, 5)):
        states_of_commit = [
            _plain(store.read(commit_state, TargetKey(name, LAB, target), sha(commit)).suites, name)
            for name in (alone, together)
        ]
        assert states_of_commit[0] == states_of_commit[1]
    assert _without_name(store.read(newest_arrivals, alone)) == _without_name(store.read(newest_arrivals, together))


def _without_name(arrivals: Mapping[TargetKey, float]) -> dict[str, float]:
    return {target.full_name: moment for target, moment in arrivals.items()}


def _plain(suites: Mapping[str, Any], repository: str) -> object:
    return {
        name: (
            dict(suite.seen),
            dict(suite.details),
            [run.key.folder.removeprefix(repository) for run in suite.runs],
            suite.shard_total,
            suite.missing_shards,
            suite.complete,
        )
        for name, suite in suites.items()
    }


@pytest.mark.exhaustive("sqlite")
@on_one_database
@given(uploads())
def test_the_store_gives_the_same_answers_as_a_simple_model(store: ResultsStore, uploads: list[Upload]) -> None:
    repository = fresh()
    stored(store, repository, uploads)
    for target in TARGETS:
        target_key = TargetKey(repository, LAB, target)
        of_target = [upload for upload in uploads if upload.target == target]
        for commit in range(1, 5):
            expected = merged(upload for upload in of_target if upload.commit == commit)
            seen = store.read(seen_tests, target_key, SUITE, sha(commit))
            assert {name: Verdict(result.status, result.flaky) for name, result in seen.items()} == expected
        assert _changes(store, target_key) == _as_stored(of_target)
        for name in NAMES:
            segments = store.read(history, repository, SUITE, name).get(target_key, ())
            assert [(segment.sha, segment.status, segment.flaky) for segment in segments] == _segments(of_target, name)
            nights = store.read(measured_series, target_key, SUITE, name, "latency")
            assert [(night.sha, repr(night.value), night.unit) for night in nights] == _latencies(of_target, name)


def _latencies(uploads: Sequence[Upload], name: str) -> list[tuple[str, str, str]]:
    latencies = []
    for commit, _ in series(uploads):
        runs = sorted(
            (upload for upload in uploads if upload.run.key.sha == commit),
            key=lambda upload: (upload.attempt, upload.run_id),
        )
        of_commit = [run.measured[name][0] for run in runs if name in run.measured and name in run.tests]
        latencies += [(commit, repr(number.value), number.unit) for number in of_commit[-1:]]
    return latencies


def _changes(store: ResultsStore, target: TargetKey) -> dict[str, dict[str, tuple[int, int]]]:
    series_by_suite: Any = store.read(snapshot_of, target.repository)["series"]
    points = series_by_suite.get(SUITE, {}).get(f"{target.lab}/{target.target}", [])
    return {
        point["sha"]: {name: (old, new) for name, old, new in point["changes"]} for point in points if point["linked"]
    }


def _as_stored(uploads: Sequence[Upload]) -> dict[str, dict[str, tuple[int, int]]]:
    return {
        commit: {name: (_byte(old), _byte(new)) for name, (old, new) in changed.items()}
        for commit, changed in changes(uploads).items()
    }


def _byte(verdict: Verdict | None) -> int:
    return 0 if verdict is None else status_byte(*verdict)


def _segments(uploads: Sequence[Upload], name: str) -> list[tuple[str, Status | None, bool]]:
    segments: list[tuple[str, Status | None, bool]] = []
    previous: Verdict | None = None
    for commit, verdicts in series(uploads):
        verdict = verdicts.get(name)
        if verdict != previous:
            segments.append((commit, verdict.status if verdict else None, bool(verdict and verdict.flaky)))
        previous = verdict
    return segments


@pytest.mark.exhaustive("sqlite")
@on_one_database
@given(results, results, results, st.integers(1, 4), st.data())
def test_a_run_in_shards_gives_the_same_records_as_the_whole(
    store: ResultsStore,
    first: dict[str, str],
    second: dict[str, str],
    third: dict[str, str],
    total: int,
    data: st.DataObject,
) -> None:
    complete = [Upload(number, tests) for number, tests in enumerate((first, second, third), 1)]
    shards = data.draw(st.permutations([shard for upload in complete for shard in upload.in_shards(total)]))
    whole_repository, sharded_repository = fresh(), fresh()
    stored(store, whole_repository, complete)
    stored(store, sharded_repository, shards)
    assert store.read(snapshot_of, whole_repository)["series"] == store.read(snapshot_of, sharded_repository)["series"]
    assert store.read(snapshot_of, whole_repository)["checks"] == store.read(snapshot_of, sharded_repository)["checks"]
    for number in (1, 2, 3):
        states = [
            store.read(commit_state, TargetKey(name, LAB, "adreno"), sha(number))
            for name in (whole_repository, sharded_repository)
        ]
        whole_state, sharded_state = (state.suites[SUITE] for state in states)
        assert (whole_state.seen, dict(whole_state.details), whole_state.complete) == (
            sharded_state.seen,
            dict(sharded_state.details),
            sharded_state.complete,
        )


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_renamed_tests_are_found_in_any_order_of_the_nightly_runs(store: ResultsStore, order: Sequence[int]) -> None:
    nightly_runs = [
        Upload(number, {f"{file}::test_{name}": "failed" if name == number else "passed" for name in range(12)})
        for number, file in enumerate(("te/a.py", "te/b.py", "ir/b.py"), 1)
    ]
    stored(store, "octocat/in-order", nightly_runs)
    stored(store, "octocat/shuffled", [nightly_runs[place] for place in order])
    inside: Any = store.read(snapshot_of, "octocat/shuffled")["series"]
    assert inside == store.read(snapshot_of, "octocat/in-order")["series"]
    assert [len(point["renames"]) for point in inside[SUITE][f"{LAB}/adreno"]] == [0, 12, 12]
