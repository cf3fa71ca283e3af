"""Measurements are stored bit by bit in few bytes, and read as series and by run."""

from __future__ import annotations

import itertools
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nightjar_formats.limits import MAX_SUITE_MEASUREMENTS
from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.refused import TooMuch

from bot.results.store.measurements.number_blocks import (
    BLOCK,
    block_of,
    decimal_of,
    number_in,
    numbers_in,
    read_block,
    slots_in,
)
from bot.results.store.measurements.read import (
    MeasuredNight,
    measured_series,
    measurements_of_run,
    metrics_of_target,
    metrics_of_test,
)
from bot.results.store.measurements.write import SuiteMetric
from bot.results.store.store import ResultsStore
from bot.results.store.tables import schema
from tests.results.measurements.corpus import MeasuringDevice
from tests.results.plans import whole_tables_read
from tests.results.uploads import ABOUT, REPOSITORY, SUITE, Upload, sha

MOST_BYTES = 3
"""The most bytes of a stored number, with the key of its block."""
KEY_BYTES = 16
STATEMENTS = 5
ODD = (
    0.0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, -0.1, 1 / 3, 1e22, 1e23, 2.0**53 + 2, 123456789012345680.0,
    4e-7, 412.7, 412.70000000000005, 9.99, 10.0,
)  # fmt: skip
finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=50)
@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=5))
@example(list(itertools.product(ODD, ODD)))
def test_numbers_come_back_bit_by_bit_whatever_their_bases_are(pairs: list[tuple[float, float]]) -> None:
    numbers = {2 * slot: number for slot, (number, _) in enumerate(pairs[:BLOCK])}
    bases = {2 * slot: decimal_of(base) for slot, (_, base) in enumerate(pairs[:BLOCK])}
    data = read_block(block_of(numbers, bases))
    assert slots_in(data) == list(numbers)
    for slot, number in numbers.items():
        stored = number_in(data, slot, bases[slot])
        assert stored is not None
        assert struct.pack("<d", stored) == struct.pack("<d", number)
        assert number_in(data, slot + 1, bases[slot]) is None
    series = [(slot + offset, base) for slot, base in bases.items() for offset in (0, 1)]
    # Compared as text, which tells 0.0 from -0.0.
    assert repr(numbers_in(data, series)) == repr([number_in(data, *one) for one in series])


def test_realistic_numbers_take_few_bytes(database_url: str) -> None:
    tests, nights = 400, 8
    device = MeasuringDevice(tests)
    with closing(ResultsStore(database_url)) as store:
        store.open()
        for night in range(1, nights + 1):
            names = [f"test_{test:04}" for test in range(tests)]
            upload = Upload(
                night, dict.fromkeys(names, "passed"), measured=dict(zip(names, device.night(), strict=True))
            )
            store.put(upload.run, upload.columns)
        assert store.read(measurements_of_run, upload.run.key) == {
            name: tuple(sorted(measurements)) for name, measurements in upload.measured.items()
        }
        blobs = store.read(lambda connection: connection.execute(sa.select(schema.numbers.c.numbers)).scalars().all())
    assert len(blobs) == nights * -(-5 * tests // BLOCK)
    assert sum(len(blob) + KEY_BYTES for blob in blobs) < MOST_BYTES * nights * tests * 5


@pytest.fixture
def renaming(url_with_tables: str) -> Iterator[ResultsStore]:
    """Return a store in which a test that appears is the one that was removed, on each database in turn."""
    store = ResultsStore(url_with_tables, renames=lambda removed, new: dict(zip(removed, new, strict=True)))
    store.open()
    yield store
    store.close()


def latency(value: float, unit: str = "ms") -> tuple[Measurement, ...]:
    return (Measurement("latency", value, unit, Better.LOWER, (value, value + 1)),)


def put(store: ResultsStore, upload: Upload, *, replace: bool = False) -> bool:
    return store.put(upload.run, upload.columns, replace=replace)


def test_what_is_measured_is_followed_through_renames_repetitions_and_other_units(renaming: ResultsStore) -> None:
    def series(name: str = "latency", test: str = "test_new") -> list[tuple[str, float, str]]:
        nights = renaming.read(measured_series, ABOUT, SUITE, test, name)
        return [(night.sha, night.value, night.unit) for night in nights]

    first, last = (
        Upload(1, {"test_old": "passed", "test_ok": "passed"}, measured={"test_old": latency(412.7)}),
        Upload(4, {"test_new": "passed", "test_ok": "passed"}, measured={"test_new": latency(0.4, "s")}),
    )
    nodes = Measurement("delegated_nodes", 12.0, "nodes", Better.HIGHER)
    both = Upload(3, {"test_new": "passed", "test_ok": "passed"}, measured={"test_new": (*latency(413.0), nodes)})
    for upload in (
        last,  # the newest night arrives first
        first,
        replace(first, commit=2, measured={}),
        both,
        Upload(5, first.tests, mainline=False, pull_request=7, measured={"test_new": latency(9)}),
    ):
        assert put(renaming, upload)
    assert series() == [(sha(1), 412.7, "ms"), (sha(3), 413.0, "ms"), (sha(4), 0.4, "s")]
    assert series("delegated_nodes") == [(sha(3), 12.0, "nodes")]
    assert series("size") == series(test="test_ok") == series(test="no test") == []
    # The last run of a commit that has the measurement counts, whichever run arrives first.
    again = replace(both, run_id="2", attempt=2, measured={"test_new": latency(414.0)})
    assert put(renaming, again)
    assert series()[1] == (sha(3), 414.0, "ms")
    assert series("delegated_nodes") == [(sha(3), 12.0, "nodes")]
    # As when the bucket is read again: the same run, then one that measured something else, then one of another suite.
    assert not put(renaming, again)
    assert put(renaming, again, replace=True)
    assert series()[1] == (sha(3), 414.0, "ms")
    assert put(renaming, replace(again, measured={"test_new": latency(415.5)}), replace=True)
    assert series()[1] == (sha(3), 415.5, "ms")
    assert put(renaming, replace(again, suite="relax"), replace=True)
    assert series()[1] == (sha(3), 413.0, "ms")
    assert renaming.read(measured_series, ABOUT, "relax", "test_new", "latency") == [
        MeasuredNight(sha(3), 3000.0, 414.0, "ms", Better.LOWER)
    ]
    assert renaming.read(measurements_of_run, both.run.key) == {
        "test_new": (nodes, latency(413.0)[0]._replace(samples=()))
    }
    assert renaming.read(measurements_of_run, replace(again, run_id="3").run.key) == {}
    assert renaming.read(metrics_of_test, REPOSITORY, SUITE, "test_new") == [
        SuiteMetric("delegated_nodes", "nodes", Better.HIGHER),
        SuiteMetric("latency", "ms", Better.LOWER),
        SuiteMetric("latency", "s", Better.LOWER),
    ]
    assert renaming.read(metrics_of_target, ABOUT) == {
        SUITE: {SuiteMetric("latency", "s", Better.LOWER): 1},
        "relax": {SuiteMetric("latency", "ms", Better.LOWER): 1},
    }


def test_a_series_is_read_from_one_block_a_night_by_indices(store: ResultsStore) -> None:
    nights, tests = 12, 6 * BLOCK
    names = [f"test_{test:04}" for test in range(tests)]
    for night in range(1, nights + 1):
        measured = {name: latency(night + test / 8) for test, name in enumerate(names)}
        put(store, Upload(night, dict.fromkeys(names, "passed"), measured=measured))
        pull_request = {name: latency(0.5) for name in names}
        put(store, Upload(100 + night, dict.fromkeys(names, "passed"), mainline=False, measured=pull_request))

    def work() -> None:
        nights_read = store.read(measured_series, ABOUT, SUITE, names[300], "latency", limit=10)
        assert [night.value for night in nights_read] == [night + 300 / 8 for night in range(3, 13)]

    work()  # reads the names, which a process caches
    statements, scans = whole_tables_read(work)
    assert (statements, scans) == (STATEMENTS, [])


def test_numbers_before_the_newest_nights_cost_a_series_nothing(tmp_path: Path) -> None:
    upload = Upload(1, {"test_a": "passed"}, measured={"test_a": latency(1.0)})

    def steps(connection: sa.Connection) -> int:
        counted = list[int]()
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.set_progress_handler(lambda: counted.append(1), 1)
        assert len(measured_series(connection, ABOUT, SUITE, "test_a", "latency", limit=10)) == 10
        driver.set_progress_handler(None, 0)
        return len(counted)

    with closing(ResultsStore(f"sqlite:///{tmp_path}/nightjar.db")) as store:
        store.open()
        for night in range(50, 60):
            put(store, replace(upload, commit=night))
        alone = store.read(steps)
        for commit in range(10, 50):
            put(store, replace(upload, commit=commit, mainline=False, pull_request=commit))
        assert store.read(steps) < 1.2 * alone


def test_measurements_whose_names_differ_in_every_run_are_refused(database_url: str) -> None:
    with closing(ResultsStore(database_url)) as store:
        store.open()
        put(store, Upload(1, {"test_a": "passed"}, measured={"test_a": latency(1.0)}))
        values = {"suite_id": 1, "ordinal": 1, "metric_id": 1, "position": MAX_SUITE_MEASUREMENTS - 1}
        row = values | {"digits": 1, "exponent": 0}
        store.write(lambda connection: connection.execute(schema.measurements.insert().values(row)))
        with pytest.raises(TooMuch, match="more than 3,000,000 measurements"):
            put(store, Upload(2, {"test_a": "passed"}, measured={"test_a": latency(1.0, "us")}))
