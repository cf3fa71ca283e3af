"""Helpers for timers that sweep repositories: a failure stops no other repository, and is retried hourly."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

import structlog
from gidgethub import GitHubException

from bot.core.errors import TryAgain, UserError
from bot.engine.jobs.journal import FAILED

if TYPE_CHECKING:
    from bot.engine.jobs.journal import DeliveryRecord, Journal

HOUR = 3600.0
"""Seconds between two attempts at work that has failed for good."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LastRun(Enum):
    """The outcome of a delivery that was announced before."""

    REMOVED = auto()
    """Its jobs are no longer stored."""
    OPEN = auto()
    """It waits or runs."""
    FAILED = auto()
    """All its attempts have failed, so another run an hour later may help."""
    DONE = auto()


async def last_run(journal: Journal, guid: str) -> LastRun:
    """Return the outcome of the delivery of a GUID."""
    return _outcome(await journal.delivery(guid))


async def last_runs(journal: Journal, guids: Sequence[str]) -> dict[str, LastRun]:
    """Return the outcomes of the deliveries of these GUIDs, with two statements."""
    records = await journal.deliveries(guids)
    return {guid: _outcome(records.get(guid)) for guid in guids}


def _outcome(record: DeliveryRecord | None) -> LastRun:
    if record is None:
        return LastRun.REMOVED
    if not record.settled:
        return LastRun.OPEN
    return LastRun.FAILED if record.state == FAILED else LastRun.DONE


def hours_between(earlier: float, later: float) -> int:
    """Return the whole hours between two times in seconds since 1970: the number of the attempt."""
    return int((later - earlier) // HOUR)


@contextlib.contextmanager
def only_logged(message: str, **fields: str) -> Generator[None]:
    """Log an error of one repository's work, with `fields`, instead of raising it: the other repositories follow."""
    try:
        yield
    # Errors of our database are raised: they affect all repositories, so the whole run is tried again.
    except (TryAgain, UserError, GitHubException) as error:
        log.warning(message, **fields, reason=str(error))
