"""`nightjar database copy`: what a server left in SQLite goes on in PostgreSQL."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from bot.app.database_copy import LOCK_ID, NOT_COPIED, copy_database
from bot.engine.database import Database, DatabaseError
from bot.engine.service import Engine
from tests.engine.running import running, settled
from tests.engine.toy import World
from tests.running import finished, run, start
from tests.stored_databases import (
    DATABASES,
    FAILED,
    POINTS,
    SQLITE,
    UPLOADS,
    WAITING,
    name_of_schema,
    opened_results,
    restore,
)
from tests.tables import with_tables
from tests.test_stored_databases import AS_OF_NOW, GO_ON
from tests.waiting import until


@pytest.fixture
def source(sqlite_url: str) -> str:
    """Return the URL of a database as a server of this version left it."""
    restore(DATABASES / f"{name_of_schema()}.{SQLITE}.xz", sqlite_url)
    return sqlite_url


class InterruptedCopyError(Exception):
    """The copy was interrupted, as by a lost connection."""


def ignore(_table: str, _rows: int) -> None:
    """Ignore the progress."""


def plain(value: object) -> object:
    """Return a value of either database as SQLite has it; PostgreSQL rounds moments to microseconds."""
    if isinstance(value, datetime):
        return round(value.timestamp(), 2)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True)
    return round(value, 2) if isinstance(value, float) else value


def texts_of(rows: Sequence[Sequence[object]]) -> list[str]:
    """Return rows as texts, in an order that both databases have."""
    return sorted(str([plain(value) for value in row]) for row in rows)


def stored_rows(source: str, target: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return the rows of each table in both databases, in one form, without JSON and workers."""
    tables = {}
    path = source.removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path)) as file, psycopg.connect(target) as server:
        for (table,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            if table in NOT_COPIED or table.startswith("sqlite_"):
                continue
            columns = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
            names = [name for name in columns if name not in ("args", "worker_id")]
            query = sql.SQL("SELECT {} FROM {}").format(
                sql.SQL(", ").join(map(sql.Identifier, names)), sql.Identifier(table)
            )
            here = file.execute(query.as_string(server)).fetchall()
            there = server.execute(query).fetchall()
            tables[table] = (texts_of(here), texts_of(there))
    return tables


async def test_all_rows_are_copied_and_the_work_goes_on(source: str, postgres_url: str, tmp_path: Path) -> None:
    done = await run("database", "copy", source, postgres_url, env={}, cwd=tmp_path)
    assert (done.status, done.out.partition(" ")[0]) == (0, "copied"), done.err
    tables = stored_rows(source, postgres_url)
    assert {"procrastinate_jobs", "nightjar_inbox", "nightjar_records", "nightjar_runs", "nightjar_tokens"} < set(
        tables
    )
    assert {table: rows for table, rows in tables.items() if rows[0] != rows[1]} == {}
    with contextlib.closing(World(tmp_path / "world.db")) as world:
        for point in POINTS:
            world.passed(point)
        async with Engine(postgres_url) as engine:
            for statement in (*AS_OF_NOW, GO_ON):
                await engine.database.connector.execute_query_async(statement)
        async with running(postgres_url, world) as engine:
            records = await settled(engine, "done", "ignored", "queued", "in-progress", *WAITING, *FAILED)
            assert {record.state for record in records if record.guid not in FAILED} == {"done", "ignored"}
            assert await engine.accept(
                "new", "issue_comment", "{}", "pr:1#1", ignored={"at": 0, "outcome": "ignored", "text": ""}
            )
    with opened_results(postgres_url) as store:
        assert not store.put(UPLOADS[0].run, UPLOADS[0].columns), "the run is there"


async def test_an_interrupted_copy_goes_on(source: str, postgres_url: str) -> None:
    for count in (1, 2, 30):
        left = count

        def interrupt(_table: str, _rows: int) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise InterruptedCopyError

        with pytest.raises(InterruptedCopyError):
            await copy_database(source, postgres_url, interrupt, rows_at_once=3)
    await copy_database(source, postgres_url, ignore, rows_at_once=3)
    assert {table: rows for table, rows in stored_rows(source, postgres_url).items() if rows[0] != rows[1]} == {}
    with pytest.raises(DatabaseError, match="is in use: it has rows"):
        await copy_database(source, postgres_url, ignore)


async def test_a_source_that_changed_after_an_interruption_is_refused(source: str, postgres_url: str) -> None:
    def interrupt(_table: str, _rows: int) -> None:
        raise InterruptedCopyError

    with pytest.raises(InterruptedCopyError):
        await copy_database(source, postgres_url, interrupt)
    async with Engine(source) as engine:
        await engine.database.connector.execute_query_async("INSERT INTO procrastinate_workers DEFAULT VALUES")
    with pytest.raises(DatabaseError, match="a server has worked on the SQLite database"):
        await copy_database(source, postgres_url, ignore)


async def test_databases_in_use_are_refused(source: str, postgres_url: str, tmp_path: Path) -> None:
    with contextlib.closing(World(tmp_path / "world.db")) as world:
        async with running(postgres_url, world) as engine:
            await until(lambda: engine.ready() is None)
            with pytest.raises(DatabaseError, match="is in use: it has rows"):
                await copy_database(source, postgres_url, ignore)
    with Database(source).sole(), pytest.raises(DatabaseError, match="is in use by another nightjar"):
        await copy_database(source, postgres_url, ignore)


async def test_only_sqlite_is_copied_and_only_to_postgresql(source: str, postgres_url: str) -> None:
    for one, other in ((postgres_url, source), (source, source), (postgres_url, postgres_url)):
        with pytest.raises(DatabaseError, match="FROM must be sqlite"):
            await copy_database(one, other, ignore)


async def test_a_killed_copy_goes_on(source: str, postgres_url: str, tmp_path: Path) -> None:
    target = Database(postgres_url)
    await target.open()
    await target.close()
    copied = ("database", "copy", source, postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as server:
        with psycopg.connect(postgres_url) as other:
            other.execute("LOCK TABLE nightjar_inbox IN SHARE MODE")  # The copy reads it, and waits to write to it.
            process = await start(*copied, env={}, cwd=tmp_path)
            waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"
            await until(lambda: server.execute(waiting).fetchone() == (True,))
            process.kill()
            killed = await finished(process)
            progress = server.execute("SELECT name, rows FROM nightjar_copy").fetchall()
        assert killed.status == -signal.SIGKILL
        assert progress
        assert len(killed.err.splitlines()) == len(progress)
        # PostgreSQL ends the connection of the killed process once it no longer waits.
        held = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = 0 AND objid = %s)"
        await until(lambda: server.execute(held, (LOCK_ID,)).fetchone() == (False,))
    done = await run(*copied, env={}, cwd=tmp_path)
    assert done.status == 0, done.err
    assert {table: rows for table, rows in stored_rows(source, postgres_url).items() if rows[0] != rows[1]} == {}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("a", "postgresql://127.0.0.1:1/a"), "FROM must be sqlite:///PATH or postgresql://…, as in "),
        (("sqlite:///nightjar.db", "b"), "TO must be sqlite:///PATH or postgresql://…, as in "),
        (("sqlite:///nightjar.db",), "DATABASE_URL must be sqlite:///PATH or postgresql://…, as in "),
        (("sqlite:///none.db", "postgresql://127.0.0.1:1/a"), "FROM: "),
        (
            ("sqlite:///nightjar.db", "postgresql://127.0.0.1:1/a"),
            "TO: PostgreSQL at 127.0.0.1:1/a could not be opened",
        ),
    ],
)
async def test_an_invalid_database_is_named_as_on_the_command_line(
    words: tuple[str, ...], line: str, tmp_path: Path
) -> None:
    with_tables(f"sqlite:///{tmp_path}/nightjar.db")
    failed = await run("database", "copy", *words, env={"DATABASE_URL": "c"}, cwd=tmp_path)
    assert failed.status == 1
    assert failed.err.startswith(line)
