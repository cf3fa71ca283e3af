"""How a case of a suite ends: the stage that failed, or a reason that is not the backend's fault."""

from __future__ import annotations

import enum


class SuiteStage(str, enum.Enum):
    """What a worker does with a case, in this order. It announces each stage before it begins it."""

    MAKE = "make"
    """Makes the model and its inputs."""
    REFERENCE = "reference"
    """Computes the expected outputs."""
    QUANTIZE = "quantize"
    LOWER = "lower"
    LOAD = "load"
    RUN = "run"
    COMPARE = "compare"


class SuiteOutcome(str, enum.Enum):
    """How a case ended."""

    PASS = "pass"  # noqa: S105
    SKIP = "skip"
    """The flow does not try this case, and says why."""
    KNOWN_FAILURE = "known failure"
    """The flow fails, as its pattern of known failures says."""
    CASE_INVALID = "case invalid"
    """The case cannot be made. This is not the backend's fault."""
    REFERENCE_FAILED = "reference failed"
    """The expected outputs cannot be computed. This is not the backend's fault."""
    QUANTIZE_FAILED = "quantize failed"
    LOWER_FAILED = "lower failed"
    LOAD_FAILED = "load failed"
    RUN_FAILED = "run failed"
    OUTPUT_MISMATCH = "output mismatch"
    CRASH = "crash"
    """The process ended at a stage, by a signal or by itself."""
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out of memory"
    UNKNOWN = "unknown failure"

    @property
    def is_failure(self) -> bool:
        """Whether the backend is to blame."""
        return self not in NO_FAILURES

    @property
    def is_invalid(self) -> bool:
        """Whether the case itself is at fault, so that it says nothing about the backend."""
        return self in (SuiteOutcome.CASE_INVALID, SuiteOutcome.REFERENCE_FAILED)


NO_FAILURES = frozenset(
    {
        SuiteOutcome.PASS,
        SuiteOutcome.SKIP,
        SuiteOutcome.KNOWN_FAILURE,
        SuiteOutcome.CASE_INVALID,
        SuiteOutcome.REFERENCE_FAILED,
    }
)

FAILED_AT = {
    SuiteStage.MAKE: SuiteOutcome.CASE_INVALID,
    SuiteStage.REFERENCE: SuiteOutcome.REFERENCE_FAILED,
    SuiteStage.QUANTIZE: SuiteOutcome.QUANTIZE_FAILED,
    SuiteStage.LOWER: SuiteOutcome.LOWER_FAILED,
    SuiteStage.LOAD: SuiteOutcome.LOAD_FAILED,
    SuiteStage.RUN: SuiteOutcome.RUN_FAILED,
    SuiteStage.COMPARE: SuiteOutcome.OUTPUT_MISMATCH,
}
"""The outcome of an exception at each stage."""


class SkipCase(Exception):
    """Raised by a flow or a case at any stage: the case is skipped, and the text says why."""


class InvalidCase(Exception):
    """Raised by a flow or a case at any stage: the case itself is at fault, and the text says why."""
