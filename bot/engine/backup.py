"""Copy the SQLite file while a server works on it, and put such a copy in its place.

A copy made with `cp` lacks the data that is still in the write-ahead log. A file that is put beside the log of another
database is damaged by that log ("database disk image is malformed"). Both commands avoid this:
https://sqlite.org/howtocorrupt.html
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Generator
from pathlib import Path

from bot.engine.database import Database, DatabaseError
from bot.engine.sql.portable import TOO_NEW
from bot.engine.sqlite.connector import SqliteConnector
from bot.engine.sqlite.schema import VERSIONS

COMPANIONS = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite stores next to a database; their content belongs to that database only."""
OLD = ".old"
"""Ending of the companions of a database that is being replaced."""

USE_PG_DUMP = (
    "{command} is for the SQLite file; DATABASE_URL names {name}: use PostgreSQL's own tools, "
    "`pg_dump --format=custom --file=FILE` and `pg_restore --clean --if-exists --single-transaction --dbname=NAME FILE`"
)
NO_FOLDER = "the folder {path} does not exist; create it or name another one"
ITSELF = "{path} is the database itself; name another file"
NO_BACKUP = "{path} does not exist; name a file that `nightjar backup` has written"
NOT_READ = "{path} cannot be read as a SQLite database: {error}"
NOT_OURS = "{path} is a SQLite database, but not one of Nightjar's"
DAMAGED = "{path} is damaged: {found}; nothing was changed"
NOT_COPIED = "{source} could not be copied to {target}: {error}; {target} is as it was"
NOT_SYNCED = "{target} was replaced by {source}, but may not survive a power cut: {error}; run this command again"


def back_up(database: Database, target: Path) -> int:
    """Write a copy of the database as it is now to `target`, replacing it at once; return its size in bytes.

    A server may work on the database meanwhile: neither waits for the other. The copy is one checked file without
    companions. Raises DatabaseError; `target` is then unchanged.
    """
    path = _file_of(database, "nightjar backup")
    database.must_exist()
    if not target.parent.is_dir():
        raise DatabaseError(NO_FOLDER.format(path=target.parent))
    if target.exists() and target.samefile(path):
        raise DatabaseError(ITSELF.format(path=target))
    with _staged_file(path, target) as staged:
        _copy(path, staged)
        _check(staged, named_path=path)
    return target.stat().st_size


def restore(database: Database, source: Path) -> None:
    """Replace the database, which need not exist, with a backup.

    First the backup is copied and checked. Then the copy replaces the old database, whose log is removed. Raises
    DatabaseError if a server works on the database, or if the backup cannot be used; the database is then unchanged.
    """
    path = _file_of(database, "nightjar restore")
    if not source.is_file():
        raise DatabaseError(NO_BACKUP.format(path=source))
    if path.exists() and source.samefile(path):
        raise DatabaseError(ITSELF.format(path=source))
    with database.sole(), _staged_file(source, path) as staged:
        _copy(source, staged)
        _check(staged, named_path=source)


def _file_of(database: Database, command: str) -> Path:
    if isinstance(database.connector, SqliteConnector):
        return database.connector.path
    raise DatabaseError(USE_PG_DUMP.format(command=command, name=database.name))


@contextlib.contextmanager
def _staged_file(source: Path, target: Path) -> Generator[Path]:
    """Yield the path of a new file; afterwards the file replaces `target` in one step, and survives a power cut."""
    # In the same folder: only within one file system does a rename replace a file in one step.
    staged = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        # The file has data of private repositories, so only its owner may read it.
        os.close(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        yield staged
        _copy_owner(staged, target)
        # First the content, then the name, then the folder that holds the name; any other order may leave an empty file
        # after a power cut: https://man7.org/linux/man-pages/man2/fsync.2.html
        _sync(staged)
        _replace(staged, target)
    except (OSError, sqlite3.Error) as error:
        raise DatabaseError(NOT_COPIED.format(source=source, target=target, error=_reason(error))) from None
    finally:
        staged.unlink(missing_ok=True)
        _remove_companions(staged)
    try:
        _remove_companions(target, OLD)
        _sync(target.parent)
    except OSError as error:
        raise DatabaseError(NOT_SYNCED.format(source=source, target=target, error=_reason(error))) from None


def _replace(new: Path, target: Path) -> None:
    """Move a file into the place of a database, whose companions are renamed first: they would damage the new file.

    If that fails, the companions get their names back. After a crash before the last step, the old database has the
    state of its last checkpoint, and the command must be run again.
    """
    renamed: list[tuple[Path, Path]] = []
    try:
        for ending in COMPANIONS:
            companion, old = (target.with_name(target.name + ending + suffix) for suffix in ("", OLD))
            if companion.exists():
                renamed.append((companion, companion.rename(old)))
        new.replace(target)
    except OSError:
        for companion, old in renamed:
            old.rename(companion)
        raise


def _reason(error: OSError | sqlite3.Error) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _copy(source: Path, target: Path) -> None:
    """Copy a database including its write-ahead log; others may write meanwhile."""
    with contextlib.closing(_opened(source)) as old, contextlib.closing(sqlite3.connect(target)) as new:
        # In one step: a copy by steps starts over whenever somebody writes, and on a busy server never ends.
        old.backup(new, pages=-1)
        # So that it needs no companions; the server switches it back when it opens it.
        new.execute("PRAGMA journal_mode = DELETE").fetchone()


def _opened(source: Path) -> sqlite3.Connection:
    # Read only, so that SQLite neither changes a file nor creates one: https://sqlite.org/uri.html
    connection = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
    try:
        # SQLite reads a file with the first query, not when it opens it.
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        raise DatabaseError(NOT_READ.format(path=source, error=error)) from None
    return connection


def _check(copy: Path, *, named_path: Path) -> None:
    """Raise DatabaseError, naming `named_path`, unless a copy is intact and of a version that this release knows."""
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        try:
            (integrity,) = connection.execute("PRAGMA integrity_check(1)").fetchone()  # stops at one fault
        except sqlite3.DatabaseError as error:
            integrity = str(error)
        if integrity != "ok":
            raise DatabaseError(DAMAGED.format(path=named_path, found=" ".join(str(integrity).split())))
        try:
            (version,) = connection.execute("SELECT version FROM nightjar_schema").fetchone()
        except sqlite3.OperationalError:
            raise DatabaseError(NOT_OURS.format(path=named_path)) from None
        if version > len(VERSIONS):
            raise DatabaseError(f"{named_path}: " + TOO_NEW.format(found=version, known=len(VERSIONS)))


def _remove_companions(path: Path, suffix: str = "") -> None:
    for ending in COMPANIONS:
        path.with_name(path.name + ending + suffix).unlink(missing_ok=True)


def _copy_owner(new: Path, old: Path) -> None:
    """Give a file the owner of the file that it replaces, or of the folder: root may restore for another user."""
    if os.geteuid() == 0:
        owner = (old if old.exists() else old.parent).stat()
        os.chown(new, owner.st_uid, owner.st_gid)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
