"""Limit log lines that strangers can cause, so that they cannot fill the disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

SECONDS = 1.0
"""Seconds between two lines of a kind."""


class Rarely:
    """Allow one line of each kind in `SECONDS`, and count the lines that were held back.

    `clock` is in seconds from any starting point. Kinds must be few, because each takes memory for ever.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[Hashable, float] = {}
        self._held_back: dict[Hashable, int] = {}

    def ready(self, kind: Hashable = None) -> int | None:
        """Return None to hold a line back; otherwise how many lines were held back since the last one."""
        current_time = self._clock()
        last = self._last.get(kind)
        if last is not None and current_time - last < SECONDS:
            self._held_back[kind] = self._held_back.get(kind, 0) + 1
            return None
        self._last[kind] = current_time
        return self._held_back.pop(kind, 0)
