"""Open the tables of results in the database of DATABASE_URL, which also has the engine's tables."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import URL
from sqlalchemy.pool import ConnectionPoolEntry

from bot.engine.database import NO_FOLDER, NOT_OPENED, Database, DatabaseError
from bot.engine.sql.portable import TOO_NEW
from bot.engine.sqlite.connector import BUSY_TIMEOUT, SqliteConnector, create_privately
from bot.results.store.tables.names import NameCache
from bot.results.store.tables.schema import metadata

MIGRATIONS = Path(__file__).parents[2] / "migrations"
VERSION_TABLE = "nightjar_results_version"
VERSIONS = sa.Table(
    VERSION_TABLE,
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
"""The version of the schema, in the table of Alembic:
https://alembic.sqlalchemy.org/en/latest/api/runtime.html#alembic.runtime.environment.EnvironmentContext.configure
"""
HEAD = "0013"
"""The newest version of the schema in this release."""

CONNECTIONS = 4
"""The most connections of one process. Few are enough, because only timers and pages use them."""
LOCK_ID = 0x6E6A7273
"""The key of the advisory lock on PostgreSQL that each writer holds: the letters `njrs`."""


class ResultsDatabase:
    """Connections to the tables of results, for any number of threads.

    Raises DatabaseError for a URL of another kind.
    """

    def __init__(self, url: str) -> None:
        database = Database(url)
        self._reading: sa.Engine
        self._writing: sa.Engine
        self.name = database.name
        self._path: Path | None = None
        options = {NameCache.OPTION: NameCache()}
        if isinstance(database.connector, SqliteConnector):
            path = database.connector.path
            self._path = path
            self._reading = sa.create_engine(
                URL.create("sqlite", database=str(path)),
                pool_size=CONNECTIONS,
                connect_args={"timeout": BUSY_TIMEOUT},
                execution_options=options,
            )
            sa.event.listen(self._reading, "connect", _prepare)
            self._writing = self._reading
        else:
            conninfo = database.connector.conninfo
            self._writing = sa.create_engine(
                "postgresql+psycopg://",
                creator=lambda: psycopg.connect(conninfo),
                pool_size=CONNECTIONS,
                # A connection may have died unnoticed since its last use, for example when PostgreSQL restarted:
                # https://docs.sqlalchemy.org/en/20/core/pooling.html#disconnect-handling-pessimistic
                pool_pre_ping=True,
                execution_options=options,
            )
            # By default, each statement of a transaction sees what was committed before that statement:
            # https://www.postgresql.org/docs/current/transaction-iso.html
            self._reading = self._writing.execution_options(isolation_level="REPEATABLE READ")

    def open(self) -> None:
        """Bring the tables up to date; raise DatabaseError, in one line, if they cannot be used."""
        if self._path is not None:
            if not self._path.parent.is_dir():
                raise DatabaseError(NO_FOLDER.format(folder=self._path.parent))
            create_privately(self._path)
        try:
            # Under the lock of writers, so that replicas which start at once migrate one after the other.
            with self.writing() as connection:
                _migrate(connection)
        except sa.exc.SQLAlchemyError as error:
            self.close()
            reason = " ".join(str(error.orig if isinstance(error, sa.exc.DBAPIError) else error).split())
            raise DatabaseError(NOT_OPENED.format(name=self.name, error=reason)) from None
        except DatabaseError:
            self.close()
            raise

    def close(self) -> None:
        """Disconnect."""
        self._reading.dispose()

    @contextlib.contextmanager
    def reading(self) -> Generator[sa.Connection]:
        """Read in one transaction, which sees a consistent state and blocks no writer."""
        with self._reading.begin() as connection:
            if self._path is not None:
                connection.exec_driver_sql("BEGIN")
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Generator[sa.Connection]:
        """Write in one transaction; writers take turns on both databases.

        They must, because a run's changes depend on stored data: its suite's names, its neighbors, shared texts.
        """
        with self._writing.begin() as connection:
            if self._path is None:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK_ID)))
            else:
                # A transaction that reads first and writes later cannot wait for another writer: SQLite refuses its
                # first write. https://sqlite.org/lang_transaction.html
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection


def _migrate(connection: sa.Connection) -> None:
    """Create the tables in an empty database, or bring older ones up to date."""
    version = _version(connection)
    if version is None:
        # Without Alembic, which would take 12 MiB for as long as the process runs.
        metadata.create_all(connection, checkfirst=False)
        VERSIONS.create(connection)
        connection.execute(VERSIONS.insert().values(version_num=HEAD))
    elif version != HEAD:
        run_migrations(connection, version)


def run_migrations(connection: sa.Connection, version: str | None) -> None:
    """Run those that follow a version, or all for None. Raises DatabaseError for the version of a newer release."""
    # Imported here, because the import takes longer than all the rest and is needed only after an upgrade.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    revisions = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if version is not None and version not in revisions:
        raise DatabaseError(TOO_NEW.format(found=f"of results {version}", known=HEAD))
    command.upgrade(config, "head")


def _version(connection: sa.Connection) -> str | None:
    """Return the schema version that alembic stored; None if there are no tables yet."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    version: str | None = connection.execute(sa.select(VERSIONS.c.version_num)).scalar()
    return version


def _prepare(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
    # Otherwise the driver begins transactions by itself, and none before statements that only read:
    # https://docs.sqlalchemy.org/en/21/dialects/sqlite.html#pysqlite-serializable
    connection.isolation_level = None
    # Foreign keys are off by default (https://sqlite.org/foreignkeys.html#fk_enable), and columns go with their run.
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")
