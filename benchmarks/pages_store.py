"""Create a store of 10^8 results for the pages: 250 nightly runs of 20 targets with 20,000 tests.

Every run goes through `ResultsStore.put`, like an uploaded one, but its columns are generated instead of parsed: the
tests of a target are collected once, and each run changes the outcome of some. 600 tests break now and then, 20 of each
target are flaky, and a quarter is skipped on one target or another. Durations are lognormal and vary by five percent.
200 tests of each target measure five numbers, and every run has a log. Messages about lasting failures, moved
measurements and ancestors of commits are stored like the bot's.

`python -m benchmarks.pages_store FILE` creates the store alone. It continues a store whose creation was interrupted.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click
from nightjar_formats.columns import CODES, FLAKY, STATUS_BYTES, duration_code
from nightjar_formats.columns.collect import Columns, collect
from nightjar_formats.model import Case, Claims, RunKey, Status, TargetKey
from nightjar_formats.runs.artifacts import LOG
from nightjar_formats.runs.manifest import ArtifactEntry

from benchmarks.results_store import TRACE, name_of
from bot.results.compare.ancestors import Relation
from bot.results.state import Admission, Run, RunState
from bot.results.store.failures.failures import Failure, store_reports
from bot.results.store.measurements.search import find_moves, store_moves
from bot.results.store.store import ResultsStore
from bot.results.store.tables.ancestry import learn
from tests.results.measurements.corpus import MeasuringDevice

REPOSITORY, LABS, SUITE = "octocat/compiler", ("example-lab", "hubot-lab"), "operators"
TARGETS_OF_LAB = 10
TARGETS_OF_HEAD = 4
DAY, HOUR = 86_400.0, 3_600.0
SEED = 20_261_123
FRAGILE, FLAKY_TESTS, FLIPS = 600, 20, 30
VARIANTS = 8
"""The number of different columns of durations per target; its runs use them in turn."""
REPORTED = 2
"""The number of messages about lasting failures per run of a target."""
MEASURED_TESTS = 200
"""The tests of a target that measure numbers. `benchmarks.measured_pages` measures stores with many more."""
SEARCHED_NIGHTS = 2
"""The newest nights after which the store is searched for moved measurements."""
LOG_LINES = 20_000
GITHUB = f"https://github.com/{REPOSITORY}/commit/"


@dataclass(frozen=True, slots=True)
class StoreSize:
    """The size of the store: nightly runs of each target, and tests in each run."""

    runs: int = 250
    tests: int = 20_000

    @property
    def results(self) -> int:
        """The number of results."""
        return self.runs * self.tests * len(LABS) * TARGETS_OF_LAB


def sha_of_run(number: int) -> str:
    """Return the commit of a nightly run; number 0 is the oldest."""
    return f"{(number + 11) * 0x9E3779B97F4A7C15 % 2**160:040x}"[::-1]


def targets_of(lab: str) -> list[str]:
    """Return the names of a lab's targets."""
    return [f"board-{number}" for number in range(TARGETS_OF_LAB)]


def flaky_test(tests: int) -> str:
    """Return a test that is flaky on all targets."""
    return name_of(_fragile(tests)[0])


def log_of_run() -> bytes:
    """Return the log of every run: each test has a line, which says nothing about its outcome."""
    return "".join(f"running {name_of(place)}\n" for place in range(LOG_LINES)).encode()


def create_store(path: Path, size: StoreSize) -> None:
    """Create the store in a file, unless it exists. An unfinished store is in `path` with `.part`; it is continued."""
    if path.exists():
        return
    unfinished = path.with_name(f"{path.name}.part")
    with closing(ResultsStore(f"sqlite:///{unfinished}")) as store:
        store.open()
        for stored in fill_store(store, size, time.time()):
            click.echo(f"{stored:,} of {size.results:,} results", err=True)
    unfinished.rename(path)


def fill_store(store: ResultsStore, size: StoreSize, newest_time: float) -> Iterator[int]:
    """Store all nightly runs, the newest one at `newest_time`; yield the number of results after each."""
    boards = [_Board(TargetKey(REPOSITORY, lab, target), size.tests) for lab in LABS for target in targets_of(lab)]
    log, stored = log_of_run(), 0
    artifacts = [ArtifactEntry(LOG, len(log), hashlib.sha256(log).hexdigest())]
    for number in range(size.runs):
        committed_at = newest_time - (size.runs - number) * DAY + 14 * HOUR
        for board in boards:
            columns = board.columns_of_next()
            key = RunKey(REPOSITORY, board.about.lab, board.about.target, sha_of_run(number), "run-1")
            claims = Claims(SUITE, environment={"device": "A board", "driver": "6.2"}, exit_status=1)
            admission = Admission(committed_at, mainline=True)
            received = committed_at + 4 * HOUR + board.number * 300
            run = Run(key, "etag", RunState.STORED, "", received, 90_000_000, claims, admission)
            stored += len(columns)
            if not store.put(run, columns, artifacts=artifacts):
                continue  # it was stored before the creation was interrupted
            began = [Failure(SUITE, name_of(place), key.sha, "") for place in board.broken[:REPORTED]]
            store.write(store_reports, board.about, key.sha, store.clock(), began, {})
            if number >= size.runs - SEARCHED_NIGHTS:
                store.write(store_moves, store.read(find_moves, board.about))
        store.write(learn, REPOSITORY, [_relation(number, earlier) for earlier in range(max(0, number - 2), number)])
        yield stored


def store_head(store: ResultsStore, size: StoreSize, sha: str, pull_request: int, moment: float) -> None:
    """Store runs of a pull request's head on a few targets, each with as many tests as a nightly run."""
    for target in targets_of(LABS[0])[:TARGETS_OF_HEAD]:
        board = _Board(TargetKey(REPOSITORY, LABS[0], target), size.tests)
        key = RunKey(REPOSITORY, LABS[0], target, sha, "run-1")
        claims = Claims(SUITE, environment={"device": "A board", "driver": "6.2"}, exit_status=1)
        admission = Admission(moment, mainline=False, pull_request=pull_request)
        columns = board.columns_of_next()
        store.put(Run(key, "etag", RunState.STORED, "", moment, 90_000_000, claims, admission), columns)
    base = sha_of_run(size.runs - 1)
    store.write(learn, REPOSITORY, [Relation(sha, base, is_ancestor=True, url=GITHUB + base)])


def _relation(number: int, earlier: int) -> Relation:
    return Relation(sha_of_run(number), sha_of_run(earlier), is_ancestor=True, url=GITHUB + sha_of_run(earlier))


def _fragile(tests: int) -> list[int]:
    """Return the places of the tests that break now and then, the flaky ones first: the same on all targets."""
    return random.Random(SEED).sample(range(tests), min(tests, FRAGILE))


class _Board:
    """One target, with the outcomes of its tests run by run."""

    def __init__(self, target: TargetKey, tests: int) -> None:
        self.about = target
        self.number = int(target.target.rpartition("-")[2])
        chance = self._chance = random.Random(f"{SEED} {target.full_name}")
        fragile = _fragile(tests)
        self._fragile, self._flaky = fragile[FLAKY_TESTS:], fragile[:FLAKY_TESTS]
        self._failed = set(chance.sample(self._fragile, len(self._fragile) // 4))
        skipped = set(chance.sample(range(tests), tests // 4)) - set(fragile)
        # The columns have the reasons of all tests that ever fail, and their packs the texts.
        library = collect(self._cases(tests, skipped, {*fragile}), _resolve)
        self._names, self._packs, self._texts, self._whys = library.names, library.packs, library.texts, library.whys
        self._keys, self._reasons = list(library.tests), library.reasons
        codes = dict.fromkeys(skipped, CODES[Status.SKIPPED])
        self._ends = [codes.get(place, CODES[Status.PASSED]) for place in range(tests)]
        seconds = [chance.lognormvariate(-3, 1.3) for _ in range(tests)]
        self._durations = [
            [STATUS_BYTES * duration_code(duration * chance.gauss(1, 0.05)) for duration in seconds]
            for _ in range(VARIANTS)
        ]
        self._device = MeasuringDevice(min(tests, MEASURED_TESTS), seed=int.from_bytes(target.full_name.encode()))
        self._run = 0
        self.broken: Sequence[int] = ()

    def columns_of_next(self) -> Columns:
        """Change the outcome of some tests; return the columns of a run. `broken` are tests that fail from now on."""
        chance = self._chance
        fixed = chance.sample(sorted(self._failed), min(FLIPS, len(self._failed)))
        self.broken = chance.sample(sorted(set(self._fragile) - self._failed), FLIPS)
        self._failed = (self._failed - set(fixed)) | set(self.broken)
        ends = list(self._ends)
        for place in self._failed:
            ends[place] = CODES[Status.FAILED]
        for place in self._flaky:
            ends[place] = chance.choice(
                [CODES[Status.PASSED]] * 3 + [CODES[Status.FAILED], CODES[Status.FAILED] | FLAKY]
            )
        durations = self._durations[self._run % VARIANTS]
        self._run += 1
        tests = dict(zip(self._keys, map(int.__add__, ends, durations), strict=True))
        passed = CODES[Status.PASSED]
        explained = {key: reason for key, reason in self._reasons.items() if tests[key] % STATUS_BYTES != passed}
        columns = Columns(self._names, tests, explained, self._whys, self._texts, self._packs)
        columns.measurements = dict(zip(self._keys, self._device.night(), strict=False))
        return columns

    def _cases(self, tests: int, skipped: set[int], fragile: set[int]) -> Iterator[Case]:
        for place in range(tests):
            status, text, message = Status.PASSED, "", ""
            if place in fragile:
                status = Status.FAILED
                message, text = f"AssertionError: value {place} differs", f"{TRACE}\nE   value {place} differs"
            elif place in skipped:
                status, message = Status.SKIPPED, ("need gpu", "not built", "too slow for the device")[place % 3]
            yield Case(name_of(place), status, message=message, text=text)


def _resolve(case: Case) -> tuple[str, str]:
    return case.name, case.name.partition("::")[0]


@click.command(help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--runs", default=StoreSize().runs, show_default=True, help="Nightly runs of each target.")
def main(file: Path, runs: int) -> None:
    """Create the store in a file."""
    create_store(file, StoreSize(runs))


if __name__ == "__main__":
    main()
