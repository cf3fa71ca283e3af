"""Write and read the CSV report: with ExecuTorch's columns and encoding, so that tools for its reports read ours."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nightjar_formats.terminal import escape_controls
from nightjar_lab.suite import texts
from nightjar_lab.suite.columns import COLUMNS, error_columns
from nightjar_lab.suite.columns import ExecutorchColumn as Column
from nightjar_lab.suite.result import SuiteResult

MOST_ERROR = 400
"""Characters of an error; of a longer one, the first and the last 200 are written, as in ExecuTorch."""
MOST_OUTPUTS = 2


class ReportInvalid(Exception):
    """A file is not a CSV report; the text says why."""


@dataclass(frozen=True)
class ReportRow:
    """The fields of a row that a comparison needs."""

    test_id: str
    result: str
    detail: str
    error: str

    @property
    def failed(self) -> bool:
        """Say whether the backend failed."""
        return self.result == "Fail"


def csv_text(results: Iterable[SuiteResult]) -> str:
    """Return the report: a header, and a row for each result."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(map(row_of, results))
    return text.getvalue()


def row_of(result: SuiteResult) -> dict[str, str]:
    """Return the columns of a result. Control characters are escapes, except for the lines of an error."""
    row = {
        Column.TEST_ID: escape_controls(result.test_id),
        Column.TEST_CASE: escape_controls(result.case),
        Column.SUBTEST: str(result.subtest),
        Column.FLOW: escape_controls(result.flow),
        Column.PARAMS: json.dumps(dict(result.params)) if result.params else "",
        Column.RESULT: result.outcome.result,
        Column.DETAIL: result.outcome.detail,
        Column.DELEGATED: str(result.delegated),
        Column.QUANTIZE_TIME: _decimals(result.quantize_seconds),
        Column.LOWER_TIME: _decimals(result.lower_seconds),
        Column.DELEGATED_NODES: "" if result.delegated_nodes is None else str(result.delegated_nodes),
        Column.UNDELEGATED_NODES: "" if result.undelegated_nodes is None else str(result.undelegated_nodes),
        # ExecuTorch writes the dictionary as Python does, and not as JSON.
        Column.DELEGATED_OPS: "" if result.delegated_ops is None else str(dict(result.delegated_ops)),
        Column.UNDELEGATED_OPS: "" if result.undelegated_ops is None else str(dict(result.undelegated_ops)),
        Column.SIZE: "" if result.size_bytes is None else _decimals(result.size_bytes / 1000),
        Column.ERROR: _shortened("\n".join(map(escape_controls, result.error.split("\n")))),
    }
    fields = {column.value: row.get(column, "") for column in Column}
    for number, output_error in enumerate(result.outputs[:MOST_OUTPUTS]):
        fields.update(
            zip(error_columns(number), map(_decimals, (output_error.largest, output_error.mean, output_error.snr)))
        )
    # A name may hold half of a surrogate pair, which no file can.
    return {column: value.encode("utf-8", "backslashreplace").decode() for column, value in fields.items()}


def read_report(text: str) -> list[ReportRow]:
    """Read the rows of a report, ours or ExecuTorch's. Raises ReportInvalid."""
    try:
        return list(_rows(csv.DictReader(io.StringIO(text, newline=""), strict=True)))
    except csv.Error as error:
        raise ReportInvalid(texts.NOT_CSV.format(reason=error)) from error


def _rows(reader: csv.DictReader[str]) -> Iterator[ReportRow]:
    missing = [name for name in (Column.TEST_ID.value, Column.RESULT.value) if name not in (reader.fieldnames or ())]
    if missing:
        raise ReportInvalid(texts.NO_COLUMNS.format(columns=", ".join(missing)))
    for row in reader:
        if None in row.values():
            raise ReportInvalid(texts.CUT_OFF.format(line=reader.line_num))
        yield ReportRow(
            row[Column.TEST_ID.value],
            row[Column.RESULT.value],
            row.get(Column.DETAIL.value, ""),
            row.get(Column.ERROR.value, ""),
        )


def _decimals(number: float | None) -> str:
    return "" if number is None else f"{number:.3f}"


def _shortened(error: str) -> str:
    half = MOST_ERROR // 2
    return f"{error[:half]}...{error[-half:]}" if len(error) > MOST_ERROR else error
