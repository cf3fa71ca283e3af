"""Find statements that would read whole tables, according to the databases' plans."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

_PARAMETER = re.compile(r"CONSTANT ROW|^SCAN json_each VIRTUAL TABLE")
MANY = "nightjar_points"
"""The table of the commits of all targets."""


@dataclass
class Plans:
    """The numbers of statements and transactions, and the plan steps that read a whole table, each with its statement.

    `repeated`: statements that ask a subquery about each of many commits. SQLite chooses to ask it about each target
    only if the statement leaves no other order; PostgreSQL's plans are not judged.
    """

    statements: int = 0
    transactions: int = 0
    repeated: list[str] = field(default_factory=list)
    scans: list[str] = field(default_factory=list)


@contextlib.contextmanager
def plans_seen() -> Iterator[Plans]:
    """Explain each statement that runs in the block, in any thread.

    PostgreSQL reads a small table as a whole even if it has an index. A setting makes it avoid that, so it reads a
    whole table only if no index helps.
    """
    plans = Plans()

    def explain(connection: sa.Connection, _: object, statement: str, parameters: Any, *__: object) -> None:
        if not statement.startswith("SELECT"):
            return
        plans.statements += 1
        cursor = connection.connection.cursor()
        if connection.dialect.name == "sqlite":
            rows = cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            steps = [str(row[3]) for row in rows]
            # Constant rows and `json_each` are parameters of the statement.
            scans = [step for step in steps if step.startswith("SCAN") and not _PARAMETER.search(step)]
            if steps[0].startswith(f"SEARCH {MANY} ") and any("CORRELATED" in step for step in steps):
                plans.repeated.append(statement)
        else:
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute(f"EXPLAIN {statement}", parameters)
            scans = [row[0] for row in cursor.fetchall() if "Seq Scan" in row[0]]
        plans.scans.extend(f"{step}: {statement}" for step in scans)

    def count(_: sa.Connection) -> None:
        plans.transactions += 1

    sa.event.listen(sa.Engine, "before_cursor_execute", explain)
    sa.event.listen(sa.Engine, "begin", count)
    try:
        yield plans
    finally:
        sa.event.remove(sa.Engine, "begin", count)
        sa.event.remove(sa.Engine, "before_cursor_execute", explain)


def whole_tables_read(work: Callable[[], object]) -> tuple[int, list[str]]:
    """Do some work; return how many statements it ran, and the plan steps that read a whole table."""
    with plans_seen() as plans:
        work()
    return plans.statements, plans.scans
