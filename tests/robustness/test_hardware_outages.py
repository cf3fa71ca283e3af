"""S3, SQS, GitHub or the database is down while results arrive: the bot tries again, and nothing is lost."""

from __future__ import annotations

import asyncio
import re
import resource
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest

from bot.engine.sqlite.connector import BUSY_TIMEOUT
from handlers.results.watch import WATCH
from sandbox.faults import Fault
from tests.bucket import World, point_to
from tests.conversations.lab import LabTown, junit, lab_town
from tests.postgres import PostgresServer
from tests.robustness.gate import Gate, gate
from tests.waiting import until

GOOD = {"ops.xml": junit(test_add="passed")}
FIRST = "First run, nothing to compare with · 1 passed"
LISTING, MANIFESTS, FILES = re.compile("list-type="), re.compile(r"manifest\.json"), re.compile(r"\.xml")
REPO = "/repos/{owner}/{repo}"
TREE = f"{REPO}/git/trees/{{tree_sha}}"
HOUR = 3600.0
SPACE = 8 << 20
"""Bytes, more than the database has, and less than a file that is uploaded."""


@asynccontextmanager
async def lab_behind_a_gate(
    url: str, world: World, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> AsyncIterator[tuple[LabTown, Gate]]:
    """Start a town whose bot reaches S3 and SQS through a gate."""
    async with gate(world.server) as opened:
        point_to(opened.url, monkeypatch)
        async with lab_town(url, world, **options) as place:
            yield place, opened


async def retried(place: LabTown, *, at_least: int = 1) -> None:
    """Wait until a job waits for another try."""

    async def scan() -> bool:
        records = await place.town.bot.engine.journal.recent(limit=500)
        return sum(job.outcome == "retrying" for record in records for job in record.jobs) >= at_least

    await until(scan)


async def start_of_nightly_run(place: LabTown) -> str:
    """Upload the results of a nightly run and let the bot scan, without waiting for what follows."""
    sha = place.nightly_run()
    place.upload(sha, GOOD)
    place.time.ahead += 60
    await place.town.bot.services.part(WATCH).tick()
    return sha


async def test_a_listing_that_fails_is_repeated_by_the_next_scan(
    sqlite_url: str, aws_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lab_behind_a_gate(sqlite_url, aws_world, monkeypatch) as (place, s3):
        outage = s3.faults.add("GET", LISTING, status=503, message="ServiceUnavailable", times=None)
        sha = place.nightly_run()
        place.upload(sha, GOOD)
        await place.scan()
        assert outage.hits >= 1
        s3.faults.clear()
        await place.settle()
        assert place.check(sha).title == FIRST
        assert await place.town.failures() == []


@pytest.mark.parametrize("path", [MANIFESTS, FILES], ids=["manifest", "file"])
@pytest.mark.parametrize("failure", ["503", "lost"])
async def test_a_read_that_fails_is_tried_again(
    path: re.Pattern[str], failure: str, sqlite_url: str, aws_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lab_behind_a_gate(sqlite_url, aws_world, monkeypatch) as (place, s3):
        drop = "before" if failure == "lost" else None
        s3.faults.add("GET", path, status=503, message="SlowDown", drop=drop, times=None)  # type: ignore[arg-type]
        sha = await start_of_nightly_run(place)
        await retried(place)
        s3.faults.clear()
        await place.town.quiet()
        await place.settle()
        assert place.check(sha).title == FIRST
        assert await place.town.failures() == []


async def test_a_run_whose_tries_all_failed_is_found_again_by_the_listing_at_most_once_an_hour(
    sqlite_url: str, aws_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lab_behind_a_gate(sqlite_url, aws_world, monkeypatch) as (place, s3):
        denied = s3.faults.add("GET", MANIFESTS, status=403, message="AccessDenied", times=None)
        # The test may start at any minute, so move to the start of an hour.
        place.time.ahead += HOUR - place.time() % HOUR
        sha = place.nightly_run()
        place.upload(sha, GOOD)
        for _ in range(10):
            await place.scan(later=120)
        # The run is scanned at once and by the next listing, the first of its hour; then no more.
        assert denied.hits == 2
        await place.scan(later=HOUR)
        assert denied.hits == 3
        assert len(await place.town.failures()) == 3
        s3.faults.clear()
        await place.scan(later=HOUR)
        await place.settle()
        assert place.check(sha).title == FIRST


async def test_a_run_whose_last_scan_fails_is_scanned_again_until_it_ends(
    sqlite_url: str, aws_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with lab_behind_a_gate(sqlite_url, aws_world, monkeypatch) as (place, s3):
        sha = place.nightly_run()
        place.upload(sha, GOOD, without=("ops.xml",))
        await place.settle()
        s3.faults.add("GET", MANIFESTS, status=403, message="AccessDenied", times=None)
        await place.scan(later=7 * HOUR)
        s3.faults.clear()
        await place.scan(later=HOUR)
        await place.settle()
        assert "is unusable: " in str(place.check(sha).summary)


async def test_after_an_outage_the_queue_is_read_again_and_the_listing_finds_what_it_lost(
    sqlite_url: str, aws_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = aws_world.queue(visibility=1)
    async with lab_behind_a_gate(sqlite_url, aws_world, monkeypatch, queue=queue) as (place, s3):
        await place.scan()  # with a queue, the bucket is listed every ten minutes
        outage = s3.faults.add("POST", re.compile("."), status=503, message="ServiceUnavailable", times=None)
        aws_world.send(queue, "nothing that anybody reads")  # it ends the poll that is open
        await until(lambda: outage.hits)
        sha = place.nightly_run()
        place.upload(sha, GOOD)
        await place.settle()
        assert place.checks(sha) == []
        await place.scan(later=601)
        await place.settle()
        assert place.check(sha).title == FIRST
        s3.faults.clear()
        await until(lambda: aws_world.waiting(queue) == 0)
        await place.settle()
        assert len(place.checks(sha)) == 1


async def test_a_check_that_github_refuses_is_written_once_github_accepts_it(sqlite_url: str, aws_world: World) -> None:
    async with lab_town(sqlite_url, aws_world) as place:
        refused = place.town.github.faults.add("POST", f"{REPO}/check-runs", status=403, times=None)
        sha = place.nightly_run()
        place.upload(sha, GOOD)
        for _ in range(10):
            await place.scan()
        assert refused.hits == 1
        place.town.github.faults.clear()
        await place.scan(later=HOUR)
        await place.settle()
        assert place.check(sha).title == FIRST
        # The run has ended: it must not be written again and again.
        await place.scan(later=HOUR)
        await place.settle()
        assert len(place.checks(sha)) == 1


TROUBLES: dict[str, dict[str, Any]] = {
    "500": {"status": 500},
    "502 after": {"status": 502, "when": "after"},
    "lost before": {"drop": "before"},
    "lost after": {"drop": "after"},
    "403, retry-after 1": {"status": 403, "headers": {"Retry-After": "1"}},
    "429, retry-after 1": {"status": 429, "headers": {"Retry-After": "1"}},
}


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_trouble_with_github_at_every_request_of_two_nightly_runs_is_overcome(
    trouble: str, sqlite_url: str, aws_world: World
) -> None:
    async with lab_town(sqlite_url, aws_world) as place:
        first, second = place.nightly_run(), place.nightly_run()
        faults: list[Fault] = []
        routes = ("compare/{basehead}", "git/trees/{tree_sha}")
        for route in (*routes, "commits/{ref}/check-runs"):
            faults.append(place.town.github.faults.add("GET", f"{REPO}/{route}", **TROUBLES[trouble]))
        faults.append(place.town.github.faults.add("POST", f"{REPO}/check-runs", **TROUBLES[trouble]))
        place.upload(first, GOOD)
        await place.settle()
        place.upload(second, {"ops.xml": junit(test_add="AssertionError")})
        await place.settle()
        assert [fault.hits for fault in faults] == [1] * len(faults)
        assert (place.check(first).title, place.check(second).title) == (FIRST, "1 new failure · 0 passed")
        assert await place.town.failures() == []


@asynccontextmanager
async def held_before_it_is_stored(place: LabTown) -> AsyncIterator[str]:
    """Upload the results of a nightly run and keep the bot from storing them within the block."""
    listing = place.town.github.faults.pause("GET", TREE, when="before")
    sha = await start_of_nightly_run(place)
    await listing.reached.wait()
    yield sha
    await place.town.quiet()
    await place.settle()
    assert place.check(sha).title == FIRST
    assert await place.town.failures() == []


async def test_the_bot_waits_for_a_database_that_another_process_is_writing_to(
    sqlite_url: str, aws_world: World
) -> None:
    async with lab_town(sqlite_url, aws_world) as place, held_before_it_is_stored(place):
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            place.town.github.faults.clear()
            await asyncio.sleep(BUSY_TIMEOUT + 1)  # The database is locked for longer than SQLite itself waits.
            writer.execute("ROLLBACK")


async def test_results_arrive_although_postgresql_restarts_while_they_are_read(
    postgres_url: str, postgres_server: PostgresServer, aws_world: World
) -> None:
    async with lab_town(postgres_url, aws_world) as place, held_before_it_is_stored(place):
        postgres_server.restart_immediately()
        place.town.github.faults.clear()


async def test_the_bot_waits_for_a_disk_without_space_for_a_file(sqlite_url: str, aws_world: World) -> None:
    async with lab_town(sqlite_url, aws_world) as place:
        sha = place.nightly_run()
        place.upload(sha, {"ops.xml": junit(test_add="passed") + b" " * (2 * SPACE)})
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (SPACE, hard))
        try:
            place.time.ahead += 60
            await place.town.bot.services.part(WATCH).tick()
            await retried(place)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await place.town.quiet()
        await place.settle()
        assert place.check(sha).title == FIRST
        assert await place.town.failures() == []
