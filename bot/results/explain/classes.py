"""Decide which class a test has in a run, and by which rule. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import islice

from nightjar_formats.model import BAD, SeenTest, Status

from bot.results.compare.diff import Comparison
from bot.results.compare.failure_class import FailureClass, class_of_failure
from bot.results.compare.flaky import WINDOW, Flakiness, flakiness_of
from bot.results.compare.lasting import LastingFailure, Segment, lasting_failure
from bot.results.explain import texts
from bot.results.store.history.timelines import LeftOut, TimelineRun


class ResultClass(StrEnum):
    """The class of a test in a check run or a message."""

    UNUSABLE = "unusable run"
    REGRESSION = "regression"
    NEVER_PASSED = "never passed"
    NEW_FAILURE = "new failure"
    KNOWN_FLAKY = "known flaky"
    STILL_FAILING = "still failing"
    UNJUDGED = "failing, nothing to compare with"
    FLAKY = "flaky"
    FIXED = "fixed"
    NEWLY_SKIPPED = "newly skipped"
    SKIPPED = "skipped"
    ADDED = "added"
    PASSED = "passed"
    PRECLUDED = "did not run"
    REMOVED = "removed"
    ABSENT = "absent"


RULES = {
    ResultClass.UNUSABLE: texts.RULE_UNUSABLE,
    ResultClass.REGRESSION: texts.RULE_REGRESSION,
    ResultClass.NEVER_PASSED: texts.RULE_NEVER_PASSED,
    ResultClass.NEW_FAILURE: texts.RULE_NEW_FAILURE,
    ResultClass.KNOWN_FLAKY: texts.RULE_KNOWN_FLAKY,
    ResultClass.STILL_FAILING: texts.RULE_STILL_FAILING,
    ResultClass.UNJUDGED: texts.RULE_UNJUDGED,
    ResultClass.FLAKY: texts.RULE_FLAKY,
    ResultClass.FIXED: texts.RULE_FIXED,
    ResultClass.NEWLY_SKIPPED: texts.RULE_NEWLY_SKIPPED,
    ResultClass.SKIPPED: texts.RULE_SKIPPED,
    ResultClass.ADDED: texts.RULE_ADDED,
    ResultClass.PASSED: texts.RULE_PASSED,
    ResultClass.PRECLUDED: texts.RULE_PRECLUDED,
    ResultClass.REMOVED: texts.RULE_REMOVED,
    ResultClass.ABSENT: texts.RULE_ABSENT,
}


NOT_FLAKY = Flakiness()


def class_of(
    test: str,
    seen: SeenTest | None,
    comparison: Comparison,
    lasting: LastingFailure | None,
    flakiness: Flakiness = NOT_FLAKY,
) -> ResultClass:
    """Return the class of a test from its outcome, the comparison with the baseline, and its history."""
    if comparison.infra:
        return ResultClass.UNUSABLE
    if seen is None:
        return _without_result(test, comparison)
    if seen.status in BAD:
        return _failing(test, seen, comparison, lasting, flakiness)
    return ResultClass.FLAKY if seen.flaky else _not_failing(test, seen, comparison)


OF_FAILURE = {
    FailureClass.NEW: ResultClass.NEW_FAILURE,
    FailureClass.UNJUDGED: ResultClass.UNJUDGED,
    FailureClass.KNOWN_FLAKY: ResultClass.KNOWN_FLAKY,
    FailureClass.STILL_FAILING: ResultClass.STILL_FAILING,
}


def _failing(
    test: str, seen: SeenTest, comparison: Comparison, lasting: LastingFailure | None, flakiness: Flakiness
) -> ResultClass:
    # A quarantine does not change the class here: it is explained beside it.
    failure_class = class_of_failure(
        failed_before=test not in comparison.new_failures if comparison.has_baseline else None,
        also_passed=seen.flaky,
        explained=flakiness.explains,
    )
    if lasting is not None and failure_class is not FailureClass.KNOWN_FLAKY:
        return ResultClass.NEVER_PASSED if lasting.good is None else ResultClass.REGRESSION
    return OF_FAILURE[failure_class]


def _not_failing(test: str, seen: SeenTest, comparison: Comparison) -> ResultClass:
    if seen.status is Status.SKIPPED:
        return ResultClass.NEWLY_SKIPPED if test in comparison.newly_skipped else ResultClass.SKIPPED
    if test in comparison.fixed:
        return ResultClass.FIXED
    return ResultClass.ADDED if test in comparison.new else ResultClass.PASSED


def _without_result(test: str, comparison: Comparison) -> ResultClass:
    if test in comparison.precluded:
        return ResultClass.PRECLUDED
    if test in comparison.fixed:
        return ResultClass.FIXED
    if test in comparison.newly_skipped:
        return ResultClass.NEWLY_SKIPPED
    return ResultClass.REMOVED if test in comparison.removed else ResultClass.ABSENT


def lasting_at(timeline: Sequence[TimelineRun]) -> tuple[LastingFailure | None, list[TimelineRun]]:
    """Return the lasting failure of a test in the first run of its timeline, and the runs with usable results.

    The timeline has its runs newest first, the returned runs are oldest first; the numbers of the lasting failure are
    their indexes.
    """
    usable_runs = [run for run in reversed(timeline) if run.left_out is LeftOut.NOTHING]
    if not usable_runs or usable_runs[-1] != timeline[0]:
        return None, usable_runs  # the first run of the timeline has no usable results
    return lasting_failure(_history(usable_runs), len(usable_runs)), usable_runs


def flakiness_at(timeline: Sequence[TimelineRun]) -> Flakiness:
    """Return how flaky a test is at the first run of its timeline, usable or not; the timeline is newest first."""
    earlier = (run for run in timeline[1:] if run.left_out is LeftOut.NOTHING)
    newest = [*timeline[:1], *islice(earlier, WINDOW)]
    return flakiness_of(_history(newest[::-1]), len(newest))


def _history(runs: Sequence[TimelineRun]) -> list[Segment]:
    return [(number, SeenTest(run.status, run.flaky) if run.status else None) for number, run in enumerate(runs)]
