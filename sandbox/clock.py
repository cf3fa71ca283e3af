"""The sandbox's clock: real time, plus the time that a test has skipped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta


class Clock:
    """A clock that tests may move forward, so that tokens expire and runs become old."""

    def __init__(self) -> None:
        self._ahead = timedelta()
        self._stopped: datetime | None = None
        self._scheduled: list[tuple[datetime, Callable[[], object]]] = []

    def now(self) -> datetime:
        """Return the current time in UTC, in whole seconds as GitHub writes them."""
        return self._exactly().replace(microsecond=0)

    def seconds(self) -> float:
        """Return the current time in seconds since 1970."""
        return self.now().timestamp()

    def advance(self, *, seconds: float = 0, days: float = 0) -> None:
        """Move the clock forward."""
        self._ahead += timedelta(seconds=seconds, days=days)
        self._catch_up()

    @contextmanager
    def stopped(self, moment: datetime | None = None) -> Iterator[None]:
        """Stop the clock while the block runs, now or at a moment, so that everything in it happens at that time."""
        self._stopped = moment or self._exactly()
        try:
            yield
        finally:
            self._stopped = None

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Run an action after some seconds, which pass in reality or by `advance`."""
        self._scheduled.append((self._exactly() + timedelta(seconds=seconds), action))
        asyncio.get_running_loop().call_later(seconds, self._catch_up)

    def _exactly(self) -> datetime:
        return self._stopped or datetime.fromtimestamp(time.time(), UTC) + self._ahead

    def _catch_up(self) -> None:
        current = self._exactly()
        ready = [action for moment, action in self._scheduled if moment <= current]
        self._scheduled = [(moment, action) for moment, action in self._scheduled if moment > current]
        for action in ready:
            action()


def iso(moment: datetime) -> str:
    """Return a time as GitHub's JSON has it, such as `2026-11-20T05:10:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def iso_or_none(moment: datetime | None) -> str | None:
    """Return a time as GitHub's JSON has it, or None."""
    return None if moment is None else iso(moment)
