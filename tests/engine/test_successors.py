"""The end of a job begins the next job of its plan, so the worker need not fetch it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import LiteralString, cast

import psycopg
import pytest
from procrastinate import JobContext
from procrastinate.jobs import Job, Status
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from bot.engine.changes import RecordChange
from bot.engine.database import Database
from bot.engine.jobs.notes import APPLIED, Note
from bot.engine.jobs.once import NewJob
from bot.engine.jobs.steps import FINISH_NOTED
from bot.engine.records import FRESH, JOB_RECORDS, JobRecords, Key, Record, Records, StoredValue
from bot.engine.sql.transactions import Connector
from bot.engine.worker.guard import Guard
from bot.engine.worker.intake import Intake
from bot.engine.worker.manager import EngineJobManager, begins_next, leave_note, records_of
from bot.engine.worker.queue import create_queue
from bot.engine.worker.supervisor import EngineWorker
from bot.engine.worker.tasks import effects_read_first
from tests.engine.running import LOCK, QUICK, running, settled
from tests.engine.test_fetch import LATER, STARTS_AT, TRIED, fetched, listening, states, stored
from tests.engine.toy import World, body, writes
from tests.tables import with_tables
from tests.waiting import until

LONG = 3600.0


@dataclass(frozen=True)
class Text:
    """A stored text."""

    text: str


TEXTS = Record("test-text", 1, Text, "a text", days=None)
TEXT, MISSING = TEXTS.of(1), TEXTS.of(2)
LOST: LiteralString = "UPDATE procrastinate_jobs SET worker_id = NULL WHERE queueing_lock = 'once:a9'"
NOTE_STARTS: dict[bool, LiteralString] = {
    True: """
CREATE TRIGGER noted_starts AFTER UPDATE OF status ON procrastinate_jobs
WHEN NEW.status = 'doing' AND NEW.task_name = 'effect'
BEGIN
    INSERT INTO procrastinate_events (job_id, type) VALUES (NEW.id, 'started');
END
""",
    False: """
CREATE TRIGGER noted_starts AFTER UPDATE OF status ON procrastinate_jobs FOR EACH ROW
    WHEN (NEW.status = 'doing' AND NEW.task_name = 'effect')
    EXECUTE FUNCTION procrastinate_trigger_function_status_events_update_v1()
""",
}
"""Notes the start of each effect; by whether the database is SQLite."""
STARTS: LiteralString = "SELECT count(*) AS count FROM procrastinate_events WHERE type = 'started'"


def manager_of(connector: Connector, intake: Intake | None = None, concurrency: int = 9) -> EngineJobManager:
    """Return a manager that polls so seldom that only the end of a job, or a notification, makes it fetch."""
    return EngineJobManager(
        connector, Guard(), lambda: None, intake=intake, concurrency=concurrency, poll=LONG, idle_poll=LONG
    )


async def begun(manager: EngineJobManager, *keys: str) -> tuple[int, Job]:
    """Store jobs, and fetch the first one with a new worker; return both."""
    await stored(cast("Connector", manager.connector), *keys)
    worker = await manager.register_worker()
    return worker, cast("Job", await manager.fetch_job(None, worker))


async def end(manager: EngineJobManager, job: Job) -> None:
    leave_note(job, Note(outcome=APPLIED))
    await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)


async def end_unknown(database: Database, worker: int, job: Job, *, begins: bool) -> None:
    """End a job in the database alone, as if the answer had been lost: its manager does not know that it has ended."""
    values: dict[str, object] = {
        "id": job.id,
        "worker_id": worker,
        "status": "succeeded",
        "outcome": APPLIED,
        "note": "{}",
        "reads": [],
    }
    assert await database.connector.execute_query_all_async(FINISH_NOTED, **values, begins_next=begins)


async def test_the_end_of_a_job_begins_the_next_job_of_its_plan_and_no_other_delivery(database: Database) -> None:
    manager, wakes = manager_of(database.connector), list[str]()
    manager.wake = lambda: wakes.append("")
    worker, job = await begun(manager, "a9", "aa7", "ab8", "ac1", "bb8")
    assert [job.queueing_lock, *await fetched(manager, worker, 2)] == ["once:a9", "bb8", "nothing"]
    for key in ("ab8", "aa7"):
        await end(manager, job)
        assert (await states(database.connector))[key] == "doing 0"
        job = cast("Job", await manager.fetch_job(None, worker))
        assert job.queueing_lock == f"once:{key}"
    await end(manager, job)
    assert len(wakes) == 2
    assert await states(database.connector) == {
        "a9": "succeeded 1",
        "aa7": "succeeded 1",
        "ab8": "succeeded 1",
        "ac1": "todo 0",
        "bb8": "doing 0",
    }
    assert await fetched(manager, worker, 2) == ["ac1", "nothing"]


async def test_the_statement_that_begins_a_job_reads_what_the_job_before_it_read_first(database: Database) -> None:
    """A change before the job begins, by any process, is in what the job reads; nothing is read twice from memory."""
    manager, records = manager_of(database.connector), Records(database.connector)

    async def first_texts(*keys: Key[Text]) -> list[str]:
        fetched_records = await records.fetch_first(*keys)
        return [text.text for key in keys if (text := await fetched_records.get(key))]

    worker, job = await begun(manager, "a9", "ab8", "ac7")
    for has_read_other in (False, True):
        JOB_RECORDS.set(records_of(job))
        await records.put(TEXT, Text("before"))
        assert await first_texts(TEXT, MISSING) == ["before"]
        if has_read_other:
            assert await first_texts(MISSING, TEXT) == ["before"]
        await records.put(TEXT, Text("\x00\ud800 \\u0000"))
        await end(manager, job)
        await records.put(TEXT, Text("after"))
        job = cast("Job", await manager.fetch_job(None, worker))
        JOB_RECORDS.set(records_of(job))
        from_begin = [] if has_read_other else ["\x00\ud800 \\u0000"]
        assert await first_texts(TEXT, MISSING) == (from_begin or ["after"])
        assert await first_texts(TEXT, MISSING) == ["after"]


@pytest.mark.parametrize("odd", ["\x00", "\ud800", "\ufdd0", "\ufdd00000"])
async def test_keys_of_any_text_are_read_for_the_next_job(database: Database, odd: str) -> None:
    manager, records, key = manager_of(database.connector), Records(database.connector), TEXTS.of(odd)
    await records.put(key, Text("stored"))
    worker, job = await begun(manager, "a9", "ab8")
    JOB_RECORDS.set(records_of(job))
    await records.fetch_first(key)
    await end(manager, job)
    successor = cast("Job", await manager.fetch_job(None, worker))
    assert successor.queueing_lock == "once:ab8"
    JOB_RECORDS.set(records_of(successor))
    assert await (await records.fetch_first(key)).get(key) == Text("stored")


async def test_a_conclusion_takes_the_effects_that_were_read_for_it_once_and_soon() -> None:
    effects = [{"task_name": "effect"}]
    JOB_RECORDS.set(JobRecords(effects=effects))
    assert [effects_read_first(), effects_read_first()] == [effects, None]
    JOB_RECORDS.set(JobRecords(effects=effects, read_at=time.monotonic() - FRESH))
    assert effects_read_first() is None


async def test_the_end_of_a_job_that_was_taken_over_stores_nothing(postgres_url: str) -> None:
    """No rollback follows on PostgreSQL, where it is a transaction of its own."""
    database = Database(postgres_url)
    await database.open()
    manager = manager_of(database.connector)
    worker, job = await begun(manager, "a9")
    values: dict[str, object] = {
        "id": job.id,
        "worker_id": worker + 1,
        "status": "succeeded",
        "outcome": APPLIED,
        "note": "{}",
        "reads": [],
        "begins_next": True,
        "jobs": [NewJob("new", "effect", {})],
        "changes": [RecordChange(TEXT.name, StoredValue.of(TEXT, Text("new")))],
        "plan": NewJob("plan", "handle", {}),
    }
    assert await database.connector.execute_query_all_async(FINISH_NOTED, **values) == []
    assert await states(database.connector) == {"a9": "doing 0"}
    assert await Records(database.connector).get(TEXT) is None
    await database.close()


async def test_what_was_fetched_ahead_is_read_first_once(database: Database) -> None:
    manager, records = manager_of(database.connector), Records(database.connector)
    _, job = await begun(manager, "a9")
    JOB_RECORDS.set(records_of(job))
    for text in ("stored", "changed", "changed again"):
        await records.put(TEXT, Text(text))
        if text == "stored":
            await records.fetch_ahead(TEXT)
            continue
        first_records = await records.fetch_first(TEXT)
        assert await first_records.get(TEXT) == Text("stored" if text == "changed" else text)


async def test_a_job_that_had_to_wait_reads_again(database: Database) -> None:
    """As behind a suspect, which runs alone for up to a minute."""
    manager, records = manager_of(database.connector), Records(database.connector)
    _, job = await begun(manager, "a9")
    JOB_RECORDS.set(records_of(job))
    await records.put(TEXT, Text("before"))
    await records.fetch_ahead(TEXT)
    records_of(job).read_at -= FRESH
    await records.put(TEXT, Text("after"))
    assert await (await records.fetch_first(TEXT)).get(TEXT) == Text("after")


@pytest.mark.parametrize("change", [TRIED, LATER], ids=["tried before", "scheduled for later"])
async def test_a_job_that_a_fetch_must_choose_is_not_begun(database: Database, change: LiteralString) -> None:
    manager = manager_of(database.connector)
    _, job = await begun(manager, "a9", "ab8", "ac7")
    await database.connector.execute_query_async(change, keys=["once:ab8"])
    await end(manager, job)
    assert [state[:4] for state in (await states(database.connector)).values()] == ["succ", "todo", "todo"]


async def test_a_job_without_a_lock_begins_no_other(database: Database) -> None:
    manager = manager_of(database.connector, concurrency=1)
    _, job = await begun(manager, "-9", "-x8")
    await end(manager, job)
    assert (await states(database.connector))["-x8"] == "todo 0"


def flooded() -> Intake:
    intake = Intake(many=1, within=LONG)
    intake.count()
    return intake


@pytest.mark.parametrize("reason", ["flood", "stop"])
async def test_no_job_is_begun_while_deliveries_flood_in_or_the_worker_stops(database: Database, reason: str) -> None:
    manager = manager_of(database.connector, flooded() if reason == "flood" else None)
    worker, job = await begun(manager, "a9", "ab8")
    if reason == "stop":
        manager.stop()
    await end(manager, job)
    assert (await states(database.connector))["ab8"] == "todo 0"
    await manager.unregister_worker(worker)
    await manager.register_worker()
    assert manager.begins_next == (reason == "stop")


async def test_a_successor_that_a_stopped_worker_had_not_begun_returns_without_a_lost_try(database: Database) -> None:
    manager = manager_of(database.connector)
    worker, job = await begun(manager, "a9", "ab8")
    await end(manager, job)
    assert (await states(database.connector))["ab8"] == "doing 0"
    await manager.unregister_worker(worker)
    assert (await states(database.connector))["ab8"] == "todo 0"


async def test_a_worker_whose_job_was_taken_over_begins_no_other(database: Database) -> None:
    manager = manager_of(database.connector)
    worker, job = await begun(manager, "a9", "ab8")
    await database.connector.execute_query_async(LOST)
    await end(manager, job)
    assert await states(database.connector) == {"a9": "doing 0", "ab8": "todo 0"}
    assert await fetched(manager, worker, 1) == ["nothing"]


async def test_a_successor_whose_announcement_was_lost_returns_to_the_queue(database: Database) -> None:
    """A connection may break, or the job be cancelled, after the database has ended the job and begun the next one."""
    manager = manager_of(database.connector)
    worker, job = await begun(manager, "a9", "ab8", "bb7")
    await end_unknown(database, worker, job, begins=begins_next(job))
    assert await states(database.connector) == {"a9": "succeeded 1", "ab8": "doing 0", "bb7": "doing 0"}
    await end(manager, job)
    assert await states(database.connector) == {"a9": "succeeded 1", "ab8": "todo 0", "bb7": "doing 0"}
    assert await fetched(manager, worker, 3) == ["bb7", "ab8", "nothing"]


async def test_a_successor_is_no_news_for_any_worker(database: Database) -> None:
    connector, manager = database.connector, manager_of(database.connector)
    worker = await manager.register_worker()
    async with listening(database):
        await stored(connector, "a9", "ab8", "ac0", "-x")
        # There is no notification when a waiting job's time comes, so a worker sees that job only if it fetches.
        await connector.execute_query_async(STARTS_AT.format(at="to_timestamp(4102444800)"))
        job = cast("Job", await manager.fetch_job(None, worker))
        assert await fetched(manager, worker, 1) == ["nothing"]
        await connector.execute_query_async(STARTS_AT.format(at="NULL"))
        count_before = connector.notification_count
        await end(manager, job)
        assert connector.notification_count == count_before
        job = cast("Job", await manager.fetch_job(None, worker))
        assert [job.queueing_lock, *await fetched(manager, worker, 1)] == ["once:ab8", "nothing"]
        # Its end lets a delivery run, which a fetch must find, together with the other job.
        await end(manager, job)
        assert connector.notification_count != count_before
        assert await fetched(manager, worker, 3) == ["ac0", "-x", "nothing"]


async def test_after_the_next_poll_was_due_a_successor_does_not_save_a_fetch(database: Database) -> None:
    connector = database.connector
    manager = EngineJobManager(connector, Guard(), lambda: None, concurrency=9, poll=0.0)
    worker = await manager.register_worker()
    async with listening(database):
        await stored(connector, "a9", "ab8", "-x")
        await connector.execute_query_async(STARTS_AT.format(at="to_timestamp(4102444800)"))
        job = cast("Job", await manager.fetch_job(None, worker))
        assert await fetched(manager, worker, 1) == ["nothing"]
        await connector.execute_query_async(STARTS_AT.format(at="NULL"))
        await end(manager, job)
        assert await fetched(manager, worker, 2) == ["ab8", "-x"]


async def test_a_successor_that_comes_during_a_fetch_without_result_runs(sqlite_url: str) -> None:
    """The worker forgets all wake-ups that come before the answer to its fetch."""
    database = Database(with_tables(sqlite_url))
    await database.open()
    manager = manager_of(database.connector)
    async with listening(database):
        worker, job = await begun(manager, "a9", "ab8", "ac8")
        assert await fetched(manager, worker, 2) == ["nothing", "nothing"]
        # SQLite answers in the order of the requests.
        ending, fetching = asyncio.create_task(end(manager, job)), asyncio.create_task(fetched(manager, worker, 1))
        assert await fetching == ["ab8"]
        await ending
    await database.close()


@pytest.mark.parametrize("places", [1, 2])
async def test_a_whole_plan_runs_without_a_poll_or_a_notification(
    url_with_tables: str, world: World, places: int
) -> None:
    """With one place, the worker begins the next job once the job that ended has left; with two, the end begins it."""
    targets = [f"t{number}" for number in range(5)]
    pace = replace(QUICK, poll=LONG, idle_poll=LONG, reap=LONG, concurrency=places)
    with capture_logs(processors=[merge_contextvars]) as lines:
        async with running(url_with_tables, world, pace=pace) as engine:
            await engine.accept("guid", "issue_comment", body({"a": writes(*targets, conclude={})}), LOCK)
            await settled(engine, "guid")
    assert world.written == [f"guid a {target}" for target in [*targets, "end"]]
    # The lines of a job have no fields of the job that ended before it.
    [concluded] = [line for line in lines if line["event"] == "conclude: concluded"]
    assert concluded.keys() == {"event", "log_level", "job", "delivery", "handler", "text"}


async def test_the_event_of_a_plan_is_fetched_although_its_effects_follow(url_with_tables: str, world: World) -> None:
    effects = [{"target": "event", "announces": True}, {"target": "x", "waits_for": "deliver"}]
    async with running(url_with_tables, world, pace=replace(QUICK, poll=LONG, idle_poll=LONG, reap=LONG)) as engine:
        await engine.accept("guid", "issue_comment", body({"a": {"effects": effects}}), LOCK)
        await until(lambda: "deliver toy:1" in world.happenings)
        world.passed("deliver")
        await settled(engine, "guid", "toy:1")
    assert world.written == ["guid a x"]


async def test_a_job_that_was_being_fetched_when_the_worker_stopped_is_not_begun(database: Database) -> None:
    manager = manager_of(database.connector)
    await stored(database.connector, "a")
    worker = await manager.register_worker()
    fetching = asyncio.create_task(manager.fetch_job(None, worker))
    await asyncio.sleep(0)
    manager.stop()
    assert await fetching is None
    await manager.unregister_worker(worker)
    assert await states(database.connector) == {"a": "todo 0"}


async def test_a_stopping_worker_begins_no_successor(url_with_tables: str, world: World) -> None:
    effects = [{"target": "first", "waits_for": "stopping"}, {"target": "second"}]
    database = Database(url_with_tables)
    await database.open()
    await database.connector.execute_query_async(NOTE_STARTS[database.embedded])
    await database.close()
    async with running(url_with_tables, world) as engine:
        await engine.accept("guid", "issue_comment", body({"a": {"effects": effects}}), LOCK)
        await until(lambda: world.passes("effect guid a first"))
        stopping = asyncio.create_task(engine.stop())
        await asyncio.sleep(0)
        world.passed("stopping")
        await stopping
    await database.open()
    assert await database.connector.execute_query_all_async(STARTS) == [{"count": 1}]
    await database.close()


@pytest.mark.parametrize("is_held", [False, True])
async def test_the_end_of_a_job_never_waits_for_its_successor(postgres_url: str, is_held: bool) -> None:
    database = Database(postgres_url)
    await database.open()
    manager = manager_of(database.connector)
    worker, job = await begun(manager, "a9", "ab8", "ac7")
    async with await psycopg.AsyncConnection.connect(postgres_url) as other:
        if is_held:
            await other.execute("SELECT 1 FROM procrastinate_jobs WHERE queueing_lock = 'once:ab8' FOR UPDATE")
        await end(manager, job)
        states_now = await states(database.connector)
        assert states_now == {"a9": "succeeded 1", "ab8": "todo 0" if is_held else "doing 0", "ac7": "todo 0"}
    assert await fetched(manager, worker, 1) == ["ab8"]
    await database.close()


@pytest.mark.parametrize("following", ["ac0", "ab8"])
async def test_a_job_that_is_being_fetched_is_not_put_back_when_an_answer_was_lost(
    database: Database, following: str
) -> None:
    manager = manager_of(database.connector)
    worker, job = await begun(manager, "a9", following)
    await end_unknown(database, worker, job, begins=begins_next(job) and following == "ac0")
    assert (await states(database.connector))[following] == "todo 0"
    _, names = await asyncio.gather(end(manager, job), fetched(manager, worker, 1))
    assert [*names, *await fetched(manager, worker, 1)] == [following, "nothing"]


async def test_the_end_of_a_job_begins_no_other_while_its_worker_shuts_down_after_a_failed_fetch(
    database: Database,
) -> None:
    async def tick(_: str, __: int) -> None:
        """Do nothing: there are no timers."""

    app, manager = create_queue(database.connector), manager_of(database.connector)
    app.job_manager, worker = manager, EngineWorker(app, manager, tick, QUICK)
    worker.worker_id, job = await begun(manager, "a9", "ab8")
    context = JobContext(app=app, job=job, start_timestamp=0.0, abort_reason=lambda: None)
    # Procrastinate calls this after an error as well as after a stop, and waits for the running jobs.
    shutting_down = asyncio.create_task(worker._shutdown([]))
    worker._running_jobs = {asyncio.create_task(end(manager, job)): context}
    await asyncio.wait(worker._running_jobs)
    assert await states(database.connector) == {"a9": "succeeded 1", "ab8": "todo 0"}
    worker._running_jobs.clear()
    await shutting_down
