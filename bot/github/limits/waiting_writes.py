"""Track the writes that wait for GitHub's limits: writes about older heads leave room for those about newer heads.

Each process knows only its own writes: see docs/decisions/newest-heads-first.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

RETURNS_WITHIN = 30.0
"""Seconds after the planned time for a postponed write to be tried again; then it no longer counts as waiting."""


@dataclass(frozen=True, slots=True)
class HeadWrite:
    """A write about a head: `key` names the written object, `since` is the time of the head, in seconds since 1970."""

    key: str
    since: float


_WRITE: ContextVar[HeadWrite | None] = ContextVar("head write", default=None)


@contextmanager
def about_head(write: HeadWrite | None) -> Iterator[None]:
    """Make the writes inside the block wait behind those about newer heads; with None they wait behind none."""
    token = _WRITE.set(write)
    try:
        yield
    finally:
        _WRITE.reset(token)


def current_head_write() -> HeadWrite | None:
    """Return the head write that the running code is making, None if it makes none."""
    return _WRITE.get()


class WaitingWrites:
    """The waiting writes of one installation. Times are seconds on one monotonic clock."""

    def __init__(self) -> None:
        self._until: dict[HeadWrite, float] = {}

    def wait(self, write: HeadWrite | None, retry_at: float) -> None:
        """Record that a write is postponed until `retry_at`."""
        if write is not None:
            self._until[write] = retry_at + RETURNS_WITHIN

    def end(self, write: HeadWrite | None) -> None:
        """Record that a write no longer waits."""
        if write is not None:
            self._until.pop(write, None)

    def newer(self, write: HeadWrite | None, moment: float) -> int:
        """Return how many waiting writes are about newer heads, in time linear in the number of waiting writes."""
        if write is None or not self._until:
            return 0
        for waiting in [other for other, until in self._until.items() if until <= moment]:
            del self._until[waiting]
        return sum(waiting.since > write.since for waiting in self._until)
