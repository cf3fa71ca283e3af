"""Open the database that DATABASE_URL names; errors say in one line why that failed.

No message shows a password: messages name the server, never the URL.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Generator
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote

import psycopg
import psycopg_pool
import structlog
from psycopg.conninfo import conninfo_to_dict

from bot.engine.postgres.connector import PostgresConnector
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sqlite.connector import ANSWERED, QUERIES, SqliteConnector

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
# `listen_notify` does what this query would do.
KNOWN_QUERIES = ANSWERED | {"listen_queue"}

OTHER_USERS = 0o077
"""The permissions of a file for users other than its owner."""
PRIMARY_CODE = 0xFF
"""The part of SQLite's error codes that names the kind (https://sqlite.org/rescode.html#pve)."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

FORMS = "sqlite:///FILE (sqlite:////FILE for an absolute path) or postgresql://USER:PASSWORD@HOST:PORT/NAME"
UNKNOWN_URL = f"DATABASE_URL: expected {FORMS}"
NO_FILE = f"DATABASE_URL: it names no file; expected {FORMS}"
BAD_POSTGRES_URL = (
    "DATABASE_URL: not a valid PostgreSQL URL; expected postgresql://USER:PASSWORD@HOST:PORT/NAME, "
    "with special characters of its parts percent-encoded"
)
NO_SUCH_FILE = "DATABASE_URL: {path} does not exist: no server has used it yet, or the path is wrong"
NO_FOLDER = "DATABASE_URL: the folder {folder} does not exist; create it or name another one"
A_FOLDER = "DATABASE_URL: {path} is a folder; name a file in it"
NOT_WRITABLE = "DATABASE_URL: {path} cannot be written: {error}; make the file and its folder writable for this user"
NOT_SQLITE = "DATABASE_URL: {path} is not a SQLite database; name another file"
DISK_FULL = "DATABASE_URL: no space left on the disk of {path}"
NOT_OPENED = "DATABASE_URL: {name} could not be opened: {error}"
WRONG_ENCODING = "DATABASE_URL: {name} stores text as {encoding}; create the database with ENCODING 'UTF8'"
IN_USE = (
    "the database {path} is in use by another nightjar (process {pid}); stop that one first. "
    "Several processes can share a PostgreSQL database: DATABASE_URL=postgresql://…"
)
OTHER_QUERIES = (
    "procrastinate {found} has queries that this release does not know ({names}); install procrastinate>=3.10,<3.11"
)


class DatabaseError(Exception):
    """The database cannot be used; the text says why in one line, fit for the operator."""


class Database:
    """The database of a URL; all queries run on its `connector`, once `open` has returned.

    `clock` is the clock of a SQLite database. Raises DatabaseError for a URL of another kind.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.time) -> None:
        self.connector: SqliteConnector | PostgresConnector
        if url.startswith(SQLITE):
            self.connector = SqliteConnector(_path(url), clock=clock)
            self.name = str(self.connector.path)
        elif url.startswith(POSTGRES):
            try:
                self.connector = PostgresConnector(url)
            except psycopg.ProgrammingError:
                # Not chained: libpq's own message repeats the URL with its password.
                raise DatabaseError(BAD_POSTGRES_URL) from None
            self.name = _server(self.connector.conninfo)
        else:
            raise DatabaseError(UNKNOWN_URL)

    @property
    def embedded(self) -> bool:
        """Whether it is a file, which one process serves at a time."""
        return isinstance(self.connector, SqliteConnector)

    def must_exist(self) -> None:
        """Raise DatabaseError for a missing file, which `open` would create, and show as an empty inbox."""
        if isinstance(self.connector, SqliteConnector) and not self.connector.path.exists():
            raise DatabaseError(NO_SUCH_FILE.format(path=self.connector.path))

    async def open(self) -> None:
        """Connect, and create the tables or upgrade them.

        Raises DatabaseError.
        """
        check_queries(QUERIES)
        if isinstance(self.connector, SqliteConnector):
            await _open_file(self.connector)
        else:
            await _open_server(self.connector, self.name)

    def problem(self) -> str | None:
        """Return the problem of an open SQLite file; None if there is none, and on PostgreSQL. Takes microseconds."""
        return self.connector.problem() if isinstance(self.connector, SqliteConnector) else None

    async def close(self) -> None:
        """Finish pending writes, then disconnect."""
        await self.connector.close_async()

    @contextlib.contextmanager
    def sole(self) -> Generator[None]:
        """Lock a SQLite file against a second server; do nothing on PostgreSQL.

        Only under this lock may a server return every running job to the queue at start. The lock ends with the
        process, however it ends. Commands beside a running server do not take it. Raises DatabaseError.
        """
        if isinstance(self.connector, SqliteConnector):
            with _locked(self.connector.path):
                yield
        else:
            yield


def check_queries(names: Collection[str]) -> None:
    """Raise DatabaseError unless Procrastinate has exactly the named queries that `SqliteConnector` answers."""
    if unexpected := KNOWN_QUERIES.symmetric_difference(names):
        raise DatabaseError(OTHER_QUERIES.format(found=version("procrastinate"), names=", ".join(sorted(unexpected))))


def _path(url: str) -> Path:
    name = unquote(url.removeprefix(SQLITE))
    if not name.strip("/") or name.startswith(":"):
        raise DatabaseError(NO_FILE)
    return Path(name).absolute()


def _server(conninfo: str) -> str:
    parts = conninfo_to_dict(conninfo)
    return f"PostgreSQL at {parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


async def _open_file(connector: SqliteConnector) -> None:
    path = connector.path
    if not path.parent.is_dir():
        raise DatabaseError(NO_FOLDER.format(folder=path.parent))
    if path.is_dir():
        raise DatabaseError(A_FOLDER.format(path=path))
    try:
        await connector.open_async()
    except DatabaseFailure as error:
        raise DatabaseError(_what_is_wrong(path, error)) from error
    if path.stat().st_mode & OTHER_USERS:
        remedy = f"chmod 600 {path} {path}-wal {path}-shm"
        log.warning("other users of this machine can read the database", path=str(path), remedy=remedy)


def _what_is_wrong(path: Path, error: DatabaseFailure) -> str:
    match getattr(error.__cause__, "sqlite_errorcode", 0) & PRIMARY_CODE:
        case sqlite3.SQLITE_NOTADB:
            return NOT_SQLITE.format(path=path)
        case sqlite3.SQLITE_FULL:
            return DISK_FULL.format(path=path)
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return NOT_WRITABLE.format(path=path, error=error)
        case _:
            return NOT_OPENED.format(name=path, error=error)


async def _open_server(connector: PostgresConnector, name: str) -> None:
    try:
        # A first connection of its own: the pool would only report a time-out, and log each attempt.
        async with await psycopg.AsyncConnection.connect(connector.conninfo) as connection:
            encoding = connection.info.parameter_status("server_encoding")
        # Payloads hold any character; other encodings refuse some:
        # https://www.postgresql.org/docs/current/multibyte.html
        if encoding != "UTF8":
            raise DatabaseError(WRONG_ENCODING.format(name=name, encoding=encoding))
        try:
            await connector.open_async()
            await connector.upgrade()
        except BaseException:  # also a cancellation, after which the workers of the pool would run on
            await connector.close_async()
            raise
    except (psycopg.Error, psycopg_pool.PoolTimeout, DatabaseFailure) as error:
        raise DatabaseError(_in_one_line(name, connector, error)) from None


def _in_one_line(name: str, connector: PostgresConnector, error: Exception) -> str:
    text = " ".join(str(error).split())
    password = conninfo_to_dict(connector.conninfo).get("password")
    if password:
        # libpq's messages may quote the connection string.
        text = text.replace(str(password), "***")
    return NOT_OPENED.format(name=name, error=text)


@contextlib.contextmanager
def _locked(path: Path) -> Generator[None]:
    # A separate file: closing any descriptor of the database would drop SQLite's locks on it
    # (https://sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_).
    lock = path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise DatabaseError(NO_FOLDER.format(folder=path.parent)) from None
    except OSError as error:
        raise DatabaseError(NOT_WRITABLE.format(path=lock, error=error.strerror)) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
            raise DatabaseError(IN_USE.format(path=path, pid=pid)) from None
        # Only after we got the lock: until then, the file has the ID of the process that holds it.
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)  # releases the lock; the file stays, because removing it would race with the next process
