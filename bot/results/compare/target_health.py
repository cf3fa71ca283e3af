"""Decide in which state a target is: every page, badge and message about a target says the same. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

STALE_SECONDS = 36 * 3600.0
"""Seconds that a lab has to test a commit, 36 hours.

A result that has not arrived by then is missing, and a target whose newest result is older has missed a nightly run.
"""


class TargetHealth(StrEnum):
    """What the nightly runs of a target say about the code now; the first state that applies."""

    NO_RESULTS = "no results"
    STALE = "stale"
    """The newest nightly run is old: it says nothing about the code as it is now, green results least of all."""
    UNUSABLE = "no usable results"
    """From the newest nightly run nobody can judge the code: a problem of the lab."""
    FAILING = "failing"
    PASSING = "passing"


def is_stale(received_at: float | None, moment: float) -> bool:
    """Return whether a target's newest nightly run arrived too long before a moment, or never."""
    return received_at is None or moment - received_at > STALE_SECONDS


@dataclass(frozen=True, slots=True)
class TargetReport:
    """The newest nightly run of a target: when it arrived, in seconds since 1970, None for none.

    `infra` says why it has no usable results; it is empty if it has some. `suites` is the number of suites with usable
    results of any nightly commit, and `failing` of the tests that fail in the newest of them.
    """

    received_at: float | None
    infra: str
    suites: int
    failing: int

    def health(self, moment: float) -> TargetHealth:
        """Return the state of the target at a moment, in seconds since 1970."""
        if self.received_at is None or not (self.suites or self.infra):
            return TargetHealth.NO_RESULTS
        if is_stale(self.received_at, moment):
            return TargetHealth.STALE
        if self.infra:
            return TargetHealth.UNUSABLE
        return TargetHealth.FAILING if self.failing else TargetHealth.PASSING
