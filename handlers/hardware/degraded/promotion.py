"""Whether a target could test more than it does, with the evidence: a proposal for maintainers, never automatic. Pure.

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
    """What a target lacks for another tier."""

    HISTORY = "history"
    RUNS = "runs"
    SPEED = "speed"
    PRESENCE = "presence"
    DEVICES = "devices"
    STEADINESS = "steadiness"


@dataclass(frozen=True, slots=True)
class PromotionEvidence:
    """What a target did in the last month.

    `age` is how long ago its first nightly commit was made, and `seconds` how long results take after labs could test
    a commit, at the 90th percentile; None where there are none. Of the others each is a count and what it is of.
    A run is unsteady if a test passed or failed in it, after it had changed the other way in one of the five runs
    before: a false alarm, or a failure that was repaired as soon.
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
        """Return what it lacks for another tier."""
        fits = {
            Lacking.HISTORY: self.age is not None and self.age >= MONTH,
            Lacking.RUNS: self.expected - self.missing >= LEAST_RUNS,
            Lacking.SPEED: self.seconds is not None and self.seconds <= SLOWEST,
            Lacking.PRESENCE: self.missing <= MOST_SHARE * self.expected,
            Lacking.DEVICES: self.infra <= MOST_SHARE * self.infra_of,
            Lacking.STEADINESS: self.unsteady <= MOST_SHARE * self.unsteady_of,
        }
        return [lacking for lacking, fit in fits.items() if not fit]
