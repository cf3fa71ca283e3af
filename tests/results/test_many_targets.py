"""Reading many targets together gives the same as reading each alone, whatever their tests did."""

from __future__ import annotations

import random

import pytest
from nightjar_formats.columns import SEEN, at, status_byte
from nightjar_formats.model import BAD, Status, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.flaky import WINDOW
from bot.results.store.commit import seen_tests
from bot.results.store.failures.failing_now import targets_now
from bot.results.store.failures.failures import failing_tests, newest_runs
from bot.results.store.grid.grid import grid_of
from bot.results.store.grid.rows import GridRange
from bot.results.store.grid.test_runs import runs_of_test
from bot.results.store.history.flakiness import flakiness_of_tests, known_flaky_tests
from bot.results.store.history.history import history_on_targets
from bot.results.store.store import ResultsStore
from bot.results.store.tables.cells import FAILS, KNOWN
from bot.results.store.tables.names import all_names
from tests.results.uploads import LAB, REPOSITORY, SUITE, Upload

TARGETS = ("adreno", "hexagon")
RUNS = 50
ALIASES = Aliases([("test_old", "test_3")])


def random_uploads(chance: random.Random) -> list[Upload]:
    """Return runs of two targets in any order; some tests are flaky, one is renamed, some are absent."""
    uploads = []
    for target in TARGETS:
        for number in range(1, RUNS + 1):
            tests = {f"test_{test}": chance.choices(("passed", "failed", "skipped"), (6, 3, 1))[0] for test in range(8)}
            if number < 25:
                tests["test_old"] = tests.pop("test_3")
            tests |= {f"test_ok_{test}": "passed" for test in range(20)}
            if chance.random() < 0.2:
                del tests["test_5"]
            flaky = frozenset(name for name in ("test_1", "test_2", "test_old") if chance.random() < 0.3) & tests.keys()
            shard = (1, 2) if number == 30 else (1, 1)
            uploads.append(Upload(number, tests, target=target, flaky=flaky, shard=shard))
    chance.shuffle(uploads)
    return uploads


@pytest.mark.exhaustive("sqlite")
def test_many_targets_give_the_same_as_each_alone(store: ResultsStore) -> None:
    for upload in random_uploads(random.Random(1)):
        store.put(upload.run, upload.columns)
    for aliases in (NO_ALIASES, ALIASES):
        check_explained_failures_of_a_grid(store, aliases)
        check_what_fails_now(store, aliases)


def check_explained_failures_of_a_grid(filled: ResultsStore, aliases: Aliases) -> None:
    grid = filled.read(grid_of, GridRange(REPOSITORY, limit=14, aliases=aliases))
    explained = compared = 0
    for line in grid.lines:
        names = filled.read(all_names, line.row)
        shas = [sha for _, sha in grid.commits]
        for sha in shas[:-1]:
            point = grid.points[line.series, sha]
            assert point.previous is not None
            failing = {ordinal for ordinal, byte in enumerate(point.column) if byte in FAILS}
            failures = {names[ordinal]: SEEN[point.column[ordinal]] for ordinal in failing}
            alone = filled.read(flakiness_of_tests, line.target, SUITE, sha, failures, aliases)
            known = filled.read(known_flaky_tests, line.target, SUITE, sha, failures, aliases)
            for ordinal in failing:
                listed = at(point.previous, ordinal) == KNOWN
                assert listed == alone[names[ordinal]].explains, (line.target, sha, names[ordinal])
                assert listed == (names[ordinal] in known)
                explained += listed
                compared += 1
    assert 0 < explained < compared


def check_what_fails_now(filled: ResultsStore, aliases: Aliases) -> None:
    now_of = filled.read(targets_now, REPOSITORY, 3, aliases)
    for target in TARGETS:
        target_key = TargetKey(REPOSITORY, LAB, target)
        tests, total = filled.read(failing_tests, target_key, 1000, aliases)
        newest, now = filled.read(newest_runs, target_key), now_of[target_key]
        failures = {failing_test.test: SEEN[status_byte(Status.FAILED)] for failing_test in tests}
        known = filled.read(known_flaky_tests, target_key, SUITE, now.sha, failures, aliases)
        assert {test.test for test in tests if test.known_flaky} == known.keys()
        seen_there = filled.read(seen_tests, target_key, SUITE, now.sha).values()
        flaky = sum(seen.flaky and seen.status in BAD for seen in seen_there)
        assert (now.sha, now.suites, now.failing) == (newest[0].sha, 1, total - len(known))
        assert now.known == len(known) + flaky
        since_of = {test.test: test.context.since or test.sha for test in tests if test.test not in known}
        listed = {failure.test: failure.since for failure in now.failures}
        assert len(listed) == min(3, now.failing)
        assert listed.items() <= since_of.items()
        # Those that began to fail in the newest run come first.
        new = [test for test, since in since_of.items() if since == newest[0].sha]
        assert len(set(new) & set(listed)) == min(3, len(new))


def test_a_history_of_any_length_has_the_new_failures_of_the_grid(store: ResultsStore) -> None:
    """A test that both passed and failed in all earlier runs is known to be flaky, however few runs are listed."""
    for number in range(1, WINDOW + 4):
        complete = number < WINDOW + 2
        upload = Upload(
            number,
            {"test_flaky": "passed" if complete else "failed", "test_ok": "passed" if complete else "failed"},
            flaky=frozenset({"test_flaky"} if complete else ()),
            shard=(1, 1) if complete else (1, 2),
        )
        store.put(upload.run, upload.columns)
    grid = store.read(grid_of, GridRange(REPOSITORY))
    (line,) = grid.lines
    names, shas = store.read(all_names, line.row), [sha for _, sha in grid.commits[:2]]
    for test, is_new in (("test_flaky", False), ("test_ok", True)):
        points = [grid.points[line.series, sha] for sha in shas]
        statuses = [
            (at(point.previous or b"", names.index(test)), at(point.column, names.index(test))) for point in points
        ]
        assert [previous != KNOWN and current in FAILS for previous, current in statuses] == [is_new, is_new]
        traced = store.read(history_on_targets, grid.lines, test, NO_ALIASES)
        for count in (WINDOW, 3, 2, 1):
            grid_range = GridRange(REPOSITORY, limit=count)
            runs = store.read(runs_of_test, [line], test, traced, grid_range)[line.series][:2]
            assert {run.previous != KNOWN for run in runs} == {is_new}
