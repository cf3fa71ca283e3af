"""This version opens the databases of all earlier ones, and goes on where they stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString

import pytest

from bot.app.features import RECORDS
from bot.core.events import Delivery
from bot.engine.service import Engine
from bot.engine.sql.portable import loads
from bot.engine.tokens import TokenStore
from bot.results.state import RunState
from bot.results.store.commit import commit_state, seen_tests
from bot.results.store.history.history import history
from bot.results.store.lists.run_lists import waiting_runs
from bot.results.store.tables.runs import find_run
from tests.engine.running import LOCK, running, settled, twice
from tests.engine.toy import World, body
from tests.results.uploads import ABOUT, SUITE, Upload, sha
from tests.stored_databases import (
    EVENT,
    FAILED,
    POINTS,
    POSTGRES,
    SQLITE,
    TOKENS,
    UPLOADS,
    WAITING,
    WAITING_RUN,
    name_of_schema,
    opened_results,
    restore,
    stored_databases,
)

GO_ON: LiteralString = "UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE status = 'todo'"
VALUES: LiteralString = "SELECT key, value, version FROM nightjar_records"
# Retention would remove what is older than a week.
AS_OF_NOW: tuple[LiteralString, ...] = (
    "UPDATE procrastinate_events SET at = now()",
    "UPDATE nightjar_inbox SET received_at = date_part('epoch', now())",
)


@pytest.fixture
def url(fixture: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of a database as an earlier version left it."""
    made: str = request.getfixturevalue("sqlite_url" if SQLITE in fixture.name else "postgres_url")
    restore(fixture, made)
    return made


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a world in which nothing that failed before fails again."""
    world = World(tmp_path / "world.db")
    for point in POINTS:
        world.passed(point)
    yield world
    world.close()


@pytest.mark.parametrize("kind", [SQLITE, POSTGRES])
def test_each_schema_has_a_database_of_each_kind(kind: str) -> None:
    names = [path.name for path in stored_databases()]
    assert f"{name_of_schema()}.{kind}.xz" in names, "a migration is new; run: make fixtures"


@pytest.mark.parametrize("fixture", stored_databases(), ids=lambda path: path.name)
async def test_the_deliveries_of_an_earlier_version_go_on(url: str, world: World) -> None:
    async with Engine(url) as engine:
        for statement in (*AS_OF_NOW, GO_ON):
            await engine.database.connector.execute_query_async(statement)
    async with running(url, world) as engine:
        records = await settled(engine, "done", "ignored", "queued", "in-progress", *WAITING, *FAILED)
        states = {record.guid: record.state for record in records}
        assert states == {
            **dict.fromkeys(["done", "queued", "in-progress", *WAITING], "done"),
            **dict.fromkeys(FAILED, "failed"),
            "ignored": "ignored",
        }
        assert not await engine.accept("done", EVENT, body({}), LOCK)
        assert await engine.accept("new", EVENT, body({}), LOCK)
        for guid in (*FAILED, "done"):
            assert (await engine.replay(guid)).state == "done"
        payload = await engine.journal.payload("done")
        assert payload is not None
        assert Delivery("done", EVENT, payload, 0.0).repository_name == "octocat/compiler"
    written = set(world.written)
    assert written >= {f"{guid} a x" for guid in ("queued", "in-progress", "waiting-plan", "waiting-effect", *FAILED)}
    assert written >= {f"{guid} a end" for guid in ("queued", "in-progress", "waiting-effect", "waiting-conclusion")}
    assert "waiting-conclusion a x" not in written, "the earlier version has written it"
    assert twice(world.written) == []


@pytest.mark.parametrize("fixture", stored_databases(), ids=lambda path: path.name)
async def test_the_records_and_tokens_of_an_earlier_version_are_read(url: str) -> None:
    async with Engine(url) as engine:
        rows: list[dict[str, Any]] = await engine.database.connector.execute_query_all_async(VALUES)
        (token,) = await TokenStore(engine.database.connector, TOKENS).all()
    assert len(rows) >= 40
    for row in rows:
        prefix = row["key"].partition(":")[0]
        RECORDS.kinds[prefix].load(row["key"], loads(row["value"]), row["version"])
    assert (token.subject, token.note, token.expires_at) == ("octocat", "fixture", None)


@pytest.mark.parametrize("fixture", stored_databases(), ids=lambda path: path.name)
def test_the_results_of_an_earlier_version_are_read_and_compared_with_new_ones(url: str) -> None:
    with opened_results(url) as store:
        for upload in UPLOADS:
            assert store.read(find_run, upload.run.key) == upload.run
            statuses = {
                test: seen.status.value
                for test, seen in store.read(seen_tests, ABOUT, SUITE, sha(upload.commit)).items()
            }
            assert statuses.items() >= upload.tests.items()
        assert [(run.key, run.state) for run in store.read(waiting_runs, ABOUT.repository)] == [
            (WAITING_RUN.key, RunState.WAITING)
        ]
        detail = store.read(commit_state, ABOUT, sha(1)).suites[SUITE].details["te/a.py::test_mul"]
        assert (detail.message, detail.text) == ("boom", "te/a.py::test_mul went wrong")
        new = Upload(5, {"te/a.py::test_add": "failed", "te/a.py::test_mul": "passed"})
        assert store.put(new.run, new.columns)
        segments = store.read(history, ABOUT.repository, SUITE, "te/a.py::test_add")[ABOUT]
        assert [(segment.sha, segment.status and segment.status.value) for segment in segments] == [
            (sha(1), "passed"),
            (sha(2), "failed"),
            (sha(3), "passed"),
            (sha(5), "failed"),
        ]
