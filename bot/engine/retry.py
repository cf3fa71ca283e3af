"""Decide when a failed job is tried again, and which errors are final."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import aiohttp
from gidgethub import GitHubBroken
from sqlalchemy import exc as database

from bot.core.errors import (
    OUTAGE_PATIENCE,
    Away,
    GiveWay,
    PayloadError,
    Refusal,
    StorageError,
    TryAgain,
    UnknownName,
    UserError,
)
from bot.engine.outage import is_outage
from bot.engine.processor import ErrorKind
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.portable import JSONDict
from bot.engine.writes import CheckAgain

FIRST_WAIT = 1.0
LONGEST_WAIT = 600.0
"""Seconds of the exponential back-off: its first wait and its last ones."""

JITTER = 0.25
"""Up to this share of a wait is added to it, so that jobs that failed together don't all return together."""

MAX_TRIES = 12
"""Tries after transient errors: about half an hour."""

MAX_MISSING_TRIES = 6
"""Tries if GitHub answers an unexpected 404: about half a minute."""

MAX_FAULT_TRIES = 3
"""Tries after a bug of ours: the same code will most likely fail again."""

LONGEST_AWAY_WAIT = 60.0
"""Seconds between two tries while a service does not answer. These tries are not counted."""

MAX_NAMED_WAITS = 100
"""The most waits that GitHub named (`retry-after`, `x-ratelimit-reset`). Many, because they are not the job's fault."""

LONGEST_NAMED_WAIT = 3 * 3600.0
"""Seconds; GitHub's own limits are renewed within the hour, so a longer wait is a mistake."""

SUSPECT_AFTER = 2
"""A job that was in progress when this many processes ended is a suspect: from then on it runs alone."""

MAX_ALONE = 3
"""A job that was the only one in progress when this many processes in a row ended is most likely the cause.

Each of them had lived for longer than the one before (`bot.engine.worker.guard.Guard.too_young`).
"""

QUIET_SECONDS = 3600.0
"""After this time, a job that failed as a likely cause of crashes, or because it could not be read, runs again."""

SUSPECT_PAUSE = 5.0
"""Seconds after which a suspect that could not be alone tries again."""

TRANSIENT = (
    TryAgain,
    StorageError,
    GitHubBroken,
    DatabaseFailure,
    database.OperationalError,
    database.InterfaceError,
    database.TimeoutError,
    aiohttp.ClientError,
    OSError,
    TimeoutError,
)

LOST = "it was the only running job when its process ended, {count} times in a row, so {consequence}"
AGAIN_LATER = "it runs again, alone, in an hour; `nightjar replay` runs it at once"
NOT_AGAIN = "it is not retried; `nightjar replay` runs it again"


class LostTooOften(Exception):
    """A job repeatedly crashes the process that runs it. The job is stored as failed, and may be replayed.

    `runs_again`: the engine runs the job again after `QUIET_SECONDS`.
    """

    def __init__(self, count: int, *, runs_again: bool = False) -> None:
        super().__init__(LOST.format(count=count, consequence=AGAIN_LATER if runs_again else NOT_AGAIN))
        self.runs_again = runs_again


FINAL = (UserError, PayloadError, Refusal, UnknownName, LostTooOften)
"""Final at once, as GitHub's refusals are."""


NO_NUMBER = "a count of tries is no number"


class RunAgain(Exception):
    """Raised by a task to run again `seconds` from now; with `priority` None, the job's priority does not change."""

    def __init__(self, seconds: float, priority: int | None) -> None:
        super().__init__(f"again in {seconds:.1f} s")
        self.seconds = seconds
        self.priority = priority


class Postponed(RunAgain):
    """Raised for a try that could not begin, or that the process stopped: it does not count against the job."""


class Failed(Exception):
    """Raised by a task to end its job as failed, after the failure is stored."""


@dataclass(frozen=True, slots=True)
class Tries:
    """Counts of a job's tries by their outcome.

    - `backed_off`: a transient error, so the next wait doubles.
    - `named`: an error that named its own wait.
    - `faults`: a bug of ours.
    - `stopped`: ended on purpose, because the worker was stopped or the job gave way to others.
    - `alone`: the latest tries in a row that ran alone and left no outcome. Tries that could not begin do not interrupt
      the row.
    - `away`: a service or our own database was unavailable. `away_since` is the time, in seconds since 1970, since when
      all tries have met this outage; 0 if the last one did not.
    """

    backed_off: int = 0
    named: int = 0
    faults: int = 0
    stopped: int = 0
    alone: int = 0
    away: int = 0
    away_since: float = 0.0

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """Read what `asdict` wrote; missing counts are zero. Raises TypeError if a count is not a number."""
        counts = {name: stored[name] for name in cls.__slots__ if name in stored}
        if not all(isinstance(count, int | float) for count in counts.values()):
            raise TypeError(NO_NUMBER)
        return cls(**counts)

    def asdict(self) -> JSONDict:
        """Return the counts as JSON values."""
        # `dataclasses.asdict` takes eleven times as long, and every note is written with it.
        return {name: getattr(self, name) for name in self.__slots__}

    def lost(self, attempts: int) -> int:
        """Return how many of a job's tries crashed with their worker, without an error."""
        return max(0, attempts - self.backed_off - self.named - self.faults - self.stopped - self.away)

    def after(self, error: BaseException, moment: float) -> Tries:
        """Count one more try, which ended with `error` at `moment`, in seconds since 1970."""
        if isinstance(error, Postponed):
            return replace(self, stopped=self.stopped + 1)
        if isinstance(error, LostTooOften):  # one more crash, in the next hour's run, is enough
            return replace(self, stopped=self.stopped + 1, alone=MAX_ALONE - 1)
        ended = replace(self, alone=0)
        if is_away(error):
            return replace(ended, away=self.away + 1, away_since=self.away_since or moment)
        if isinstance(error, CheckAgain):  # the wait between two checks of a write whose answer was lost
            return replace(ended, away=self.away + 1)
        if isinstance(error, RunAgain | GiveWay | asyncio.CancelledError):
            return replace(ended, stopped=self.stopped + 1)
        # From here on the service answered, so a later outage begins a new wait.
        answered = replace(ended, away_since=0.0)
        if isinstance(error, TryAgain) and error.retry_in is not None:
            return replace(answered, named=self.named + 1)
        if isinstance(error, TRANSIENT):
            return replace(answered, backed_off=self.backed_off + 1)
        return replace(answered, faults=self.faults + 1)

    def after_outlived(self, count: int) -> Tries:
        """Count tries without a note whose process lived on, because the database was unavailable."""
        return replace(self, stopped=self.stopped + count, alone=0) if count else self


def is_away(error: BaseException) -> bool:
    """Return whether a service, or our own database, is unavailable: waiting for it uses up no tries."""
    return isinstance(error, Away) or is_outage(error)


def is_final(error: BaseException, kind: ErrorKind = ErrorKind.OTHER) -> bool:
    """Return whether an error is final at once, whatever was tried before."""
    return isinstance(error, FINAL) or kind is not ErrorKind.OTHER


def next_try(
    error: BaseException,
    tries: Tries,
    moment: float,
    first_wait: float = FIRST_WAIT,
    kind: ErrorKind = ErrorKind.OTHER,
) -> float | None:
    """Return the seconds until the next try, or None if `error` is final after the earlier `tries`.

    `moment` is the time of the error, in seconds since 1970.
    """
    if kind is ErrorKind.MISSING:
        # The object of a delivery existed when GitHub sent it, but parts of GitHub lag behind others.
        # `Tries.after` counts it among the faults.
        return _back_off(tries.faults, first_wait) if tries.faults + 1 < MAX_MISSING_TRIES else None
    if is_final(error, kind):
        return None
    if is_away(error):
        return _until_answered(error, moment - (tries.away_since or moment), first_wait)
    if isinstance(error, CheckAgain):
        return error.retry_in
    if isinstance(error, TryAgain) and error.retry_in is not None:
        named = min(max(error.retry_in, 0.0), LONGEST_NAMED_WAIT)
        return _jittered(named) if tries.named < MAX_NAMED_WAITS or isinstance(error, GiveWay) else None
    if isinstance(error, TRANSIENT):
        return _back_off(tries.backed_off, first_wait) if tries.backed_off + 1 < MAX_TRIES else None
    return _back_off(tries.faults, first_wait) if tries.faults + 1 < MAX_FAULT_TRIES else None


def _until_answered(error: BaseException, elapsed: float, first_wait: float) -> float | None:
    """Return a wait about as long as the outage so far; None once the error's patience is used up."""
    patience, retry_in = (error.patience, error.retry_in) if isinstance(error, Away) else (OUTAGE_PATIENCE, None)
    if elapsed > patience:
        return None
    named = min(retry_in or 0.0, LONGEST_NAMED_WAIT)
    return _jittered(max(named, min(max(elapsed, first_wait), LONGEST_AWAY_WAIT)))


def unnoted_wait(attempts: int) -> float:
    """Return the wait, in seconds, after a try that ended without a note; `attempts` are the tries before it."""
    return _back_off(min(attempts, MAX_TRIES))


def _back_off(earlier: int, first_wait: float = FIRST_WAIT) -> float:
    return _jittered(min(first_wait * 2.0**earlier, LONGEST_WAIT))


def _jittered(seconds: float) -> float:
    # Never shorter, because a wait that GitHub named must not be cut short.
    return seconds * random.uniform(1.0, 1.0 + JITTER)  # noqa: S311  # nobody gains by guessing it
