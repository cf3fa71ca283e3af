"""Tables as CSV: text from a lab never runs in a spreadsheet."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest

from bot.web.csv_tables import CsvTable, csv_bytes


def written(*cells: object) -> list[str]:
    """Write one row; return it as a program reads it."""
    text = csv_bytes(CsvTable([f"column {place}" for place in range(len(cells))], [cells])).decode()  # type: ignore[list-item]
    return list(csv.reader(io.StringIO(text, newline="")))[1]


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1"])  # noqa: RUF001
def test_a_text_that_starts_like_a_formula_is_marked_as_text(formula: str) -> None:
    assert written(formula) == [f"'{formula}"]


def test_other_cells_stay_as_they_are() -> None:
    moment = datetime(2026, 11, 23, 5, tzinfo=UTC)
    assert written("test_a[=1]", -1.5, None, moment) == ["test_a[=1]", "-1.5", "", "2026-11-23T05:00:00+00:00"]


def test_quotes_commas_and_line_ends_stay_within_their_cell() -> None:
    assert written('a "b", c', "d\ne") == ['a "b", c', "d\ne"]


def test_characters_that_no_program_can_read_are_replaced() -> None:
    assert written("a\0b\ud800") == ["ab?"]
