"""The choices that people made for pull requests."""

from __future__ import annotations

from dataclasses import dataclass

from bot.engine.records import Record


@dataclass(frozen=True, slots=True)
class SlowTestsChoice:
    """The choice that a person made for a pull request: on or off, who, and when (ISO 8601)."""

    on: bool
    by: str
    by_id: int
    at: str


CHOICE = Record(
    "slow-tests", 1, SlowTestsChoice, "whether slow tests run for a pull request, and who decided it", days=365
)
