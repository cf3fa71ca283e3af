"""Decide what a failure of a test means: every page, badge, check run and message says the same. Pure.

The reasons are in docs/decisions/known-failures.md.
"""

from __future__ import annotations

from enum import StrEnum


class FailureClass(StrEnum):
    """The classes of a failed test, the most important to a reader first."""

    NEW = "new"
    UNJUDGED = "nothing to compare with"
    QUARANTINED = "quarantined"
    KNOWN_FLAKY = "known flaky"
    STILL_FAILING = "still failing"
    UNUSABLE = "unusable run"
    """From its run nobody can judge the code: a problem of the lab."""


KNOWN_CLASSES = (FailureClass.QUARANTINED, FailureClass.KNOWN_FLAKY)
"""The classes of failures that a quarantine or flakiness explains: no page counts them as failing."""


def class_of_failure(
    *, failed_before: bool | None, also_passed: bool = False, explained: bool = False, quarantined: bool = False
) -> FailureClass:
    """Return the class of a failure in a usable run.

    `failed_before` says whether the test failed at the commit to compare with; it is None without such a commit, and
    then nobody knows what the failure means, unless the test is quarantined. `also_passed`: the test also passed at
    this commit. `explained`: its known flakiness explains the failure (`Flakiness.explains`). A quarantine names its
    owner, so it comes before flakiness.
    """
    if quarantined:
        return FailureClass.QUARANTINED
    if failed_before is None:
        return FailureClass.KNOWN_FLAKY if also_passed else FailureClass.UNJUDGED
    if also_passed or explained:
        return FailureClass.KNOWN_FLAKY
    return FailureClass.STILL_FAILING if failed_before else FailureClass.NEW
