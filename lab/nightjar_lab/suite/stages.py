"""Run one case through the stages of a flow, in a worker process."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from nightjar_lab.suite.case import CaseData, SuiteCase, TestSuite
from nightjar_lab.suite.compare import OutputMismatch, compare_outputs
from nightjar_lab.suite.flow import Flow, LoweringReport, matching
from nightjar_lab.suite.outcome import FAILED_AT, NOT_THE_BACKEND, InvalidCase, SkipCase, SuiteOutcome, SuiteStage
from nightjar_lab.suite.result import OutputError, SuiteResult, test_id_of

MOST_ERROR = 4000
"""The most characters of an error in a result; the report shortens it further."""
MOST_TRACEBACK = 8000

Announce = Callable[[SuiteStage, Mapping[str, str]], None]


def run_case(flow: Flow, suite: TestSuite, name: str, announce: Announce) -> tuple[SuiteResult, BaseException | None]:
    """Run a case; return its result and what a stage raised, if one did. Whatever a stage raises is a result.

    `announce` is called before each stage, with the parameters of the case if they are known, so that the runner knows
    the stage of a crash.
    """
    result = SuiteResult(test_id_of(name, flow.name, {}), name, flow.name, SuiteOutcome.PASS)
    if reason := matching(flow.skip, name):
        return replace(result, outcome=SuiteOutcome.SKIP, error=reason), None
    return _CaseRun(flow, announce, result).run(suite, name)


class _CaseRun:
    """Runs one case. `result` is the result so far."""

    def __init__(self, flow: Flow, announce: Announce, result: SuiteResult) -> None:
        self._flow = flow
        self._announce = announce
        self._stage = SuiteStage.MAKE
        self.result = result

    def run(self, suite: TestSuite, name: str) -> tuple[SuiteResult, BaseException | None]:
        """Run the case; return its result and its error. Even SystemExit only ends the case, not the process."""
        started = time.perf_counter()
        raised: BaseException | None = None
        try:
            self._stages(suite, name)
        except BaseException as error:
            raised = error
            self.result = replace(
                self.result,
                outcome=_outcome_of(error, self._stage),
                stage=self._stage,
                error=describe_error(error),
                outputs=error.errors if isinstance(error, OutputMismatch) else (),
                traceback="" if isinstance(error, (SkipCase, OutputMismatch)) else _traceback(error),
            )
        return replace(self.result, seconds=time.perf_counter() - started), raised

    def _stages(self, suite: TestSuite, name: str) -> None:
        flow = self._flow
        case, data = self._make(suite, name)
        expected = data.expected
        if callable(expected):
            expected = self._at(SuiteStage.REFERENCE, expected)[0]
        model = data.model
        if flow.quantize is not None:
            model, seconds = self._at(SuiteStage.QUANTIZE, flow.quantize, model, data)
            self.result = replace(self.result, quantize_seconds=seconds)
        program, seconds = self._at(SuiteStage.LOWER, flow.lower, model, data)
        self.result = replace(self.result, lower_seconds=seconds)
        if flow.report is not None:
            self.result = _with_report(self.result, flow.report(program))
        loaded = self._at(SuiteStage.LOAD, flow.load, program)[0] if flow.load is not None else program
        outputs = self._at(SuiteStage.RUN, flow.run, loaded, data.inputs)[0]
        errors: Sequence[OutputError] = self._at(
            SuiteStage.COMPARE, compare_outputs, outputs, expected, case.tolerance or flow.tolerance
        )[0]
        self.result = replace(self.result, outputs=tuple(errors))

    def _make(self, suite: TestSuite, name: str) -> tuple[SuiteCase, CaseData]:
        self._begin(SuiteStage.MAKE)
        case = suite.case(name)
        self.result = replace(
            self.result, params=dict(case.params), test_id=test_id_of(name, self._flow.name, case.params)
        )
        return case, case.make(case.seed)

    def _at(self, stage: SuiteStage, function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
        """Announce a stage and run its function; return the result and the seconds that it took."""
        self._begin(stage)
        started = time.perf_counter()
        return function(*arguments), time.perf_counter() - started

    def _begin(self, stage: SuiteStage) -> None:
        self._stage = stage
        self._announce(stage, self.result.params)


def stage_traceback(error: BaseException) -> TracebackType | None:
    """Return the traceback of an error from the function of the stage on; all of it if there is no such function."""
    entries: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    own = [place for place, entry in enumerate(entries) if entry.tb_frame.f_code.co_filename == __file__]
    inner = entries[own[-1] + 1 :] if own else []
    return inner[0] if inner else error.__traceback__


def _outcome_of(error: BaseException, stage: SuiteStage) -> SuiteOutcome:
    if isinstance(error, SkipCase):
        return SuiteOutcome.SKIP
    if isinstance(error, InvalidCase):
        return SuiteOutcome.CASE_INVALID
    if isinstance(error, MemoryError) and stage not in NOT_THE_BACKEND:
        return SuiteOutcome.OUT_OF_MEMORY
    if stage is SuiteStage.COMPARE and not isinstance(error, OutputMismatch):
        return SuiteOutcome.UNKNOWN
    return FAILED_AT[stage]


def _with_report(result: SuiteResult, report: LoweringReport | None) -> SuiteResult:
    """Add the flow's report about its program to a result."""
    if report is None:
        return result
    delegated, undelegated = dict(report.delegated_ops), dict(report.undelegated_ops)
    nodes = sum(delegated.values()) if report.delegated_nodes is None else report.delegated_nodes
    undelegated_nodes = sum(undelegated.values()) if report.undelegated_nodes is None else report.undelegated_nodes
    return replace(
        result,
        delegated=nodes > 0,
        delegated_nodes=nodes,
        undelegated_nodes=undelegated_nodes,
        delegated_ops=delegated,
        undelegated_ops=undelegated,
        size_bytes=report.size_bytes,
    )


def describe_error(error: BaseException) -> str:
    """Return the type and the text of an error, even if its `str` fails."""
    try:
        text = str(error)
    except Exception as broken:
        text = f"<{type(broken).__name__}>"
    if isinstance(error, (SkipCase, InvalidCase, OutputMismatch)):
        return text[:MOST_ERROR]
    return f"{type(error).__name__}: {text}"[:MOST_ERROR] if text else type(error).__name__


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, error.__traceback__))[-MOST_TRACEBACK:]
    except Exception as broken:
        return f"<{type(broken).__name__}>"
