"""Whether the culprit is to be reverted, how often tests run without it, and what they say. No I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bot.results.culprit.search import CERTAIN, SearchOutcome
from handlers.device_tests.model import MOST_REPEATS
from handlers.searches.records import AskedRun, CulpritSearch, SearchRunState
from handlers.searches.revert.records import RevertStage

MOST_ATTEMPTS = 3
"""How often a target is asked for results."""
LUCK = 0.01
"""The tests run so often that a broken commit passes with at most this probability, within `MOST_REPEATS`."""
_MOST_RATE = 0.9


def reverted_pull(search: CulpritSearch) -> int:
    """Return the one pull request that explains the failure with at least `CERTAIN`, 0 for none.

    What made a measurement worse may be wanted, so a person decides about that.
    """
    answer = search.answer
    if (
        search.request.measurement
        or answer is None
        or SearchOutcome(answer.outcome) is not SearchOutcome.CULPRIT
        or answer.probability < CERTAIN
    ):
        return 0
    return answer.pull


def repeats_without(search: CulpritSearch) -> int:
    """Return how often each test runs without the culprit: often, if it rarely fails with it."""
    answer = search.answer
    assert answer is not None
    failed, passed = dict[str, int](), dict[str, int]()
    for run in search.runs:
        for test, counts in run.counts.items() if run.commit >= answer.first else ():
            failed[test] = failed.get(test, 0) + counts[0]
            passed[test] = passed.get(test, 0) + counts[1]
    rates = [failures / (failures + passed[test]) for test, failures in failed.items() if failures]
    rate = min([_MOST_RATE, *rates])
    return min(MOST_REPEATS, math.ceil(math.log(LUCK) / math.log1p(-rate)))


def stage_after(runs: Sequence[AskedRun], tests: Sequence[str]) -> RevertStage:
    """Return what runs without the culprit say; `OPENED` if all tests pass, so that the draft may be opened.

    A single failure is enough to open none. Without results, it is `WAITING`, or `UNKNOWN` after the last attempt.
    """
    if any(run.state is SearchRunState.WAITING for run in runs):
        return RevertStage.TESTING
    counts = [(test, counts) for run in runs for test, counts in run.counts.items() if test in tests]
    if any(failed for _, (failed, _) in counts):
        return RevertStage.FAILED
    if {test for test, (_, passed) in counts if passed} == set(tests):
        return RevertStage.OPENED
    targets = [run.target for run in runs]
    is_last = any(targets.count(target) >= MOST_ATTEMPTS for target in targets)
    return RevertStage.UNKNOWN if is_last else RevertStage.WAITING
