"""A job whose stored form cannot be read fails in the open, and holds up nothing."""

from __future__ import annotations

import json
from typing import Any, LiteralString

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.engine.jobs.notes import UNKNOWN_END, Note, UnreadableNote
from bot.engine.processor import NobodyWatches
from bot.engine.service import Engine
from bot.engine.sql.portable import loads
from tests.engine.running import LOCK, opened, running, settled
from tests.engine.toy import World, body, writes
from tests.waiting import until

EVENT = "issue_comment"
LATER = {"errors": ["again:3600"]}
"""The script of something that waits for an hour once."""
SCRIPTS = {
    "handle": {"a": {**writes("x"), **LATER, "answer": {}}},
    "effect": {"a": {"effects": [{"target": "x", **LATER}], "conclude": {}}},
    "conclude": {"a": {**writes("x"), "conclude": LATER}},
}
UNREADABLE_NOTES = [
    "{",
    "[]",
    "null",
    '{"tries": {"alone": "twice"}}',
    '{"about": []}',
    '{"text": 7}',
    '{"writes": 1}',
    '{"value": Infinity}',
    '{"value": 1e999}',
]
WAITING: LiteralString = """
SELECT job.id, job.args FROM procrastinate_jobs AS job JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.task_name = %(task)s AND job.status = 'todo' AND note.outcome = 'retrying'
"""
SET_NOTE: LiteralString = "UPDATE nightjar_notes SET text = %(note)s WHERE job_id = %(id)s"
SET_ARGS: LiteralString = "UPDATE procrastinate_jobs SET args = %(args)s WHERE id = %(id)s"
GO_ON: LiteralString = "UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE task_name <> 'resume'"
RESUME_NOW: LiteralString = "UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE task_name = 'resume'"


class Watcher(NobodyWatches):
    """Lists the failures of handlers and effects."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def handler(self, name: str, outcome: str, seconds: float) -> None:
        if outcome == "failed":
            self.failures.append(name)

    def effect(self, kind: str, outcome: str, seconds: float) -> None:
        self.handler(kind, outcome, seconds)


async def waiting_job(engine: Engine, task: str) -> tuple[int, dict[str, Any]]:
    """Accept a delivery, and return its job that waits for an hour."""
    await engine.accept("g", EVENT, body(SCRIPTS[task]), LOCK)
    rows = await until(lambda: engine.database.connector.execute_query_all_async(WAITING, task=task))
    assert isinstance(rows, list)
    return rows[0]["id"], rows[0]["args"]


@pytest.mark.parametrize("task", SCRIPTS)
@pytest.mark.parametrize("note", UNREADABLE_NOTES)
async def test_a_job_with_an_unreadable_note_fails_visibly_and_releases_its_lock(
    database_url: str, world: World, task: str, note: str
) -> None:
    watcher = Watcher()
    async with running(database_url, world) as engine:
        job, _ = await waiting_job(engine, task)
    async with opened(database_url) as engine:
        stored = await engine.database.connector.execute_query_all_async(
            "SELECT text FROM nightjar_notes WHERE job_id = %(id)s", id=job
        )
        await engine.database.connector.execute_query_async(SET_NOTE, note=note, id=job)
        await engine.database.connector.execute_query_async(GO_ON)
        await engine.accept("next", EVENT, body({"a": writes("y")}), LOCK)
    async with running(database_url, world, observer=watcher) as engine:
        _, second = await settled(engine, "g", "next")
        assert second.state == "done"
        (failed,) = await engine.journal.recent(failed=True)
        assert failed.guid == "g"
        assert failed.reason.startswith("its stored note cannot be read: ")
        assert set(watcher.failures) == {"Write" if task == "effect" else "a"}
        answer = "g a answer g" in world.written
        assert answer == (task == "handle")
        # Another version can read it an hour later.
        await engine.database.connector.execute_query_async(SET_NOTE, note=stored[0]["text"], id=job)
        await engine.database.connector.execute_query_async(RESUME_NOW)
        await until(lambda: _is_done(engine))
    assert "g a x" in world.written


async def _is_done(engine: Engine) -> bool:
    record = await engine.journal.delivery("g")
    return record is not None and record.state == "done"


@pytest.mark.parametrize(
    ("task", "argument"),
    [
        *((task, name) for task in SCRIPTS for name in ("handler", "intent", "message", "replay", "delivery_job")),
        *(("effect", name) for name in ("effect", "target", "repository")),
        *(("conclude", name) for name in ("conclusion", "conclusion_basis")),
    ],
)
async def test_a_job_that_lacks_an_argument_fails_visibly_and_releases_its_lock(
    sqlite_url: str, world: World, task: str, argument: str
) -> None:
    async with running(sqlite_url, world) as engine:
        job, args = await waiting_job(engine, task)
    del args[argument]
    async with opened(sqlite_url) as engine:
        await engine.database.connector.execute_query_async(SET_ARGS, args=args, id=job)
        await engine.database.connector.execute_query_async(GO_ON)
        await engine.accept("next", EVENT, body({"a": writes("y")}), LOCK)
    async with running(sqlite_url, world) as engine:
        _, second = await settled(engine, "g", "next")
        assert second.state == "done"
        (failed,) = await engine.journal.recent(failed=True)
        assert failed.guid == "g"
        assert argument in failed.reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.sampled_from(["text", "message", "tries", "about", "writes", "value", "is_user_error"])


@example(stored='{"about": {"": NaN}}')
@example(stored='{"value": -1e999}')
@given(st.text() | JSON.map(json.dumps) | st.dictionaries(FIELDS, JSON).map(json.dumps))
def test_any_stored_note_is_read_or_shown_as_unreadable(stored: str) -> None:
    note = Note.shown("retrying", stored)
    assert note.outcome == "retrying"
    if note.text.startswith("its stored note cannot be read: "):
        with pytest.raises(UnreadableNote):
            Note.read("retrying", stored)
    else:
        assert Note.read("retrying", stored) == note
        assert loads(note.written())


async def test_a_failed_job_without_a_note_says_that_it_has_none(database_url: str) -> None:
    async with opened(database_url) as engine:
        await engine.accept("g", EVENT, body({}), LOCK)
        await engine.database.connector.execute_query_async("UPDATE procrastinate_jobs SET status = 'failed'")
        (failed,) = await engine.journal.recent(failed=True)
    assert failed.reason == UNKNOWN_END
