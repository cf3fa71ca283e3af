"""What the bot remembers of its reminders."""

from __future__ import annotations

from dataclasses import dataclass

from bot.engine.records import Record


@dataclass(frozen=True, slots=True)
class Reminded:
    """When people were reminded of a pull request, in ISO 8601; empty: never."""

    at: str = ""


REMINDED_AT = Record("stale-reviews", 1, Reminded, "when people were reminded of a pull request", days=365)
