"""Procrastinate's database in one SQLite file.

The engine stays Procrastinate's: this connector answers its named queries, runs SQL of ours (`bot.engine.sql.portable`)
and notifies listeners of the same process where PostgreSQL would send NOTIFY. Other processes on the file find work
by polling. The file belongs on a local disk: SQLite's locks and its write-ahead log do not work over a network
(https://sqlite.org/wal.html).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, LiteralString, TypeVar, cast

from procrastinate import connector, schema, sql

from bot.engine.jobs.inbox import BODIES_AT_ONCE, FORGET_BODY, MOVE_BODY, STORE, moved_values, store_on_sqlite
from bot.engine.jobs.steps import ANY_QUEUE, FETCH, FINISH_NOTED, NOTIFICATIONS, WAKE
from bot.engine.sql import portable
from bot.engine.sql.errors import DatabaseFailure, DuplicateKey
from bot.engine.sql.portable import Row, check_version
from bot.engine.sql.queueing_lock import DuplicateJob
from bot.engine.sql.transactions import Steps
from bot.engine.sqlite.lists import LISTS
from bot.engine.sqlite.queries import CHANGES
from bot.engine.sqlite.schema import BEFORE_MOVE, VERSIONS, WAKE_TRIGGERS
from bot.engine.sqlite.steps import STEPS
from bot.engine.sqlite.writer import MAX_BATCH, Notices, Writer

BUSY_TIMEOUT = 10.0
"""Seconds to wait for another process that writes; GitHub itself waits ten for our answer."""

OLDEST_SQLITE = (3, 38, 0)
"""`RETURNING` came with 3.35, `->>` with 3.38."""

UNIQUE = (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)

NO_ROW = "the statement returned no row"
TOO_OLD = "this Python has SQLite {found}; 3.38 or newer is needed"
NO_WAL = "{path} is on a file system that does not support SQLite's write-ahead log; use a local disk"
REPLACED = (
    "the database file {path} was removed or replaced while the server ran: nothing more is stored. "
    "Put the file in its place with `nightjar restore`, and start the server again"
)

Result = TypeVar("Result")
Identity = tuple[int, int]
"""Device and inode, which identify a file whatever its name."""

OLD_BODIES = "SELECT id FROM procrastinate_jobs WHERE task_name = 'deliver' AND id > ? ORDER BY id LIMIT ?"

QUEUE = "procrastinate_queue_v1#"

_NAMED = {sql.queries[name]: answer for name, answer in (CHANGES | LISTS).items() if name in sql.queries}
_NAMED |= STEPS
_BATCHED = {STORE: store_on_sqlite}
"""Statements that run once for all waiting calls."""
_SCHEMA = schema.SchemaManager.get_schema().replace("%", "%%")

ANSWERED = frozenset(CHANGES | LISTS)
"""The names of Procrastinate's queries that are answered here."""
QUERIES = frozenset(sql.queries)
"""The names of the installed Procrastinate's queries."""


@dataclass(slots=True, eq=False)
class _Listener:
    channels: frozenset[str]
    loop: asyncio.AbstractEventLoop
    notices: asyncio.Queue[tuple[str, str]]


class SqliteConnector(connector.BaseAsyncConnector):
    """Answer Procrastinate and our own SQL from one file, which is created if it is missing.

    It may be used from any event loop. Errors are DatabaseFailure, with SQLite's as the cause; a duplicate
    queueing lock is DuplicateJob.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: str = "FULL",
        clock: Callable[[], float] = time.time,
        most_at_once: int = MAX_BATCH,
    ) -> None:
        """Create a connector for the file at `path`.

        A `synchronous` other than FULL is for tests: a power cut could lose confirmed work. `clock` returns the time
        for deadlines, in seconds since 1970. At most `most_at_once` operations share a commit.
        """
        self.path = path
        self._most_at_once = most_at_once
        self._clock = clock
        self._synchronous = synchronous
        self._file = OpenFile(path)
        self._writer: Writer | None = None
        self._listeners: list[_Listener] = []
        self._notification_count = 0
        self._unpublished: Notices = []
        """The notifications of the transaction under way; belongs to the writer's thread."""

    def get_sync_connector(self) -> connector.BaseConnector:
        """Return this connector: Procrastinate runs its synchronous calls as asynchronous ones."""
        return self

    async def open_async(self, pool: connector.Pool | None = None) -> None:
        """Open the file and bring its schema up to date."""
        if self._writer is not None:
            return
        writer = Writer(self._connect, self._publish, self._check_file, self._most_at_once)
        try:
            await writer.start()
        except sqlite3.Error as error:
            raise DatabaseFailure(str(error)) from error
        self._writer = writer

    def problem(self) -> str | None:
        """Return why nothing can be stored in the open file any longer; None if it is usable."""
        return self._file.problem()

    def _check_file(self) -> None:
        if problem := self._file.problem():
            raise DatabaseFailure(problem)

    async def close_async(self) -> None:
        """Finish pending writes, then close the file."""
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.stop()
        self._file.forget()

    async def execute_query_async(self, query: str, **arguments: object) -> None:
        """Run a query for its effect."""
        await self._run(query, arguments, has_rows=False)

    async def execute_query_one_async(self, query: str, **arguments: object) -> Row:
        """Run a query and return its first row."""
        rows = await self.execute_query_all_async(query, **arguments)
        if not rows:
            raise DatabaseFailure(NO_ROW)
        return rows[0]

    async def execute_query_all_async(self, query: str, **arguments: object) -> list[Row]:
        """Run a query and return its rows."""
        if query == FETCH:
            return await self._fetch(arguments)
        return await self._run(query, arguments, has_rows=True)

    async def _fetch(self, arguments: dict[str, object]) -> list[Row]:
        """Fetch jobs; wake the worker for another fetch if a notification arrived while this one found nothing.

        The worker drops notifications that arrive before the answer to a fetch, even about jobs stored after it: a busy
        event loop gets both at once, and a listener that is already awake runs before the task that waits for the
        answer.
        """
        rows = await self._run(FETCH, arguments, has_rows=True)
        if rows[0][NOTIFICATIONS] != self._notification_count and all(row["id"] is None for row in rows):
            self._tell([("", WAKE)])
        return rows

    def _fetch_noticing(self, connection: sqlite3.Connection, arguments: dict[str, object]) -> list[Row]:
        """Return the fetched jobs, each with the number of notifications before the fetch, published or not."""
        rows = STEPS[FETCH](connection, **arguments)
        return [{**row, NOTIFICATIONS: self._notification_count + len(self._unpublished)} for row in rows]

    async def _run(self, query: str, arguments: dict[str, object], *, has_rows: bool) -> list[Row]:
        if query == _SCHEMA:
            return []  # opening the file has created it
        if batched := _BATCHED.get(query):
            return await self._write(lambda writer: writer.run_batched(batched, arguments))
        if query == FETCH:
            return await self._write(lambda writer: writer.run(partial(self._fetch_noticing, arguments=arguments)))
        if query == FINISH_NOTED:
            return await self.transact(partial(_single, query, arguments))
        return await self._write(lambda writer: writer.run(_operation(query, arguments, has_rows=has_rows)))

    async def transact(self, begin: Callable[[], Steps[Result]]) -> Result:
        """Run a transaction, as `bot.engine.sql.transactions` describes."""
        return await self._write(lambda writer: writer.run(partial(self._run_steps, begin=begin)))

    def _run_steps(self, connection: sqlite3.Connection, begin: Callable[[], Steps[Result]]) -> Result:
        steps, notices_before = begin(), len(self._unpublished)
        rows: Any = None  # with which a generator begins
        try:
            while True:
                query, values = steps.send(rows)
                if batched := _BATCHED.get(query):
                    (rows,) = batched(connection, [values])
                else:
                    rows = _operation(query, dict(values), has_rows=False)(connection)
                if query == FINISH_NOTED and rows and rows[0]["id"] is not None:
                    # All jobs of this transaction have the lock under which the successor runs now.
                    del self._unpublished[notices_before:]
        except StopIteration as end:
            return cast("Result", end.value)

    async def _write(self, run: Callable[[Writer], Awaitable[Result]]) -> Result:
        if self._writer is None:
            raise DatabaseFailure("the database is not open")
        try:
            return await run(self._writer)
        except sqlite3.IntegrityError as error:
            # Only the message names the columns: all unique indices share one error code.
            if "procrastinate_jobs.queueing_lock" in str(error):
                raise DuplicateJob(None) from error
            kind = DuplicateKey if error.sqlite_errorcode in UNIQUE else DatabaseFailure
            raise kind(str(error)) from error
        except sqlite3.Error as error:
            raise DatabaseFailure(str(error)) from error

    @property
    def notification_count(self) -> int | None:
        """The number of notifications so far; None while nobody listens."""
        return self._notification_count if self._listeners else None

    async def listen_notify(self, on_notification: connector.Notify, channels: Iterable[str]) -> None:
        """Call back for every job of these channels that may now run or is to stop, until cancelled."""
        listener = _Listener(frozenset(channels), asyncio.get_running_loop(), asyncio.Queue())
        self._listeners.append(listener)
        try:
            while True:
                channel, payload = await listener.notices.get()
                await on_notification(channel=channel, payload=payload)
        finally:
            self._listeners.remove(listener)

    def _publish(self, notices: Notices) -> None:
        self._notification_count += len(notices)
        self._tell(notices)

    def _tell(self, notices: Notices) -> None:
        for listener in tuple(self._listeners):
            matching = [
                (channel, payload)
                for queue_name, payload in notices
                for channel in (ANY_QUEUE, QUEUE + queue_name)
                if channel in listener.channels
            ]
            if matching:
                with contextlib.suppress(RuntimeError):  # the listener's event loop was closed
                    listener.loop.call_soon_threadsafe(_enqueue, listener, matching)

    def _connect(self, notices: Notices) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise DatabaseFailure(TOO_OLD.format(found=sqlite3.sqlite_version))
        create_privately(self.path)
        # The writer begins and ends transactions itself:
        # https://docs.python.org/3/library/sqlite3.html#transaction-control
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=BUSY_TIMEOUT)
        try:
            self._prepare(connection, notices)
            self._file.remember()
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection, notices: Notices) -> None:
        # If the mode cannot be changed, SQLite returns the old one instead of an error:
        # https://sqlite.org/pragma.html#pragma_journal_mode
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise DatabaseFailure(NO_WAL.format(path=self.path))
        # With a write-ahead log, NORMAL may lose the last commits in a power cut:
        # https://sqlite.org/pragma.html#pragma_synchronous
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")  # off by default, for each connection
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA journal_size_limit = 67108864")  # else the log keeps its greatest size
        self._unpublished = notices
        connection.row_factory = portable.row
        portable.add_functions(connection, self._clock)

        def wake(queue_name: str, kind: str, job_id: int) -> None:
            notices.append((queue_name, json.dumps({"type": kind, "job_id": job_id})))

        connection.create_function("nightjar_wake", 3, wake)
        _upgrade(connection)
        for statement in statements(WAKE_TRIGGERS):
            connection.execute(statement)


def create_privately(path: Path) -> None:
    """Create an empty file that only its owner can read, unless it exists; SQLite copies its mode to its companions.

    A file that exists is not even opened: closing it would end SQLite's locks on it
    (https://sqlite.org/howtocorrupt.html).
    """
    with contextlib.suppress(OSError):  # SQLite reports the error when it opens the file
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _upgrade(connection: sqlite3.Connection) -> None:
    """Upgrade the schema and the stored data to the newest version; after a crash, the next start continues."""
    if _bring_to(connection, BEFORE_MOVE) == BEFORE_MOVE:
        _move_bodies(connection)
    _bring_to(connection, len(VERSIONS))


def _bring_to(connection: sqlite3.Connection, target_version: int) -> int:
    """Upgrade the schema to a version, unless it has a newer one; return the version that it then has."""
    with _transaction(connection):
        version_table = connection.execute("SELECT name FROM sqlite_schema WHERE name = 'nightjar_schema'").fetchone()
        row = connection.execute("SELECT version FROM nightjar_schema").fetchone() if version_table else {"version": 0}
        version: int = row["version"]
        check_version(version, len(VERSIONS))
        for step in VERSIONS[version:target_version]:
            for statement in statements(step):
                connection.execute(statement)
        if version < target_version:
            connection.execute("UPDATE nightjar_schema SET version = ?", (target_version,))
    return max(version, target_version)


def _move_bodies(connection: sqlite3.Connection) -> None:
    """Move the bodies of deliveries from the arguments of their jobs to the inbox, in batches."""
    last_id, remaining = 0, True
    while remaining:
        with _transaction(connection):
            jobs = connection.execute(OLD_BODIES, (last_id, BODIES_AT_ONCE)).fetchall()
            for job in jobs:
                row = connection.execute(
                    "SELECT lock, args FROM procrastinate_jobs WHERE id = ?", (job["id"],)
                ).fetchone()
                if "body" in row["args"]:
                    portable.execute(
                        connection, MOVE_BODY, moved_values(job["id"], row["lock"], row["args"]), has_rows=False
                    )
                    args = {name: value for name, value in row["args"].items() if name != "body"}
                    portable.execute(connection, FORGET_BODY, {"id": job["id"], "args": args}, has_rows=False)
        last_id, remaining = (jobs[-1]["id"], True) if jobs else (last_id, False)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    # It locks at once: if two processes open a new file, the second one waits, and finds the tables of the first.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk, for one, makes SQLite roll back by itself:
        # https://sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def statements(script: str) -> Iterable[str]:
    """Split a script, because `executescript` would commit the transaction that the script should be part of."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _operation(
    query: str, arguments: dict[str, object], *, has_rows: bool
) -> Callable[[sqlite3.Connection], list[Row]]:
    if answer := _NAMED.get(query):
        return partial(answer, **arguments)
    return partial(portable.execute, sql=query, arguments=arguments, has_rows=has_rows)


def _single(query: LiteralString, arguments: dict[str, object]) -> Steps[list[Row]]:
    return (yield query, arguments)


def _enqueue(listener: _Listener, notices: list[tuple[str, str]]) -> None:
    for notice in notices:
        listener.notices.put_nowait(notice)


class OpenFile:
    """The files of an open database: the file itself and its write-ahead log, which has the newest data.

    Detects that somebody removed or replaced one of them. An open file lives on without its name, so SQLite would go on
    storing data that the next start cannot find
    (https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._paths = (str(path), f"{path}-wal")
        self._identities: dict[str, Identity] = {}

    def remember(self) -> None:
        """Remember the identities of the files that now have these names."""
        self._identities = {path: identity for path in self._paths if (identity := _identity(path)) is not None}

    def forget(self) -> None:
        """Forget the open files."""
        self._identities = {}

    def problem(self) -> str | None:
        """Return a message if the names no longer lead to the open files; None if they do. Takes microseconds."""
        if all(_identity(path) == identity for path, identity in self._identities.items()):
            return None
        return REPLACED.format(path=self._path)


def _identity(path: str) -> Identity | None:
    try:
        status = os.stat(path)  # noqa: PTH116  # at each commit: `Path.stat` takes three times as long
    except OSError:
        return None
    return status.st_dev, status.st_ino
