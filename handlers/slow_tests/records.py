"""The choices that people made for pull requests."""

from __future__ import annotations

from dataclasses import dataclass

from bot.engine.records import Record


@dataclass(frozen=True, slots=True)
class SlowTestsChoice:
    """The choice that a person made for a pull request: on or off, who, and when (ISO 8601).

    `later_level` is the level of tests if it comes after `main`, otherwise empty.
    """

    on: bool
    by: str
    by_id: int
    at: str
    later_level: str = ""


CHOICE = Record(
    "slow-tests", 1, SlowTestsChoice, "whether slow tests run for a pull request, and who decided it", days=365
)
