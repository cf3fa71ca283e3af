"""The error for an unusable database is one line that names the remedy and no secret."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from procrastinate import App, sql

from bot.engine.database import Database, DatabaseError, check_queries
from bot.engine.postgres import schema as postgres_schema
from bot.engine.postgres.schema import LOCK_ID
from bot.engine.sqlite import schema as sqlite_schema
from tests.postgres import PostgresServer
from tests.waiting import until

SECRET = "open-sesame-42"


async def refusal(url: str) -> str:
    """Return the error that the operator reads when the database is opened."""
    with pytest.raises(DatabaseError) as caught:
        await Database(url).open()
    text = str(caught.value)
    assert "\n" not in text
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return text


@pytest.fixture
def unused_port() -> Iterator[int]:
    """Return a port on which nothing listens during the test."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.mark.parametrize(
    "url",
    ["", "nightjar.db", "mysql://u:open-sesame-42@h/d", "sqlite:nightjar.db", "sqlite://", "http://open-sesame-42@h"],
)
async def test_a_url_of_another_kind_is_refused(url: str) -> None:
    text = await refusal(url)
    assert text.startswith("DATABASE_URL: ")
    assert "sqlite:///FILE" in text
    assert "postgresql://" in text


@pytest.mark.parametrize("url", ["sqlite:///", "sqlite:////", "sqlite:///:memory:"])
async def test_a_url_without_a_file_is_refused(url: str) -> None:
    assert "names no file" in await refusal(url)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://nightjar:{SECRET}@[::1/db",
        f"postgresql://nightjar:{SECRET}%zz@localhost/db",
        f"postgresql://nightjar:{SECRET}@localhost/db?no_such_setting=1",
    ],
)
async def test_a_postgresql_url_with_a_mistake_is_refused(url: str) -> None:
    assert "not a valid PostgreSQL URL" in await refusal(url)


async def test_a_missing_server_is_named(unused_port: int) -> None:
    text = await refusal(f"postgresql://nightjar:{SECRET}@127.0.0.1:{unused_port}/db")
    assert f"PostgreSQL at 127.0.0.1:{unused_port}/db could not be opened" in text
    assert "refused" in text


async def test_a_missing_database_is_named(postgres_server: PostgresServer) -> None:
    url = postgres_server.url("nowhere").replace("nightjar@", f"nightjar:{SECRET}@")
    assert '"nowhere" does not exist' in await refusal(url)


async def test_an_unknown_user_is_named(postgres_server: PostgresServer) -> None:
    url = postgres_server.url("postgres").replace("nightjar@", f"{'nobody'}:{SECRET}@")
    assert 'role "nobody" does not exist' in await refusal(url)


async def test_a_user_who_may_not_create_tables_is_refused(postgres_server: PostgresServer, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    try:
        assert "permission denied" in await refusal(postgres_url.replace("nightjar@", "guest@"))
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP ROLE guest")


async def test_a_database_that_cannot_hold_every_text_is_refused(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
    try:
        assert "ENCODING 'UTF8'" in await refusal(postgres_server.url("ascii"))
    finally:
        postgres_server.drop_database(postgres_server.url("ascii"))


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path}/no/such" in await refusal(f"sqlite:///{tmp_path}/no/such/nightjar.db")


async def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    assert "is a folder" in await refusal(f"sqlite:///{tmp_path}")


async def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to look at" * 100)
    assert "is not a SQLite database" in await refusal(f"sqlite:///{path}")


async def test_a_database_of_a_newer_release_is_refused(database_url: str) -> None:
    database = Database(database_url)
    await database.open()
    await database.connector.execute_query_async("UPDATE nightjar_schema SET version = 99")
    await database.close()
    assert "newer release" in await refusal(database_url)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make this process unable to write a folder and its files, even if the tests run as root."""
    euid = os.geteuid()
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555)
    if euid == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(euid)
        folder.chmod(0o755)


@pytest.fixture
def unwritable_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name, read_only(Path(name)):
        yield Path(name)


@pytest.fixture
def unwritable_folder_with_database() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        made = Database(f"sqlite:///{name}/nightjar.db")
        asyncio.run(made.open())
        asyncio.run(made.close())
        with read_only(Path(name)):
            yield Path(name)


async def test_a_read_only_folder_is_refused(unwritable_folder: Path) -> None:
    url = f"sqlite:///{unwritable_folder}/nightjar.db"
    assert "cannot be written" in await refusal(url)
    with pytest.raises(DatabaseError, match="cannot be written"), Database(url).sole():
        pass


async def test_a_read_only_database_is_refused(unwritable_folder_with_database: Path) -> None:
    assert "cannot be written" in await refusal(f"sqlite:///{unwritable_folder_with_database}/nightjar.db")


async def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    """It runs in a process of its own, whose files may not grow."""
    code = (
        "import asyncio, resource, sys\n"
        "from bot.engine.database import Database, DatabaseError\n"
        "database = Database(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        "try: asyncio.run(database.open())\n"
        "except DatabaseError as error: print(error)\n"
    )
    url = f"sqlite:///{tmp_path}/nightjar.db"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, url, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    printed, errors = await process.communicate()
    assert errors == b""
    assert printed.decode().splitlines() == [
        f"DATABASE_URL: {tmp_path}/nightjar.db could not be opened: disk I/O error"
    ]


VERSION: LiteralString = "SELECT version FROM nightjar_schema"


async def test_replicas_that_start_together_create_one_schema(database_url: str) -> None:
    databases = [Database(database_url) for _ in range(6)]
    await asyncio.gather(*(database.open() for database in databases))
    rows = await databases[0].connector.execute_query_all_async(VERSION)
    schema = sqlite_schema if databases[0].embedded else postgres_schema
    assert rows == [{"version": len(schema.VERSIONS)}]
    await asyncio.gather(*(database.close() for database in databases))


async def test_procrastinate_accepts_the_schema(database_url: str) -> None:
    database = Database(database_url)
    await database.open()
    app = App(connector=database.connector)
    assert await app.check_connection_async()
    await database.close()
    await database.open()
    assert await app.check_connection_async()
    await database.close()


async def test_a_relative_file_is_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    database = Database("sqlite:///my%20jobs.db")
    await database.open()
    await database.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "my jobs.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_another_version_of_procrastinate_is_refused() -> None:
    check_queries(sql.queries)
    with pytest.raises(DatabaseError, match=r"defer_jobs, fetch_twice.*install procrastinate>=3.10,<3.11"):
        check_queries((sql.queries.keys() - {"defer_jobs"}) | {"fetch_twice"})


def test_a_file_is_served_by_one_process_only(sqlite_url: str) -> None:
    code = (
        "import sys, time\n"
        "from bot.engine.database import Database\n"
        "with Database(sys.argv[1]).sole():\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, sqlite_url], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"held\n"
        with pytest.raises(DatabaseError, match=rf"in use by another nightjar \(process {server.pid}\)"):  # noqa: SIM117
            with Database(sqlite_url).sole():
                pass
        server.send_signal(signal.SIGKILL)
        server.wait()
        with Database(sqlite_url).sole():
            pass


def test_a_server_is_shared_by_processes(postgres_url: str) -> None:
    with Database(postgres_url).sole(), Database(postgres_url).sole():
        pass


async def test_an_opening_that_is_cancelled_leaves_no_worker_of_a_pool(postgres_url: str) -> None:
    """A worker that waits for a connection ignores the cancellation at the end of the loop, which then never ends."""
    before = asyncio.all_tasks()
    # The lock of the upgrade keeps the opening from ending before it is cancelled.
    async with await psycopg.AsyncConnection.connect(postgres_url) as connection:
        await connection.execute("SELECT pg_advisory_lock(%s)", [LOCK_ID])
        opening = asyncio.create_task(Database(postgres_url).open())
        await until(lambda: any(task.get_name().startswith("pool-") for task in asyncio.all_tasks() - before))
        opening.cancel()
        await asyncio.wait({opening})
        assert opening.cancelled()
        assert asyncio.all_tasks() == before
