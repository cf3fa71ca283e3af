"""An hour of a bot to which nothing happens, by a simulated clock."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, LiteralString

from bot.aws.client import AWS
from bot.engine.sqlite.connector import SqliteConnector
from tests.bucket import World
from tests.conversations.town import REPOSITORY, town
from tests.simulated_hours import SimulatedLoop

HOUR = 3600.0
SETTLED = 4000.0
"""Seconds after the start in which each timer has run, and the buckets have been quiet for an hour."""
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


async def idle_hour(url: str, loop: SimulatedLoop, repositories: int, bucket: World | None = None) -> Idled:
    """Run a bot with so many repositories for an hour in which nothing happens; with a bucket, each has a lab."""
    names = [REPOSITORY, *(f"octocat/compiler-{number}" for number in range(2, repositories + 1))]
    lab = LAB.format(bucket=bucket.name) if bucket else ""
    config = "repositories:\n" + "\n".join(f"  {name}:{lab}" for name in names)
    listings = Counter[str]()

    def note(params: dict[str, Any], **_: Any) -> None:
        listings[params["query_string"].get("prefix", "")] += 1

    async with town(url, config=config, now=loop.clock.time) as place:
        for name in names[1:]:
            place.app.install(place.github.create_repository(name))
        if bucket:
            events = place.bot.services.part(AWS).s3().meta.events
            events.register("before-call.s3.ListObjectsV2", note)
        await asyncio.sleep(SETTLED)
        changed = _counter(place.bot.engine.database.connector)
        rows, requests = await changed(), len(place.github.requests.records)
        assert rows > 0, "the start has changed some"
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
