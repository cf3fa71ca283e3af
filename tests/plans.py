"""Explain statements: list the steps of a database that do more than find a few rows by an index.

SQLite's explanations do not depend on the size of tables (https://sqlite.org/eqp.html), but PostgreSQL's depend on its
statistics, so both databases are filled (`tests/filled.py`).
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from bot.engine.sql.portable import add_functions
from tests.statements import Statement

MANY = 1_000
"""The number of rows from which a table or index counts as large, and a sort as one that an index should avoid."""
_ALIAS = re.compile(
    r"\b((?:nightjar|procrastinate)_\w+)(?:\s+AS)?\s+(?!WHERE|ON|JOIN|SET|LEFT|ORDER|INDEXED|GROUP)(\w+)", re.I
)
_MADE_IN_BETWEEN = re.compile(r"^(?:MATERIALIZE|CO-ROUTINE|RECURSIVE STEP|SETUP) (\S+)")
_SQLITE_SCAN = re.compile(r"^SCAN (\S+)(?: USING (?:COVERING )?INDEX (\S+))?$")
_SQLITE_RANGE = re.compile(
    r"^SEARCH (\S+) USING (?:INTEGER PRIMARY KEY|(?:COVERING )?INDEX (\S+)) \(([^=)]*[<>][^=)]*)\)"
)
_SQLITE_EQUAL = re.compile(r"^SEARCH (\S+) USING (?:COVERING )?INDEX (\S+) \(((?:[^()<>]+=\?(?: AND )?)+)\)$")
NESTED = re.compile(r"\b(?:procrastinate_\w+|nightjar_end_v\d+)\(")
"""A function whose statements are explained as they run."""
# PostgreSQL rightly reads all of a small table, or for a long list. The question here is whether an index exists.
PREPARE = """
SET enable_seqscan = off;
LOAD 'auto_explain';
SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on; SET auto_explain.log_format = json;
SET auto_explain.log_level = notice;
"""


class SqlitePlans:
    """Explains statements on a filled SQLite file."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as counting:
            # The sizes of tables and indexes. The planner must not know them, because in production it does not.
            counting.execute("ANALYZE")
            self.rows = dict[str, int]()
            self.rows_of_key = dict[str, list[int]]()
            """For each index, how many rows share the first column, the first two columns, and so on."""
            for table, index, stat in counting.execute("SELECT tbl, idx, stat FROM sqlite_stat1"):
                count, *alike = (int(number) for number in stat.split() if number.isdecimal())
                if index is not None:
                    self.rows_of_key[index] = alike
                self.rows[index or table] = count
                self.rows[table] = max(count, self.rows.get(table, 0))
            counting.execute("DROP TABLE sqlite_stat1")
            named = counting.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            self.tables = {name for (name,) in named}
        self._connection = sqlite3.connect(path, isolation_level=None)
        add_functions(self._connection)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def steps(self, statement: Statement) -> Iterator[str]:
        """Yield each step that reads a whole large table or index, or sorts."""
        given = _Any(statement.values) if isinstance(statement.values, Mapping) else statement.values
        details = [row[3] for row in self._connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", given)]
        made = {found[1] for detail in details if (found := _MADE_IN_BETWEEN.match(detail))}
        tables = {alias: table for table, alias in _ALIAS.findall(statement.text)}
        for detail in details:
            if found := _SQLITE_SCAN.match(detail):
                table = tables.get(found[1], found[1])
                if table not in made and self.rows.get(str(found[2] or table), 0) > MANY:
                    yield f"reads all of {table}" + (f" by {found[2]}" if found[2] else "")
            elif found := _SQLITE_RANGE.match(detail):
                table = tables.get(found[1], found[1])
                if self.rows.get(str(found[2] or table), 0) > MANY:
                    yield f"reads a range of {table}" + (f" by {found[2]}" if found[2] else "")
            elif found := _SQLITE_EQUAL.match(detail):
                alike = self.rows_of_key.get(found[2], [])[: found[3].count("=?")]
                if alike and alike[-1] > MANY:
                    yield f"reads many rows of {tables.get(found[1], found[1])} that are alike in {found[2]}"
            elif detail.startswith("USE TEMP B-TREE"):
                yield f"sorts{detail.removeprefix('USE TEMP B-TREE')}"


class _Any(dict[str, Any]):
    """Values by name; missing ones are null."""

    def __missing__(self, name: str) -> None:
        return None


class PostgresPlans:
    """Explains statements on a filled PostgreSQL database."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url)
        found = self._connection.execute(
            "SELECT relname, reltuples FROM pg_class WHERE relkind IN ('r', 'i')"
        ).fetchall()
        self.rows = {name: int(rows) for name, rows in found}
        named = self._connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        self.tables = {name for (name,) in named}
        of_indexes = self._connection.execute("SELECT indexname, tablename FROM pg_indexes").fetchall()
        self._table_of: dict[str, str] = dict(of_indexes)
        self._said = list[str]()
        self.most = 0
        """The rows of the largest step of the last explained statement."""
        self.explained = 0
        """How many statements the last one was, with those of the functions that it calls."""
        self._connection.add_notice_handler(lambda said: self._said.append(str(said.message_primary)))
        self._connection.execute(PREPARE.encode())
        self._connection.commit()

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def steps(self, statement: Statement, *, before: str = "") -> Iterator[str]:
        """Yield each step that reads a whole large table or index, or sorts many rows.

        The statements `before` are run first, in the same transaction, which is rolled back.
        """
        with self._connection.transaction(force_rollback=True):
            if before:
                self._connection.execute(before.encode())
            values, plans = _explainable(statement.values), list[dict[str, Any]]()
            if NESTED.search(statement.text):
                self._said.clear()
                self._connection.execute(statement.text.encode(), values)
                plans = [json.loads(said.partition("plan:\n")[2])["Plan"] for said in self._said if "plan:\n" in said]
            else:
                (row,) = self._connection.execute(f"EXPLAIN (FORMAT JSON) {statement.text}".encode(), values)
                plans = [row[0][0]["Plan"]]
        self.explained = len(plans)
        nodes = [node for plan in plans for node in _nodes(plan)]
        self.most = max(node["Plan Rows"] for node in nodes)
        for node in nodes:
            yield from self._reads_or_sorts(node)

    def _reads_or_sorts(self, node: dict[str, Any]) -> Iterator[str]:
        kind, index = node["Node Type"], node.get("Index Name", "")
        if kind == "Seq Scan" and self.rows.get(node["Relation Name"], 0) > MANY:
            yield f"reads all of {node['Relation Name']}"
        elif index and "Index Cond" not in node and self.rows.get(index, 0) > MANY:
            yield f"reads all of {self._table_of[index]} by {index}"
        elif index and node["Plan Rows"] > MANY:
            yield f"reads a range of {self._table_of[index]} by {index}"
        elif kind == "Sort" and node["Plan Rows"] > MANY:
            yield f"sorts for {', '.join(node['Sort Key'])}"


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)


def _explainable(values: Any) -> Any:
    """Return values that PostgreSQL accepts: a test may have tried a NUL, which its texts cannot hold."""
    if isinstance(values, Mapping):
        return {
            name: Jsonb(value) if isinstance(value, dict) else _explainable(value) for name, value in values.items()
        }
    if isinstance(values, list | tuple):
        return [_explainable(value) for value in values]
    return values.replace("\0", "") if isinstance(values, str) else values
