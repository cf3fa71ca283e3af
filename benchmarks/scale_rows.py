"""What `benchmarks.scale` measures: each row prepares one size, in a new folder and on a new database."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import LiteralString

from benchmarks.many_objects import watching
from benchmarks.scale_hours import (
    command_after_start,
    expired_page,
    first_page,
    idle_rows,
    idle_wakes,
    last_good_round,
    nightly_minute,
)
from benchmarks.scale_work import cpu_of_command, notifications, redelivery_round, statements_of_command
from benchmarks.scaling import CONSTANT, LINEAR, REPETITIONS, ScalePlace, ScaleRow, cpu_milliseconds
from benchmarks.stage import POSTGRESQL, SQLITE
from bot.app.load import load_config, parse_config
from bot.config import Config
from bot.engine.records import Records
from bot.engine.service import Engine
from bot.engine.worker.guard import Guard
from bot.engine.worker.manager import EngineJobManager
from bot.github.repositories.known import KNOWN_REPOSITORY, Repositories
from bot.github.repositories.matching import MatchingRepositories, load_matching
from bot.results.store.store import ResultsStore
from bot.timers.timers import timer_states
from handlers.device_tests import rows
from handlers.device_tests.store import JobStore
from handlers.device_tests.sweep import JobSweep
from handlers.repository_file.sweep import PAUSE
from tests.app.test_idle_requests import CONTENTS, Night, night
from tests.handlers.dashboard.site import DashboardSite, dashboard_site
from tests.handlers.device_tests.cases import HOUR, NOW, limits, queued
from tests.results.uploads import LAB, REPOSITORY, SUITE, TARGET, Upload, sha

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
DEVICE_TESTS = """
repositories:
  octocat/compiler:
    results: {bucket: device-results, labs: {example-lab: {targets: {hexagon-v73: {tier: 2}}}}}
"""
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


async def claim(place: ScalePlace, size: int) -> float:
    """Claim a job of a lab whose queue has so many, each of its own pull request."""
    async with _queued(place, size) as engine:
        store = JobStore(engine.database.connector, lambda: NOW + size)

        async def claim_one() -> None:
            claimed = await store.claim(LAB, ["hexagon-v73"], limits(size))
            assert claimed is not None

        return await cpu_milliseconds(claim_one, min(size - 1, REPETITIONS))


async def sweep(place: ScalePlace, size: int) -> float:
    """Look for device jobs whose time is over, and outdated check runs, among so many queued jobs."""
    config = parse_config(DEVICE_TESTS.encode(), "app.yaml")
    async with _queued(place, size) as engine:
        store = JobStore(engine.database.connector, lambda: NOW + size)

        async def accept(*_: object, **__: object) -> bool:
            raise AssertionError

        jobs = JobSweep(config, store, engine.journal, accept=accept, clock=lambda: NOW + size)
        return await cpu_milliseconds(jobs.tick)


@asynccontextmanager
async def _queued(place: ScalePlace, size: int) -> AsyncIterator[Engine]:
    """Open a database with so many queued device jobs, each of its own pull request and with its check run."""
    async with place.engine() as engine:
        for number in range(size):
            job = queued(f"job-{number}", pull_request=number, requested_at=NOW + number)
            shown = rows.row_of_job(replace(job, shown=job.to_show))
            await engine.database.connector.execute_query_async(rows.INSERT, **shown)
        yield engine


async def overview(place: ScalePlace, size: int) -> float:
    """Render the first page of `/` with so many repositories."""
    names = [f"octo-org/r{number}" for number in range(size)]
    config = "repositories:\n" + "".join(f"  {name}: {{nightly: {{}}}}\n" for name in names)
    async with dashboard_site(place.folder, config=config, public=names, filled=lambda _: None) as site:
        return await _rendered(site, "/")


async def overview_kilobytes(place: ScalePlace, size: int) -> float:
    """Return the size of `/` with a repository of so many targets, in kB of HTML before compression."""
    targets = [f"target-{number}" for number in range(size)]
    config = (
        f"repositories: {{{REPOSITORY}: {{results: {{bucket: results, labs: {{{LAB}: {{targets: {targets}}}}}}}}}}}"
    )

    def fill(store: ResultsStore) -> None:
        for target in targets:
            upload = Upload(1, {f"{SUITE}/test_conv.py::test_conv": "failed"}, target=target, at=NOW - HOUR)
            store.put(upload.run, upload.columns)

    async with dashboard_site(place.folder, config=config, filled=fill, moment=NOW) as site:
        status, _, text = await site.get("/")
        assert status == 200, text
        return len(text.encode()) / 1000


async def run_page(place: ScalePlace, size: int) -> float:
    """Render the page of a nightly run of so many tests, after one of as many."""

    def fill(store: ResultsStore) -> None:
        for commit in (1, 2):
            tests = {f"{SUITE}/test_{number // 100}.py::test_{number}": "passed" for number in range(size)}
            upload = Upload(commit, tests, at=NOW - (3 - commit) * 24 * HOUR)
            store.put(upload.run, upload.columns)

    config = (
        f"repositories: {{{REPOSITORY}: {{results: {{bucket: results, labs: {{{LAB}: {{targets: [{TARGET}]}}}}}}}}}}"
    )
    async with dashboard_site(place.folder, config=config, filled=fill, moment=NOW) as site:
        return await _rendered(site, f"/r/{REPOSITORY}/runs/{LAB}/{TARGET}/{sha(2)}/1")


async def _rendered(site: DashboardSite, path: str) -> float:
    async def get() -> None:
        status, _, text = await site.render(path)
        assert status == 200, text

    return await cpu_milliseconds(get)


async def idle_hour(place: ScalePlace, size: int) -> float:
    """Count the requests to GitHub of an hour in which nothing happens, with so many repositories of one owner."""
    async with night(place.folder, size, owners=1) as idle:
        await _read_files(idle)
        return float((await idle.pass_minutes(60)).total())


async def sweep_hour(place: ScalePlace, size: int) -> float:
    """Count them in the hour in which the sweep looks for changed files."""
    async with night(place.folder, size, owners=1) as idle:
        await _read_files(idle)
        idle.time.now += PAUSE
        idle.github.clock.advance(seconds=PAUSE)
        return float((await idle.pass_minutes(60)).total())


async def _read_files(idle: Night) -> None:
    """Let hours pass until the sweep has read the file of each repository: GitHub allows 900 requests a minute."""
    while (await idle.pass_minutes(60))[CONTENTS]:
        pass


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
    "overview": ScaleRow("`/`, rendered", "public repositories", "CPU ms", 1, LINEAR, 100.0, overview, SQLITE),
    "overview-size": ScaleRow(
        "`/`, HTML", "targets of a repository", "kB", 1, LINEAR, 200.0, overview_kilobytes, SQLITE
    ),
    "first-page": ScaleRow(
        "`/`, the first visitor after a start", "repositories", "s of GitHub", 1, CONSTANT, 0.1, first_page, SQLITE
    ),
    "expired-page": ScaleRow(
        "`/`, a later visitor", "repositories", "s of GitHub", 1, CONSTANT, 0.1, expired_page, SQLITE
    ),
    "command-after-start": ScaleRow(
        "from a command in the first moment of a start to 👀",
        "repositories",
        "s of GitHub",
        1,
        CONSTANT,
        2.0,
        command_after_start,
        SQLITE,
    ),
    "idle-hour": ScaleRow("an idle hour", "repositories", "requests", 1, CONSTANT, 80.0, idle_hour, SQLITE),
    "idle-rows": ScaleRow("an idle hour", "repositories", "changed rows", 1, CONSTANT, 250.0, idle_rows, SQLITE),
    "idle-wakes": ScaleRow("an idle bot", "repositories", "wake-ups a second", 1, CONSTANT, 3.0, idle_wakes, SQLITE),
    "last-good": ScaleRow(
        "timers every 15 minutes, the latest",
        "repositories with one",
        "s late",
        10,
        CONSTANT,
        900.0,
        last_good_round,
        SQLITE,
    ),
    "nightly": ScaleRow(
        "nightly branches at one minute, the latest",
        "repositories",
        "s late",
        1,
        CONSTANT,
        120.0,
        nightly_minute,
        SQLITE,
    ),
    "notifications": ScaleRow(
        "one worker, all waiting jobs", "waiting jobs", "notifications", 10, CONSTANT, 10.0, notifications, POSTGRESQL
    ),
    "claim": ScaleRow("to claim a job", "queued jobs of the lab", "CPU ms", 10, CONSTANT, 5.0, claim),
    "sweep": ScaleRow("the sweep of device jobs", "queued jobs", "CPU ms", 10, CONSTANT, 5.0, sweep),
    "metrics": ScaleRow("timers on `/metrics`", "repositories with a timer", "CPU ms", 1, LINEAR, 50.0, timer_metrics),
    "first-sight": ScaleRow(
        "the first payload of a repository", "known repositories", "CPU ms", 10, CONSTANT, 1.0, first_sight
    ),
    "file-sweep": ScaleRow(
        "an idle hour with a sweep of files", "repositories", "requests", 1, LINEAR, 100.0, sweep_hour, SQLITE
    ),
    "run-page": ScaleRow(
        "the page of a run, rendered", "tests of the run", "CPU ms", 50, LINEAR, 50.0, run_page, SQLITE
    ),
    "queue": ScaleRow("to fetch a job", "waiting jobs", "CPU ms", 100, CONSTANT, 5.0, fetch_from_queue),
    "locked": ScaleRow(
        "to fetch a job beside a busy pull request",
        "its waiting jobs",
        "CPU ms",
        10,
        CONSTANT,
        5.0,
        fetch_beside_locked,
    ),
    "redelivery": ScaleRow(
        "a search for missed deliveries", "deliveries of a minute", "requests", 10, CONSTANT, 12.0, redelivery_round
    ),
    "command-statements": ScaleRow(
        "`@ci help` on PostgreSQL",
        "repositories",
        "statements",
        1,
        CONSTANT,
        15.0,
        statements_of_command,
        POSTGRESQL,
    ),
    "command-cpu": ScaleRow("`@ci help`", "repositories", "CPU ms", 1, CONSTANT, 10.0, cpu_of_command, SQLITE),
    "new-run": ScaleRow(
        "to find a new run in a bucket", "objects", "requests", 1_000, CONSTANT, 5.0, find_new_run, SQLITE
    ),
    "record": ScaleRow("to read a record", "records", "CPU ms", 100, CONSTANT, 1.0, read_record),
    "app-yaml": ScaleRow(
        "to read app.yaml", "repositories named", "CPU ms", 10, LINEAR, 5_000.0, read_app_yaml, SQLITE
    ),
    "pattern-start": ScaleRow(
        "to start with a pattern", "repositories that match", "CPU ms", 100, LINEAR, 3_000.0, start_with_pattern
    ),
    "pattern-idle": ScaleRow(
        "a minute without a change", "repositories that match", "CPU ms", 100, CONSTANT, 1.0, unchanged_pattern
    ),
}
"""In the order in which users meet the costs."""
