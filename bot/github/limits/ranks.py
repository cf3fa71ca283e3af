"""Priorities when GitHub's limits are tight: the rank of a request, and the share of each budget that it may use.

A rank applies to all requests inside a block, including those of tasks started there:

    with ranked(Rank.WRITER):
        await client.post(...)

A lower rank may use only a part of each budget, so something is always left for the ranks above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum


class Rank(IntEnum):
    """The rank of a request by the person who waits for it; higher numbers come first."""

    ANONYMOUS = 0
    """Somebody who asked the API without a token. Their reads also have a budget of their own."""
    STRANGER = 1
    """Replies to a person who may not run the command that they wrote. They wait for an hour at most."""
    SWEEP = 2
    """Nobody waits for it: timers, reconciliation."""
    EVENT = 3
    """The default: a webhook, a lab's results, an unknown person."""
    WRITER = 4
    """A person with the write role on the repository."""


@dataclass(frozen=True, slots=True)
class Share:
    """The part of each budget that a rank may use, as fractions.

    `writes`: of the writes per minute and per hour. `burst`: of the writes that need not be spaced. `reads`: of
    GitHub's hourly quota, the rest of which is left for the ranks above. `points`: of the points per minute.
    """

    writes: float
    burst: float
    reads: float
    points: float


SHARES = {
    Rank.WRITER: Share(writes=1.0, burst=1.0, reads=1.0, points=1.0),
    # All reads are allowed: it takes a read to find out who has the write role.
    Rank.EVENT: Share(writes=0.9, burst=2 / 3, reads=1.0, points=1.0),
    # Half of the points, so that a command never waits for a sweep of many repositories.
    Rank.SWEEP: Share(writes=0.8, burst=1 / 3, reads=0.8, points=0.5),
    Rank.STRANGER: Share(writes=0.5, burst=1 / 3, reads=0.8, points=0.5),
    Rank.ANONYMOUS: Share(writes=0.5, burst=1 / 3, reads=0.8, points=0.5),
}

CURRENT_RANK: ContextVar[Rank] = ContextVar("rank", default=Rank.EVENT)
"""The rank of the requests that the running code makes."""


@contextmanager
def ranked(rank: Rank) -> Iterator[None]:
    """Set the rank of the requests made inside the block; an inner block overrides an outer one."""
    token = CURRENT_RANK.set(rank)
    try:
        yield
    finally:
        CURRENT_RANK.reset(token)
