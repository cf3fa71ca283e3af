"""One budget for an installation's writes, shared by every process through the database.

GitHub counts the writes of an installation, whichever process sends them, so neither a second replica nor a restart
may start counting from zero. Each booked moment is a row. A booking is one statement that reads moments of the last
hour from an index: a few hundred at most. All moments are times of the database's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import LiteralString, cast

import structlog

from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.transactions import Connector

# If several processes book at one moment, one succeeds in each round: the last of twenty needs all twenty rounds.
TRIES = 20
SWEEP_EVERY = 100
"""Bookings after which the expired ones are deleted."""

CONTENDED = "other processes reserved every number that we tried"

_CLOCK: LiteralString = """
WITH clock AS (
    SELECT coalesce(CAST(%(now)s AS double precision), date_part('epoch', now())) AS now
)"""

# `place` 1 is the latest moment. A write may go a minute (an hour) after the one that is `per_minute` (`per_hour`)
# places back, and when the token bucket has room: after each moment, by as many spacings as there are places between.
# An hour has at most `per_hour` places, so the bucket no longer depends on moments that are as many spacings old.
# Each part reads no more of the index than it needs: a window over the whole hour takes ten times as long.
_MOMENTS: LiteralString = """, earliest AS (
    SELECT max(moment) AS at FROM (
        SELECT now AS moment FROM clock
        UNION ALL SELECT max(at + (place - %(burst)s + 1) * %(spacing)s) FROM (
            SELECT at, row_number() OVER (ORDER BY at DESC) AS place FROM nightjar_writes
             WHERE budget = %(budget)s
               AND at > (SELECT now FROM clock) - (%(per_hour)s - %(burst)s + 1) * %(spacing)s) AS bucket
        UNION ALL SELECT at + 60 FROM (
            SELECT at FROM nightjar_writes WHERE budget = %(budget)s AND at > (SELECT now FROM clock) - 60
             ORDER BY at DESC LIMIT 1 OFFSET %(per_minute)s - 1) AS minute
        UNION ALL SELECT at + 3600 FROM (
            SELECT at FROM nightjar_writes WHERE budget = %(budget)s AND at > (SELECT now FROM clock) - 3600
             ORDER BY at DESC LIMIT 1 OFFSET %(per_hour)s - 1) AS hour) AS moments
)"""
_CLOCK_AND_EARLIEST: LiteralString = _CLOCK + _MOMENTS

# Two processes that book at one moment choose the same number: the primary key lets one of them through.
_INSERT: LiteralString = """
INSERT INTO nightjar_writes (budget, number, at)
SELECT %(budget)s, (SELECT coalesce(max(number), 0) + 1 FROM nightjar_writes WHERE budget = %(budget)s), at
  FROM earliest WHERE at <= (SELECT now FROM clock) + %(patience)s
ON CONFLICT DO NOTHING
RETURNING number, at - coalesce(CAST(%(now)s AS double precision), date_part('epoch', now())) AS wait
"""
_SELECT: LiteralString = " SELECT at - now AS wait FROM earliest, clock"
BOOK: LiteralString = _CLOCK_AND_EARLIEST + _INSERT
WAIT: LiteralString = _CLOCK_AND_EARLIEST + _SELECT

# Moments further ahead than anyone books are from before the clock was set back. They move to now and keep their
# distances, so writes within one second still count as writes within one second.
_SET_BACK: LiteralString = """
UPDATE nightjar_writes
   SET at = at - (SELECT max(at) FROM nightjar_writes WHERE budget = %(budget)s) + (SELECT now FROM clock)
 WHERE budget = %(budget)s AND at > (SELECT now FROM clock) + 30
RETURNING number
"""
SET_BACK: LiteralString = _CLOCK + _SET_BACK
_FORGET: LiteralString = """
DELETE FROM nightjar_writes WHERE budget = %(budget)s AND at <= (SELECT now FROM clock) - 3600 RETURNING number
"""
FORGET: LiteralString = _CLOCK + _FORGET

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WritePace:
    """The most writes in any minute and in any hour; `burst` of them at once, then one every `spacing` seconds."""

    per_minute: int
    per_hour: int
    burst: int
    spacing: float


class WriteBudget:
    """The budgets of one database, by name. All methods raise DatabaseFailure when it cannot be reached.

    `clock` replaces the database's clock; it returns seconds since 1970.
    """

    def __init__(self, connector: Connector, clock: Callable[[], float] | None = None) -> None:
        self._connector = connector
        self._clock = clock

    async def book(self, name: str, pace: WritePace, patience: float) -> float:
        """Return the seconds until the next write may be sent; the write is booked if that is at most `patience`."""
        values = {
            "budget": name,
            "per_minute": pace.per_minute,
            "per_hour": pace.per_hour,
            "burst": pace.burst,
            "spacing": float(pace.spacing),
            "patience": float(patience),
        }
        for _ in range(TRIES):
            if booked := await self._rows(BOOK, values):
                number, wait = cast(int, booked[0]["number"]), cast(float, booked[0]["wait"])
                if number % SWEEP_EVERY == 0:
                    await self._rows(FORGET, {"budget": name})
                return max(0.0, wait)
            (row,) = await self._rows(WAIT, values)
            wait = cast(float, row["wait"])
            if wait <= patience:
                continue  # another process booked at this moment
            moved = await self._rows(SET_BACK, {"budget": name})
            if not moved:
                return wait
            log.warning("the clock was set back; the times of earlier writes were reset to now", writes=len(moved))
        raise DatabaseFailure(CONTENDED)

    async def _rows(self, statement: LiteralString, values: dict[str, object]) -> list[dict[str, object]]:
        moment = self._clock() if self._clock is not None else None
        return await self._connector.execute_query_all_async(statement, **values, now=moment)
