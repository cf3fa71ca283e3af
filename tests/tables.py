"""Databases with all tables, which are created once per worker: creating them costs more than most tests.

A SQLite file is copied; a PostgreSQL database is emptied after each test, which costs a tenth of a new one.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from tests.postgres import PostgresServer

SQLITE = "sqlite:///"
VERSIONS = ("nightjar_schema", "nightjar_results_version")
"""Tables with a row that has the version of the schema."""


def with_tables(url: str) -> str:
    """Create the file of a SQLite database with all tables, if it does not exist; return the URL."""
    from bot.engine.sqlite.connector import create_privately  # imported here, because every test imports this module

    path = Path(url.removeprefix(SQLITE))
    if url.startswith(SQLITE) and not path.exists():
        create_privately(path)
        path.write_bytes(_with_tables())
    return url


@pytest.fixture(scope="session")
def idle_databases() -> list[str]:
    """Return the URLs of PostgreSQL databases with all tables that no test uses."""
    return []


@pytest.fixture
def postgres_with_tables(postgres_server: PostgresServer, idle_databases: list[str]) -> Iterator[str]:
    """Return the URL of a PostgreSQL database with all tables, which are empty."""
    if idle_databases:
        url = idle_databases.pop()
    else:
        url = postgres_server.create_database()
        make_tables(url)
    yield url
    _empty(url)
    idle_databases.append(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def url_with_tables(request: pytest.FixtureRequest) -> str:
    """Return the URL of a database of each kind in turn, with all tables, which are empty."""
    if request.param == "sqlite":
        return with_tables(request.getfixturevalue("sqlite_url"))
    url: str = request.getfixturevalue("postgres_with_tables")
    return url


def _empty(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        # Without triggers and foreign keys, because all rows are deleted.
        statements = ["SET session_replication_role = replica"]
        statements += [f"DELETE FROM {name}" for (name,) in tables if name not in VERSIONS]
        connection.execute(";".join(statements).encode())
        connection.execute("SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'")


@functools.cache
def _with_tables() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "nightjar.db"
        make_tables(f"{SQLITE}{path}")
        return path.read_bytes()


def make_tables(url: str) -> None:
    """Create all tables in an empty database."""
    from bot.results.store.store import ResultsStore

    # In a thread, because a test's event loop may run in this one.
    with ThreadPoolExecutor(1) as beside:
        beside.submit(asyncio.run, _engine_tables(url)).result()
    with closing(ResultsStore(url)) as store:
        store.open()


async def _engine_tables(url: str) -> None:
    from bot.engine.database import Database

    database = Database(url)
    await database.open()
    await database.close()
