"""Decide whether a target is ready for a better tier, with evidence: a proposal, never automatic. Pure.

The bar is PyTorch's for its out-of-tree backends: a month of runs, results within three hours, few failures of the lab.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MONTH = 30 * 86400.0
LEAST_RUNS = 20
SLOWEST = 3 * 3600.0
"""Seconds until results, at the 90th percentile."""
MOST_SHARE = 0.05
"""Of nightly runs that are missing, infra, or unsteady, each."""


class Lacking(StrEnum):
    """A condition for a better tier that a target does not meet."""

    HISTORY = "history"
    RUNS = "runs"
    SPEED = "speed"
    PRESENCE = "presence"
    DEVICES = "devices"
    STEADINESS = "steadiness"


@dataclass(frozen=True, slots=True)
class PromotionEvidence:
    """The evidence of the last month.

    `age` is the age of its first nightly commit, and `seconds` the time from when labs could test a commit to its
    results, at the 90th percentile; None if there are none. The other fields are counts, each with its total. A run is
    unsteady if a test flips back in it: it had changed the other way in one of the five runs before, so that was a
    false alarm, or a failure that was fixed quickly.
    """

    age: float | None
    seconds: float | None
    missing: int
    expected: int
    infra: int
    infra_of: int
    unsteady: int
    unsteady_of: int

    def lacking(self) -> list[Lacking]:
        """Return the conditions that it does not meet."""
        fits = {
            Lacking.HISTORY: self.age is not None and self.age >= MONTH,
            Lacking.RUNS: self.expected - self.missing >= LEAST_RUNS,
            Lacking.SPEED: self.seconds is not None and self.seconds <= SLOWEST,
            Lacking.PRESENCE: self.missing <= MOST_SHARE * self.expected,
            Lacking.DEVICES: self.infra <= MOST_SHARE * self.infra_of,
            Lacking.STEADINESS: self.unsteady <= MOST_SHARE * self.unsteady_of,
        }
        return [lacking for lacking, fit in fits.items() if not fit]
