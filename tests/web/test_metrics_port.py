"""`/metrics` on its own port, and how much of the database strangers can make it read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import Gauge

from bot.core.metrics import Metrics
from bot.engine.sql.errors import DatabaseFailure
from bot.github.repositories.visibility import PublicRepositories
from bot.web.health import PAUSE_FACTOR, PublicPart, SparingRefresh
from sandbox.bot_process import BotProcess
from tests.waiting import until
from tests.web.process import serving

PRIVATE = "repositories:\n  octocat/secret:\n    api: {private: true}\n    nightly: {}\n"


async def statuses(port: int) -> dict[str, int]:
    """Return the status of each of these paths."""
    status_by_path = {}
    async with aiohttp.ClientSession() as client:
        for path in ("/metrics", "/healthz", "/api/v1/openapi.json"):
            async with client.get(f"http://127.0.0.1:{port}{path}") as answer:
                status_by_path[path] = answer.status
                await answer.read()
    return status_by_path


async def measurements(port: int) -> str:
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return await answer.text()


def metrics_port(bot: BotProcess) -> int:
    return next((int(line["port"]) for line in bot.logs if line["event"] == "serving metrics"), 0)


async def test_with_their_own_port_metrics_are_not_on_the_main_one(tmp_path: Path) -> None:
    async with serving(tmp_path, PRIVATE, ["--metrics-port", "0"]) as bot:
        assert await statuses(bot.port) == {"/metrics": 404, "/healthz": 200, "/api/v1/openapi.json": 200}
        assert await statuses(metrics_port(bot)) == {"/metrics": 200, "/healthz": 200, "/api/v1/openapi.json": 404}
        assert "octocat/secret" in await measurements(metrics_port(bot))


async def test_without_their_own_port_metrics_are_on_the_main_one(tmp_path: Path) -> None:
    async with serving(tmp_path, PRIVATE) as bot:
        assert await statuses(bot.port) == {"/metrics": 200, "/healthz": 200, "/api/v1/openapi.json": 200}
        message = await measurements(bot.port)
        assert ("nightjar_waiting_jobs" in message, "octocat/secret" in message) == (True, False)


async def test_a_worker_has_metrics_too(tmp_path: Path) -> None:
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


SERIES = [
    {"repository": "octocat/compiler", "timer": "nightly"},
    {"repository": "Octocat/Secret", "timer": "nightly"},
    {"repository": "octocat/unknown"},
    {"queue": "https://sqs.us-west-2.amazonaws.com/123456789012/device-results"},
    {"lab": "example-lab", "call": "claims"},
    {"repository": "octocat/compiler", "lab": "example-lab"},
    {"installation": "7"},
    {},
]


@pytest.mark.parametrize(
    ("public", "series"),
    [({"octocat/compiler"}, [0, 5, 6, 7]), ({"octocat/compiler", "octocat/secret"}, [0, 1, 3, 4, 5, 6, 7])],
)
async def test_strangers_read_only_the_names_of_public_repositories(public: set[str], series: list[int]) -> None:
    async def list_public() -> PublicRepositories:
        return PublicRepositories(sorted(public), incomplete=False)

    part = PublicPart(["octocat/compiler", "octocat/secret"], list_public)
    assert [place for place, labels in enumerate(SERIES) if part.shows(labels)] == [6, 7], "before it was asked"
    await part.refresh()
    assert [place for place, labels in enumerate(SERIES) if part.shows(labels)] == series


async def test_while_visibility_is_unknown_no_name_is_shown() -> None:
    answers: list[list[str] | Exception] = [["octocat/compiler"], DatabaseFailure("away")]

    async def list_public() -> PublicRepositories:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return PublicRepositories(answer, incomplete=False)

    part = PublicPart(["octocat/compiler"], list_public)
    seen = []
    for _ in range(2):
        await part.refresh()
        seen.append(part.shows(SERIES[0]))
    assert seen == [True, False]


def test_a_part_of_the_metrics_has_the_same_form_as_the_whole() -> None:
    metrics = Metrics("1.0")
    faults = Gauge("nightjar_repository_file_faults", "Faults.", ["repository"], registry=metrics.registry)
    for repository, count in (("octocat/compiler", 1), ("octocat/secret", 2)):
        faults.labels(repository).set(count)
    metrics.redelivered(requested=3, recovered=0)
    full_text = metrics.exposition()[0].decode()
    part = metrics.exposition(shows=lambda labels: labels.get("repository") != "octocat/secret")[0].decode()
    # The process's own metrics change between the two reads.
    own_lines = [
        [line for line in text.splitlines() if "nightjar_" in line and "_created" not in line]
        for text in (full_text, part)
    ]
    assert [line for line in own_lines[0] if line not in own_lines[1]] == [
        'nightjar_repository_file_faults{repository="octocat/secret"} 2.0'
    ]
    assert "secret" not in part


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


async def test_concurrent_requests_read_the_gauges_once() -> None:
    database = Database()
    refresh = SparingRefresh(database.read, lambda: database.now, database.sleep)
    await asyncio.gather(*(refresh() for _ in range(50)))
    assert (database.reads, database.slept) == (1, 0)


@pytest.mark.parametrize("broken", [False, True])
async def test_reading_the_gauges_takes_at_most_a_tenth_of_the_time(broken: bool) -> None:
    database = Database()
    database.broken = broken
    refresh = SparingRefresh(database.read, lambda: database.now, database.sleep)
    for _ in range(10):
        await asyncio.gather(refresh(), return_exceptions=True)
    assert (database.reads, database.slept) == (10, 9 * PAUSE_FACTOR)
    database.now += PAUSE_FACTOR
    await asyncio.gather(refresh(), return_exceptions=True)
    assert database.slept == 9 * PAUSE_FACTOR
