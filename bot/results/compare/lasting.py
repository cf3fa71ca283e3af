"""Since when a test fails for good, by its whole history on a target: no I/O.

This is the rule by which people get messages. It looks at one test, and at nothing else: many failures at once are
many tests, each of which either lasts or does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightjar_formats.model import BAD, GOOD, SeenTest
from nightjar_formats.runs.shared_outcomes import SharedOutcomes

from bot.results.compare.diff import CONFIRMED_RUNS

Segment = tuple[int, SeenTest | None]
"""From which run on a test ended like this; None where it was absent."""


@dataclass(frozen=True, slots=True)
class LastingFailure:
    """Runs by their numbers: where the failure began, and where the test passed last; None where it never passed."""

    since: int
    good: int | None


def lasting_failure(history: Sequence[Segment], runs: int) -> LastingFailure | None:
    """Return since when a test fails, or None while its failure is not confirmed.

    `history` are the segments of the test over all runs of its suite on a target that say something about the code, in
    the order of their commits; runs are numbered from 0 to `runs - 1`, and each segment lasts until the next. A list of
    what was seen in each run is a history too, once it is enumerated.

    The failure is confirmed when the last CONFIRMED_RUNS runs saw it. It began at the first failure after the last run
    in which the test passed. Runs in between in which it was skipped or absent change nothing about that, but two runs
    with one of them in between are not in a row. A flaky failure passed on the same commit, so it counts as a pass.
    """
    row_begins, since, in_row, end = runs, None, True, runs
    for begin, seen in reversed(history):
        if _fails(seen):
            since = begin
            row_begins = begin if in_row else row_begins
        elif seen is not None and (seen.status in GOOD or seen.flaky):
            good = end - 1
            break
        else:
            in_row = False
        end = begin
    else:
        good = None
    if since is None or runs - row_begins < CONFIRMED_RUNS:
        return None
    return LastingFailure(since, good)


def newly_confirmed(
    now: Mapping[str, SeenTest], before: Mapping[str, SeenTest], earlier: Mapping[str, SeenTest]
) -> frozenset[str]:
    """Return the failures that a run confirms: it and the run before it saw them, and the one before that did not."""
    return frozenset(
        test for test in SharedOutcomes(now).which(_fails) if _fails(before.get(test)) and not _fails(earlier.get(test))
    )


def _fails(seen: SeenTest | None) -> bool:
    return seen is not None and seen.status in BAD and not seen.flaky
