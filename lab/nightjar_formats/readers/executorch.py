"""ExecuTorch's backend suite: its CSV report, and the rows that it leaves in a pytest-json-report.

Both have the same columns (ExecuTorch's `backends/test/suite/reporting.py` and `conftest.py`). Columns are found by
name, in any order, and any of them may be missing. A row is one call of a model within a test. The rows of a test are
consecutive and numbered by `Subtest`; a number that does not continue the count begins a rerun.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from nightjar_formats.limits import MAX_ROW_BYTES
from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.model import BAD, Case, Status, Trouble
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.decoding.utf_8 import repaired
from nightjar_formats.readers.repairs import UNNAMED, Repair, Repairs
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.terminal import quoted_text

FORMAT = "executorch-csv"
TEST, SUBTEST, RESULT, DETAIL, ERROR = "Test ID", "Subtest", "Result", "Result Detail", "Error"
REQUIRED = (TEST, RESULT)

MAX_SUBTESTS = 1000
"""The most rows of one test."""

STATUS = {
    "pass": Status.PASSED,
    "success": Status.PASSED,
    "skip": Status.SKIPPED,
    "skipped": Status.SKIPPED,
    "fail": Status.FAILED,
}
"""The status for the first word of a result: `Pass`, `Skip`, `Fail`; or, as the suite displays them,
`Success (Delegated)`, `Skipped`, `Fail (Lowering)`."""
STAGES = {
    "quantization failed": Trouble.QUANTIZE,
    "fail (quantize)": Trouble.QUANTIZE,
    "lowering failed": Trouble.LOWER,
    "fail (lowering)": Trouble.LOWER,
    "pte load failed": Trouble.LOAD,
    "fail (pte load)": Trouble.LOAD,
    "pte run failed": Trouble.RUN,
    "fail (pte run)": Trouble.RUN,
    "output mismatch": Trouble.OUTPUT,
    "fail (output mismatch)": Trouble.OUTPUT,
    "process crash": Trouble.CRASH,
    # Outcomes that `nightjar-lab suite` adds.
    "out of memory": Trouble.CRASH,
    "timeout": Trouble.TIMEOUT,
}
STATUS_WITH_DETAIL = {
    (Status.SKIPPED, "known failure"): Status.XFAILED,
    (Status.PASSED, "unexpected pass"): Status.XPASSED,
}
"""The status for a result and its detail, for cases that `nightjar-lab suite` expects to fail."""
_WORST_FIRST = (Status.ERRORED, Status.FAILED, Status.XFAILED, Status.SKIPPED, Status.XPASSED, Status.PASSED)


class Measure(NamedTuple):
    """A column of numbers: its name in the stored details, and how to combine the rows of one test.

    `measurement`, `unit` and `better` are those of the measurement.
    """

    column: str
    name: str
    together: Callable[[Iterable[float]], float]
    measurement: str
    unit: str
    better: Better
    times: float = 1


MEASURES = (
    Measure("Quantize Time (s)", "quantize_seconds", sum, "quantize_time", "s", Better.LOWER),
    Measure("Lower Time (s)", "lower_seconds", sum, "lowering_time", "s", Better.LOWER),
    Measure("Delegated Nodes", "delegated_nodes", sum, "delegated_nodes", "nodes", Better.HIGHER),
    Measure("Undelegated Nodes", "undelegated_nodes", sum, "undelegated_nodes", "nodes", Better.LOWER),
    Measure("PTE Size (Kb)", "pte_bytes", max, "size", "B", Better.LOWER, 1000),
    *(
        Measure(
            f"Output {output} {column}", f"output_{output}_{name}", together, f"{prefix}{measurement}", unit, better
        )
        for output, prefix in ((0, ""), (1, "output_1_"))
        for column, name, together, measurement, unit, better in (
            ("Error Max", "error_max", max, "max_abs_error", "", Better.LOWER),
            ("Error MAE", "error_mae", max, "mean_abs_error", "", Better.LOWER),
            ("SNR", "snr_db", min, "snr", "dB", Better.HIGHER),
        )
    ),
)
FLOW, FLOW_NAME, SUBTESTS_NAME = "Flow", "flow", "subtests"
ROW_COLUMNS = (TEST, SUBTEST, RESULT, DETAIL, ERROR, FLOW, *(measure.column for measure in MEASURES))
"""The columns that are read."""

Row = Mapping[str, Any]


def read(stream: BinaryIO, repairs: Repairs | None = None) -> Iterator[Case]:
    """Read the cases of a CSV report: one for each test, with its rows and reruns combined. They have names, no paths.

    Raises Refused if it is not such a report or a row is cut off, TooMuch beyond a limit.
    """
    rows: list[Row] = []
    failed_before = False
    repairs = repairs or Repairs()
    for row in _rows(repaired(stream, repairs), repairs):
        if rows and rows[0][TEST] != row[TEST]:
            yield _case(rows, failed_before)
            rows, failed_before = [], False
        elif rows and not _continues_count(rows[-1], row):
            rows, failed_before = [], failed_before or worst_status(rows)[0] in BAD
        if len(rows) == MAX_SUBTESTS:
            raise TooMuch(texts.CSV_MANY_SUBTESTS.format(what=FORMAT, test=row[TEST], limit=MAX_SUBTESTS))
        rows.append(row)
    if rows:
        yield _case(rows, failed_before)


def measured(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the measurements of a test's rows, under the names of MEASURES.

    Times and numbers of nodes are added up. Of sizes and errors, the greatest value counts; of signal-to-noise ratios,
    the smallest. Infinities and NaN, which JSON cannot hold, become the texts "inf", "-inf" and "nan".
    """
    measurements: dict[str, Any] = {}
    if flow := values.message(rows[0].get(FLOW)):
        measurements[FLOW_NAME] = flow
    if len(rows) > 1:
        measurements[SUBTESTS_NAME] = len(rows)
    for measure in MEASURES:
        numbers = [number for row in rows if (number := values.number(row.get(measure.column))) is not None]
        if numbers:
            undefined = any(math.isnan(number) for number in numbers)
            measurements[measure.name] = _plain(math.nan if undefined else measure.together(numbers) * measure.times)
    return measurements


def measurements_of(rows: Sequence[Row]) -> tuple[Measurement, ...]:
    """Return the finite measurements of a test's rows.

    The suite writes an infinite signal-to-noise ratio for outputs that are equal. It is only in `measured`.
    """
    measured_rows = measured(rows)
    return tuple(
        Measurement(measure.measurement, float(value), measure.unit, measure.better)
        for measure in MEASURES
        if isinstance(value := measured_rows.get(measure.name), (int, float))
    )


def trouble_of(row: Row) -> Trouble:
    """Return the stage at which a row failed; NONE if it did not fail or the stage is unknown."""
    detail = row.get(DETAIL) or row.get(RESULT)
    return STAGES.get(detail.strip().lower(), Trouble.NONE) if isinstance(detail, str) else Trouble.NONE


def status_of(row: Row) -> Status | None:
    """Return the status of a row; None for an unknown result."""
    result = row.get(RESULT)
    status = STATUS.get(result.lower().partition(" ")[0]) if isinstance(result, str) else None
    if status is Status.FAILED:
        return Status.ERRORED if trouble_of(row) is Trouble.CRASH else status
    detail = row.get(DETAIL)
    return (
        STATUS_WITH_DETAIL.get((status, detail.strip().lower()), status)
        if status and isinstance(detail, str)
        else status
    )


def worst_status(rows: Sequence[Row]) -> tuple[Status, Row]:
    """Return the status of a test with these rows, and the row that decided it."""
    statuses = [(status_of(row) or Status.ERRORED, row) for row in rows]
    return min(statuses, key=lambda status_and_row: _WORST_FIRST.index(status_and_row[0]))


def message_and_text(row: Row) -> tuple[str, str]:
    """Return the message of a row, which names the stage that failed, and its text, which is the error."""
    detail, error = values.message(row.get(DETAIL)), values.text(row.get(ERROR))
    return values.message(f"{detail}: {error}" if detail and error else detail or error), error


def _case(rows: Sequence[Row], failed_before: bool) -> Case:
    status, row = worst_status(rows)
    message, text = ("", "") if status is Status.PASSED else message_and_text(row)
    return Case(
        name=row[TEST],
        status=status,
        flaky=failed_before and status is Status.PASSED,
        trouble=trouble_of(row),
        message=message,
        text=text,
        measures=measured(rows),
        measurements=measurements_of(rows),
    )


def _continues_count(previous: Row, row: Row) -> bool:
    previous_index, index = values.number(previous.get(SUBTEST)), values.number(row.get(SUBTEST))
    return previous_index is None or index is None or index > previous_index


def _plain(number: float) -> float | int | str:
    if not math.isfinite(number):
        return str(number)
    # Kilobytes have three decimals. Multiplied by 1,000, they become fractions such as 1600.0000000000002.
    rounded = round(number, 6)
    return int(rounded) if rounded == int(rounded) else rounded


def _rows(stream: BinaryIO, repairs: Repairs) -> Iterator[dict[str, str]]:
    """Yield the columns of each row that are needed, after checking the row."""
    lines = _Lines(stream)
    reader = csv.reader(lines, strict=True)
    header = _next_row(reader, lines)
    if header is None or not set(REQUIRED) <= set(header):
        raise Refused(texts.CSV_NO_HEADER.format(what=FORMAT, columns=" and ".join(REQUIRED)))
    places = [(header.index(column), column) for column in ROW_COLUMNS if column in header]
    while (fields := _next_row(reader, lines)) is not None:
        if len(fields) < len(header):
            raise Refused(texts.CSV_CUT_OFF.format(what=FORMAT, line=lines.row, test=f" ({fields[0][:80]})"))
        if len(fields) > len(header):
            raise Refused(
                texts.CSV_SURPLUS.format(what=FORMAT, line=lines.row, fields=len(fields), columns=len(header))
            )
        row = {column: fields[place] for place, column in places}
        if not values.name(row[TEST]):
            row[TEST] = UNNAMED
            repairs.add(Repair.NAMELESS, lines.row)
        if status_of(row) is None:
            raise Refused(texts.CSV_RESULT.format(what=FORMAT, line=lines.row, result=quoted_text(row[RESULT][:80])))
        yield row


def _next_row(reader: Iterator[list[str]], lines: _Lines) -> list[str] | None:
    """Return the next row that is not empty, None at the end."""
    lines.begin_row()
    try:
        for fields in reader:
            if fields:
                return fields
            lines.begin_row()
    except csv.Error as error:
        # The csv module has one exception class for all faults; only the text distinguishes them.
        if "unexpected end" in str(error):
            raise Refused(texts.CSV_CUT_OFF.format(what=FORMAT, line=lines.row, test="")) from None
        if "field limit" in str(error):
            limit = csv.field_size_limit()  # noqa: TID251  # read, not set
            raise TooMuch(texts.CSV_LONG_FIELD.format(what=FORMAT, line=lines.row, limit=limit)) from None
        raise Refused(texts.CSV_INVALID.format(what=FORMAT, line=lines.line, error=error)) from None
    return None


class _Lines:
    """The lines of a file as text, with the current position. On Windows, lines may end in CR CR LF."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._bytes = 0
        self.line = 0
        self.row = 1

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        read = self._stream.readline(MAX_ROW_BYTES + 1)
        if not read:
            raise StopIteration
        self.line += 1
        self._bytes += len(read)
        if self._bytes > MAX_ROW_BYTES:
            raise TooMuch(texts.CSV_LONG_ROW.format(what=FORMAT, line=self.row))
        try:
            return read.decode("utf-8-sig" if self.line == 1 else "utf-8")
        except UnicodeDecodeError:
            raise Refused(texts.CSV_NOT_UTF_8.format(what=FORMAT, line=self.line)) from None

    def begin_row(self) -> None:
        """Start counting the lines and characters of a new row."""
        self._bytes, self.row = 0, self.line + 1
