"""The table of a page as CSV, which the page's JSON route returns for `format=csv`."""

from __future__ import annotations

from http import HTTPStatus

from aiohttp import web

from bot.web.csv_tables import CsvTable, csv_bytes
from bot.web.openapi import Parameter
from bot.web.problems import Problem
from bot.web.texts import UNKNOWN_FORMAT

FORMAT, AS_JSON, AS_CSV = "format", "json", "csv"
MOST_CSV_ROWS = 50_000


def in_format(most_rows: int) -> Parameter:
    """Return the parameter that asks for a table instead of JSON."""
    return Parameter(
        FORMAT,
        f"`csv` for the rows of the page's table, up to {most_rows:,} of them; default: `json`.",
        {"enum": [AS_JSON, AS_CSV], "type": "string"},
        "query",
        required=False,
    )


def wants_csv(request: web.Request) -> bool:
    """Say whether a request asks for a table. Raises `Problem` 400 for an unknown format."""
    format_name = request.query.get(FORMAT) or AS_JSON
    if format_name not in (AS_JSON, AS_CSV):
        raise Problem(HTTPStatus.BAD_REQUEST, UNKNOWN_FORMAT)
    return format_name == AS_CSV


def csv_answer(path: str, table: CsvTable) -> web.Response:
    """Return a table as a file to save, named like the last part of its path. Blocks while it writes the table."""
    headers = {
        "Cache-Control": "no-cache",
        "Content-Disposition": f'attachment; filename="{path.rpartition("/")[2].strip("{}")}.csv"',
        "X-Content-Type-Options": "nosniff",
    }
    return web.Response(body=csv_bytes(table), content_type="text/csv", charset="utf-8", headers=headers)
