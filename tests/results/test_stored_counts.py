"""Counts stored with a run equal those that a grid computes from the columns, whatever the order of arrival."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nightjar_formats.model import TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.quarantine import NO_QUARANTINE, Quarantine
from bot.results.settings.quarantine import EXAMPLE, QuarantinedTest
from bot.results.state import RunState
from bot.results.store.grid.grid import GridPoint, grid_of
from bot.results.store.grid.rows import GridRange
from bot.results.store.store import ResultsStore
from bot.results.store.tables import schema
from bot.results.store.tables.cells import count_cell
from tests.results.test_any_order import fresh, on_one_database, stored, uploads
from tests.results.uploads import REPOSITORY, Upload

COMMITS = 60
"""More than the window of flakiness has, so that what is late changes some points and others not."""
ITEM = QuarantinedTest.model_validate({**EXAMPLE, "until": "2030-01-01"})
QUARANTINE = Quarantine({"test_1": ITEM}, (("test_2", ITEM),))
CONFIGURED = (
    (NO_ALIASES, NO_QUARANTINE),
    (Aliases([("test_old", "test_3")]), NO_QUARANTINE),
    (NO_ALIASES, QUARANTINE),
)


def random_runs(chance: random.Random, *, renamed: bool) -> list[Upload]:
    """Return runs in any order: tests fail, are flaky, new, removed and renamed; some runs are incomplete."""
    runs = []
    for number in range(1, COMMITS + 1):
        tests = {f"test_{test}": chance.choices(("passed", "failed", "skipped"), (8, 2, 1))[0] for test in range(8)}
        if renamed and number < 30:
            tests["test_old"] = tests.pop("test_3")
        tests |= {f"test_ok_{name}": "passed" for name in range(20)}
        for name in ("test_5", "test_6"):
            if chance.random() < 0.1:
                del tests[name]
        flaky = frozenset(name for name in ("test_1", "test_2", "test_old") if chance.random() < 0.2) & tests.keys()
        upload = Upload(number, tests, flaky=flaky, mainline=chance.random() > 0.05)
        shards = upload.in_shards(2) if chance.random() < 0.2 else [upload]
        runs += shards[: chance.choice((1, 2))] if chance.random() < 0.3 else shards
    chance.shuffle(runs)
    return runs


def listed(quarantine: Quarantine, _: TargetKey) -> Quarantine:
    return quarantine


def differences(store: ResultsStore, grid_range: GridRange) -> list[object]:
    """Return the points whose counts differ from those of their columns."""
    plain, counted = (store.read(grid_of, replace(grid_range, counts=counts)).points for counts in (False, True))
    assert plain.keys() == counted.keys()
    return [
        place for place, point in plain.items() if not point.infra and counts_of(point) != counts_of(counted[place])
    ]


def counts_of(point: GridPoint) -> object:
    counts = point.counts or count_cell(point.previous, point.column)
    return counts.passed, counts.failed, counts.skipped, counts.flaky, counts.new, counts.known


@pytest.mark.exhaustive("sqlite-1-False", "postgresql-2-True")
@pytest.mark.parametrize(("seed", "renamed"), [(1, False), (2, True), (3, False)])
def test_counts_equal_those_of_the_columns_whatever_is_late(store: ResultsStore, seed: int, renamed: bool) -> None:
    chance = random.Random(seed)
    runs = random_runs(chance, renamed=renamed)
    for index, upload in enumerate(runs):
        store.put(upload.run, upload.columns)
        if index % 20 == 0:
            assert differences(store, GridRange(REPOSITORY, limit=COMMITS)) == []
    for upload in chance.sample(runs, 5):
        # The bucket is read again, with other content, and GitHub names another time of the commit.
        tests = {name: chance.choice(("passed", "failed")) for name in upload.tests}
        replacement = replace(upload, tests=tests, at=1000.0 * chance.randrange(COMMITS) + 500)
        store.put(replacement.run, replacement.columns, replace=True)
    for aliases, quarantine in CONFIGURED:
        grid_range = GridRange(REPOSITORY, limit=COMMITS, aliases=aliases, quarantine=partial(listed, quarantine))
        assert differences(store, grid_range) == []
    grid = store.read(grid_of, GridRange(REPOSITORY, limit=COMMITS, counts=True))
    counted = [point for point in grid.points.values() if point.counts]
    if not renamed:
        assert len(counted) == sum(point.complete and not point.infra for point in grid.points.values())
    assert len(counted) > 10
    assert sum(point.counts.new for point in counted if point.counts) > 10
    assert sum(point.counts.known for point in counted if point.counts) > 10
    # Points of an older version lack the counts of explained failures, and those with failures are counted anew.
    forget = schema.points.update().where(schema.points.c.id % 2 == 0).values(known=None, failed_flaky=None)
    store.write(lambda connection: connection.execute(forget))
    assert differences(store, GridRange(REPOSITORY, limit=COMMITS)) == []


@pytest.mark.exhaustive("sqlite")
@settings(on_one_database, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(uploads(), st.data())
def test_counts_equal_those_of_the_columns(store: ResultsStore, uploads: list[Upload], data: st.DataObject) -> None:
    repository = fresh()
    repeated = data.draw(st.lists(st.sampled_from(uploads), max_size=3))
    for upload in repeated:
        store.put_state(replace(upload, repository=repository).without_results(RunState.WAITING))
    stored(store, repository, data.draw(st.permutations(uploads + repeated)))
    assert differences(store, GridRange(repository, limit=COMMITS)) == []
