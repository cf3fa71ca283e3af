"""Decide whether the results of a suite on a target are reliable, by how many tests flip back. No I/O.

A test *flips* when it changes between passed and failed. It *flips back* if it had already flipped in one of the runs
just before. A broken test flips once, so if many tests break and are fixed, the target does not become unreliable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LOOKBACK = 5
"""Runs before a flip in which another one makes it a flip back."""
LEAST_TESTS, SHARE = 10, 0.03
"""A run is unstable if so many tests, and this share of those that passed or failed, flip back in it."""
JUDGED_RUNS = 5
"""Results are reliable again when none of so many runs in a row is unstable."""
UNSTABLE_RUNS = 3
"""Results are unreliable when so many of the last `JUDGED_RUNS` are unstable."""
WINDOW = 30
"""The number of newest runs that count."""


@dataclass(frozen=True, slots=True)
class RunFlips:
    """The number of tests that flipped back in a run, and of those that passed or failed in it."""

    sha: str
    flipped_back: int
    tests: int

    @property
    def unstable(self) -> bool:
        """Whether too many tests flipped back."""
        return self.flipped_back >= max(LEAST_TESTS, SHARE * self.tests)


@dataclass(frozen=True, slots=True)
class SuiteHealth:
    """Whether the results of a suite on a target are reliable.

    They are unreliable since the unstable run of the commit `since`, which is empty if they are reliable. `older`: they
    may have been unreliable before it. `newest` is the newest unstable run, and `stable` counts the runs after it.
    """

    since: str = ""
    older: bool = False
    newest: RunFlips | None = None
    stable: int = 0

    @property
    def unreliable(self) -> bool:
        """Whether the results are unreliable."""
        return bool(self.since)


RELIABLE = SuiteHealth()


def suite_health(runs: Sequence[RunFlips]) -> SuiteHealth:
    """Return the health after the last of the runs, which are sorted by commit."""
    since = None
    for end in range(1, len(runs) + 1):
        begin = max(0, end - JUDGED_RUNS)
        unstable = [number for number in range(begin, end) if runs[number].unstable]
        if since is None and len(unstable) >= UNSTABLE_RUNS:
            since = unstable[0]
        elif not unstable:
            since = None
    last = max((number for number, run in enumerate(runs) if run.unstable), default=None)
    if since is None or last is None:
        return RELIABLE
    older = len(runs) >= WINDOW and since < JUDGED_RUNS
    return SuiteHealth(runs[since].sha, older, runs[last], len(runs) - 1 - last)
