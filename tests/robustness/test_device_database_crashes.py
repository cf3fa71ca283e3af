"""PostgreSQL crashes while a lab's call is written: the lab repeats it, and no job is lost or handed out twice.

Each call is tested on both sides of its commit: a write that was not committed did not happen, and one that was did,
although neither the bot nor the lab knows.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import psycopg
import pytest

from handlers.device_tests.model import LEASE_SECONDS, DeviceJobState
from handlers.results.watch import WATCH
from tests.bucket import World
from tests.conversations.device_lab import LAB, DeviceLab, device_lab
from tests.conversations.devices import GOOD, HEXAGON, device_town
from tests.conversations.lab import junit
from tests.postgres import PostgresServer
from tests.waiting import until

Side = Literal["before", "after"]
CRASH = signal.SIGQUIT
SIDES: tuple[Side, ...] = ("before", "after")
WAITS = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = %s AND query LIKE %s
"""
JOBS_WRITTEN, PROBE = "%UPDATE nightjar_device_jobs%", "SELECT pg_logical_emit_message(true, '', '')"


class CrashAtWrite:
    """Hold the next write of a job, and crash the server on one side of its commit."""

    def __init__(self, server: PostgresServer, url: str, side: Side) -> None:
        self._server = server
        self._url = url
        self._side = side

    async def __call__(self, begin: Callable[[], Awaitable[Any]]) -> Any:
        """Start a write of a job, crash the server at that write, restart it, and return what `begin` returns."""
        async with await self._connect() as watcher, await psycopg.AsyncConnection.connect(self._url) as holder:
            await holder.execute("LOCK TABLE nightjar_device_jobs IN EXCLUSIVE MODE")
            begun, probing = asyncio.ensure_future(begin()), None
            await self._waits(watcher, "Lock", JOBS_WRITTEN)
            if self._side == "after":
                probing = await self._let_commits_wait(watcher)
                await holder.rollback()
                # The commit is on disk now, and waits for a replica that does not exist.
                await self._waits(watcher, "IPC", JOBS_WRITTEN)
            self._server.stop(how=CRASH)
            (self._server.folder / "data/postgresql.auto.conf").write_text("")
            self._server.start()
            await holder.close()
            await watcher.close()
            await asyncio.gather(*filter(None, [probing]), return_exceptions=True)
        return await begun

    async def _let_commits_wait(self, watcher: psycopg.AsyncConnection) -> asyncio.Task[None]:
        await watcher.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        await watcher.execute("SELECT pg_reload_conf()")

        async def probe() -> None:
            async with await self._connect() as connection:
                while True:
                    await connection.execute(PROBE)

        probing = asyncio.create_task(probe())
        await self._waits(watcher, "IPC", "%pg_logical_emit_message%")
        return probing

    async def _connect(self) -> psycopg.AsyncConnection:
        return await psycopg.AsyncConnection.connect(self._url, autocommit=True)

    async def _waits(self, watcher: psycopg.AsyncConnection, event: str, query: str) -> None:
        async def waiting() -> bool:
            row = await (await watcher.execute(WAITS, (event, query))).fetchone()
            return bool(row and row[0])

        await until(waiting)


async def repeated(lab: DeviceLab, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Repeat a call until the bot has its database back, as the agent does."""

    async def answer() -> tuple[int, Any] | None:
        status, _, reply = await lab.call(path, body)
        return None if status == 503 else (status, reply)

    result: tuple[int, Any] = await until(answer)  # type: ignore[assignment]
    return result


@pytest.mark.exhaustive("after")
@pytest.mark.parametrize("side", SIDES)
async def test_a_repeated_claim_costs_at_most_one_lease(
    side: Side, postgres_server: PostgresServer, postgres_url: str, aws_world: World
) -> None:
    async with device_lab(postgres_url, aws_world) as lab:
        await lab.asked_for()
        claim = ("claims", {"targets": [HEXAGON], "wait": 0})
        status, headers, _ = await CrashAtWrite(postgres_server, postgres_url, side)(lambda: lab.call(*claim))
        assert (status, "Retry-After" in headers) == (503, True)
        status, claimed_job = await repeated(lab, *claim)
        if side == "after":
            # The lease is lost with the answer: nobody gets the job until it expires.
            assert status == 204
            lab.time.ahead += LEASE_SECONDS + 1
            await lab.store.expire()
            status, claimed_job = await repeated(lab, *claim)
        assert (status, claimed_job["attempt"]) == (200, 1 if side == "before" else 2)
        assert (await repeated(lab, *claim))[0] == 204, "it is handed out once"


@pytest.mark.exhaustive("after")
@pytest.mark.parametrize("side", SIDES)
async def test_a_heartbeat_is_repeated_until_the_database_is_back(
    side: Side, postgres_server: PostgresServer, postgres_url: str, aws_world: World
) -> None:
    async with device_lab(postgres_url, aws_world) as lab:
        await lab.asked_for()
        claimed_job = await lab.claim()
        lab.time.ahead += 60
        beat = ("jobs/job/heartbeat", {"lease": claimed_job["lease"], "note": "1 of 3"})
        assert (await CrashAtWrite(postgres_server, postgres_url, side)(lambda: lab.call(*beat)))[0] == 503
        status, extended = await repeated(lab, *beat)
        assert (status, extended["lease_expires_at"] > claimed_job["lease_expires_at"]) == (200, True)
        job = await lab.store.find(LAB, "job")
        assert (job.state, job.attempt, job.note) == (DeviceJobState.LEASED, 1, "1 of 3")


@pytest.mark.parametrize("side", SIDES)
async def test_a_failed_job_costs_one_attempt_even_if_the_report_is_repeated(
    side: Side, postgres_server: PostgresServer, postgres_url: str, aws_world: World
) -> None:
    async with device_lab(postgres_url, aws_world) as lab:
        await lab.asked_for()
        claimed_job = await lab.claim()
        failed = ("jobs/job/failed", {"lease": claimed_job["lease"], "reason": "the device does not answer"})
        assert (await CrashAtWrite(postgres_server, postgres_url, side)(lambda: lab.call(*failed)))[0] == 503
        assert await repeated(lab, *failed) == (200, {"state": "queued"})
        assert (await lab.claim())["attempt"] == 2


@pytest.mark.exhaustive("after")
@pytest.mark.parametrize("side", SIDES)
async def test_repeated_results_complete_their_job_once(
    side: Side, postgres_server: PostgresServer, postgres_url: str, aws_world: World
) -> None:
    async with device_town(postgres_url, aws_world) as devices:
        pull, place = devices.pull(), devices.place
        await devices.says(pull, "hubot", f"@ci test on {HEXAGON}")
        claimed = await devices.claim()
        place.upload(pull.head_sha, {"a.xml": junit(**GOOD)}, job=claimed.job.id)
        place.time.ahead += 60
        await CrashAtWrite(postgres_server, postgres_url, side)(place.town.bot.services.part(WATCH).tick)
        await place.town.quiet()
        await place.settle()
        job = await devices.store.find(LAB, claimed.job.id)
        assert (job.state, job.arrived, job.attempt) == (DeviceJobState.DONE, ("operators",), 1)
        check = devices.check(pull.head_sha)
        assert (check.status, check.conclusion) == ("completed", "success")
        assert await place.town.failures() == []
