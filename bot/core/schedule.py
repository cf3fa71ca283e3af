"""Recurring schedules: at a time of day in a time zone, or every so many seconds.

Times are seconds since 1970; nothing here reads a clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo

from nightjar_formats.items import first_of

LENGTHS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
"""Seconds of the units in which app.yaml has times, the longest first."""
DAYS_AROUND = (-2, -1, 0, 1, 2)
"""Days around today. They always include the last and the next scheduled day, even where a zone skips a day."""


class Schedule(Protocol):
    """When something recurs."""

    def last_time(self, now: float) -> float:
        """Return the last moment that is not after `now`."""
        ...

    def next_time(self, now: float) -> float:
        """Return the first moment after `now`."""
        ...


@dataclass(frozen=True, slots=True)
class Daily:
    """Every day `at` a time (HH:MM) of a `timezone` (IANA), each day once.

    On a day when the clocks skip the time, the schedule uses the first moment after the gap; on a day when the time
    occurs twice, the first occurrence. `timezone` must be one that this machine knows.
    """

    at: str
    timezone: str

    def __str__(self) -> str:
        return f"{self.at} {self.timezone}"

    def last_time(self, now: float) -> float:
        """Return the last moment that is not after `now`."""
        return max(moment for moment in self._around(now) if moment <= now)

    def next_time(self, now: float) -> float:
        """Return the first moment after `now`."""
        return min(moment for moment in self._around(now) if moment > now)

    def _around(self, now: float) -> Iterator[float]:
        zone, at = ZoneInfo(self.timezone), time.fromisoformat(self.at)
        today = datetime.fromtimestamp(now, zone).date()
        for days in DAYS_AROUND:
            yield _moment(today + timedelta(days=days), at, zone)


@dataclass(frozen=True, slots=True)
class FixedInterval:
    """Every so many whole seconds, counted from 1970, so that all replicas mean the same moments."""

    seconds: int

    def __str__(self) -> str:
        length, unit = first_of((length, unit) for length, unit in LENGTHS if self.seconds % length == 0)
        return f"every {self.seconds // length}{unit}"

    def last_time(self, now: float) -> float:
        """Return the last moment that is not after `now`."""
        return float(math.floor(now / self.seconds) * self.seconds)

    def next_time(self, now: float) -> float:
        """Return the first moment after `now`."""
        return self.last_time(now) + self.seconds


def _moment(day: date, at: time, zone: tzinfo) -> float:
    wall = datetime.combine(day, at)
    # `fold=0` takes the first of two, and the offset before a gap (PEP 495).
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment.timestamp()
    after = int(moment.timestamp())
    before = int(wall.replace(tzinfo=zone, fold=1).timestamp())
    return float(_gap_end(before, after, zone))


def _gap_end(before: int, after: int, zone: tzinfo) -> int:
    """Return the second in which the zone's offset changes, between one before the gap and one after it."""
    offset = datetime.fromtimestamp(before, zone).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after
