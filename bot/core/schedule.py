"""Recurring schedules: at a time of day in a time zone, or every so many seconds.

Times are seconds since 1970; no function here reads a clock.
"""

from __future__ import annotations

import calendar
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Protocol, Self
from zoneinfo import ZoneInfo

from nightjar_formats.items import first_of

LENGTHS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
"""Seconds of the units in which app.yaml has times, the longest first."""
MINUTE = 60
"""Seconds; timers are checked once a minute, so offsets are whole minutes."""
DAYS_AROUND = (-2, -1, 0, 1, 2)
"""Days around today. They always include the last and the next scheduled day, even where a zone skips a day."""


class Schedule(Protocol):
    """The times of something that recurs. Hashable, so that equal schedules are computed once."""

    def for_timer(self, key: str) -> Self:
        """Return the schedule of one of many timers, which should not all run at once; `key` identifies the timer."""
        ...

    def last_time(self, moment: float) -> float:
        """Return the last scheduled time that is not after `moment`."""
        ...

    def next_time(self, moment: float) -> float:
        """Return the first scheduled time after `moment`."""
        ...


class _Calendar:
    """A schedule of days with the time of day `at` (HH:MM) of a `timezone`; a subclass says which days."""

    __slots__ = ()

    at: str
    timezone: str

    def for_timer(self, key: str) -> Self:
        """Return this schedule: app.yaml promises the minute."""
        return self

    def last_time(self, moment: float) -> float:
        """Return the last scheduled time that is not after `moment`."""
        return max(scheduled for scheduled in self._times_around(moment) if scheduled <= moment)

    def next_time(self, moment: float) -> float:
        """Return the first scheduled time after `moment`."""
        return min(scheduled for scheduled in self._times_around(moment) if scheduled > moment)

    def _times_around(self, moment: float) -> Iterator[float]:
        zone, time_of_day = ZoneInfo(self.timezone), time.fromisoformat(self.at)
        for day in self._days_around(datetime.fromtimestamp(moment, zone).date()):
            yield _first_occurrence(day, time_of_day, zone)

    def _days_around(self, today: date) -> Iterator[date]:
        """Yield the days of the schedule before and after a day, in order."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Daily(_Calendar):
    """Every day `at` a time (HH:MM) of a `timezone` (IANA), each day once.

    On a day when the clocks skip the time, the schedule uses the first moment after the gap; on a day when the time
    occurs twice, the first occurrence. `timezone` must be one that this machine knows.
    """

    at: str
    timezone: str

    def __str__(self) -> str:
        return f"{self.at} {self.timezone}"

    def _days_around(self, today: date) -> Iterator[date]:
        for days in DAYS_AROUND:
            yield today + timedelta(days=days)


@dataclass(frozen=True, slots=True)
class Weekly(_Calendar):
    """Every week on a `weekday` (0 is Monday) `at` a time of day, as `Daily` understands it."""

    weekday: int
    at: str
    timezone: str

    def __str__(self) -> str:
        return f"{calendar.day_name[self.weekday]} {self.at} {self.timezone}"

    def _days_around(self, today: date) -> Iterator[date]:
        begin = today - timedelta(days=today.weekday() - self.weekday)
        for weeks in (-2, -1, 0, 1, 2):
            yield begin + timedelta(weeks=weeks)


@dataclass(frozen=True, slots=True)
class FixedInterval:
    """Every so many whole seconds, counted from 1970 plus an `offset`, so that all replicas use the same times."""

    seconds: int
    offset: int = 0

    def __str__(self) -> str:
        length, unit = first_of((length, unit) for length, unit in LENGTHS if self.seconds % length == 0)
        return f"every {self.seconds // length}{unit}"

    def for_timer(self, key: str) -> Self:
        """Return this schedule with an offset of whole minutes that depends on the timer alone."""
        minutes = max(1, self.seconds // MINUTE)
        return replace(self, offset=zlib.crc32(key.encode()) % minutes * MINUTE)

    def last_time(self, moment: float) -> float:
        """Return the last scheduled time that is not after `moment`."""
        return float(math.floor((moment - self.offset) / self.seconds) * self.seconds + self.offset)

    def next_time(self, moment: float) -> float:
        """Return the first scheduled time after `moment`."""
        return self.last_time(moment) + self.seconds


def _first_occurrence(day: date, time_of_day: time, zone: tzinfo) -> float:
    wall = datetime.combine(day, time_of_day)
    # `fold=0` takes the first of two, and the offset before a gap (PEP 495).
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment.timestamp()
    second_after_gap = int(moment.timestamp())
    second_before_gap = int(wall.replace(tzinfo=zone, fold=1).timestamp())
    return float(_gap_end(second_before_gap, second_after_gap, zone))


def _gap_end(earlier: int, later: int, zone: tzinfo) -> int:
    """Return the second in which the zone's offset changes, between one `earlier` and one `later` than the gap."""
    offset = datetime.fromtimestamp(earlier, zone).utcoffset()
    while later - earlier > 1:
        middle = (earlier + later) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == offset:
            earlier = middle
        else:
            later = middle
    return later
