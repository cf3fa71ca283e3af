"""What moved: changes are found when a nightly run has arrived, and are the same whatever the order of arrival."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from nightjar_formats.measurements import Better, Measurement

from bot.results.measurements.levels import MeasuredLevels
from bot.results.measurements.moved import MovedSeries, MoveState
from bot.results.measurements.unexpected import NumbersOfPull
from bot.results.settings.measurements import ChangeLimits, MeasurementSettings
from bot.results.store.measurements.levels import LevelsBefore, SeriesName, levels_before
from bot.results.store.measurements.moved import confirmed_series, moved_by_id, moved_series
from bot.results.store.measurements.pull_numbers import numbers_of_pull
from bot.results.store.measurements.search import GONE, find_moves, store_moves
from bot.results.store.store import ResultsStore
from tests.results.measurements.corpus import MeasuringDevice
from tests.results.plans import whole_tables_read
from tests.results.uploads import ABOUT, REPOSITORY, SUITE, Upload, sha

NIGHTS = 60
SLOWER, FASTER, LOST, FOUND, RENAMED = 45, 50, 30, 52, 40
NAMES = {test: f"te/test_ops.py::test_{test}" for test in ("slower", "faster", "nodes", "steady")}


def night(number: int, *, target: str = "adreno") -> Upload:
    """Return a nightly run whose numbers have 1 % of noise, and the changes above; a test is renamed on the way."""

    def latency(level: float, salt: str) -> Measurement:
        value = round(level * random.Random(f"{number}{salt}").gauss(1, 0.01), 2)
        return Measurement("latency", value, "ms", Better.LOWER)

    nodes = 12.0 if number < LOST or number >= FOUND else 11.0
    slower = NAMES["slower"] if number < RENAMED else "te/test_new.py::test_slower"
    measured = {
        slower: (latency(400 if number < SLOWER else 480, "slower"),),
        NAMES["faster"]: (latency(80 if number < FASTER else 60, "faster"),),
        NAMES["nodes"]: (Measurement("delegated_nodes", nodes, "nodes", Better.HIGHER), latency(5, "nodes")),
        NAMES["steady"]: (latency(7, "steady"), Measurement("ratio", float(number % 3))),
    }
    return Upload(number, dict.fromkeys(measured, "passed"), measured=measured, target=target)


def searched(store: ResultsStore, limits: ChangeLimits = ChangeLimits()) -> bool:  # noqa: B008  # immutable
    return store.write(store_moves, store.read(find_moves, ABOUT, limits))


def moved(store: ResultsStore) -> list[MovedSeries]:
    return store.read(moved_series, REPOSITORY)


@pytest.fixture
def renaming(tmp_path: Path) -> Iterator[ResultsStore]:
    """Return a store in which a test that appears is the one that was removed."""
    with closing(ResultsStore(f"sqlite:///{tmp_path}/nightjar.db", renames=_renamed)) as store:
        store.open()
        yield store


def _renamed(removed: Iterable[str], new: Iterable[str]) -> dict[str, str]:
    return dict(zip(removed, new, strict=True))


def test_a_change_is_stored_once_two_nights_confirm_it_and_then_its_end(renaming: ResultsStore) -> None:
    news = []
    for number in range(1, NIGHTS + 1):
        upload = night(number)
        renaming.put(upload.run, upload.columns)
        ids = {change.id for change in moved(renaming)}
        searched(renaming)
        news += [(number, change.name, change.text, change.since) for change in moved(renaming) if change.id not in ids]
    assert [(number, name, since) for number, name, _, since in news] == [
        (LOST, "delegated_nodes", sha(LOST)),
        (SLOWER + 3, "latency", sha(SLOWER)),
        (FOUND, "delegated_nodes", sha(FOUND)),
        (FASTER + 3, "latency", sha(FASTER)),
    ]
    # The newest change comes first, although the one before it was confirmed after it.
    regained, faster, slower, lost = moved(renaming)
    assert regained.confirmed_at < faster.confirmed_at
    assert [change.state for change in (regained, faster, slower, lost)] == [
        MoveState.IMPROVEMENT,
        MoveState.IMPROVEMENT,
        MoveState.OPEN,
        MoveState.ENDED,
    ]
    assert lost.text == "delegated_nodes 12 -> 11 nodes"
    assert (lost.good, lost.ended_in, lost.ended_at) == (sha(LOST - 1), sha(FOUND), 1000.0 * FOUND)
    assert slower.test == "te/test_new.py::test_slower"
    assert slower.share == pytest.approx(0.2, abs=0.01)
    assert (slower.low < 480 < slower.high, slower.good) == (True, sha(SLOWER - 1))
    # Pages of the list, of a target too, and by ID.
    pages = [
        renaming.read(moved_series, REPOSITORY, ABOUT, 2),
        renaming.read(moved_series, REPOSITORY, None, 2, faster.cursor),
    ]
    assert pages == [[regained, faster], [slower, lost]]
    assert renaming.read(moved_series, REPOSITORY, replace(ABOUT, target="mali")) == []
    assert renaming.read(moved_by_id, [lost.id, "no such change"]) == {lost.id: lost}
    # Nothing is new: one search finds that out without reading a number.
    assert whole_tables_read(lambda: searched(renaming)) == (5, [])
    # A higher threshold takes changes back; the default one finds them again.
    assert searched(renaming, ChangeLimits([{"lat*": MeasurementSettings(least="22%")}]))
    assert [change.name for change in moved(renaming)] == ["delegated_nodes", "latency", "delegated_nodes"]
    assert searched(renaming)
    assert moved(renaming) == [regained, faster, slower, lost]


def test_what_moved_is_stored_and_read_on_both_databases(store: ResultsStore) -> None:
    for number, nodes in enumerate((12, 12, 11, 11, 12), 1):
        measured = {"test_a": (Measurement("delegated_nodes", float(nodes), "nodes", Better.HIGHER),)}
        upload = Upload(number, {"test_a": "passed"}, measured=measured)
        store.put(upload.run, upload.columns)
        searched(store)
    assert [(change.text, change.since, change.ended_in) for change in moved(store)] == [
        ("delegated_nodes 11 -> 12 nodes", sha(5), ""),
        ("delegated_nodes 12 -> 11 nodes", sha(3), sha(5)),
    ]

    def work() -> None:
        first, second = store.read(moved_series, REPOSITORY, ABOUT)
        assert store.read(moved_series, REPOSITORY, ABOUT, 1) == [first]
        assert store.read(moved_series, REPOSITORY, before=first.cursor) == [second]
        assert store.read(moved_by_id, [first.id]) == {first.id: first}
        assert store.read(confirmed_series, REPOSITORY, 5, first.confirmed_at) == [first]

    assert whole_tables_read(work)[1] == []


def test_the_levels_around_a_change_come_with_the_nights_since_the_one_before(store: ResultsStore) -> None:
    """Nights of an older level, and those of another unit, say nothing about the noise of the level before a change."""
    for number in range(1, NIGHTS + 1):
        value = 300.0 if number < 30 else 407.0 if number == 35 else 400.0 + number % 3 if number < 50 else 412.0
        size = Measurement("size", value, "B" if number != 40 else "bytes", Better.LOWER)
        upload = Upload(number, {"test_a": "passed"}, measured={"test_a": (size,)})
        store.put(upload.run, upload.columns)
    searched(store, ChangeLimits([{"size": MeasurementSettings(least="2.5%")}]))
    first, second = reversed(moved(store))
    assert (first.since, second.since) == (sha(30), sha(50))
    series = SeriesName(SUITE, "test_a", "size")
    before = LevelsBefore(MeasuredLevels(second.before, second.after, "B"), 1, 18)
    assert store.read(levels_before, ABOUT, series, second.since) == before
    for other in (series._replace(name="latency"), series._replace(test="test_b"), series._replace(suite="other")):
        assert store.read(levels_before, ABOUT, other, second.since) is None
    assert store.read(levels_before, ABOUT, series, sha(31)) is None
    assert store.read(levels_before, replace(ABOUT, target="mali"), series, second.since) is None
    assert whole_tables_read(lambda: store.read(levels_before, ABOUT, series, second.since))[1] == []


def test_a_change_ends_when_its_test_measures_nothing_more(renaming: ResultsStore) -> None:
    """In the night that follows from the nights alone, whether all arrive at once or one by one."""
    uploads = []
    for number in range(1, 13):
        nodes = {"test_a": (Measurement("delegated_nodes", 12.0 - (number > 2), "nodes", Better.HIGHER),)}
        measured = {"test_b": (Measurement("size", 7.0, "B", Better.LOWER),)} | (nodes if number < 5 else {})
        uploads.append(Upload(number, {"test_a": "passed", "test_b": "passed"}, measured=measured))
    for upload in uploads:
        renaming.put(upload.run, upload.columns)
        searched(renaming)
        (*_, ended_in) = [change.ended_in for change in moved(renaming)] or [""]
        assert ended_in == (sha(4 + GONE) if upload.commit >= 4 + GONE else "")
    assert searched(renaming, ChangeLimits([{"*": MeasurementSettings(least="50%")}]))
    assert searched(renaming)
    assert [change.ended_in for change in moved(renaming)] == [sha(4 + GONE)]


@pytest.mark.no_cover
def test_what_moved_does_not_depend_on_the_order_of_arrival(tmp_path: Path) -> None:
    uploads = [night(number) for number in range(1, NIGHTS + 1)]
    # A second run of a night, whose number counts, and a pull request's run, whose number does not.
    nodes = {NAMES["nodes"]: (Measurement("delegated_nodes", 10.0, "nodes", Better.HIGHER),)}
    uploads.append(replace(uploads[34], run_id="2", attempt=2, measured=nodes))
    uploads.append(replace(uploads[36], run_id="3", mainline=False, pull_request=7, commit=99, measured=nodes))
    orders, generator = [uploads, uploads[::-1]], random.Random(7)
    for _ in range(2):
        orders.append(generator.sample(uploads, len(uploads)))
    results = []
    for number, order in enumerate(orders):
        with closing(ResultsStore(f"sqlite:///{tmp_path}/{number}.db", renames=_renamed)) as store:
            store.open()
            for place, upload in enumerate(order):
                store.put(upload.run, upload.columns)
                if not place % 7:
                    searched(store)
            searched(store)
            results.append(moved(store))
    assert [change.text for change in results[0] if change.is_exact] == [
        "delegated_nodes 11 -> 12 nodes",
        "delegated_nodes 10 -> 11 nodes",
        "delegated_nodes 11 -> 10 nodes",
        "delegated_nodes 12 -> 11 nodes",
    ]
    assert results == [results[0]] * len(orders)


@pytest.mark.no_cover
def test_a_search_each_night_finds_what_one_search_of_all_nights_finds(tmp_path: Path) -> None:
    """Each night, most series are judged by their newest nights alone."""
    chance, shifts = random.Random(31), dict[int, list[tuple[int, float]]]()
    for test in range(24):
        starts = sorted(chance.sample(range(5, 130), chance.choice((0, 1, 1, 3))))
        shifts[test] = [(start, chance.choice((0.8, 0.94, 1.07, 1.3))) for start in starts]
    device = MeasuringDevice(len(shifts), seed=31)
    uploads = []
    for number in range(1, 131):
        measured = dict[str, tuple[Measurement, ...]]()
        for test, measurements in enumerate(device.night()):
            factor = math.prod(shift for start, shift in shifts[test] if number >= start)
            # Some tests are skipped at times, for longer than a change lasts without values.
            if (number + 7 * test) % 60 >= (10 if test % 4 == 0 else 0):
                shifted = (one._replace(value=float(f"{one.value * factor:.6g}")) for one in measurements)
                measured[f"test_{test}"] = tuple(shifted)
        uploads.append(Upload(number, {f"test_{test}": "passed" for test in shifts}, measured=measured))
    found = []
    for searches in ("each night", "once"):
        with closing(ResultsStore(f"sqlite:///{tmp_path}/{searches}.db")) as store:
            store.open()
            for upload in uploads:
                store.put(upload.run, upload.columns)
                if searches == "each night":
                    searched(store)
            searched(store)
            found.append({change.id: change for change in store.read(moved_series, REPOSITORY, limit=5_000)})
    each, once = found
    assert len(once) > 100
    assert len([change for change in once.values() if not change.is_exact]) > 20
    assert each == once


def test_a_pull_request_is_compared_with_what_the_nightly_runs_up_to_its_baseline_lead_to_expect(
    renaming: ResultsStore,
) -> None:
    for number in range(1, NIGHTS + 1):
        upload = night(number)
        renaming.put(upload.run, upload.columns)
    measured = night(41).measured
    latency = Measurement("latency", 460.0, "ms", Better.LOWER)
    nodes = Measurement("delegated_nodes", 12.0, "nodes", Better.HIGHER)
    pull = replace(
        night(99),
        mainline=False,
        pull_request=7,
        measured={
            **measured,
            "te/test_new.py::test_slower": (latency,),
            NAMES["nodes"]: (nodes, *measured[NAMES["nodes"]][1:]),
            "te/test_ops.py::test_added": (latency,),
        },
    )
    renaming.put(pull.run, pull.columns)

    def compared(baseline: int, limits: ChangeLimits = ChangeLimits()) -> NumbersOfPull:  # noqa: B008  # immutable
        return renaming.read(numbers_of_pull, ABOUT, sha(99), {SUITE: sha(baseline)}, limits)

    result = compared(44)
    assert result.compared == 6
    assert [(number.test, number.name, number.is_worse) for number in result.unexpected] == [
        ("te/test_new.py::test_slower", "latency", True),
        (NAMES["nodes"], "delegated_nodes", False),
    ]
    slower, more_nodes = result.unexpected
    assert 380 < slower.low < slower.level < slower.high < 420
    assert (more_nodes.value, more_nodes.low, more_nodes.high) == (12.0, 11.0, 11.0)
    # Later nights are slower, and have the nodes again.
    assert [(number.test, number.is_worse) for number in compared(59).unexpected] == [
        (NAMES["faster"], True),
        ("te/test_new.py::test_slower", False),
    ]
    loose = ChangeLimits([{"*": MeasurementSettings(least="50%")}])
    assert compared(44, loose) == NumbersOfPull(6)
    assert renaming.read(numbers_of_pull, ABOUT, sha(99), {}) == NumbersOfPull()
