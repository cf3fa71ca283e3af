"""What operators read: which deliveries came, and what was done about each."""

from __future__ import annotations

import json
from typing import Any

from bot.engine.jobs.journal import NO_LIMIT, RECENT_FAILED, Journal
from bot.engine.jobs.notes import Note, write_note
from tests.engine.running import LOCK, opened, running, settled
from tests.engine.toy import World, body, writes
from tests.waiting import until

EVENT = "issue_comment"
TASKS = ("deliver", "replay", "handle", "effect", "conclude", "resume")
SET_STATUS = "UPDATE procrastinate_jobs SET status = %(status)s WHERE id = %(id)s"
ADD_JOB = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, queueing_lock, args, status)
VALUES ('default', %(task)s, 0, %(key)s, %(args)s, %(status)s) RETURNING id
"""


class CountingConnector:
    """Counts the queries that a real connector answers."""

    def __init__(self, connector: object) -> None:
        self._connector = connector
        self.queries = 0

    async def execute_query_all_async(self, query: str, **arguments: object) -> object:
        self.queries += 1
        return await self._connector.execute_query_all_async(query, **arguments)  # type: ignore[attr-defined]


async def test_a_delivery_is_shown_with_its_subject_and_its_result(url_with_tables: str, world: World) -> None:
    effects = [{"target": "x", "text": "hello"}, {"target": "y", "always": "user:Not on Sundays."}]
    payload = body({"a": {"effects": effects, "conclude": {}}}, issue={"number": 7})
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, payload, LOCK)
        (record,) = await settled(engine, "g")
    assert (record.guid, record.event, record.action) == ("g", EVENT, "created")
    assert (record.repository, record.number, record.state) == ("octocat/compiler", 7, "failed")
    plan, conclusion = record.plans
    assert (plan.handler, plan.stage, plan.job.text) == ("a", "plan", "as the payload says")
    assert (conclusion.handler, conclusion.stage, conclusion.job.text) == ("a", "conclusion", "as they ended")
    effects_of_plans = [*plan.effects, *conclusion.effects]
    rows = [(e.kind, e.target, e.job.state, e.job.text, e.job.attempts) for e in effects_of_plans]
    assert rows == [
        ("Write", "x", "done", "written", 1),
        ("Write", "y", "failed", "Not on Sundays.", 1),
        ("Write", "end", "done", "written", 1),
    ]
    assert json.loads(json.dumps(record.as_json()))["plans"][0]["effects"][0]["effect"]["text"] == "hello"


async def test_a_waiting_delivery_is_shown_too(url_with_tables: str) -> None:
    async with opened(url_with_tables) as engine:
        await engine.accept("g", "push", "{}", "repo:1")
        (record,) = await engine.journal.recent()
    assert (record.state, record.event, record.lock, record.repository) == ("waiting", "push", "repo:1", "")
    assert not record.settled


async def test_pages_go_from_the_newest_to_the_oldest(url_with_tables: str) -> None:
    async with opened(url_with_tables) as engine:
        for n in range(7):
            await engine.accept(f"g{n}", EVENT, body({}), LOCK)
        pages, before_id = [], None
        while page := await engine.journal.recent(3, before_id):
            pages.append([record.guid for record in page])
            before_id = page[-1].job.job_id
    assert pages == [["g6", "g5", "g4"], ["g3", "g2", "g1"], ["g0"]]


async def test_failed_deliveries_are_found_without_reading_all_others(sqlite_url: str) -> None:
    async with opened(sqlite_url) as engine:
        rows = await engine.database.connector.execute_query_all_async(
            f"EXPLAIN QUERY PLAN {RECENT_FAILED}", before=NO_LIMIT, limit=50
        )
    steps = [str(row["detail"]) for row in rows]
    # This index holds the failed jobs alone.
    steps = [step for step in steps if not step.endswith("USING INDEX nightjar_failed")]
    assert [step for step in steps if step.startswith("SCAN") or "(rowid<?)" in step] == []


async def test_the_list_can_be_limited_to_failed_deliveries(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("fine", EVENT, body({"a": writes("x")}), LOCK)
        await engine.accept("unplanned", EVENT, body({"a": {"always": "payload"}}), LOCK)
        await engine.accept("unapplied", EVENT, body({"a": {"effects": [{"target": "x", "always": "user"}]}}), LOCK)
        await engine.accept("ignored", EVENT, body({}), LOCK)
        await settled(engine, "fine", "unplanned", "unapplied", "ignored")
        failed = await engine.journal.recent(failed=True)
        assert [record.guid for record in failed] == ["unapplied", "unplanned"]
        assert [r.guid for r in await engine.journal.recent(1, failed[0].job.job_id, failed=True)] == ["unplanned"]
        failures, rest = await engine.journal.failures(50)
        assert ({r.guid for r in failures}, rest) == ({r.guid for r in failed}, None)
        pages: list[list[str]] = []
        before_id: int | None = None
        while len(pages) < 5 and (before_id is not None or not pages):
            page, before_id = await engine.journal.failures(1, before_id)
            pages.append([r.guid for r in page])
        assert [guid for page in pages for guid in page] == [r.guid for r in failures]


async def test_a_page_costs_two_queries_whatever_its_length(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        guids = [f"g{n}" for n in range(12)]
        for guid in guids:
            await engine.accept(guid, EVENT, body({"a": writes("x", "y"), "b": writes("z")}), f"pr:1#{guid}")
        await settled(engine, *guids)
        counting = CountingConnector(engine.database.connector)
        assert len(await Journal(counting).recent()) == 12  # type: ignore[arg-type]
    assert counting.queries == 2


async def test_a_retry_shows_its_scheduled_time(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {"effects": [{"target": "x", "errors": ["again:900"]}]}}), LOCK)

        async def waiting() -> bool:
            record = await engine.journal.delivery("g")
            return bool(record and any(e.job.next_try for plan in record.plans for e in plan.effects))

        await until(waiting)
        record = await engine.journal.delivery("g")
    assert record is not None
    job = record.plans[0].effects[0].job
    assert (record.state, job.outcome, job.text) == ("waiting", "retrying", "TryAgain: at a given time")
    assert job.next_try is not None
    assert job.at is not None
    assert 900 <= job.next_try - job.at <= 1200


async def test_an_unknown_delivery_is_not_found(url_with_tables: str) -> None:
    async with opened(url_with_tables) as engine:
        await engine.accept("g", EVENT, "{}", LOCK)
        assert await engine.journal.delivery("other") is None
        assert await engine.journal.known_guids(["g", "other"]) == {"g"}
        assert await engine.journal.known_guids([]) == set()


async def test_the_deliveries_of_a_pull_request_are_found_by_its_lock(database_url: str) -> None:
    async with opened(database_url) as engine:
        for n in range(4):
            await engine.accept(f"g{n}", EVENT, body({}), LOCK)
            await engine.accept(f"other-{n}", EVENT, body({}), "pr:1#8")
        newest = await engine.journal.of_lock(LOCK, 2)
        older = await engine.journal.of_lock(LOCK, 9, newest[-1].job.job_id)
        assert [[record.guid for record in page] for page in (newest, older)] == [["g3", "g2"], ["g1", "g0"]]


STATUSES = ("todo", "doing", "succeeded", "cancelled", "failed", "aborted")
OUTCOMES = (None, "ignored", "refused", "routed")


async def test_the_states_of_many_deliveries_are_those_of_their_records(url_with_tables: str) -> None:
    async with opened(url_with_tables) as engine:
        connector = engine.database.connector
        guids = [f"{status} {outcome} {task}" for status in STATUSES for outcome in OUTCOMES for task in TASKS]
        for guid in [*guids, "ignored"]:
            await engine.accept(guid, EVENT, body({}), guid, ignored={"text": "why"} if guid == "ignored" else None)
        rows: list[dict[str, Any]] = await connector.execute_query_all_async(
            "SELECT id, guid FROM nightjar_inbox WHERE guid <> 'ignored'"
        )
        for row in rows:
            status, outcome, task = str(row["guid"]).split()
            job_id = row["id"]
            if task == "deliver":
                await connector.execute_query_async(SET_STATUS, id=job_id, status=status)
            else:
                await connector.execute_query_async(SET_STATUS, id=job_id, status="succeeded")
                args = {"guid": row["guid"], "handler": "a", "intent": "b", "plan_job": job_id, "message": None}
                added: list[dict[str, Any]] = await connector.execute_query_all_async(
                    ADD_JOB, task=task, key=f"once:{row['guid']}", args=args, status=status
                )
                job_id = added[0]["id"]
            if outcome != "None":
                await write_note(connector, job_id, Note(outcome=outcome))
        records = await engine.journal.deliveries([*guids, "ignored", "unknown"])
        states = await engine.journal.states([*guids, "ignored", "unknown"])
    assert states == {guid: record.state for guid, record in records.items()}
    assert set(states.values()) == {"done", "ignored", "refused", "waiting", "working", "failed"}
