"""Decide whether a run has usable results. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from nightjar_formats.model import BAD, GOOD, SeenTest, Status, Trouble
from nightjar_formats.readers.causes import failure_cause, names_cause
from nightjar_formats.runs import texts
from nightjar_formats.runs.shared_outcomes import Outcomes, shared

FINISHED = (None, 0, 5)
"""Exit statuses of a run that may be good without any test; 5 is pytest's for no selected tests."""
MASS_COLLECTION_FILES = 3
MASS_COLLECTION_SHARE = 0.75
"""The least number of files, and the least share of all files, that must have failed at collection.

Real runs reach 0.57, a broken lab 1. Files are counted, not tests, because a file may have hundreds of tests.
"""
ONE_CAUSE_TESTS = 10
ONE_CAUSE_SHARE = 0.8
"""A run is unusable if more than this share of its tests, and at least this many, failed with one cause."""
ALL_SKIPPED_TESTS = 3
"""The least number of good tests in the baseline for which a run with only skipped tests is suspicious."""


def infra(tests: Mapping[str, SeenTest], baseline: Mapping[str, SeenTest] | None, *, exit_status: int | None) -> str:
    """Say why a run has no usable results and what to check, without text from the lab; "" if it has some."""
    return infra_of(tests, shared(tests), baseline, exit_status)


def infra_of(
    tests: Mapping[str, SeenTest],
    outcomes: Outcomes,
    baseline: Mapping[str, SeenTest] | None,
    exit_status: int | None,
) -> str:
    """Do the same as `infra`, for `outcomes` that the caller already made from `tests`."""
    if not tests:
        return texts.NO_TESTS if exit_status in FINISHED else texts.CRASHED.format(status=exit_status)
    if outcomes.all(lambda seen: seen.trouble in (Trouble.INTERNAL, Trouble.CRASH)):
        return texts.ONLY_CRASHES
    return _mass_collection(tests, outcomes) or _all_skipped(outcomes, baseline or {}) or _one_cause(outcomes)


def _mass_collection(tests: Mapping[str, SeenTest], outcomes: Outcomes) -> str:
    broken = set(outcomes.which(could_not_be_collected))
    if len(broken) < MASS_COLLECTION_FILES:
        return ""
    files = broken | {file_of(test) for test, seen in tests.items() if seen.trouble is not Trouble.INTERNAL}
    is_mass = len(broken) >= MASS_COLLECTION_SHARE * len(files)
    return texts.MASS_COLLECTION.format(broken=len(broken), files=len(files)) if is_mass else ""


def _all_skipped(outcomes: Outcomes, baseline: Mapping[str, SeenTest]) -> str:
    if not outcomes.all(is_skipped):
        return ""
    good = sum(seen.status in GOOD for seen in baseline.values())
    skipped = outcomes.count(is_skipped)
    return texts.ALL_SKIPPED.format(skipped=skipped, good=good) if good >= ALL_SKIPPED_TESTS else ""


def _one_cause(outcomes: Outcomes) -> str:
    ran, messages = 0, Counter[str]()
    for seen, count in outcomes.counted:
        ran += 0 if is_skipped(seen) else count
        if seen.status in BAD and seen.message:
            messages[seen.message] += count
    if ran < ONE_CAUSE_TESTS or sum(messages.values()) <= ONE_CAUSE_SHARE * ran:
        return ""
    causes = Counter[str]()
    for message, count in messages.items():
        if names_cause(message):
            causes[failure_cause(message)] += count
    failed = max(causes.values(), default=0)
    return texts.ONE_CAUSE.format(failed=failed, ran=ran) if failed > ONE_CAUSE_SHARE * ran else ""


def file_of(test: str) -> str:
    """Return the file, or the dotted name, that a test's ID begins with."""
    return test.partition("::")[0]


def could_not_be_collected(seen: SeenTest) -> bool:
    """Say whether an outcome is that of a file that could not be collected."""
    return seen.trouble is Trouble.COLLECTION and seen.status in BAD


def is_skipped(seen: SeenTest) -> bool:
    """Say whether a test was skipped."""
    return seen.status is Status.SKIPPED
