"""Store the result of one case as a record of the JSONL file: the report's columns, and more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nightjar_lab.suite.columns import ExecutorchColumn as Column
from nightjar_lab.suite.columns import error_columns
from nightjar_lab.suite.outcome import SuiteOutcome, SuiteStage

OUTCOME, STAGE, SECONDS, OUTPUT, TRACEBACK, OUTPUTS = "Outcome", "Stage", "Seconds", "Output", "Traceback", "Outputs"


@dataclass(frozen=True)
class OutputError:
    """The error of one output against the expected one. `snr` is in decibels, infinite if they are equal."""

    largest: float
    mean: float
    snr: float


@dataclass(frozen=True)
class SuiteResult:
    """The result of a case on a flow. `stage` is the last one, None for a pass. `output` is what the worker printed."""

    test_id: str
    case: str
    flow: str
    outcome: SuiteOutcome
    stage: SuiteStage | None = None
    error: str = ""
    subtest: int = 0
    params: Mapping[str, str] = field(default_factory=dict)
    delegated: bool = False
    quantize_seconds: float | None = None
    lower_seconds: float | None = None
    delegated_nodes: int | None = None
    undelegated_nodes: int | None = None
    delegated_ops: Mapping[str, int] | None = None
    undelegated_ops: Mapping[str, int] | None = None
    size_bytes: int | None = None
    outputs: tuple[OutputError, ...] = ()
    seconds: float | None = None
    output: str = ""
    traceback: str = ""


def test_id_of(case: str, flow: str, params: Mapping[str, str]) -> str:
    """Return the ID of a case on a flow, as in ExecuTorch: `case[flow-param]`."""
    return f"{case}[{'-'.join([flow, *params.values()])}]"


test_id_of.__test__ = False  # type: ignore[attr-defined]  # pytest collects what begins with `test_`


def with_known_failure(result: SuiteResult, known_failure: str | None) -> SuiteResult:
    """Return the result of a case that is known to fail for a reason: a known failure, or an unexpected pass."""
    if known_failure is None:
        return result
    if result.outcome.is_failure:
        return replace(result, outcome=SuiteOutcome.KNOWN_FAILURE, error=f"{known_failure}: {result.error}")
    if result.outcome is SuiteOutcome.PASS:
        return replace(result, outcome=SuiteOutcome.UNEXPECTED_PASS, error=known_failure)
    return result


def record_of(result: SuiteResult) -> dict[str, Any]:
    """Return a result as JSON: the columns under their names, numbers as numbers, and more."""
    record: dict[str, Any] = {
        Column.TEST_ID.value: result.test_id,
        Column.TEST_CASE.value: result.case,
        Column.SUBTEST.value: result.subtest,
        Column.FLOW.value: result.flow,
        Column.PARAMS.value: dict(result.params),
        OUTCOME: result.outcome.value,
        STAGE: result.stage.value if result.stage else None,
        Column.RESULT.value: result.outcome.result,
        Column.DETAIL.value: result.outcome.detail,
        Column.DELEGATED.value: result.delegated,
        Column.QUANTIZE_TIME.value: result.quantize_seconds,
        Column.LOWER_TIME.value: result.lower_seconds,
        Column.DELEGATED_NODES.value: result.delegated_nodes,
        Column.UNDELEGATED_NODES.value: result.undelegated_nodes,
        Column.DELEGATED_OPS.value: _copied(result.delegated_ops),
        Column.UNDELEGATED_OPS.value: _copied(result.undelegated_ops),
        Column.SIZE.value: None if result.size_bytes is None else result.size_bytes / 1000,
        Column.ERROR.value: result.error,
        OUTPUTS: [[_plain(number) for number in (error.largest, error.mean, error.snr)] for error in result.outputs],
        SECONDS: result.seconds,
        OUTPUT: result.output,
        TRACEBACK: result.traceback,
    }
    for number, error in enumerate(result.outputs[:2]):
        record.update(zip(error_columns(number), map(_plain, (error.largest, error.mean, error.snr))))
    return record


def result_of(record: Mapping[str, Any]) -> SuiteResult:
    """Return the result of a record. Raises KeyError, TypeError or ValueError for anything else."""
    size = record[Column.SIZE.value]
    return SuiteResult(
        test_id=str(record[Column.TEST_ID.value]),
        case=str(record[Column.TEST_CASE.value]),
        flow=str(record[Column.FLOW.value]),
        outcome=SuiteOutcome(record[OUTCOME]),
        stage=SuiteStage(record[STAGE]) if record[STAGE] else None,
        error=str(record[Column.ERROR.value]),
        subtest=int(record[Column.SUBTEST.value]),
        params={str(key): str(value) for key, value in record[Column.PARAMS.value].items()},
        delegated=bool(record[Column.DELEGATED.value]),
        quantize_seconds=record[Column.QUANTIZE_TIME.value],
        lower_seconds=record[Column.LOWER_TIME.value],
        delegated_nodes=record[Column.DELEGATED_NODES.value],
        undelegated_nodes=record[Column.UNDELEGATED_NODES.value],
        delegated_ops=record[Column.DELEGATED_OPS.value],
        undelegated_ops=record[Column.UNDELEGATED_OPS.value],
        size_bytes=None if size is None else round(size * 1000),
        outputs=tuple(OutputError(*map(float, numbers)) for numbers in record[OUTPUTS]),
        seconds=record[SECONDS],
        output=str(record[OUTPUT]),
        traceback=str(record[TRACEBACK]),
    )


def _copied(ops: Mapping[str, int] | None) -> dict[str, int] | None:
    return None if ops is None else dict(ops)


def _plain(number: float) -> float | str:
    """Return a number for JSON: itself, or the text "inf", "-inf" or "nan"."""
    return number if math.isfinite(number) else str(number)
