"""Which writes about heads wait for GitHub's limits, so that one about an older head leaves room for the newer ones.

Each process knows of its own: see docs/decisions/newest-heads-first.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

RETURNS_WITHIN = 30.0
"""Seconds after the moment for which it was put off in which a write tries again; one that does not waits no more."""


@dataclass(frozen=True, slots=True)
class HeadWrite:
    """A write about a head: `key` names what is written, `since` is when the head came up, in seconds since 1970."""

    key: str
    since: float


_WRITE: ContextVar[HeadWrite | None] = ContextVar("head write", default=None)


@contextmanager
def about_head(write: HeadWrite | None) -> Iterator[None]:
    """Have the writes made inside wait behind those about newer heads; None: behind no other."""
    token = _WRITE.set(write)
    try:
        yield
    finally:
        _WRITE.reset(token)


def current_head_write() -> HeadWrite | None:
    """Return what the running code writes about a head, None if it is about none."""
    return _WRITE.get()


class WaitingWrites:
    """The writes of one installation that wait. Moments are seconds on one monotonic clock."""

    def __init__(self) -> None:
        self._until: dict[HeadWrite, float] = {}

    def wait(self, write: HeadWrite | None, at: float) -> None:
        """Note that a write is put off until `at`."""
        if write is not None:
            self._until[write] = at + RETURNS_WITHIN

    def end(self, write: HeadWrite | None) -> None:
        """Note that a write waits no more."""
        if write is not None:
            self._until.pop(write, None)

    def newer(self, write: HeadWrite | None, now: float) -> int:
        """Return how many that wait are about newer heads; linear in those that wait."""
        if write is None or not self._until:
            return 0
        for other in [other for other, until in self._until.items() if until <= now]:
            del self._until[other]
        return sum(other.since > write.since for other in self._until)
