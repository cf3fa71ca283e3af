"""Store six million results; measure their bytes on disk, and the time of queries.

There are 30 nightly runs of 10 targets with 20,000 tests. In each run, 60 tests begin or cease to fail. Durations are
lognormal, and those of one test vary by five percent. One in a hundred tests fails, with a text; a quarter is skipped.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psycopg
from nightjar_formats.columns.collect import collect
from nightjar_formats.model import Case, Claims, RunKey, Status, TargetKey

from benchmarks.report import Options, Row, command
from benchmarks.stage import DURABLE, POSTGRESQL
from bot.results.compare.diff import compare
from bot.results.state import Admission, Run, RunState
from bot.results.store.commit import seen_tests
from bot.results.store.history.history import history
from bot.results.store.store import ResultsStore
from tests.postgres import running_server

TITLE = "Six million results of 30 nightly runs"
RUNS, TARGETS, TESTS, FLIPS = 30, 10, 20_000, 60
SEED = 20_261_120
JITTER = 0.05
WARM = 20
REPOSITORY, LAB, SUITE = "octocat/compiler", "example-lab", "operators"
DAY = 86_400.0
TRACE = "\n".join(f"python/compiler/lower_{number}.py:{number}: in lower_operator" for number in range(40))


async def measure(options: Options) -> list[Row]:
    """Store the results, then measure queries."""
    tests = options.count(TESTS)
    with database(options.database) as (url, size):
        store = ResultsStore(url)
        store.open()
        empty = size()
        began = Stopwatch()
        slowest = max(_store_runs(store, tests), key=lambda cost: cost.seconds)
        loaded = began.took()
        store.close()
        count = RUNS * TARGETS * tests
        rows: list[Row] = [
            {"what": "bytes for each result", "measured": round((size() - empty) / count, 2), "CPU": ""},
            _row("the slowest run stored, ms", slowest),
            {
                "what": "all nightly runs made and stored, s",
                "measured": round(loaded.seconds, 1),
                "CPU": str(round(loaded.cpu, 1)),
            },
        ]
        for label, ask in _questions(tests).items():
            rows.append(_row(f"{label}: cold, ms", cold_read(url, ask)))
            rows.append(_row(f"{label}: warm, ms", warm_reads(url, ask)))
        return rows


class StoreCost(NamedTuple):
    """Wall-clock and processor time, in seconds."""

    seconds: float
    cpu: float


class Stopwatch:
    """Measures from its creation on."""

    def __init__(self) -> None:
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def took(self) -> StoreCost:
        """Return the times until now."""
        return StoreCost(time.perf_counter() - self._began, time.process_time() - self._cpu)


def _row(label: str, cost: StoreCost) -> Row:
    return {"what": label, "measured": round(1000 * cost.seconds, 1), "CPU": str(round(1000 * cost.cpu, 1))}


@contextlib.contextmanager
def database(kind: str) -> Generator[tuple[str, Callable[[], int]]]:
    """Make an empty database; its URL, and a function that returns its bytes on disk."""
    if kind == POSTGRESQL:
        with running_server(DURABLE) as server:
            url = server.create_database()
            yield url, lambda: _server_bytes(url)
        return
    folder = Path(tempfile.mkdtemp(prefix="nightjar-bench-"))
    try:
        yield f"sqlite:///{folder}/nightjar.db", lambda: (folder / "nightjar.db").stat().st_size
    finally:
        shutil.rmtree(folder)


def _server_bytes(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row is not None
        return int(row[0])


class _Board:
    """One target, with the outcomes of its tests run by run."""

    def __init__(self, number: int, tests: int) -> None:
        self.chance = random.Random(SEED + number)
        self.about = TargetKey(REPOSITORY, LAB, f"board-{number}")
        self.seconds = [self.chance.lognormvariate(-3, 1.3) for _ in range(tests)]
        ends = (Status.FAILED, Status.SKIPPED, Status.PASSED)
        self.ends = [self.chance.choices(ends, (1, 25, 74))[0] for _ in range(tests)]

    def cases(self, number: int) -> Iterator[Case]:
        """Change the outcome of some tests, and yield the cases of a run."""
        if number:
            failing = [place for place, status in enumerate(self.ends) if status is Status.FAILED]
            passed = [place for place, status in enumerate(self.ends) if status is Status.PASSED]
            fixed = min(FLIPS // 2, len(failing))
            for places, status in ((failing, Status.PASSED), (passed, Status.FAILED)):
                for place in self.chance.sample(places, fixed if places is failing else FLIPS - fixed):
                    self.ends[place] = status
        for place, status in enumerate(self.ends):
            seconds = round(self.seconds[place] * self.chance.gauss(1, JITTER), 3)
            text, message = "", ""
            if status is Status.FAILED:
                message, text = f"AssertionError: value {place} differs", f"{TRACE}\nE   value {place} differs"
            elif status is Status.SKIPPED:
                message = ("need gpu", "not built", "too slow for the device")[place % 3]
            yield Case(name_of(place), status, seconds=max(0.0, seconds), message=message, text=text)


def name_of(place: int) -> str:
    """Return the ID of a test."""
    return f"tests/python/relax/test_operators_{place // 200}.py::test_lowering_{place}[llvm-float32-{place % 224}]"


def _resolve(case: Case) -> tuple[str, str]:
    return case.name, case.name.partition("::")[0]


def _store_runs(store: ResultsStore, tests: int) -> Iterator[StoreCost]:
    boards = [_Board(number, tests) for number in range(TARGETS)]
    for number in range(RUNS):
        for board in boards:
            columns = collect(board.cases(number), _resolve)
            key = RunKey(REPOSITORY, LAB, board.about.target, sha(number), "1")
            moment = DAY * number
            run = Run(key, "etag", RunState.STORED, "", moment, 0, Claims(SUITE), Admission(moment, mainline=True))
            began = Stopwatch()
            store.put(run, columns)
            yield began.took()


def sha(number: int) -> str:
    """Return the SHA of a run's commit."""
    return f"{number + 1:040x}"


Ask = Callable[[ResultsStore], object]


def _questions(tests: int) -> dict[str, Ask]:
    target = TargetKey(REPOSITORY, LAB, f"board-{TARGETS - 1}")
    places = iter(random.Random(SEED).choices(range(tests), k=10 * WARM))

    def two_runs(store: ResultsStore) -> object:
        # The verdicts of all 40,000 tests with their reasons, and the report.
        current, baseline = (store.read(seen_tests, target, SUITE, sha(number)) for number in (RUNS - 1, RUNS - 2))
        return compare(current, baseline, exit_status=1)

    return {
        "one test's history on all targets": lambda store: store.read(
            history, REPOSITORY, SUITE, name_of(next(places))
        ),
        "two runs compared as for a check run": two_runs,
    }


def cold_read(url: str, ask: Ask) -> StoreCost:
    """Run the first query of a store that was just opened."""
    store = ResultsStore(url)
    store.open()
    began = Stopwatch()
    ask(store)
    took = began.took()
    store.close()
    return took


def warm_reads(url: str, ask: Ask) -> StoreCost:
    """Run queries of a store that has answered one; return their median."""
    store = ResultsStore(url)
    store.open()
    costs = []
    for _ in range(WARM + 1):
        began = Stopwatch()
        ask(store)
        costs.append(began.took())
    store.close()
    return StoreCost(median(cost.seconds for cost in costs[1:]), median(cost.cpu for cost in costs[1:]))


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
