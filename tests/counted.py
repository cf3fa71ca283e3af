"""Count the statements that run on a database, and the rows that they return."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bot.engine.sql.transactions import Connector

RUNNERS = ("execute_query_async", "execute_query_one_async", "execute_query_all_async")


@dataclass
class Work:
    """What a database did: how many statements it ran, and how many rows they returned."""

    statements: int = 0
    rows: int = 0


@contextmanager
def counted(connector: Connector) -> Iterator[Work]:
    """Count the statements of a connector in the block; nothing else may use it meanwhile."""
    work = Work()

    def counting(run: Any) -> Any:
        async def counted_run(query: str, **values: Any) -> Any:
            rows = await run(query, **values)
            work.statements += 1
            work.rows += len(rows) if isinstance(rows, list) else rows is not None
            return rows

        return counted_run

    for name in RUNNERS:
        setattr(connector, name, counting(getattr(connector, name)))
    try:
        yield work
    finally:
        for name in RUNNERS:
            delattr(connector, name)
