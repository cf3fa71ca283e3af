"""Copy a SQLite database into an empty PostgreSQL database: tables of the engine, of features and of results.

Both have the same tables and columns in the same form (`bot.engine.sql.portable`); only the types of a few columns
differ. Each chunk of rows is stored in one transaction with the place where the next one begins, so an interrupted copy
goes on there. docs/decisions/database-copy.md says what guards the two databases meanwhile.
"""

# ruff: noqa: S608  # names of our own tables, which the databases list

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from bot.app import texts
from bot.core.errors import SettingsError
from bot.engine.database import Database, DatabaseError
from bot.engine.sqlite.connector import SqliteConnector
from bot.engine.upkeep import requeue_all
from bot.results.store.tables.database import VERSION_TABLE, ResultsDatabase

ROWS_AT_ONCE = 5_000
"""Rows of one transaction."""
LOCK_ID = 0x6E6A6370
"""The key of the advisory lock that a copy holds: the letters `njcp`."""
PROGRESS = "nightjar_copy"
"""The table of a copy in progress, which its end drops."""
NOT_COPIED = {"nightjar_schema", VERSION_TABLE, "procrastinate_workers", PROGRESS}
"""Tables that each database has for itself."""
URL_VARIABLE = "DATABASE_URL"
JOBS, INBOX = "procrastinate_jobs", "nightjar_inbox"

Convert = Callable[[object], object]
Report = Callable[[str, int], None]
"""Called after each chunk, with the name of a table and the number of its rows that are copied."""

COLUMNS: LiteralString = """
SELECT column_name, udt_name FROM information_schema.columns
 WHERE table_schema = current_schema AND table_name = %s ORDER BY ordinal_position
"""
REFERENCES: LiteralString = """
SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint
 WHERE contype = 'f' AND connamespace = current_schema::regnamespace AND conrelid <> confrelid
"""
TABLES: LiteralString = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema"


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A table of both databases, with a conversion for each column whose type differs."""

    name: str
    columns: Sequence[str]
    conversions: Mapping[int, Convert]
    has_rowid: bool


@contextlib.contextmanager
def naming_argument(name: str) -> Iterator[None]:
    """Name an argument, FROM or TO, in errors about a database's URL, which name DATABASE_URL elsewhere."""
    try:
        yield
    # Not chained: other messages may have the URL with its password.
    except DatabaseError as error:
        raise DatabaseError(_with_argument(str(error), name)) from None
    except SettingsError as error:
        raise SettingsError(_with_argument(problem, name) for problem in error.problems) from None


def _with_argument(problem: str, name: str) -> str:
    return name + problem.removeprefix(URL_VARIABLE) if problem.startswith(URL_VARIABLE) else problem


async def copy_database(
    source_url: str, target_url: str, report: Report, rows_at_once: int = ROWS_AT_ONCE
) -> dict[str, int]:
    """Copy all rows; return how many each table has.

    Raises DatabaseError: for other kinds of databases, if a server works on one of them, if the target has rows of its
    own, or if the two have different numbers of rows in the end.
    """
    with naming_argument("FROM"):
        source = Database(source_url)
    with naming_argument("TO"):
        target = Database(target_url)
    if not isinstance(source.connector, SqliteConnector) or target.embedded:
        raise DatabaseError(texts.COPY_KINDS)
    with naming_argument("FROM"):
        source.must_exist()
    with source.sole():
        for name, database in (("FROM", source), ("TO", target)):
            with naming_argument(name):
                await database.open()
            try:
                if database is source:
                    # Nothing runs the jobs of the stopped server, and PostgreSQL would not know whose they were.
                    await requeue_all(source.connector)
            finally:
                await database.close()
        for url in (source_url, target_url):
            results = ResultsDatabase(url)
            results.open()
            results.close()
        return _copy(source.connector.path, target_url, target.name, report, rows_at_once)


def _copy(path: Path, target_url: str, name: str, report: Report, rows_at_once: int) -> dict[str, int]:
    with (
        contextlib.closing(sqlite3.connect(path)) as source,
        psycopg.connect(target_url, autocommit=True) as target,
    ):
        if not _value(target, "SELECT pg_try_advisory_lock(%s)", LOCK_ID):
            raise DatabaseError(texts.COPY_RUNS.format(name=name))
        tables = _tables(source, target)
        _begin(source, target, tables, name)
        rows = {table.name: _copy_table(source, target, table, report, rows_at_once) for table in tables}
        _continue_numbers(source, target, tables)
        _check(source, target, tables, name)
        target.execute(f"DROP TABLE {PROGRESS}")
        return rows


def _tables(source: sqlite3.Connection, target: psycopg.Connection) -> list[CopiedTable]:
    """Return the tables, each after those to which its rows refer."""
    names = {row[0] for row in source.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    names = {name for name in names if not name.startswith("sqlite_")} - NOT_COPIED
    references: dict[str, set[str]] = {name: set() for name in sorted(names)}
    for name, referenced in target.execute(REFERENCES):
        if name in names and referenced in names:
            references[name].add(referenced)
    return [_table(source, target, name) for name in TopologicalSorter(references).static_order()]


def _table(source: sqlite3.Connection, target: psycopg.Connection, name: str) -> CopiedTable:
    types: dict[str, str] = dict(target.execute(COLUMNS, (name,)).fetchall())
    columns = [row[1] for row in source.execute(f"PRAGMA table_info({name})")]
    if unknown := sorted(set(columns) - set(types)):
        raise DatabaseError(texts.COPY_COLUMNS.format(table=name, columns=", ".join(unknown)))
    conversions: dict[int, Convert] = {}
    for place, column in enumerate(columns):
        if types[column] == "timestamptz":
            conversions[place] = _moment
        elif types[column] == "bool":
            conversions[place] = _boolean
        elif column == "worker_id":
            conversions[place] = _nobody
    without_rowid = [row[4] for row in source.execute("PRAGMA table_list") if row[1] == name]
    return CopiedTable(name, columns, conversions, has_rowid=not any(without_rowid))


def _moment(value: object) -> object:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else None


def _boolean(value: object) -> object:
    return None if value is None else bool(value)


def _nobody(_: object) -> object:
    """Return the worker of a job: workers are not copied."""
    return None


def _begin(source: sqlite3.Connection, target: psycopg.Connection, tables: Sequence[CopiedTable], name: str) -> None:
    """Begin a copy, or check that an interrupted one may go on."""
    state = _state(source)
    if _value(target, "SELECT to_regclass(%s)", PROGRESS) is None:
        full = [table.name for table in tables if _value(target, sql.SQL("SELECT EXISTS (SELECT FROM {})"), table.name)]
        if full or _value(target, "SELECT EXISTS (SELECT FROM procrastinate_workers)"):
            raise DatabaseError(texts.COPY_TARGET_IN_USE.format(name=name, tables=", ".join(full) or "workers"))
        columns = "name text PRIMARY KEY, position bigint NOT NULL, rows bigint NOT NULL, source text NOT NULL"
        target.execute(f"CREATE TABLE {PROGRESS} ({columns})")
    elif _value(target, f"SELECT EXISTS (SELECT FROM {PROGRESS} WHERE source <> %s)", state):
        raise DatabaseError(texts.COPY_SOURCE_CHANGED.format(name=name))


def _state(source: sqlite3.Connection) -> str:
    """Return a text that differs once a server has worked on the source: each worker gets a new number."""
    return str(source.execute("SELECT seq FROM sqlite_sequence WHERE name = 'procrastinate_workers'").fetchone())


def _copy_table(
    source: sqlite3.Connection, target: psycopg.Connection, table: CopiedTable, report: Report, rows_at_once: int
) -> int:
    """Copy the rows that are not there yet; return how many there are in all."""
    known = target.execute(f"SELECT position, rows FROM {PROGRESS} WHERE name = %s", (table.name,)).fetchone()
    position, count = map(int, known or (-1, 0))
    state = _state(source)
    copy = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table.name), sql.SQL(", ").join(map(sql.Identifier, table.columns))
    )
    for chunk, last in _chunks(source, table, position, rows_at_once, done=known is not None):
        with target.transaction():
            # Triggers store events and wake workers, which the source has done. Those of foreign keys stay on.
            _set_triggers(target, table.name, "DISABLE")
            with target.cursor() as cursor, cursor.copy(copy) as rows:
                for row in chunk:
                    rows.write_row(row)
            _set_triggers(target, table.name, "ENABLE")
            count += len(chunk)
            target.execute(
                f"INSERT INTO {PROGRESS} (name, position, rows, source) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT (name) DO UPDATE SET position = excluded.position, rows = excluded.rows",
                (table.name, last, count, state),
            )
        report(table.name, count)
    return count


def _set_triggers(target: psycopg.Connection, table: str, state: LiteralString) -> None:
    target.execute(sql.SQL(f"ALTER TABLE {{}} {state} TRIGGER USER").format(sql.Identifier(table)))


def _chunks(
    source: sqlite3.Connection, table: CopiedTable, position: int, rows_at_once: int, *, done: bool
) -> Iterator[tuple[list[tuple[object, ...]], int]]:
    """Yield rows after a position, and the position of the last of them; a small table is one chunk."""
    names = ", ".join(f'"{column}"' for column in table.columns)
    if not table.has_rowid:
        if not done:
            yield [_converted(table, row) for row in source.execute(f"SELECT {names} FROM {table.name}")], 0
        return
    query = f"SELECT rowid, {names} FROM {table.name} WHERE rowid > ? ORDER BY rowid LIMIT ?"
    while rows := source.execute(query, (position, rows_at_once)).fetchall():
        position = rows[-1][0]
        yield [_converted(table, row[1:]) for row in rows], position


def _converted(table: CopiedTable, row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(
        table.conversions[place](value) if place in table.conversions else value for place, value in enumerate(row)
    )


def _continue_numbers(source: sqlite3.Connection, target: psycopg.Connection, tables: Sequence[CopiedTable]) -> None:
    """Let the target number new rows after all that the source has ever had: jobs refer to each other by number."""
    numbers = dict(source.execute("SELECT name, seq FROM sqlite_sequence"))
    # A delivery has the number of its job, and keeps it when that is deleted.
    numbers[JOBS] = max(numbers.get(JOBS, 0), source.execute(f"SELECT max(id) FROM {INBOX}").fetchone()[0] or 0)
    for table in tables:
        if "id" not in table.columns:
            continue
        sequence = _value(target, "SELECT pg_get_serial_sequence(%s, 'id')", table.name)
        largest = source.execute(f"SELECT max(id) FROM {table.name}").fetchone()[0]
        last = max(numbers.get(table.name, 0), largest if isinstance(largest, int) else 0)
        if sequence is not None and last:
            target.execute("SELECT setval(%s, %s)", (sequence, last))


def _check(source: sqlite3.Connection, target: psycopg.Connection, tables: Sequence[CopiedTable], name: str) -> None:
    """Compare the numbers of rows. Raises DatabaseError if one differs, or if a server has begun to work."""
    if _value(target, "SELECT EXISTS (SELECT FROM procrastinate_workers)"):
        raise DatabaseError(texts.COPY_TARGET_IN_USE.format(name=name, tables="workers"))
    for table in tables:
        expected = source.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0]
        copied = _value(target, sql.SQL("SELECT count(*) FROM {}"), table.name)
        if copied != expected:
            words = {"table": table.name, "copied": copied, "expected": expected, "name": name}
            raise DatabaseError(texts.COPY_DIFFERS.format(**words))


def _value(target: psycopg.Connection, query: LiteralString | sql.SQL, value: object = None) -> object:
    """Return the value of a query; a `sql.SQL` is about the table with the name `value`."""
    if isinstance(query, sql.SQL):
        row = target.execute(query.format(sql.Identifier(str(value)))).fetchone()
    else:
        row = target.execute(query, (value,) if value is not None else None).fetchone()
    return row[0] if row else None
