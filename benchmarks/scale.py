"""Measure how costs grow: each row at 1, 10, 100 and 1,000 times its smallest size, with the law that fits.

python -m benchmarks.scale                    all rows, in some minutes
python -m benchmarks.scale --quick            the two smallest sizes, to see that everything runs
python -m benchmarks.scale --only first-sight one row
python -m benchmarks.scale --store            also writes benchmarks/scale.json, from which docs/deploy.md is generated

A row is a function that prepares one size and returns a figure; its goal holds at the largest size.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import LiteralString

import click

from benchmarks.machine import busy, described
from benchmarks.many_objects import watching
from benchmarks.report import Row, table
from benchmarks.stage import DATABASES, DURABLE, POSTGRESQL, SQLITE
from bot.app.load import load_config, parse_config
from bot.config import Config
from bot.core import logs
from bot.engine.records import Records
from bot.engine.service import Engine
from bot.engine.worker.guard import Guard
from bot.engine.worker.manager import EngineJobManager
from bot.github.repositories.known import KNOWN_REPOSITORY, Repositories
from bot.github.repositories.matching import MatchingRepositories, load_matching
from bot.timers.timers import timer_states
from tests.postgres import running_server
from tests.tables import with_tables

STORED = Path(__file__).with_name("scale.json")
STEPS = (1, 10, 100, 1000)
QUICK_STEPS = STEPS[:2]
REPETITIONS = 9
"""How often a figure is measured; the lowest counts, because everything else on the machine only adds to it."""
TOLERANCE = 0.3
"""How much the exponent may exceed that of the row's law: figures of microseconds vary."""
CONSTANT, LINEAR = "constant", "linear"
EXPONENTS = {CONSTANT: 0.0, LINEAR: 1.0}
WORDS = ((0.3, CONSTANT), (0.75, "below linear"), (1.3, LINEAR), (math.inf, "above linear"))
"""The name of a law, by the highest exponent that has it."""


@dataclass(frozen=True, slots=True)
class ScalePlace:
    """Where a row is measured: an empty folder, and a function that opens an engine on a new database."""

    folder: Path
    engine: Callable[[], AbstractAsyncContextManager[Engine]]


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """One cost. `measure` returns the figure of one size, in `unit`; `law` is how it may grow.

    The figure of the largest size, 1,000 times `base`, must not exceed `goal`.
    """

    what: str
    counted: str
    unit: str
    base: int
    law: str
    goal: float
    measure: Callable[[ScalePlace, int], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Scaling:
    """The figures of a row by size, the exponent that fits them, and whether law and goal hold."""

    name: str
    what: str
    counted: str
    unit: str
    law: str
    goal: float
    sizes: tuple[int, ...]
    figures: tuple[float, ...]
    exponent: float
    grows: str
    met: str


def exponent_of(sizes: Sequence[int], figures: Sequence[float]) -> float:
    """Return the exponent of the power of the size that fits the last ten-fold step.

    At small sizes, what every call costs hides how the rest grows.
    """
    (smaller, larger), (lower, higher) = sizes[-2:], figures[-2:]
    # A figure of zero, such as a count of statements, grows like its successor.
    return math.log(max(higher, 1e-9) / max(lower, 1e-9)) / math.log(larger / smaller)


def scaling(name: str, row: ScaleRow, figures: Mapping[int, float]) -> Scaling:
    """Compare the figures of a row with its law and its goal."""
    sizes = tuple(sorted(figures))
    ordered = tuple(figures[size] for size in sizes)
    exponent = exponent_of(sizes, ordered)
    grows = next(words for highest, words in WORDS if exponent <= highest)
    # A constant that is far below its goal may well vary by more than the tolerance.
    keeps_law = exponent <= EXPONENTS[row.law] + TOLERANCE or ordered[-1] <= row.goal / 10
    is_met = keeps_law and ordered[-1] <= row.goal
    rounded = tuple(float(f"{figure:.3g}") for figure in ordered)
    return Scaling(
        name=name,
        what=row.what,
        counted=row.counted,
        unit=row.unit,
        law=row.law,
        goal=row.goal,
        sizes=sizes,
        figures=rounded,
        exponent=round(exponent, 2),
        grows=grows,
        met="met" if is_met else "**missed**",
    )


def in_words(row: Scaling) -> Row:
    """Write a row of the table for people."""
    steps = zip(row.sizes, row.figures, strict=True)
    return {
        "row": row.name,
        "what": f"{row.what}, {row.unit}",
        "figures": "; ".join(f"{size:,}: {figure:g}" for size, figure in steps),
        "of": row.counted,
        "grows": f"{row.grows} ({row.exponent:+.2f})",
        "law": row.law,
        "goal": f"≤ {row.goal:g}",
        "": row.met,
    }


async def cpu_milliseconds(work: Callable[[], Awaitable[object]], repetitions: int = REPETITIONS) -> float:
    """Return the processor time of this process for one call, its threads included: the lowest of some."""
    await work()  # the first call fills caches
    taken = []
    for _ in range(repetitions):
        began = time.process_time()
        await work()
        taken.append(1000 * (time.process_time() - began))
    return min(taken)


# -- rows --

SERIES: LiteralString = (
    "WITH RECURSIVE series (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM series WHERE n + 1 < %(count)s) "
)
FILL_KNOWN: LiteralString = (
    SERIES
    + """
INSERT INTO nightjar_records (key, value, version, at)
SELECT 'known-repository:' || n,
       '{"id": ' || n || ', "name": "octo-org/r' || n || '", "full_name": "octo-org/r' || n || '", "away": ""}', 2, 0
  FROM series
"""
)
FILL_JOBS: LiteralString = (
    SERIES
    + """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, args, status)
SELECT 'default', 'deliver', 0, CAST(%(lock)s AS text) || (n / %(each)s), '{}', 'todo' FROM series
"""
)
PATTERN = b"repositories: {'octo-org/*': {nightly: {}}}"


async def read_record(place: ScalePlace, size: int) -> float:
    """Read one of so many records."""
    async with place.engine() as engine:
        await engine.database.connector.execute_query_async(FILL_KNOWN, count=size)
        key = KNOWN_REPOSITORY.of(size // 2)
        return await cpu_milliseconds(lambda: engine.records.get(key))


async def first_sight(place: ScalePlace, size: int) -> float:
    """Store a repository of which a payload arrives for the first time, when so many are known."""
    async with _known(place, size) as (config, records):
        repositories = Repositories(config, records)
        ids = iter(range(size, size + REPETITIONS + 1))

        async def see() -> None:
            repository_id = next(ids)
            await repositories.see(repository_id, f"octo-org/r{repository_id}")

        return await cpu_milliseconds(see)


async def start_with_pattern(place: ScalePlace, size: int) -> float:
    """Read so many known repositories of a pattern, as a process does when it starts."""
    async with _known(place, size) as (config, records):
        return await cpu_milliseconds(lambda: load_matching(config, records), 3)


async def unchanged_pattern(place: ScalePlace, size: int) -> float:
    """Find out that no other process has changed one of so many repositories, as each process does every minute."""
    async with _known(place, size) as (config, records):
        matching = MatchingRepositories(config, records, Repositories(config, records))
        await matching.load()
        return await cpu_milliseconds(matching.refresh)


async def timer_metrics(place: ScalePlace, size: int) -> float:
    """Read the states of the timers of so many repositories, as `/metrics` does."""
    async with place.engine() as engine:
        names = "".join(f"  octo-org/r{number}: {{nightly: {{}}}}\n" for number in range(size))
        config = parse_config(f"repositories:\n{names}".encode(), "app.yaml")
        return await cpu_milliseconds(lambda: timer_states(config, engine.records, engine.journal, time.time()), 3)


async def read_app_yaml(place: ScalePlace, size: int) -> float:
    """Read app.yaml with so many repositories, in files of 5,000."""
    (place.folder / "app.d").mkdir()
    path = place.folder / "app.yaml"
    path.write_text("defaults: {help: true}\n", encoding="utf-8")
    for start in range(0, size, 5_000):
        names = "".join(f"  octo-org/r{number}:\n" for number in range(start, min(size, start + 5_000)))
        (place.folder / "app.d" / f"{start:08}.yaml").write_text(f"repositories:\n{names}", encoding="utf-8")

    async def load() -> None:
        load_config(path)

    return await cpu_milliseconds(load, 1)


async def fetch_from_queue(place: ScalePlace, size: int) -> float:
    """Fetch a job while so many wait, each of its own pull request."""
    return await _fetching(place, size, each=1)


async def fetch_beside_locked(place: ScalePlace, size: int) -> float:
    """Fetch a job while so many wait whose pull request has a running job."""
    return await _fetching(place, size, each=size)


async def find_new_run(place: ScalePlace, size: int) -> float:
    """Find a new run among so many objects, with this number of requests to S3."""
    async with watching(place.folder, size) as (watch, listed):
        outcome = await watch.tick()
        assert outcome == "announced 1", outcome
        return float(len(listed))


async def _fetching(place: ScalePlace, size: int, each: int) -> float:
    async with place.engine() as engine:
        connector = engine.database.connector
        await connector.execute_query_async(FILL_JOBS, count=size, lock="pr:1#", each=each)
        worker = await EngineJobManager(connector, Guard(), lambda: None).register_worker()
        if each > 1:
            # The first job of the lock runs; one job of another lock waits behind all others.
            await connector.execute_query_async(
                "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %(worker)s "
                "WHERE id = (SELECT min(id) FROM procrastinate_jobs)",
                worker=worker,
            )
            await connector.execute_query_async(FILL_JOBS, count=1, lock="pr:2#", each=1)

        async def fetch() -> None:
            # A manager remembers that nothing was left to fetch.
            job = await EngineJobManager(connector, Guard(), lambda: None).fetch_job(None, worker)
            assert job is not None
            await connector.execute_query_async(
                "UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL WHERE id = %(job)s", job=job.id
            )

        return await cpu_milliseconds(fetch)


@asynccontextmanager
async def _known(place: ScalePlace, size: int) -> AsyncIterator[tuple[Config, Records]]:
    """Open a database with so many known repositories of a pattern."""
    async with place.engine() as engine:
        await engine.database.connector.execute_query_async(FILL_KNOWN, count=size)
        yield parse_config(PATTERN, "app.yaml"), engine.records


ROWS = {
    "record": ScaleRow("to read a record", "records", "CPU ms", 100, CONSTANT, 1.0, read_record),
    "first-sight": ScaleRow(
        "the first payload of a repository", "known repositories", "CPU ms", 10, CONSTANT, 1.0, first_sight
    ),
    "metrics": ScaleRow("timers on `/metrics`", "repositories with a timer", "CPU ms", 1, LINEAR, 50.0, timer_metrics),
    "app-yaml": ScaleRow("to read app.yaml", "repositories named", "CPU ms", 10, LINEAR, 5_000.0, read_app_yaml),
    "pattern-start": ScaleRow(
        "to start with a pattern", "repositories that match", "CPU ms", 100, LINEAR, 3_000.0, start_with_pattern
    ),
    "pattern-idle": ScaleRow(
        "a minute without a change", "repositories that match", "CPU ms", 100, CONSTANT, 1.0, unchanged_pattern
    ),
    "queue": ScaleRow("to fetch a job", "waiting jobs", "CPU ms", 100, CONSTANT, 5.0, fetch_from_queue),
    "new-run": ScaleRow("to find a new run in a bucket", "objects", "requests", 1_000, CONSTANT, 5.0, find_new_run),
    "locked": ScaleRow(
        "to fetch a job beside a busy pull request",
        "its waiting jobs",
        "CPU ms",
        10,
        CONSTANT,
        5.0,
        fetch_beside_locked,
    ),
}


# -- the command --


async def measured(name: str, database: str, steps: Sequence[int]) -> Scaling:
    """Measure a row at some multiples of its base, each in a new folder and on a new database."""
    row, figures = ROWS[name], dict[int, float]()
    with contextlib.ExitStack() as held:
        server = held.enter_context(running_server(DURABLE)) if database == POSTGRESQL else None
        for step in steps:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="nightjar-scale-")))

            def engine(folder: Path = folder) -> AbstractAsyncContextManager[Engine]:
                return Engine(server.create_database() if server else with_tables(f"sqlite:///{folder}/nightjar.db"))

            figures[row.base * step] = await row.measure(ScalePlace(folder, engine), row.base * step)
    return scaling(name, row, figures)


@click.command(help="How costs grow with the number of repositories, jobs and records.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per row.")
@click.option("--quick", is_flag=True, help="The two smallest sizes, to see that everything runs.")
@click.option("--store", is_flag=True, help=f"Also write {STORED.name}, from which docs/deploy.md is generated.")
@click.option("--database", type=click.Choice(DATABASES), default=SQLITE, show_default=True)
@click.option("--only", type=click.Choice(list(ROWS)), multiple=True, help="Measure this row alone.")
def main(as_json: bool, quick: bool, store: bool, database: str, only: tuple[str, ...]) -> None:
    """Measure the rows, and print them."""
    logs.configure()
    rows = []
    for name in only or tuple(ROWS):
        rows.append(asyncio.run(measured(name, database, QUICK_STEPS if quick else STEPS)))
        click.echo(f"{name}: {rows[-1].met} (load average {busy()})", err=True)
    with tempfile.TemporaryDirectory() as folder:
        machine = described(Path(folder))
    if store:
        _store(rows, {"machine": machine, "date": f"{datetime.now(UTC):%d %B %Y}", "database": database})
    if as_json:
        click.echo("\n".join(json.dumps(asdict(row)) for row in rows))
        return
    click.echo(f"{machine}; {database}\n\n{table([in_words(row) for row in rows])}")


def _store(rows: Sequence[Scaling], circumstances: Mapping[str, str]) -> None:
    """Write the rows into the stored file; rows of it that were not measured now stay."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))["rows"] if STORED.exists() else []
    by_name = {row["name"]: row for row in stored} | {row.name: asdict(row) | dict(circumstances) for row in rows}
    ordered = [by_name[name] for name in ROWS if name in by_name]
    STORED.write_text(json.dumps({"rows": ordered}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
