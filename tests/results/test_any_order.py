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
from nightjar_formats.model import Status, TargetKey

from bot.results.state import RunState
from bot.results.store.store import ResultsStore
from tests.results.uploads import LAB, SUITE, Upload, Verdict, changes, merged, series, sha

# Each example has its own repository in the test's only database.
on_one_database = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
numbers = itertools.count()

NAMES = [f"te/test_ops.py::test_{name}" for name in ("add", "mul", "div", "sub")]
STATUSES = [status.value for status in Status]
TARGETS = ("adreno", "hexagon-v73")

results = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(STATUSES), min_size=1)


@st.composite
def uploads(draw: st.DrawFn) -> list[Upload]:
    """Draw runs of a few commits: some in shards with some missing, some of pull requests, some repeated."""
    found = []
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
        )
        shards = upload.in_shards(draw(st.integers(1, 3)))
        found += shards[: draw(st.integers(1, len(shards)))]
    return found


def stored(store: ResultsStore, repository: str, uploads: Iterable[Upload]) -> None:
    for upload in uploads:
        ours = replace(upload, repository=repository)
        store.put(ours.run, ours.columns)


def fresh() -> str:
    return f"octocat/compiler-{next(numbers)}"


def snapshot(store: ResultsStore, repository: str) -> Any:
    """Return all contents of the store, as if the repository had another name."""
    return json.loads(json.dumps(store.snapshot(repository)).replace(repository, "octocat/compiler"))


@on_one_database
@given(uploads(), st.data())
def test_any_order_and_any_repetition_give_the_same_records(
    store: ResultsStore, uploads: list[Upload], data: st.DataObject
) -> None:
    one, other = fresh(), fresh()
    stored(store, one, uploads)
    repeated = data.draw(st.lists(st.sampled_from(uploads), max_size=3))
    shuffled = data.draw(st.permutations(uploads + repeated))
    for upload in repeated:
        store.note(replace(upload, repository=other).without_results(RunState.WAITING))
    stored(store, other, shuffled)
    assert snapshot(store, one) == snapshot(store, other)
    for target, commit in itertools.product(TARGETS, range(1, 5)):
        ours, theirs = (store.state(TargetKey(name, LAB, target), sha(commit)) for name in (one, other))
        assert _plain(ours.suites, one) == _plain(theirs.suites, other)


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


@on_one_database
@given(uploads())
def test_the_store_gives_the_same_answers_as_a_simple_model(store: ResultsStore, uploads: list[Upload]) -> None:
    repository = fresh()
    stored(store, repository, uploads)
    for target in TARGETS:
        about = TargetKey(repository, LAB, target)
        of_target = [upload for upload in uploads if upload.target == target]
        for commit in range(1, 5):
            expected = merged(upload for upload in of_target if upload.commit == commit)
            seen = store.seen(about, SUITE, sha(commit))
            assert {name: Verdict(one.status, one.flaky) for name, one in seen.items()} == expected
        assert _changes(store, about) == _as_stored(of_target)
        for name in NAMES:
            segments = store.history(repository, SUITE, name).get(about, ())
            assert [(one.sha, one.status, one.flaky) for one in segments] == _segments(of_target, name)


def _changes(store: ResultsStore, about: TargetKey) -> dict[str, dict[str, tuple[int, int]]]:
    every: Any = store.snapshot(about.repository)["series"]
    points = every.get(SUITE, {}).get(f"{about.lab}/{about.target}", [])
    return {
        point["sha"]: {name: (before, after) for name, before, after in point["changes"]}
        for point in points
        if point["linked"]
    }


def _as_stored(uploads: Sequence[Upload]) -> dict[str, dict[str, tuple[int, int]]]:
    return {
        commit: {name: (_byte(before), _byte(now)) for name, (before, now) in changed.items()}
        for commit, changed in changes(uploads).items()
    }


def _byte(verdict: Verdict | None) -> int:
    return 0 if verdict is None else status_byte(*verdict)


def _segments(uploads: Sequence[Upload], name: str) -> list[tuple[str, Status | None, bool]]:
    found: list[tuple[str, Status | None, bool]] = []
    before: Verdict | None = None
    for commit, verdicts in series(uploads):
        now = verdicts.get(name)
        if now != before:
            found.append((commit, now.status if now else None, bool(now and now.flaky)))
        before = now
    return found


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
    whole = [Upload(number, tests) for number, tests in enumerate((first, second, third), 1)]
    parts = data.draw(st.permutations([part for upload in whole for part in upload.in_shards(total)]))
    one, other = fresh(), fresh()
    stored(store, one, whole)
    stored(store, other, parts)
    assert store.snapshot(one)["series"] == store.snapshot(other)["series"]
    assert store.snapshot(one)["checks"] == store.snapshot(other)["checks"]
    for number in (1, 2, 3):
        states = [store.state(TargetKey(name, LAB, "adreno"), sha(number)) for name in (one, other)]
        ours, theirs = (state.suites[SUITE] for state in states)
        assert (ours.seen, dict(ours.details), ours.complete) == (theirs.seen, dict(theirs.details), theirs.complete)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_renamed_tests_are_found_in_any_order_of_the_nightly_runs(store: ResultsStore, order: Sequence[int]) -> None:
    nightly_runs = [
        Upload(number, {f"{file}::test_{name}": "failed" if name == number else "passed" for name in range(12)})
        for number, file in enumerate(("te/a.py", "te/b.py", "ir/b.py"), 1)
    ]
    stored(store, "octocat/in-order", nightly_runs)
    stored(store, "octocat/shuffled", [nightly_runs[place] for place in order])
    inside: Any = store.snapshot("octocat/shuffled")["series"]
    assert inside == store.snapshot("octocat/in-order")["series"]
    assert [len(point["renames"]) for point in inside[SUITE][f"{LAB}/adreno"]] == [0, 12, 12]
