"""Decide from the history of a test on a target whether its failure lasts, and since when. No I/O.

Messages to people follow this rule. It considers one test only: many failures at once are no exception.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nightjar_formats.model import BAD, GOOD, SeenTest
from nightjar_formats.runs.shared_outcomes import shared

from bot.results.compare.diff import CONFIRMED_RUNS

STEADY_RUNS = 5
"""Runs in a row that failed, after as many that passed, for a failure that no unreliable results explain."""

Segment = tuple[int, SeenTest | None]
"""The run from which on a test had this result; None if it was absent."""


@dataclass(frozen=True, slots=True)
class LastingFailure:
    """The numbers of two runs: where the failure began, and where the test last passed (None if it never passed)."""

    since: int
    good: int | None


def lasting_failure(history: Sequence[Segment], runs: int) -> LastingFailure | None:
    """Return since when a test fails, or None if its failure is not confirmed.

    `history` has the segments of the test over all usable runs of its suite on a target, in the order of their commits.
    Runs are numbered from 0 to `runs - 1`, and each segment lasts until the next. An enumerated list of the results of
    all runs is a history too.

    The failure is confirmed if the last CONFIRMED_RUNS runs have it. It began at the first failure after the last run
    in which the test passed. Runs in which the test was skipped or absent don't change that, but two failed runs with
    such a run in between are not in a row. A flaky failure passed on the same commit, so it counts as a pass.
    """
    row_begin, since, in_row, end = runs, None, True, runs
    for begin, seen in reversed(history):
        if _fails(seen):
            since = begin
            row_begin = begin if in_row else row_begin
        elif _passes(seen):
            good = end - 1
            break
        else:
            in_row = False
        end = begin
    else:
        good = None
    if since is None or runs - row_begin < CONFIRMED_RUNS:
        return None
    return LastingFailure(since, good)


def is_steady(history: Sequence[Segment], runs: int) -> bool:
    """Say whether the last STEADY_RUNS runs or more failed, and at least as many before them passed.

    The arguments are those of `lasting_failure`. A run in which the test was skipped or absent ends the row.
    """
    failed = passed = 0
    end = runs
    for begin, seen in reversed(history):
        if _fails(seen) and not passed:
            failed += end - begin
        elif _passes(seen) and failed >= STEADY_RUNS:
            passed += end - begin
        else:
            break
        end = begin
    return failed >= STEADY_RUNS and passed >= STEADY_RUNS


def newly_confirmed(
    current: Mapping[str, SeenTest], previous: Mapping[str, SeenTest], earlier: Mapping[str, SeenTest]
) -> frozenset[str]:
    """Return the failures that a run confirms: the previous run has them too, and the run before that does not."""
    return frozenset(
        test for test in shared(current).which(_fails) if _fails(previous.get(test)) and not _fails(earlier.get(test))
    )


def _passes(seen: SeenTest | None) -> bool:
    return seen is not None and (seen.status in GOOD or seen.flaky)


def _fails(seen: SeenTest | None) -> bool:
    return seen is not None and seen.status in BAD and not seen.flaky
