"""`/metrics` on a port of its own, and how much of the database strangers can make it read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest

from bot.web.health import PAUSE_SHARE, SparingRefresh
from sandbox.bot_process import BotProcess
from tests.waiting import until
from tests.web.process import serving


async def statuses(port: int) -> dict[str, int]:
    """Return how each of these paths is answered."""
    found = {}
    async with aiohttp.ClientSession() as client:
        for path in ("/metrics", "/healthz", "/api/v1/openapi.json"):
            async with client.get(f"http://127.0.0.1:{port}{path}") as answer:
                found[path] = answer.status
                await answer.read()
    return found


def metrics_port(bot: BotProcess) -> int:
    return next((int(line["port"]) for line in bot.logs if line["event"] == "serving metrics"), 0)


async def test_with_a_port_of_their_own_measurements_are_not_on_the_main_one(tmp_path: Path) -> None:
    async with serving(tmp_path, options=["--metrics-port", "0"]) as bot:
        assert await statuses(bot.port) == {"/metrics": 404, "/healthz": 200, "/api/v1/openapi.json": 200}
        assert await statuses(metrics_port(bot)) == {"/metrics": 200, "/healthz": 200, "/api/v1/openapi.json": 404}


async def test_without_one_they_are_where_they_were(tmp_path: Path) -> None:
    async with serving(tmp_path) as bot:
        assert await statuses(bot.port) == {"/metrics": 200, "/healthz": 200, "/api/v1/openapi.json": 200}


async def test_a_worker_can_be_measured_too(tmp_path: Path) -> None:
    async with serving(tmp_path, options=["--metrics-port", "0"]) as first:
        environment = first.environment
    worker = BotProcess(environment, config=tmp_path / "app.yaml", command="worker", options=["--metrics-port", "0"])
    await worker.spawn()
    try:
        await until(lambda: metrics_port(worker))
        assert await statuses(metrics_port(worker)) == {"/metrics": 200, "/healthz": 200, "/api/v1/openapi.json": 404}
    finally:
        await worker.kill()


async def test_one_port_cannot_be_both(tmp_path: Path) -> None:
    async with serving(tmp_path) as bot:
        code, _, err = await bot.run(
            "serve", "--port", "0", "--metrics-port", str(bot.port), "--config", str(bot.config)
        )
        assert code == 1
        assert err


class Database:
    """Gauges that take a second to read."""

    def __init__(self) -> None:
        self.now, self.reads, self.slept = 100.0, 0, 0.0
        self.broken = False

    async def read(self) -> None:
        self.reads += 1
        await asyncio.sleep(0)
        self.now += 1.0
        if self.broken:
            raise OSError

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.now += seconds


async def test_those_who_ask_at_a_time_read_the_gauges_once() -> None:
    database = Database()
    refresh = SparingRefresh(database.read, lambda: database.now, database.sleep)
    await asyncio.gather(*(refresh() for _ in range(50)))
    assert (database.reads, database.slept) == (1, 0)


@pytest.mark.parametrize("broken", [False, True])
async def test_reading_them_takes_a_tenth_of_the_time(broken: bool) -> None:
    database = Database()
    database.broken = broken
    refresh = SparingRefresh(database.read, lambda: database.now, database.sleep)
    for _ in range(10):
        await asyncio.gather(refresh(), return_exceptions=True)
    assert (database.reads, database.slept) == (10, 9 * PAUSE_SHARE)
    database.now += PAUSE_SHARE
    await asyncio.gather(refresh(), return_exceptions=True)
    assert database.slept == 9 * PAUSE_SHARE
