"""How flaky a test is, and how many failed runs in a row its flakiness does not explain: no I/O.

*Proved* is a test of which one commit had both outcomes. A single failed run between two passed ones is *suspected*:
what broke and was repaired looks the same, so nothing follows from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nightjar_formats.model import BAD, GOOD

from bot.results.compare.diff import CONFIRMED_RUNS
from bot.results.compare.lasting import Segment

WINDOW = 40
"""Runs that are looked at, the newest included; and in which failures are counted, for both stand beside a failure."""
LEAST_RUNS = 10
"""So many runs must have passed or failed before there is a rate."""
ALPHA = 0.01
"""Failed runs in a row are more than flakiness when flakiness leads to so many more rarely than this."""
MOST_NEEDED = 3
"""So many failed runs in a row are always more than flakiness, or real failures would be reported late."""
_ONE_SIDED_95 = 1.6449
"""The quantile of the normal distribution for an upper bound with 95 % confidence."""


@dataclass(frozen=True, slots=True)
class Flakiness:
    """What the runs of a window say about a test.

    `row` counts the failed runs since the last pass. Before those, `runs` passed or failed, and `failed` of them
    failed; in `proved` runs one commit had both outcomes, which count as passes; `suspected` are single failed runs.
    """

    runs: int = 0
    failed: int = 0
    proved: int = 0
    suspected: int = 0
    row: int = 0

    @property
    def bound(self) -> float:
        """The upper bound of the rate of failed runs (Wilson's, with 95 % confidence); 1 where there is no rate."""
        if self.runs < LEAST_RUNS:
            return 1.0
        z2, rate = _ONE_SIDED_95**2, self.failed / self.runs
        spread = _ONE_SIDED_95 * math.sqrt(rate * (1 - rate) / self.runs + z2 / (4 * self.runs**2))
        return min(1.0, (rate + z2 / (2 * self.runs) + spread) / (1 + z2 / self.runs))

    @property
    def needed(self) -> int:
        """How many failed runs in a row are more than flakiness."""
        if not self.proved:
            return CONFIRMED_RUNS
        needed = CONFIRMED_RUNS
        while needed < MOST_NEEDED and self.bound**needed >= ALPHA:
            needed += 1
        return needed

    @property
    def explains(self) -> bool:
        """Whether the test is known to be flaky, and that is enough to explain its newest failures."""
        return self.proved > 0 and self.row < self.needed


def flakiness_of(history: Sequence[Segment], runs: int) -> Flakiness:
    """Return how flaky a test is by its history, as `lasting_failure` takes it: in the last WINDOW of so many runs."""
    outcomes, end = "", runs
    oldest = max(0, runs - WINDOW)
    for begin, seen in reversed(history):
        if end <= oldest:
            break
        letter = ""
        if seen is not None and (seen.flaky or seen.status in GOOD or seen.status in BAD):
            letter = "B" if seen.flaky else "F" if seen.status in BAD else "P"
        outcomes = letter * (end - max(begin, oldest)) + outcomes
        end = begin
    before = outcomes.rstrip("F")
    single = sum(before[place - 1 : place + 2] == "PFP" for place in range(1, len(before) - 1))
    return Flakiness(len(before), before.count("F"), before.count("B"), single, row=len(outcomes) - len(before))
