"""The class of a test, from its outcome, the comparison with the baseline, and its history."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nightjar_formats.model import SeenTest, Status

from bot.results.compare.diff import Comparison, compare
from bot.results.compare.flaky import Flakiness
from bot.results.compare.lasting import LastingFailure
from bot.results.explain.classes import ResultClass, class_of

TEST = "test_a"
PASSED, FAILED, ERRORED, SKIPPED = map(SeenTest, (Status.PASSED, Status.FAILED, Status.ERRORED, Status.SKIPPED))
OTHERS = {"test_b": PASSED}
COMPARED = compare(OTHERS, OTHERS, exit_status=0)
ALONE = compare(OTHERS, None, exit_status=0)
PROVED = Flakiness(runs=40, failed=8, proved=2, row=1)


@pytest.mark.parametrize(
    ("seen", "field", "result_class"),
    [
        (PASSED, "", ResultClass.PASSED),
        (PASSED, "fixed", ResultClass.FIXED),
        (PASSED, "new", ResultClass.ADDED),
        (SKIPPED, "", ResultClass.SKIPPED),
        (SKIPPED, "newly_skipped", ResultClass.NEWLY_SKIPPED),
        (SKIPPED, "new", ResultClass.SKIPPED),
        (FAILED, "", ResultClass.STILL_FAILING),
        (ERRORED, "", ResultClass.STILL_FAILING),
        (FAILED, "new_failures", ResultClass.NEW_FAILURE),
        (SeenTest(Status.PASSED, flaky=True), "", ResultClass.FLAKY),
        (SeenTest(Status.FAILED, flaky=True), "known_flaky", ResultClass.KNOWN_FLAKY),
        (None, "", ResultClass.ABSENT),
        (None, "precluded", ResultClass.PRECLUDED),
        (None, "fixed", ResultClass.FIXED),
        (None, "newly_skipped", ResultClass.NEWLY_SKIPPED),
        (None, "removed", ResultClass.REMOVED),
    ],
)
def test_the_class_is_what_the_comparison_says(seen: SeenTest | None, field: str, result_class: ResultClass) -> None:
    comparison: Comparison = replace(COMPARED, **{field: (TEST,)}) if field else COMPARED  # type: ignore[arg-type]
    assert class_of(TEST, seen, comparison, None) == result_class
    others: Comparison = replace(COMPARED, **{field: ("test_c",)}) if field else COMPARED  # type: ignore[arg-type]
    assert class_of(TEST, seen, others, None) == class_of(TEST, seen, COMPARED, None)
    assert class_of(TEST, seen, replace(comparison, infra="no device"), None) == ResultClass.UNUSABLE


@pytest.mark.parametrize(
    ("comparison", "lasting", "flakiness", "result_class"),
    [
        (COMPARED, LastingFailure(3, 2), Flakiness(), ResultClass.REGRESSION),
        (COMPARED, LastingFailure(3, None), Flakiness(), ResultClass.NEVER_PASSED),
        (ALONE, LastingFailure(3, 2), Flakiness(), ResultClass.REGRESSION),
        (ALONE, None, Flakiness(), ResultClass.UNJUDGED),
        (COMPARED, None, PROVED, ResultClass.KNOWN_FLAKY),
        (ALONE, None, PROVED, ResultClass.UNJUDGED),
        (COMPARED, None, replace(PROVED, row=PROVED.needed), ResultClass.STILL_FAILING),
    ],
)
def test_the_class_of_a_failure_depends_on_its_history(
    comparison: Comparison, lasting: LastingFailure | None, flakiness: Flakiness, result_class: ResultClass
) -> None:
    assert class_of(TEST, FAILED, comparison, lasting, flakiness) == result_class
