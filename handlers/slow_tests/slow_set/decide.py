"""Choose the tests that are slow: as few failures as possible are found a day later, inside a budget. Pure.

A pull request runs what is not marked as slow. What it must save is taken from the tests that catch least for their
time: first those that caught nothing, the slowest first, then by the failures that each second of theirs catches.
https://github.com/apache/tvm-rfcs/blob/main/rfcs/0055-slow-tests.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_SECONDS = 10.0
"""A test is not marked as slow if it takes less: the lowest cut-off of RFC 0055."""
QUICK_SECONDS = 5.0
"""A mark is removed in any case if the test takes less; between both, nothing changes because of small differences."""
HEADROOM = 0.9
"""A test that caught nothing loses its mark only while less than so much of the budget is taken: otherwise it would get
the mark back a week later."""


@dataclass(frozen=True, slots=True)
class SlowCandidate:
    """A test that may be marked or unmarked.

    `seconds` is what a pull request takes for it without a mark. `misses` is how many failures were found there that
    the nightly branch would have shown a day later, or, of a slow test, how many it did show a day later.
    """

    test: str
    seconds: float
    misses: int
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class SlowSet:
    """What to mark and to unmark, and how many seconds a pull request takes for its tests before and after that."""

    marked: tuple[SlowCandidate, ...]
    unmarked: tuple[SlowCandidate, ...]
    seconds_before: float
    seconds_after: float


def choose_slow_set(candidates: Sequence[SlowCandidate], fixed_seconds: float, budget: float) -> SlowSet:
    """Choose the slow tests among candidates; `fixed_seconds` is what a pull request takes for all other tests."""
    seconds = fixed_seconds + sum(candidate.seconds for candidate in candidates)
    slow = list[SlowCandidate]()
    for candidate in sorted(candidates, key=_worth):
        least = QUICK_SECONDS if candidate.is_slow else LEAST_SECONDS
        if candidate.seconds >= least and seconds > _limit(candidate, budget):
            slow.append(candidate)
            seconds -= candidate.seconds
    # The last one may have saved much more than was missing, so that smaller ones before it need no mark.
    for candidate in reversed(slow.copy()):
        if seconds + candidate.seconds <= _limit(candidate, budget):
            slow.remove(candidate)
            seconds += candidate.seconds
    seconds_before = fixed_seconds + sum(candidate.seconds for candidate in candidates if not candidate.is_slow)
    marked = [candidate for candidate in slow if not candidate.is_slow]
    unmarked = [candidate for candidate in candidates if candidate.is_slow and candidate not in slow]
    return SlowSet(_ordered(marked), _ordered(unmarked), seconds_before, seconds)


def _worth(candidate: SlowCandidate) -> tuple[float, bool, float, str]:
    """Return the sort key: tests that catch least for their time first, of equal ones those that are slow already."""
    return candidate.misses / max(candidate.seconds, 1e-9), not candidate.is_slow, -candidate.seconds, candidate.test


def _limit(candidate: SlowCandidate, budget: float) -> float:
    return budget * HEADROOM if candidate.is_slow and not candidate.misses else budget


def _ordered(candidates: Sequence[SlowCandidate]) -> tuple[SlowCandidate, ...]:
    return tuple(sorted(candidates, key=lambda candidate: (-candidate.seconds, candidate.test)))
