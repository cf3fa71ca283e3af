"""Tables as CSV (RFC 4180), whose cells no spreadsheet runs. No I/O."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

Cell = str | float | datetime | None

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 (full-width forms)
"""Characters that begin a formula in some spreadsheet: https://owasp.org/www-community/attacks/CSV_Injection."""
AS_TEXT = "'"
"""At the start of a cell, it marks the cell as text."""


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A table: the names of its columns, and its rows, each with a cell for every column."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Cell]]

    @classmethod
    def of(cls, columns: Sequence[str], items: Iterable[object]) -> CsvTable:
        """Return the table of items with attributes that are named as the columns."""
        return cls(columns, ([getattr(item, column) for column in columns] for item in items))


def csv_bytes(table: CsvTable) -> bytes:
    """Write a table as CSV in UTF-8, its first line with the names of the columns."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table.columns)
    writer.writerows([_written(cell) for cell in row] for row in table.rows)
    return text.getvalue().encode(errors="replace")


def _written(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, str):
        bare = cell.replace("\0", "")
        return AS_TEXT + bare if bare.startswith(FORMULA) else bare
    return str(cell)
