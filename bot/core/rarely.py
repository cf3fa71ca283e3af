"""Log what strangers can cause, without letting them fill the disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

SECONDS = 1.0
"""Seconds after a line during which no further line of its kind is written."""


class Rarely:
    """Let one line of each kind through in `SECONDS`, and count those that were held back.

    `clock` is in seconds from anywhere. Kinds must be few, for each is remembered.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: dict[Hashable, float] = {}
        self._held_back: dict[Hashable, int] = {}

    def ready(self, kind: Hashable = None) -> int | None:
        """Return how many lines were held back since the last one if this one may be written, else None."""
        now = self._clock()
        last = self._last.get(kind)
        if last is not None and now - last < SECONDS:
            self._held_back[kind] = self._held_back.get(kind, 0) + 1
            return None
        self._last[kind] = now
        return self._held_back.pop(kind, 0)
