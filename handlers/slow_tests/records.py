"""The choices that people made for pull requests."""

from __future__ import annotations

from dataclasses import dataclass

from bot.engine.records import Record


@dataclass(frozen=True, slots=True)
class SlowTestsChoice:
    """The choice that a person made for a pull request: on or off, who, and when (ISO 8601).

    `later_level` is the level of tests if it comes after `main`, otherwise empty. `fixes` is the number of the reverted
    pull request that this one fixes; then nobody made the choice, and it is the oldest.
    """

    on: bool
    by: str
    by_id: int
    at: str
    later_level: str = ""
    fixes: int = 0


@dataclass(frozen=True, slots=True)
class RevertRequest:
    """The first person who asked to revert a pull request with slow tests."""

    by: str
    by_id: int


@dataclass(frozen=True, slots=True)
class RevertedPull:
    """A pull request that was reverted: its number, and that of the merged pull request that reverts it."""

    number: int
    revert: int


CHOICE = Record(
    "slow-tests", 1, SlowTestsChoice, "whether slow tests run for a pull request, and who decided it", days=365
)
REVERT_REQUEST = Record(
    "revert-request", 1, RevertRequest, "who asked to revert a pull request, by its number", days=365
)
REVERTED = Record(
    "reverted", 1, RevertedPull, "a reverted pull request, by its number and by that of its revert", days=365
)
RECORDS = (CHOICE, REVERT_REQUEST, REVERTED)
