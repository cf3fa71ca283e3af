"""A bot to which nothing happens neither writes nor sends requests nor wakes up more than its goals allow."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, LiteralString

import pytest

from bot.aws.client import AWS
from bot.engine.sqlite.connector import SqliteConnector
from bot.engine.worker.supervisor import WorkerPace
from tests.bucket import World
from tests.conversations.town import REPOSITORY, town
from tests.simulated_hours import SimulatedLoop, simulate_time

HOUR = 3600.0
SETTLED = 4000.0
"""Seconds after the start in which each timer has run, and the buckets have been quiet for an hour."""
MOST_ROWS, MOST_ROWS_OF_LABS = 40, 4
"""Rows that an hour may change, and of each repository with labs: a few timers store one or two runs, and twice an hour
it is stored that a bucket was listed. A row is less than a page of 4 kB."""
HEARTBEATS = int(HOUR / WorkerPace().reap)
"""One row each, which several workers on PostgreSQL need (`bot.engine.worker.supervisor`)."""
MOST_REQUESTS = 120
"""One a minute for missed deliveries, and the doctor's."""
MOST_LISTINGS = 16
"""Requests to S3 for each repository: one every five minutes, and each hour a search for misspelled folders."""
DOCTORS_LISTINGS = 14
"""Two every ten minutes."""
MOST_WAKES = 3 * HOUR
"""Wake-ups of the event loop and of threads. Beside much other work there are more, because answers come one by one."""
COUNTED: LiteralString = "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint) AS count"
LAB = """
    results:
      bucket: {bucket}
      labs:
        example-lab: {{targets: {{hexagon-v73: {{tier: 2, label: "test: hexagon"}}}}}}
"""


@dataclass(frozen=True)
class Idled:
    """What happened in a simulated hour: changed rows, requests by path, listings of buckets by prefix, wake-ups."""

    rows: int
    requests: Counter[str]
    listings: Counter[str]
    wakes: int


@pytest.fixture
def idled(database_url: str, labs: int, aws_world: World, monkeypatch: pytest.MonkeyPatch) -> Idled:
    """Run a bot for an hour in which nothing happens."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SimulatedLoop)
        simulate_time(monkeypatch, loop)
        return runner.run(_idle(database_url, loop, labs, aws_world))


async def _idle(url: str, loop: SimulatedLoop, labs: int, bucket: World) -> Idled:
    names = [REPOSITORY, *(f"octocat/compiler-{number}" for number in range(2, labs + 1))]
    lab = LAB.format(bucket=bucket.name) if labs else ""
    config = "repositories:\n" + "\n".join(f"  {name}:{lab}" for name in names)
    listings = Counter[str]()

    def note(params: dict[str, Any], **_: Any) -> None:
        listings[params["query_string"].get("prefix", "")] += 1

    async with town(url, config=config, now=loop.clock.time) as place:
        for name in names[1:]:
            place.app.install(place.github.create_repository(name))
        events = place.bot.services.part(AWS).s3().meta.events
        events.register("before-call.s3.ListObjectsV2", note)
        await asyncio.sleep(SETTLED)
        changed = _counter(place.bot.engine.database.connector)
        rows, requests = await changed(), len(place.github.requests.records)
        wakes = loop.clock.wakes
        listings.clear()
        await asyncio.sleep(HOUR)
        return Idled(
            await changed() - rows,
            Counter(f"{r.method} {r.path}" for r in place.github.requests.records[requests:]),
            listings,
            loop.clock.wakes - wakes,
        )


def _counter(connector: Any) -> Callable[[], Awaitable[int]]:
    """Return a function that counts changed rows on SQLite, and transactions that write on PostgreSQL."""

    async def transactions() -> int:
        (row,) = await connector.execute_query_all_async(COUNTED)
        return int(row["count"])

    async def rows() -> int:
        count: int = await connector._writer.run(_changes)
        return count

    return rows if isinstance(connector, SqliteConnector) else transactions


def _changes(connection: sqlite3.Connection) -> int:
    return connection.total_changes


# On PostgreSQL, a bot with labs has the same goal as one without, so that one is enough.
@pytest.mark.exhaustive("sqlite-10")
@pytest.mark.parametrize(
    ("database_url", "labs"), [("sqlite", 0), ("sqlite", 10), ("postgresql", 10)], indirect=["database_url"]
)
def test_an_idle_hour_stays_below_its_goals(idled: Idled, labs: int, database_url: str) -> None:
    if database_url.startswith("sqlite"):
        assert idled.rows <= MOST_ROWS + labs * MOST_ROWS_OF_LABS, idled
    else:
        # PostgreSQL counts transactions.
        assert idled.rows <= HEARTBEATS + MOST_ROWS, idled
    assert idled.requests.total() <= MOST_REQUESTS, idled
    assert idled.listings.total() <= labs * MOST_LISTINGS + DOCTORS_LISTINGS, idled
    assert idled.wakes <= MOST_WAKES, idled
