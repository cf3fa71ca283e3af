"""What moved: a stored change of the level of what a test measures. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.model import TargetKey
from nightjar_formats.text_enum import TextEnum

from bot.results.measurements.changes import LevelChange
from bot.results.measurements.texts import change_text


class MoveState(TextEnum):
    """What a change means now: only those that are OPEN alarm people."""

    OPEN = "open"
    ENDED = "ended"
    IMPROVEMENT = "improvement"
    NEITHER = "neither"
    """It lasts, and nobody said which values are better."""


class MoveCursor(NamedTuple):
    """Where a list of changes, newest first, goes on: after the change with this time and ID."""

    since_at: float
    id: str


@dataclass(frozen=True, slots=True)
class MovedSeries:
    """A change of the level of what a test measures on a target. Times are those of commits, in seconds since 1970.

    The new level begins at the nightly commit `since`; `good` is the last one before it that has the measurement. The
    commit `confirmed_in` is the first whose night confirms it. The levels `before` and `after` are in `unit`, and the
    new one is between `low` and `high` with 95 % confidence; for an exact number, all three are equal. The change ended
    at the commit `ended_in`, empty while it lasts: the level is closer to the one before again, or nothing was measured
    for a week of nights.
    """

    id: str
    target: TargetKey
    suite: str
    test: str
    name: str
    unit: str
    better: Better
    since: str
    since_at: float
    good: str
    confirmed_in: str
    confirmed_at: float
    before: float
    after: float
    low: float
    high: float
    ended_in: str
    ended_at: float

    @property
    def is_rise(self) -> bool:
        """Whether the new level is higher."""
        return self.after > self.before

    @property
    def is_worse(self) -> bool:
        """Whether the new level is worse."""
        return self.better is (Better.LOWER if self.is_rise else Better.HIGHER)

    @property
    def is_exact(self) -> bool:
        """Whether the measurement is a number without noise, such as a count."""
        return Measurement(self.name, self.after, self.unit).is_exact

    @property
    def state(self) -> MoveState:
        """What the change means now."""
        if self.ended_in:
            return MoveState.ENDED
        if self.better is Better.NONE:
            return MoveState.NEITHER
        return MoveState.OPEN if self.is_worse else MoveState.IMPROVEMENT

    @property
    def share(self) -> float | None:
        """Return by which share of the level before it the level changed; None if that was 0 or negative."""
        return self.after / self.before - 1 if self.before > 0 else None

    @property
    def text(self) -> str:
        """Return the change in a line: `latency 412 -> 467 ms, +13 % (11 to 15)`."""
        change = LevelChange(0, 0, self.before, self.after, self.low, self.high)
        return change_text(self.name, self.unit, change)

    @property
    def cursor(self) -> MoveCursor:
        """Where a list goes on after this change."""
        return MoveCursor(self.since_at, self.id)
