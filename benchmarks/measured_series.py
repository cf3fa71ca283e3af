"""Store a million numbers that tests measured in a thousand nights; measure their bytes on disk, and the time of reads.

The numbers are those of `tests/results/measurements/corpus.py`: times with noise in three to six digits, sizes, counts.
"""

from __future__ import annotations

import random

from nightjar_formats.columns.collect import collect
from nightjar_formats.model import Case, Claims, RunKey, Status, TargetKey

from benchmarks.report import Options, Row, command
from benchmarks.results_store import Ask, Stopwatch, StoreCost, cold_read, database, warm_reads
from bot.results.measurements.changes import analysis_of
from bot.results.settings.measurements import LEAST_CHANGE
from bot.results.state import Admission, Run, RunState
from bot.results.store.measurements.read import measured_series, measurements_of_run, metrics_of_target
from bot.results.store.store import ResultsStore
from tests.results.measurements.corpus import SEED, MeasuringDevice

TITLE = "A million measured numbers of a thousand nights"
NIGHTS, TESTS, NUMBERS = 1_000, 200, 5
REPOSITORY, LAB, SUITE = "octocat/compiler", "example-lab", "operators"
ABOUT = TargetKey(REPOSITORY, LAB, "board-1")
ANALYSED = 50
DAY = 86_400.0


async def measure(options: Options) -> list[Row]:
    """Store the nights without numbers and with them, then measure reads."""
    nights = options.count(NIGHTS)
    without = _stored_bytes(options.database, nights, measures=False)
    with database(options.database) as (url, size):
        store = ResultsStore(url)
        store.open()
        slowest = _store(store, nights, measures=True)
        store.close()
        rows: list[Row] = [
            {
                "what": "bytes for each number",
                "measured": round((size() - without) / (nights * TESTS * NUMBERS), 2),
                "CPU": "",
            },
            _row("the slowest run stored, ms", slowest),
        ]
        for label, ask in _questions(nights).items():
            rows.append(_row(f"{label}: cold, ms", cold_read(url, ask)))
            rows.append(_row(f"{label}: warm, ms", warm_reads(url, ask)))
        rows.append(_row("changes of a series of 1,000 nights, ms", _analysis()))
        return rows


def _analysis() -> StoreCost:
    """Return what it costs to look for changes in a series of 1,000 nights with noise: the mean of many series."""
    chance = random.Random(SEED)
    many = [[412 * chance.lognormvariate(0, 0.02) for _ in range(NIGHTS)] for _ in range(ANALYSED)]
    began = Stopwatch()
    for values in many:
        analysis_of(values, LEAST_CHANGE)
    cost = began.took()
    return StoreCost(cost.seconds / ANALYSED, cost.cpu / ANALYSED)


def _row(label: str, cost: StoreCost) -> Row:
    return {"what": label, "measured": round(1000 * cost.seconds, 1), "CPU": str(round(1000 * cost.cpu, 1))}


def _stored_bytes(kind: str, nights: int, *, measures: bool) -> int:
    with database(kind) as (url, size):
        store = ResultsStore(url)
        store.open()
        _store(store, nights, measures=measures)
        store.close()
        return size()


def _name_of(test: int) -> str:
    return f"tests/test_operators_{test // 50}.py::test_lowering[{test}]"


def _sha(night: int) -> str:
    return f"{night + 1:040x}"


def _store(store: ResultsStore, nights: int, *, measures: bool) -> StoreCost:
    device = MeasuringDevice(TESTS)
    names = list(map(_name_of, range(TESTS)))
    costs = []
    for night in range(nights):
        columns = collect((Case(name, Status.PASSED) for name in names), lambda case: (case.name, ""))
        if measures:
            columns.measurements = dict(zip(map(hash, names), device.night(), strict=True))
        run = _run(night)
        began = Stopwatch()
        store.put(run, columns)
        costs.append(began.took())
    return max(costs, key=lambda cost: cost.seconds)


def _run(night: int) -> Run:
    key = RunKey(REPOSITORY, LAB, ABOUT.target, _sha(night), "1")
    moment = DAY * night
    return Run(key, "etag", RunState.STORED, "", moment, 0, Claims(SUITE), Admission(moment, mainline=True))


def _questions(nights: int) -> dict[str, Ask]:
    chance = random.Random(SEED)

    def series(store: ResultsStore) -> object:
        test = _name_of(chance.randrange(TESTS))
        return store.read(measured_series, ABOUT, SUITE, test, "latency")

    def newest(store: ResultsStore) -> object:
        return store.read(measurements_of_run, _run(nights - 1).key)

    return {
        "one measurement over all nights": series,
        "all measurements of a run": newest,
        "what a target measures": lambda store: store.read(metrics_of_target, ABOUT),
    }


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
