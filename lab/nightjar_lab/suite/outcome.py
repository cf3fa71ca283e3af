"""Name the outcomes of a case: the stage that failed, or a reason that is not the backend's fault."""

from __future__ import annotations

import enum


class SuiteStage(str, enum.Enum):
    """The stages of a case, in order. A worker announces each stage before it begins."""

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
    """The outcome of a case."""

    PASS = "pass"  # noqa: S105
    SKIP = "skip"
    """The flow does not try this case, and says why."""
    KNOWN_FAILURE = "known failure"
    """The flow fails, as its pattern of known failures says."""
    UNEXPECTED_PASS = "unexpected pass"  # noqa: S105
    """A case passes that matches a pattern of known failures: the pattern can be removed."""
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
        """Say whether the backend failed."""
        return self not in NO_FAILURES

    @property
    def is_pass(self) -> bool:
        """Say whether the outputs are as expected."""
        return self in (SuiteOutcome.PASS, SuiteOutcome.UNEXPECTED_PASS)

    @property
    def result(self) -> str:
        """Return the report's column `Result`: Pass, Fail or Skip. Skip includes faults that are not the backend's."""
        return "Pass" if self.is_pass else "Fail" if self.is_failure else "Skip"

    @property
    def detail(self) -> str:
        """Return the value of the report's column `Result Detail`, with ExecuTorch's words if it has one."""
        return DETAILS[self]


NO_FAILURES = frozenset(
    {
        SuiteOutcome.PASS,
        SuiteOutcome.SKIP,
        SuiteOutcome.KNOWN_FAILURE,
        SuiteOutcome.UNEXPECTED_PASS,
        SuiteOutcome.CASE_INVALID,
        SuiteOutcome.REFERENCE_FAILED,
    }
)

DETAILS = {
    SuiteOutcome.PASS: "",
    SuiteOutcome.SKIP: "",
    SuiteOutcome.KNOWN_FAILURE: "Known Failure",
    SuiteOutcome.UNEXPECTED_PASS: "Unexpected Pass",
    SuiteOutcome.CASE_INVALID: "Case Invalid",
    SuiteOutcome.REFERENCE_FAILED: "Reference Failed",
    SuiteOutcome.QUANTIZE_FAILED: "Quantization Failed",
    SuiteOutcome.LOWER_FAILED: "Lowering Failed",
    SuiteOutcome.LOAD_FAILED: "PTE Load Failed",
    SuiteOutcome.RUN_FAILED: "PTE Run Failed",
    SuiteOutcome.OUTPUT_MISMATCH: "Output Mismatch",
    SuiteOutcome.CRASH: "Process Crash",
    SuiteOutcome.TIMEOUT: "Timeout",
    SuiteOutcome.OUT_OF_MEMORY: "Out Of Memory",
    SuiteOutcome.UNKNOWN: "Unknown Failure",
}

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


NOT_THE_BACKEND = (SuiteStage.MAKE, SuiteStage.REFERENCE)
"""The stages before the backend runs: even a crash there is not its fault."""


class SkipCase(Exception):
    """Raised by a flow or a case at any stage: the case is skipped, and the text says why."""


class InvalidCase(Exception):
    """Raised by a flow or a case at any stage: the case itself is at fault, and the text says why."""
