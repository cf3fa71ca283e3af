"""The pauses of a target: from when until when, who paused it and why. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

DAY = 86_400.0
LONGEST_PAUSE = 90
"""Days. A target that is away for longer is better removed from app.yaml."""
MOST_PAUSES = 10
"""Pauses that are stored for a target, the newest: the rule of degraded targets looks back some weeks."""
UNTIL, BECAUSE = "until", "because"


@dataclass(frozen=True, slots=True)
class TargetPause:
    """A pause of a target, from `since` until `until` in seconds since 1970; `by` is the login of who paused it."""

    since: float
    until: float
    by: str
    by_id: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TargetPauses:
    """The pauses of a target, oldest first; `commented_at` is when the newest command was written, in ISO 8601."""

    pauses: tuple[TargetPause, ...]
    commented_at: str

    def at(self, moment: float) -> TargetPause | None:
        """Return the pause that applies at a moment, None if there is none.

        A pause begins with the command, so it applies as soon as it is stored. The moment of a page may be a bit older.
        """
        newest = self.pauses[-1] if self.pauses else None
        return newest if newest and moment < newest.until else None

    def paused(self, pause: TargetPause, commented_at: str) -> TargetPauses:
        """Return the pauses with a new one; a pause that still applies is continued."""
        if current := self.at(pause.since):
            return TargetPauses((*self.pauses[:-1], replace(pause, since=current.since)), commented_at)
        return TargetPauses((*self.pauses, pause)[-MOST_PAUSES:], commented_at)

    def resumed(self, moment: float, commented_at: str) -> TargetPauses:
        """Return the pauses after the current one has ended at a moment."""
        if current := self.at(moment):
            return TargetPauses((*self.pauses[:-1], replace(current, until=moment)), commented_at)
        return TargetPauses(self.pauses, commented_at)


@dataclass(frozen=True, slots=True)
class PauseWords:
    """The parts of `TARGET… until DATE because REASON`; a part that is missing is empty."""

    targets: tuple[str, ...]
    date: str
    reason: str


def read_pause(words: Sequence[str]) -> PauseWords:
    """Split the words after `lab pause`."""
    folded = [word.casefold() for word in words]
    end = folded.index(UNTIL) if UNTIL in folded else len(words)
    rest = list(words[end + 1 :])
    reason = rest[2:] if len(rest) > 1 and rest[1].casefold() == BECAUSE else rest[1:]
    return PauseWords(tuple(words[:end]), rest[0] if rest else "", " ".join(reason))


def end_of_pause(text: str, moment: float) -> float | None:
    """Return when a pause `until` a date ends, the beginning of that day (UTC).

    None if the text is no date such as 2026-12-01, or the date is not within `LONGEST_PAUSE` days after `moment`.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    until = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
    return until if moment < until <= moment + LONGEST_PAUSE * DAY else None
