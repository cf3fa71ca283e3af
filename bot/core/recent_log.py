"""The last minutes of this process's log, in memory and after redaction, for operators."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

MOST_LINES = 2_000
LONGEST_LINE = 2_000
"""The most characters of a line; 2,000 such lines take at most 4 MB."""
LAST_SECONDS = 900.0
_encoded = json.JSONEncoder(ensure_ascii=False, default=str).encode
_OWN_FIELDS = ("time", "level", "event")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line: `at` in seconds since 1970, the level, the event, and all other fields as JSON."""

    at: float
    level: str
    event: str
    fields: str


class RecentLog:
    """The newest lines of a log, at most 2,000 of the last 15 minutes; `clock` returns seconds since 1970."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lines: deque[LogLine] = deque(maxlen=MOST_LINES)

    def add(self, event: Mapping[str, object]) -> None:
        """Add a line that is already redacted."""
        fields = {name: value for name, value in event.items() if name not in _OWN_FIELDS}
        text = _encoded(fields)
        self._lines.append(
            LogLine(
                self._clock(),
                str(event.get("level", "")),
                str(event.get("event", ""))[:LONGEST_LINE],
                text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…",
            )
        )

    def lines(self) -> list[LogLine]:
        """Return the lines of the last 15 minutes, newest first."""
        since = self._clock() - LAST_SECONDS
        # Copy the lines, because other threads log meanwhile.
        return [line for line in reversed(self._lines.copy()) if line.at >= since]


RECENT_LOG = RecentLog()
"""The log of this process, to which `bot.core.logs.configure` adds lines."""
