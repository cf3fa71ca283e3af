"""Compute how flaky a test is, and how many failed runs in a row its flakiness does not explain. No I/O.

A test is *proved* flaky if one commit had both outcomes. A single failed run between two passed ones is only
*suspected*, because broken and repaired code looks the same; it changes nothing.

If the last 40 runs contain proof, a new failure is listed as known flaky. It is reported after two failed runs in a row
if the upper bound of the failure rate, squared, is below 0.01; otherwise after three. A change-point test over the
whole history finds smaller changes of the rate, but finds them later, and people cannot check its result by hand.
Without the limit of three, a test that fails in every third run would need six failed runs in a row.

So real failures of flaky tests are found one run later at most. A test that fails in 30 % of its runs in spite of
reruns is still reported wrongly now and then (docs/signal.md). Two labs that disagree about one commit prove nothing:
their devices and drivers differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from nightjar_formats.columns import SEEN
from nightjar_formats.model import BAD, GOOD, SeenTest

from bot.results.compare.diff import CONFIRMED_RUNS
from bot.results.compare.lasting import Segment

WINDOW = 40
"""The number of newest runs that count, for flakiness and for the number of failures in a check run."""
LEAST_RUNS = 10
"""So many runs must have passed or failed before there is a rate."""
ALPHA = 0.01
"""Failed runs in a row are more than flakiness if their probability, by the rate of the test, is below this."""
MOST_NEEDED = 3
"""So many failed runs in a row are always more than flakiness, or real failures would be reported late."""
_ONE_SIDED_95 = 1.6449
"""The quantile of the normal distribution for an upper bound with 95 % confidence."""


@dataclass(frozen=True, slots=True)
class Flakiness:
    """The flakiness of a test in a window of runs.

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
        """Return the upper bound of the rate of failed runs (Wilson, 95 % confidence); 1 if there is no rate."""
        if self.runs < LEAST_RUNS:
            return 1.0
        z2, rate = _ONE_SIDED_95**2, self.failed / self.runs
        spread = _ONE_SIDED_95 * math.sqrt(rate * (1 - rate) / self.runs + z2 / (4 * self.runs**2))
        return min(1.0, (rate + z2 / (2 * self.runs) + spread) / (1 + z2 / self.runs))

    @property
    def needed(self) -> int:
        """Return how many failed runs in a row its flakiness does not explain."""
        if not self.proved:
            return CONFIRMED_RUNS
        needed = CONFIRMED_RUNS
        while needed < MOST_NEEDED and self.bound**needed >= ALPHA:
            needed += 1
        return needed

    @property
    def explains(self) -> bool:
        """Whether the test is known to be flaky, and its flakiness explains its newest failures."""
        return self.proved > 0 and self.row < self.needed


def flakiness_of(history: Sequence[Segment], runs: int) -> Flakiness:
    """Return the flakiness of a test in the last WINDOW runs of its history, in the form of `lasting_failure`."""
    outcomes, end = "", runs
    oldest = max(0, runs - WINDOW)
    for begin, seen in reversed(history):
        if end <= oldest:
            break
        outcomes = outcome_letter(seen) * (end - max(begin, oldest)) + outcomes
        end = begin
    return flakiness_of_outcomes(outcomes)


def outcome_letter(seen: SeenTest | None) -> str:
    """Return P for a test that passed in a run, F for a failure, B for both, and nothing if it did not run."""
    if seen is None:
        return ""
    if seen.flaky:
        return "B"
    return "F" if seen.status in BAD else "P" if seen.status in GOOD else ""


OUTCOME_LETTERS = ("", *map(outcome_letter, SEEN[1:]))
"""The letter of a test by its status byte; a run that lacks the test has none."""


def flakiness_of_outcomes(outcomes: str) -> Flakiness:
    """Return the flakiness of a test from the letters of its runs (`outcome_letter`), of at most WINDOW runs."""
    earlier = outcomes.rstrip("F")
    # Neighbors share a pass, so each pass is doubled to be counted on both sides.
    single = earlier.replace("P", "PP").count("PFP")
    return Flakiness(len(earlier), earlier.count("F"), earlier.count("B"), single, row=len(outcomes) - len(earlier))
