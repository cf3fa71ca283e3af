"""SQLite's twins of the statements in `bot.engine.steps`: SQLite writes to one table in each statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial

from bot.engine import portable
from bot.engine.notes import WRITE
from bot.engine.portable import Row
from bot.engine.steps import FINISH, FINISH_NOTED, RETRY, RETRY_NOTED


def end_noted(
    connection: sqlite3.Connection, *, statement: str, outcome: str, note: str, **values: object
) -> list[Row]:
    """End a job by a statement and store its note, if the worker still holds the job."""
    ended = portable.execute(connection, statement, values, has_rows=True)
    for row in ended:
        noted = {"job_id": row["id"], "outcome": outcome, "text": note}
        portable.execute(connection, WRITE, noted, has_rows=False)
    return ended


STEPS: dict[str, Callable[..., list[Row]]] = {
    FINISH_NOTED: partial(end_noted, statement=FINISH),
    RETRY_NOTED: partial(end_noted, statement=RETRY),
}
