"""A backup of the SQLite file while a server runs, and its restoration."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import shutil
import signal
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from bot.engine.backup import COMPANIONS, back_up, restore
from bot.engine.database import Database, DatabaseError
from bot.engine.records import Records, StoredValue
from bot.engine.sql.errors import DatabaseFailure
from tests.running import ROOT, environment

PADDING = "x" * 2000
KILLED_WHILE_OPEN = """
import asyncio, os, signal, sys
from bot.engine.database import Database
from bot.engine.records import Records, StoredValue

async def main() -> None:
    database = Database(sys.argv[1])
    await database.open()
    records = Records(database.connector)
    for number in range(200):
        await records.write(f"{sys.argv[2]}:{number}", StoredValue({"padding": "y" * 2000}, 1, None))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def _store(url: str, name: str, count: int) -> None:
    database = Database(url)
    await database.open()
    for number in range(count):
        await Records(database.connector).write(f"{name}:{number}", StoredValue({"padding": PADDING}, 1, None))
    await database.close()


async def _stored_names(url: str) -> set[str]:
    database = Database(url)
    await database.open()
    rows = await database.connector.execute_query_all_async("SELECT key FROM nightjar_records")
    await database.close()
    return {str(row["key"]).partition(":")[0] for row in rows}


async def _crash(url: str, name: str) -> None:
    """Leave a database as a killed process does: with its write-ahead log next to it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED_WHILE_OPEN, url, name, env=environment({}), cwd=ROOT
    )
    assert await process.wait() == -signal.SIGKILL


def store_names(url: str, name: str, count: int = 1) -> None:
    asyncio.run(_store(url, name, count))


def stored_names(url: str) -> set[str]:
    return asyncio.run(_stored_names(url))


def crash(url: str, name: str) -> None:
    asyncio.run(_crash(url, name))


def companions(path: Path) -> list[str]:
    return [path.name + ending for ending in COMPANIONS if path.with_name(path.name + ending).exists()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nightjar.db"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return tmp_path / "backups" / "saved.db"


@pytest.fixture(autouse=True)
def folder(saved: Path) -> None:
    saved.parent.mkdir()


def test_copying_a_backup_over_a_crashed_database_damages_it(sqlite_url: str, path: Path, saved: Path) -> None:
    """Why `restore` exists: SQLite applies the old database's log to the copied file."""
    store_names(sqlite_url, "before", 300)
    back_up(Database(sqlite_url), saved)
    crash(sqlite_url, "after")
    shutil.copy(saved, path)
    with pytest.raises((DatabaseError, DatabaseFailure, sqlite3.DatabaseError, AssertionError)):
        assert stored_names(sqlite_url) == {"before"}


def test_restore_over_a_crashed_database_gives_what_was_saved(sqlite_url: str, path: Path, saved: Path) -> None:
    store_names(sqlite_url, "before", 300)
    back_up(Database(sqlite_url), saved)
    crash(sqlite_url, "after")
    assert companions(path) == ["nightjar.db-wal", "nightjar.db-shm"]
    restore(Database(sqlite_url), saved)
    assert companions(path) == []
    assert stored_names(sqlite_url) == {"before"}


def test_a_backup_during_writes_contains_everything_stored_and_is_one_file(sqlite_url: str, saved: Path) -> None:
    async def back_up_while_somebody_writes() -> list[int]:
        database = Database(sqlite_url)
        await database.open()
        records, stop = Records(database.connector), asyncio.Event()
        await records.write("acknowledged:0", StoredValue({"padding": PADDING}, 1, None))

        async def write() -> int:
            number = 0
            while not stop.is_set():
                await records.write(f"meanwhile:{number}", StoredValue({"padding": PADDING}, 1, None))
                number += 1
            return number

        writing = asyncio.create_task(write())
        sizes = [await asyncio.to_thread(back_up, Database(sqlite_url), saved) for _ in range(3)]
        stop.set()
        assert await writing > 0
        await database.close()
        return sizes

    assert asyncio.run(back_up_while_somebody_writes())[-1] == saved.stat().st_size
    assert [file.name for file in saved.parent.iterdir()] == ["saved.db"]
    assert "acknowledged" in stored_names(f"sqlite:///{saved}")


def test_only_the_owner_can_read_a_backup(sqlite_url: str, saved: Path) -> None:
    store_names(sqlite_url, "before")
    back_up(Database(sqlite_url), saved)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


def test_restore_creates_a_missing_database(sqlite_url: str, path: Path, saved: Path) -> None:
    store_names(sqlite_url, "before")
    back_up(Database(sqlite_url), saved)
    path.unlink()
    restore(Database(sqlite_url), saved)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stored_names(sqlite_url) == {"before"}
    assert saved.exists()


def test_restore_accepts_a_copy_that_was_made_with_its_log(sqlite_url: str, path: Path, saved: Path) -> None:
    crash(sqlite_url, "logged")
    shutil.copy(path, saved)
    shutil.copy(f"{path}-wal", f"{saved}-wal")
    restore(Database(sqlite_url), saved)
    assert stored_names(sqlite_url) == {"logged"}


def test_restore_refuses_while_a_server_uses_the_file(sqlite_url: str, saved: Path) -> None:
    store_names(sqlite_url, "before")
    back_up(Database(sqlite_url), saved)
    store_names(sqlite_url, "after")
    with Database(sqlite_url).sole(), pytest.raises(DatabaseError, match="is in use by another nightjar"):
        restore(Database(sqlite_url), saved)
    assert stored_names(sqlite_url) == {"before", "after"}


def damaged(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(os.urandom(4096 * 4))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def no_database(path: Path) -> None:
    path.write_text("a text, and no database" * 100)


def somebody_elses(path: Path) -> None:
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE other (id INTEGER)")
    connection.close()


def of_a_newer_release(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE nightjar_schema SET version = 999")
    connection.commit()
    connection.close()


def missing(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (damaged, "is damaged|could not be copied|cannot be read"),
        (cut, "is damaged|could not be copied|cannot be read"),
        (no_database, "cannot be read as a SQLite database"),
        (somebody_elses, "not one of Nightjar's"),
        (of_a_newer_release, "a newer release created the database"),
        (missing, "does not exist; name a file that `nightjar backup` has written"),
    ],
)
def test_restore_refuses_an_unusable_file_and_changes_nothing(
    sqlite_url: str, path: Path, saved: Path, spoil: object, words: str
) -> None:
    store_names(sqlite_url, "before", 100)
    back_up(Database(sqlite_url), saved)
    store_names(sqlite_url, "after")
    assert callable(spoil)
    spoil(saved)
    with pytest.raises(DatabaseError, match=words):
        restore(Database(sqlite_url), saved)
    assert stored_names(sqlite_url) == {"before", "after"}
    assert list(path.parent.glob("*.new")) == []


def fails_at(monkeypatch: pytest.MonkeyPatch, name: str, call: int) -> None:
    """Make one call of a function of `os` fail, as on a broken disk."""
    original, calls = getattr(os, name), itertools.count(1)

    def broken(*arguments: object) -> object:
        if next(calls) == call:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(*arguments)

    monkeypatch.setattr(os, name, broken)


@pytest.mark.parametrize(("name", "call"), [("fsync", 1), ("replace", 1), ("rename", 1), ("rename", 2)])
def test_a_restore_that_fails_halfway_leaves_the_database_with_its_log(
    sqlite_url: str, path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int
) -> None:
    store_names(sqlite_url, "before")
    back_up(Database(sqlite_url), saved)
    crash(sqlite_url, "logged")
    with monkeypatch.context() as broken:
        fails_at(broken, name, call)
        with pytest.raises(DatabaseError, match=r"Input/output error; .*nightjar\.db is as it was"):
            restore(Database(sqlite_url), saved)
    assert stored_names(sqlite_url) == {"before", "logged"}


def test_a_finished_restore_that_may_not_survive_a_power_cut_says_so(
    sqlite_url: str, path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_names(sqlite_url, "before")
    back_up(Database(sqlite_url), saved)
    store_names(sqlite_url, "after")
    with monkeypatch.context() as broken:
        fails_at(broken, "fsync", 2)
        with pytest.raises(DatabaseError, match=r"nightjar\.db was replaced .* Input/output error"):
            restore(Database(sqlite_url), saved)
    assert stored_names(sqlite_url) == {"before"}


def test_a_backup_is_not_damaged_by_the_log_of_the_file_that_it_replaces(
    sqlite_url: str, path: Path, saved: Path
) -> None:
    crash(sqlite_url, "logged")
    for ending in ("", "-wal"):
        shutil.copy(f"{path}{ending}", f"{saved}{ending}")
    store_names(sqlite_url, "later", 300)
    back_up(Database(sqlite_url), saved)
    assert companions(saved) == []
    assert stored_names(f"sqlite:///{saved}") == {"logged", "later"}


def test_backup_of_a_missing_file_or_onto_itself_is_refused(sqlite_url: str, path: Path, saved: Path) -> None:
    with pytest.raises(DatabaseError, match="does not exist"):
        back_up(Database(sqlite_url), saved)
    store_names(sqlite_url, "before")
    with pytest.raises(DatabaseError, match="is the database itself"):
        back_up(Database(sqlite_url), path)
    with pytest.raises(DatabaseError, match="is the database itself"):
        restore(Database(sqlite_url), path)
    with pytest.raises(DatabaseError, match=r"^the folder .*/nowhere does not exist; create it or name another one$"):
        back_up(Database(sqlite_url), path.parent / "nowhere" / "saved.db")


def test_a_failing_backup_leaves_the_previous_one(sqlite_url: str, path: Path, saved: Path) -> None:
    store_names(sqlite_url, "before", 100)
    back_up(Database(sqlite_url), saved)
    content = saved.read_bytes()
    damaged(path)
    with pytest.raises(DatabaseError):
        back_up(Database(sqlite_url), saved)
    assert saved.read_bytes() == content


@pytest.mark.parametrize("act", [back_up, restore])
def test_on_postgresql_the_answer_names_its_own_tools(act: object) -> None:
    database = Database("postgresql://nightjar:secret@127.0.0.1:1/nightjar")
    assert callable(act)
    with pytest.raises(DatabaseError, match=r"use PostgreSQL's own tools, `pg_dump --format=custom") as raised:
        act(database, Path("backup.db"))
    assert "secret" not in str(raised.value)
