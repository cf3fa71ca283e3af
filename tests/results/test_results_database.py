"""The tables of results: created once, separate from the engine's, never half written."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.engine.database import Database, DatabaseError
from bot.results.store.history.history import history
from bot.results.store.lists.run_lists import list_runs
from bot.results.store.store import ResultsStore
from bot.results.store.tables import schema
from bot.results.store.tables.database import VERSION_TABLE, VERSIONS, ResultsDatabase, run_migrations
from bot.results.store.tables.runs import find_run
from tests.results.snapshot import snapshot_of
from tests.results.uploads import REPOSITORY, Upload
from tests.waiting import DEADLINE

ONE = Upload(1, {"te/a.py::test_add": "passed", "te/a.py::test_mul": "failed"})
OUTER_COMMA = re.compile(r", (?![^()]*\))")
TWO = Upload(2, {"te/a.py::test_add": "failed", "te/a.py::test_div": "failed"})


@pytest.mark.parametrize("migrated", [True, False])
def test_migrations_and_a_new_database_have_the_tables_that_the_code_expects(database_url: str, migrated: bool) -> None:
    database = ResultsDatabase(database_url)
    if migrated:
        with database.writing() as connection:
            run_migrations(connection, None)
    database.open()
    with database.reading() as connection:
        options = {"version_table": VERSION_TABLE, "include_name": _ours, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, schema.metadata) == []
    database.close()


def test_a_new_database_is_the_one_that_the_migrations_make(database_url: str) -> None:
    database = ResultsDatabase(database_url)
    database.open()
    with database.writing() as connection:
        new = _definitions(connection)
        schema.metadata.drop_all(connection)
        VERSIONS.drop(connection)
        assert _definitions(connection) == {}
        run_migrations(connection, None)
        assert _definitions(connection) == new
    database.close()
    assert new.keys() >= {VERSION_TABLE, "nightjar_runs", "nightjar_changes_flaky"}


def _definitions(connection: sa.Connection) -> dict[str, list[str]]:
    """Return the columns, constraints and indices of each table, and their conditions, in any order."""
    if connection.dialect.name == "sqlite":
        rows = connection.execute(sa.text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        return {name: _parts(sql) for name, sql in rows}
    definitions: dict[str, list[str]] = {}
    for statement in (
        "SELECT table_name, concat_ws(' ', ordinal_position, column_name, data_type, is_nullable, column_default) "
        "FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2",
        "SELECT conrelid::regclass::text, conname || ' ' || pg_get_constraintdef(oid) "
        "FROM pg_constraint WHERE connamespace = current_schema()::regnamespace AND conrelid <> 0 ORDER BY 1, 2",
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1, 2",
    ):
        for name, definition in connection.execute(sa.text(statement)):
            definitions.setdefault(name, []).append(definition)
    return definitions


def _parts(sql: str) -> list[str]:
    """Return what precedes the brackets of a statement, what follows, and their elements, in the order of letters."""
    start, _, rest = " ".join(sql.split()).partition("(")
    elements, _, end = rest.rpartition(")")
    return sorted(part.strip() for part in (start, end, *OUTER_COMMA.split(elements)))


def _ours(name: str | None, kind: str, _: object) -> bool:
    return kind != "table" or (name or "") in schema.metadata.tables


async def test_the_engine_and_the_results_share_a_database_whoever_comes_first(database_url: str) -> None:
    for _ in range(2):
        store = ResultsStore(database_url)
        store.open()
        engine = Database(database_url)
        await engine.open()
        store.put(ONE.run, ONE.columns)
        await engine.close()
        assert store.read(find_run, ONE.run.key) == ONE.run
        store.close()


def test_replicas_that_start_together_create_the_tables_once(database_url: str) -> None:
    stores = [ResultsStore(database_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(ResultsStore.open, stores))
    for store in stores:
        assert store.read(list_runs, REPOSITORY) == []
        store.close()


def test_a_database_of_a_newer_release_is_refused_in_one_line(database_url: str) -> None:
    database = ResultsDatabase(database_url)
    database.open()
    with database.writing() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    database.close()
    with pytest.raises(
        DatabaseError,
        match=r"newer release created the database \(schema of results 9999, this release supports 0013\)",
    ) as error:
        ResultsStore(database_url).open()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("url", ["sqlite:///", "mysql://localhost/x", "sqlite:////nowhere/at/all/nightjar.db"])
def test_an_invalid_database_url_is_reported_in_one_line(url: str) -> None:
    with pytest.raises(DatabaseError, match="DATABASE_URL") as error:
        ResultsStore(url).open()
    assert "\n" not in str(error.value)


def test_a_server_that_does_not_answer_is_reported_without_its_password() -> None:
    with pytest.raises(DatabaseError, match="could not be opened") as error:
        ResultsStore("postgresql://nightjar:hush-hush@127.0.0.1:1/nightjar").open()
    assert "hush-hush" not in str(error.value)
    assert "\n" not in str(error.value)


class _Stopped(Exception):
    pass


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 40))
def test_a_put_interrupted_anywhere_leaves_nothing(store: ResultsStore, statements: int) -> None:
    repository = f"octocat/broken-off-{statements}"
    first, second = (replace(upload, repository=repository) for upload in (ONE, TWO))
    store.put(second.run, second.columns)
    snapshot = store.read(snapshot_of, repository)
    remaining = statements

    def stop(*_: object) -> None:
        nonlocal remaining
        remaining -= 1
        if remaining == 0:
            raise _Stopped

    sa.event.listen(sa.Engine, "before_cursor_execute", stop)
    try:
        store.put(first.run, first.columns)
    except _Stopped:
        assert store.read(snapshot_of, repository) == snapshot
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", stop)
    store.put(first.run, first.columns)
    assert [len(store.read(history, repository, "operators", name)) for name in first.tests] == [1, 1]


DYING = """
import os, signal, sys
import sqlalchemy as sa
from bot.results.store.store import ResultsStore
from tests.results.test_results_database import ONE, TWO
store = ResultsStore(sys.argv[1])
store.open()
store.put(TWO.run, TWO.columns)
print("ready", flush=True)
def die(connection, cursor, statement, *_):
    if statement.startswith("INSERT INTO " + sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
sa.event.listen(sa.Engine, "after_cursor_execute", die)
store.put(ONE.run, ONE.columns)
"""


@pytest.mark.exhaustive("sqlite-nightjar_runs", "postgresql-nightjar_changes")
@pytest.mark.parametrize("table", ["nightjar_names", "nightjar_runs", "nightjar_texts", "nightjar_changes"])
def test_a_process_killed_while_writing_leaves_nothing_half_done(database_url: str, table: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    died = subprocess.run(
        [sys.executable, "-c", DYING, database_url, table], env=environment, stdout=subprocess.PIPE, timeout=DEADLINE
    )
    assert (died.returncode, died.stdout) == (-signal.SIGKILL, b"ready\n")
    store = ResultsStore(database_url)
    store.open()
    assert [run.key for run in store.read(list_runs, REPOSITORY)] == [TWO.run.key]
    assert store.put(ONE.run, ONE.columns)
    whole = "octocat/whole"
    for upload in (ONE, TWO):
        assert store.put(replace(upload, repository=whole).run, upload.columns)
    assert json.dumps(store.read(snapshot_of, whole)).replace(whole, REPOSITORY) == json.dumps(
        store.read(snapshot_of, REPOSITORY)
    )
    store.close()
