"""Decide whether the results of a suite on a target are reliable, by how many tests flip back. No I/O.

A test *flips* when it changes between passed and failed. It *flips back* if it had already flipped in one of the runs
just before. A broken test flips once, so if many tests break and are fixed, the target does not become unreliable.

If in every run of a board 400 tests begin to fail and 350 recover, its results are useless, and people stop reading all
messages. A run in which ten tests, and 3 % of all, flip back is unstable. Results are unreliable when three of five
runs are unstable, and reliable again after five stable ones in a row. Meanwhile the bot neither reports changes of
these tests nor stores them as reported, so it reports afterwards which tests still fail. Steady failures are the
exception: five failed runs after five passed ones are no coincidence even on such a board, which may be unreliable for
months. One message a week has them all. One message says when the results become unreliable, and one when they are
reliable again.

To count all flips would mistake a large regression and its fix for an unreliable board. If known flaky tests did not
count, a board with hundreds of flaky tests would be reliable. A table of flips per run would have to be updated after
late runs; to read the columns of 30 runs takes milliseconds, and gives the same answer for any order of arrival.

A regression on an unreliable target is reported after five runs, or up to a week later, unless the test itself failed
now and then before; then it is reported up to five runs after the target recovers. Failures that occur twice in a row
before the bot knows that the target is unreliable are still reported (docs/signal.md). A suite that recovers for five
runs and breaks again causes two more messages. Only the last 30 runs count.
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
