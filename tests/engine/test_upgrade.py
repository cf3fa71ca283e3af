"""A database of an earlier release is upgraded, and its deliveries continue."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import psycopg
import pytest
from procrastinate.schema import SchemaManager

from bot.engine.jobs.definitions import Origin
from bot.engine.postgres import schema as postgres_schema
from bot.engine.sql.portable import JSONDict, dumps
from bot.engine.sqlite import schema as sqlite_schema
from tests.engine.running import LOCK, opened, running, settled
from tests.engine.toy import World, body, writes

EVENT = "issue_comment"
LARGE = "é\u0000\ud800" + "x" * 5000
JOB = "INSERT INTO procrastinate_jobs (id, queue_name, task_name, lock, queueing_lock, args, status) VALUES "

BEFORE_BODIES_MOVE = sqlite_schema.BEFORE_MOVE - 1


def job(number: int, task: str, key: str, args: JSONDict, status: str) -> str:
    stored = dumps(args).replace("'", "''")
    return f"{JOB} ({number}, 'default', '{task}', '{LOCK}', 'once:{key}', '{stored}', '{status}')"


def delivery(number: int, guid: str, handlers: JSONDict, status: str) -> str:
    payload = body(handlers, issue={"number": 7, "body": LARGE})
    args: JSONDict = {"guid": guid, "event": EVENT, "body": payload, "received_at": 1.5}
    return job(number, "deliver", f"delivery:{guid}", args, status)


def old_rows() -> list[str]:
    """Return statements that insert what an earlier release left: waiting, failed and done deliveries."""
    failed = Origin("failed", "a", "guid:failed", 2, 1.5, 0, LOCK)
    done = Origin("done", "a", "guid:done", 1, 1.5, 0, LOCK)
    return [
        delivery(1, "done", {"a": writes("x")}, "succeeded"),
        delivery(2, "failed", {"a": writes("y")}, "succeeded"),
        delivery(3, "waiting", {"a": writes("z")}, "todo"),
        delivery(4, "ignored", {}, "succeeded"),
        job(5, "handle", "plan:a:guid:done", done.args, "succeeded"),
        job(6, "handle", "plan:a:guid:failed", failed.args, "failed"),
        "INSERT INTO nightjar_notes (job_id, at, outcome, text) VALUES"
        """ (4, 2.5, 'ignored', '{"text": "nobody wants it", "about": {"action": "created"}}')""",
    ]


def make_old(url: str, version: int) -> None:
    """Create a database as a release with this version of the schema left it."""
    finish = [f"UPDATE nightjar_schema SET version = {version}"]
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(Path(url.removeprefix("sqlite:///")))) as file:
            for script in (*sqlite_schema.VERSIONS[:version], ";\n".join([*old_rows(), *finish])):
                file.executescript(script)
        return
    with psycopg.connect(url, autocommit=True) as server:
        scripts = [SchemaManager.get_schema(), *postgres_schema.VERSIONS[:version], *old_rows(), *finish]
        for script in [*scripts, "SELECT setval('procrastinate_jobs_id_seq', 6)"]:
            server.execute(script.encode())


@pytest.mark.parametrize("version", [BEFORE_BODIES_MOVE, sqlite_schema.BEFORE_MOVE])
async def test_deliveries_of_an_earlier_release_continue(database_url: str, version: int, world: World) -> None:
    make_old(database_url, version)
    async with running(database_url, world) as engine:
        assert not await engine.accept("done", EVENT, body({}), LOCK)
        assert await engine.accept("new", EVENT, body({"a": writes("w")}), LOCK)
        await engine.replay("failed")
        records = await settled(engine, "done", "failed", "waiting", "ignored", "new")
        assert [record.state for record in records] == ["done", "done", "done", "ignored", "done"]
        assert [record.job.job_id for record in records[:4]] == [1, 2, 3, 4]
        assert (records[3].action, records[3].job.text) == ("created", "nobody wants it")
        payload = await engine.journal.payload("done")
        assert payload is not None
        assert payload.raw["issue"] == {"number": 7, "body": LARGE}
        await engine.replay("done")
        await settled(engine, "done")
    assert sorted(world.written) == ["done a x", "failed a y", "new a w", "waiting a z"]


async def test_bodies_are_stored_once(database_url: str) -> None:
    make_old(database_url, BEFORE_BODIES_MOVE)
    async with opened(database_url) as engine:
        jobs = await engine.database.connector.execute_query_all_async("SELECT args FROM procrastinate_jobs")
        bodies = await engine.database.connector.execute_query_all_async("SELECT body FROM nightjar_inbox")
    assert not [job for job in jobs if "body" in json.dumps(job["args"])]
    assert len(bodies) == 4


async def test_a_delivery_of_an_older_replica_is_handled(database_url: str, world: World) -> None:
    async with opened(database_url) as engine:
        await engine.accept("new", EVENT, body({"a": writes("w")}), LOCK)
        await engine.database.connector.execute_query_async(delivery(1000, "older", {"a": writes("v")}, "todo"))
        # It got the same delivery before us.
        assert not await engine.accept("older", EVENT, body({"a": writes("v")}), LOCK)
    async with running(database_url, world) as engine:
        await settled(engine, "new", "older")
        assert await engine.journal.payload("older") is not None
    assert sorted(world.written) == ["new a w", "older a v"]
