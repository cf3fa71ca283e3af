"""A bot to which nothing happens neither writes nor asks GitHub nor wakes up more than its goals allow."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conversations.town import town
from tests.simulated_hours import SimulatedLoop, simulate_time

HOUR = 3600.0
SETTLED = 700.0
"""Seconds after the start in which each timer has run, and the doctor's second round has ended."""
MOST_ROWS = 40
"""Rows that an hour may change: a timer of every half hour stores its two runs. A row is less than a page of 4 kB."""
MOST_REQUESTS = 120
"""One a minute for missed deliveries, and the doctor's."""
MOST_WAKES = 3 * HOUR
"""Wake-ups of the event loop and of the database's thread."""
CONFIG = """
repositories:
  octocat/compiler:
"""


@dataclass(frozen=True)
class Idled:
    """What happened in a simulated hour: changed rows, requests by path, moments of the loop, statements."""

    rows: int
    requests: Counter[str]
    moments: int
    statements: int


@pytest.fixture
def idled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Idled:
    """Run a bot for an hour in which nothing happens."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, SimulatedLoop)
        simulate_time(monkeypatch, loop)
        return runner.run(_idle(f"sqlite:///{tmp_path}/nightjar.db", loop))


async def _idle(url: str, loop: SimulatedLoop) -> Idled:
    async with town(url, config=CONFIG, now=loop.clock.time) as place:
        await asyncio.sleep(SETTLED)
        connector = place.bot.engine.database.connector

        async def changed() -> int:
            return await connector._writer.run(_changes)  # type: ignore[union-attr]

        rows, requests = await changed(), len(place.github.requests.records)
        moments, statements = loop.clock.wakes, loop.clock.statements
        await asyncio.sleep(HOUR)
        return Idled(
            await changed() - rows,
            Counter(f"{r.method} {r.path}" for r in place.github.requests.records[requests:]),
            loop.clock.wakes - moments,
            loop.clock.statements - statements,
        )


def _changes(connection: sqlite3.Connection) -> int:
    return connection.total_changes


def test_an_idle_hour_stays_below_its_goals(idled: Idled) -> None:
    assert idled.rows <= MOST_ROWS, idled
    assert idled.requests.total() <= MOST_REQUESTS, idled
    # Each statement wakes the thread of the database, and then the loop.
    assert idled.moments + 2 * idled.statements <= MOST_WAKES, idled
