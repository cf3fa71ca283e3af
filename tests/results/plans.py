"""Which whole tables the statements of some work would read, as the databases plan them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa


def whole_tables_read(work: Callable[[], object]) -> tuple[int, list[str]]:
    """Do some work; return how many statements it ran, and the steps of their plans that read a whole table.

    PostgreSQL reads a small table as a whole though it has an index, so it is asked to avoid that: then it does so only
    where no index serves.
    """
    statements, scans = 0, list[str]()

    def explain(connection: sa.Connection, _: object, statement: str, parameters: Any, *__: object) -> None:
        nonlocal statements
        if not statement.startswith("SELECT"):
            return
        statements += 1
        cursor = connection.connection.cursor()
        if connection.dialect.name == "sqlite":
            rows = cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans = [str(row[3]) for row in rows]
            scans.extend(plan for plan in plans if plan.startswith("SCAN") and "ROW" not in plan)
        else:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {statement}", parameters)
            scans.extend(row[0] for row in cursor.fetchall() if "Seq Scan" in row[0])

    sa.event.listen(sa.Engine, "before_cursor_execute", explain)
    try:
        work()
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", explain)
    return statements, scans
