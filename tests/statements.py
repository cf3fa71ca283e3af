"""Collect every statement that the bot runs in the tests, at the database drivers.

`tests/test_plans.py` lets both databases explain them. Statements of the tests themselves do not count; the stack shows
who runs a statement, and is read once for each text.

What SQLAlchemy runs on SQLite is also recorded as PostgreSQL would get it, because most tests of results use SQLite
alone.
"""

from __future__ import annotations

import functools
import os
import pickle
import re
import sqlite3
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg
import sqlalchemy as sa
from procrastinate import sql
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql.compiler import SQLCompiler

from bot.engine.sql import portable
from bot.engine.sqlite import connector as sqlite
from tests import unclosed

FOLDER = "NIGHTJAR_STATEMENTS"
"""The variable with the folder to which each process of the tests writes its statements."""

SQLITE, POSTGRES = "sqlite", "postgresql"
ON_POSTGRES: sa.Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]
_ROOT = f"{Path(__file__).parents[1]}/"
# Functions that run statements for others.
CARRIERS = {
    "bot/engine/postgres/connector.py",
    "bot/engine/sqlite/connector.py",
    "bot/engine/sqlite/writer.py",
    "bot/engine/sql/portable.py",
}
CARRIERS |= {
    "bot/results/store/tables/database.py",
    "tests/statements.py",
    "tests/unclosed.py",
    "bot/engine/database.py",
}
NOT_THE_BOT = ("tests/", "benchmarks/", "sandbox/", "scripts/", "bot/results/migrations/", "bot/engine/backup.py")
"""Folders whose statements are not collected: they run once, or not in a server."""
SQLITE_ALONE = "json_each("
"""A function that PostgreSQL lacks: for it, the bot has another statement, which tests on PostgreSQL run."""
NAMED = frozenset(sql.queries.values())
"""Procrastinate's own queries."""
_READS_OR_WRITES = re.compile(r"\s*(?:--[^\n]*\s+)*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.IGNORECASE)
_PARAMETER = re.compile(r"%\(\w+\)[sbt](?:::[\w ]+)?|%[sbt]|\?|:[a-z_]\w*")
_MANY = re.compile(r"(\(\?(?:, \?)*\)|\?)(?:, \1)+")


@dataclass(frozen=True)
class Statement:
    """A statement in a database's own dialect, with values that it got, and the function that ran it."""

    database: str
    text: str
    values: Any
    asker: str

    @property
    def kind(self) -> str:
        """The text, without the number of values in each list."""
        return _MANY.sub(r"\1, ...", _PARAMETER.sub("?", self.text))


class CollectedStatements:
    """All statements that this process has run, each kind once."""

    def __init__(self) -> None:
        self._texts, self._of_tests = set[tuple[str, str]](), set[tuple[str, str]]()
        self._kinds = dict[tuple[str, str], Statement]()

    def note(self, database: str, text: object, values: object) -> None:
        """Record a statement that a driver is about to run, if the bot runs it and it is new."""
        text = text.decode() if isinstance(text, bytes) else text
        if not isinstance(text, str) or (database, text) in self._texts:
            return
        asker, carrier = _asker()
        if asker is None and (text in NAMED or (carrier and (database, text) not in self._of_tests)):
            asker = carrier or "procrastinate"  # in the writer's thread, or in a worker's
        if asker is not None and not asker.startswith(NOT_THE_BOT):
            self._add(database, text, values, asker)

    def note_portable(self, text: str, values: Mapping[str, object]) -> None:
        """Record a statement of the engine's connector to SQLite, which also runs on PostgreSQL."""
        if text in sqlite._NAMED or (SQLITE, translated := portable.translate(text)) in self._texts:
            return
        asker, _ = _asker()
        if asker is None or asker.startswith(NOT_THE_BOT):
            self._of_tests.add((SQLITE, translated))
        else:
            stored = {name: portable.stored(value) for name, value in values.items()}
            self._add(SQLITE, translated, stored, asker)
            strings = {
                name: portable.stored(value) if isinstance(value, str) else value for name, value in values.items()
            }
            self._add(POSTGRES, text, strings, asker)

    def note_core(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> None:
        """Record a statement that SQLAlchemy is about to run on SQLite, as PostgreSQL would get it."""
        asker, _ = _asker()
        if asker is None or asker.startswith(NOT_THE_BOT):
            return
        compiled = statement.compile(dialect=ON_POSTGRES, column_keys=list(values) or None)
        assert isinstance(compiled, SQLCompiler)
        expanded = compiled.construct_expanded_state(dict(values))
        text, parameters = expanded.statement, dict(expanded.parameters)
        if (POSTGRES, text) not in self._texts and SQLITE_ALONE not in text:
            for name, process in expanded.processors.items():
                parameters[name] = process(parameters[name])
            self._add(POSTGRES, text, parameters, asker)

    def _add(self, database: str, text: str, values: Any, asker: str) -> None:
        self._texts.add((database, text))
        if _READS_OR_WRITES.match(text):
            _keep_shortest(self._kinds, Statement(database, text, _as_stored(values), asker))

    def statements(self) -> list[Statement]:
        """Return the statements of this process, and of all processes that have written theirs."""
        kinds = dict(self._kinds)
        if folder := os.environ.get(FOLDER):
            for path in sorted(Path(folder).glob("*.pickle")):
                for one in pickle.loads(path.read_bytes()):
                    _keep_shortest(kinds, one)
        return list(kinds.values())

    def leave(self) -> None:
        """Write the statements of this process for the process that explains them."""
        if (folder := os.environ.get(FOLDER)) and self._kinds:
            Path(folder).mkdir(parents=True, exist_ok=True)
            path = Path(folder) / f"{uuid.uuid4().hex}.pickle"
            path.write_bytes(pickle.dumps(list(self._kinds.values())))


def _keep_shortest(kinds: dict[tuple[str, str], Statement], statement: Statement) -> None:
    """Keep the statement of each kind with the shortest list of values: for a long one, PostgreSQL reads all rows."""
    kept = kinds.get((statement.database, statement.kind))
    if kept is None or len(statement.text) < len(kept.text):
        kinds[statement.database, statement.kind] = statement


def _as_stored(values: Any) -> Any:
    """Return values without memory views, which cannot be pickled."""
    if isinstance(values, Mapping):
        return {name: _as_stored(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_as_stored(value) for value in values]
    return bytes(values) if isinstance(values, memoryview | bytearray) else values


def _asker() -> tuple[str | None, str]:
    """Return the innermost function of the project that runs its own statement, and the innermost that runs others'."""
    frame: FrameType | None = sys._getframe(2)
    carrier = ""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_ROOT) and "/.venv/" not in name:
            relative = name.removeprefix(_ROOT)
            if relative not in CARRIERS:
                return f"{relative}:{frame.f_code.co_qualname}", carrier
            carrier = carrier or (relative if relative.startswith("bot/") else "")
        frame = frame.f_back
    return None, carrier


class NotedCursor(sqlite3.Cursor):
    """A cursor of SQLite that records its statements."""

    def execute(self, text: str, values: Any = (), /) -> NotedCursor:
        collected.note(SQLITE, text, values)
        super().execute(text, values)
        return self

    def executemany(self, text: str, rows: Any, /) -> NotedCursor:
        rows = list(rows)
        collected.note(SQLITE, text, rows[0] if rows else ())
        super().executemany(text, rows)
        return self


def _note_core(
    connection: sa.Connection,
    statement: object,
    rows: Sequence[Mapping[str, Any]],
    values: Mapping[str, Any],
    _: object,
) -> None:
    # Inserts with ON CONFLICT are written for each database apart.
    if connection.dialect.name == SQLITE and isinstance(
        statement, sa.Select | sa.CompoundSelect | sa.Update | sa.Delete
    ):
        collected.note_core(statement, rows[0] if rows else values)


def pytest_configure() -> None:
    """Let all drivers' cursors and the engine's connector to SQLite record their statements in `collected`."""
    unclosed.Watched.cursor_class = NotedCursor
    for cursor in (psycopg.Cursor, psycopg.AsyncCursor):
        for name in ("execute", "executemany"):
            setattr(cursor, name, _noting(getattr(cursor, name), many=name == "executemany"))
    prepared = sqlite._operation

    def noted(query: str, arguments: dict[str, object], *, has_rows: bool) -> Any:
        collected.note_portable(query, arguments)
        return prepared(query, arguments, has_rows=has_rows)

    sqlite._operation = noted
    if FOLDER in os.environ:
        sa.event.listen(sa.Engine, "before_execute", _note_core)


def _noting(run: Any, *, many: bool) -> Any:
    @functools.wraps(run)
    def noted(cursor: Any, query: Any, values: Any = None, **options: Any) -> Any:
        if many:
            values = list(values)
        collected.note(POSTGRES, query, values[0] if many and values else values)
        return run(cursor, query, values, **options)

    return noted


def pytest_sessionfinish() -> None:
    """Write the statements of this process."""
    collected.leave()


collected = CollectedStatements()
