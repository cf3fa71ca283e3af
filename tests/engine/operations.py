"""Random operations on two databases, side must give the same answers.

Procrastinate's PostgreSQL functions define the right answers. IDs are compared through a map, because PostgreSQL also
uses up numbers for inserts that it refuses.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from procrastinate.exceptions import ProcrastinateException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.jobs.steps import FETCH, FINISH_NOTED, PARK
from bot.engine.postgres.connector import PostgresConnector
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sqlite.connector import SqliteConnector
from bot.engine.upkeep import remove_old, requeue_all, requeue_stalled
from bot.engine.worker.manager import QuietJob

WEIGHTS = {
    "defer": 28,
    "defer_several": 4,
    "once": 8,
    "fetch": 20,
    "fetch_several": 8,
    "park": 8,
    "raise_priority": 3,
    "finish": 18,
    "finish_noted": 12,
    "retry": 8,
    "cancel": 4,
    "abort": 3,
    "periodic": 4,
    "list_jobs": 3,
    "counts": 3,
    "stalled": 2,
    "to_abort": 2,
    "requeue_stalled": 2,
    "requeue_all": 1,
    "worker_stopped": 1,
    "age": 2,
    "remove_old": 1,
    "delete_old": 1,
}
QUEUES = ("a", "b")
LOCKS = (None, "l1", "l2", "l3")
TASKS = ("t", "u")
LATER = timedelta(days=1)
# Nothing would free such a job.
FORGOTTEN = """
SELECT job.id FROM procrastinate_jobs AS job
 WHERE job.status = 'todo' AND job.nightjar_parked
   AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs AS other
                    WHERE other.lock = job.lock AND other.id <> job.id AND (other.status = 'doing' OR (
                          other.status = 'todo' AND (other.priority > job.priority OR (
                          other.priority = job.priority AND other.id < job.id)))))
"""
WORKER = "SELECT worker_id FROM procrastinate_jobs WHERE id = %(id)s"
RAISE = "UPDATE procrastinate_jobs SET priority = priority + 1 WHERE id = %(id)s AND status = 'todo'"
Answer = tuple[str, object]
EngineConnector = SqliteConnector | PostgresConnector


class Twins:
    """The same operations on PostgreSQL and SQLite; `step` runs one and compares the answers."""

    def __init__(self, postgres: EngineConnector, sqlite: EngineConnector, seed: int) -> None:
        self.connectors = (postgres, sqlite)
        self.managers = tuple(JobManager(connector) for connector in self.connectors)
        self.workers: list[tuple[int, int]] = []
        self.random = random.Random(seed)
        self.twin_of: dict[int, int] = {}
        self.doing: set[int] = set()
        self.done: Counter[str] = Counter()
        self.steps = self.successors = 0

    async def step(self) -> None:
        """Run one operation on both."""
        if not self.workers:
            await self._register()
        name = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        self.done[name] += 1
        self.steps += 1
        operation: Callable[[], Awaitable[None]] = getattr(self, f"_{name}")
        await operation()
        for connector in self.connectors:
            assert await connector.execute_query_all_async(FORGOTTEN) == [], (self.steps, name)

    async def finish(self) -> None:
        """Compare all jobs and their notes."""
        await self._list_all()
        events = (
            "SELECT job_id, type, count(*) AS count FROM procrastinate_events GROUP BY job_id, type ORDER BY job_id"
        )
        on_postgres, on_sqlite = [await connector.execute_query_all_async(events) for connector in self.connectors]
        assert {(self.twin_of[cast(int, event["job_id"])], event["type"], event["count"]) for event in on_postgres} == {
            (event["job_id"], event["type"], event["count"]) for event in on_sqlite
        }

    async def _both(self, call: Callable[[JobManager, int], Awaitable[object]]) -> tuple[Answer, Answer]:
        answers: list[Answer] = []
        for side, manager in enumerate(self.managers):
            try:
                answers.append(("returned", await call(manager, side)))
            except (ProcrastinateException, DatabaseFailure) as error:
                answers.append(("raised", type(error)))
        on_postgres, on_sqlite = answers
        assert on_postgres[0] == on_sqlite[0], (self.steps, on_postgres, on_sqlite)
        if on_postgres[0] == "raised":
            assert on_postgres == on_sqlite, (self.steps, on_postgres, on_sqlite)
        return on_postgres, on_sqlite

    async def _same(self, call: Callable[[JobManager, int], Awaitable[object]]) -> None:
        on_postgres, on_sqlite = await self._both(call)
        assert on_postgres == on_sqlite, (self.steps, on_postgres, on_sqlite)

    def _pair(self, on_postgres: object, on_sqlite: object) -> None:
        if on_postgres is None:
            assert on_sqlite is None, self.steps
        else:
            assert self.twin_of.setdefault(cast(int, on_postgres), cast(int, on_sqlite)) == on_sqlite, self.steps

    def _paired(self, job_id: int, side: int) -> int:
        return job_id if side == 0 else self.twin_of[job_id]

    def _job(self) -> Job:
        moment = datetime.now(UTC)
        return Job(
            queue=self.random.choice(QUEUES),
            lock=self.random.choice(LOCKS),
            queueing_lock=self.random.choice([None, None, None, "q1", "q2", f"once:{self.random.randrange(400)}"]),
            task_name=self.random.choice(TASKS),
            priority=self.random.choice([0, 0, 0, 1, -1]),
            task_kwargs={"n": self.steps},
            scheduled_at=self.random.choice([None, None, None, moment + LATER, moment - LATER]),
        )

    def _random_job_id(self, running: float) -> int | None:
        pool = sorted(self.doing) if self.random.random() < running else sorted(self.twin_of)
        return self.random.choice(pool) if pool else None

    async def _register(self) -> None:
        on_postgres, on_sqlite = await self._both(lambda manager, _: manager.register_worker())
        self.workers.append((cast(int, on_postgres[1]), cast(int, on_sqlite[1])))

    async def _defer(self) -> None:
        job = self._job()
        on_postgres, on_sqlite = await self._both(lambda manager, _: manager.defer_job_async(job))
        if on_postgres[0] == "returned":
            self._pair(cast(Job, on_postgres[1]).id, cast(Job, on_sqlite[1]).id)

    async def _defer_several(self) -> None:
        jobs = [self._job() for _ in range(3)]
        on_postgres, on_sqlite = await self._both(lambda manager, _: manager.batch_defer_jobs_async(jobs))
        if on_postgres[0] == "returned":
            for postgres_job, sqlite_job in zip(
                cast(list[Job], on_postgres[1]), cast(list[Job], on_sqlite[1]), strict=True
            ):
                self._pair(postgres_job.id, sqlite_job.id)

    async def _once(self) -> None:
        jobs = [
            NewJob(
                key=str(self.random.randrange(400)),
                task=self.random.choice(TASKS),
                args={"n": self.steps},
                lock=self.random.choice(LOCKS),
                priority=self.random.choice([0, 10]),
                queue=self.random.choice(QUEUES),
            )
            for _ in range(self.random.randint(1, 4))
        ]
        on_postgres, on_sqlite = [await defer_once(connector, jobs) for connector in self.connectors]
        for postgres_job, sqlite_job in zip(on_postgres, on_sqlite, strict=True):
            self._pair(postgres_job.job_id, sqlite_job.job_id)
            assert (postgres_job.status, postgres_job.new) == (sqlite_job.status, sqlite_job.new), self.steps

    async def _fetch(self) -> None:
        queues = self.random.choice([None, ["a"], ["b"], ["a", "b"]])
        worker = self.random.choice(self.workers)
        on_postgres, on_sqlite = await self._both(lambda manager, side: manager.fetch_job(queues, worker[side]))
        self._compare_jobs([cast(Job | None, on_postgres[1])], [cast(Job | None, on_sqlite[1])])
        if isinstance(on_postgres[1], Job):
            self.doing.add(cast(int, on_postgres[1].id))

    async def _fetch_several(self) -> None:
        worker, most = self.random.choice(self.workers), self.random.randint(1, 4)
        on_postgres, on_sqlite = [
            [
                QuietJob.from_row(row)
                for row in await connector.execute_query_all_async(
                    FETCH, worker_id=worker[side], most=most, window=1000
                )
                if row["id"] is not None
            ]
            for side, connector in enumerate(self.connectors)
        ]
        on_sqlite.sort(key=lambda job: (-job.priority, cast(int, job.id)))  # as the manager does
        self._compare_jobs(list(on_postgres), list(on_sqlite))
        self.doing |= {cast(int, job.id) for job in on_postgres}

    async def _park(self) -> None:
        window = self.random.randint(1, 8)
        on_postgres, on_sqlite = [
            {row["id"] for row in await connector.execute_query_all_async(PARK, window=window)}
            for connector in self.connectors
        ]
        assert {self.twin_of[cast(int, job_id)] for job_id in on_postgres} == on_sqlite, self.steps

    async def _raise_priority(self) -> None:
        if (job_id := self._random_job_id(0.0)) is None:
            return
        for side, connector in enumerate(self.connectors):
            await connector.execute_query_async(RAISE, id=self._paired(job_id, side))

    def _compare_jobs(self, on_postgres: list[Job | None], on_sqlite: list[Job | None]) -> None:
        assert [self._comparable(job, 0) for job in on_postgres] == [self._comparable(job, 1) for job in on_sqlite], (
            self.steps
        )

    def _comparable(self, job: Job | None, side: int) -> dict[str, object] | None:
        if job is None:
            return None
        fields = cast(dict[str, object], job.asdict())
        fields.pop("holder", None)
        worker_of = {pair[side]: n for n, pair in enumerate(self.workers)}
        return fields | {
            "id": self.twin_of[cast(int, job.id)] if side == 0 else job.id,
            "worker_id": worker_of.get(job.worker_id, "removed") if job.worker_id else None,
        }

    async def _finish(self) -> None:
        if (job_id := self._random_job_id(0.8)) is None:
            return
        status = self.random.choice([Status.SUCCEEDED, Status.FAILED, Status.ABORTED, Status.CANCELLED])
        delete = self.random.random() < 0.2
        await self._same(
            lambda manager, side: manager.finish_job_by_id_async(self._paired(job_id, side), status, delete)
        )
        if status is not Status.CANCELLED:
            self.doing.discard(job_id)

    async def _finish_noted(self) -> None:
        """End a job as its worker does, or one that has lost it; this may begin the next job of its lock."""
        if (job_id := self._random_job_id(0.9)) is None:
            return
        begins_next = self.random.random() < 0.8
        worker = self.random.choice(self.workers)
        if self.random.random() < 0.9:
            rows = await self.connectors[0].execute_query_all_async(WORKER, id=job_id)
            holders = [pair for pair in self.workers if {"worker_id": pair[0]} in rows]
            worker = holders[0] if holders else worker
        values = {"status": "succeeded", "outcome": "applied", "note": "{}", "begins_next": begins_next, "reads": []}
        on_postgres, on_sqlite = [
            await connector.execute_query_all_async(
                FINISH_NOTED, id=self._paired(job_id, side), worker_id=worker[side], **values
            )
            for side, connector in enumerate(self.connectors)
        ]
        assert len(on_postgres) == len(on_sqlite), self.steps
        if on_postgres:
            self.doing.discard(job_id)
        begun = [
            QuietJob.from_row(rows[0]) if rows and rows[0].get("id") is not None else None
            for rows in (on_postgres, on_sqlite)
        ]
        self._compare_jobs([begun[0]], [begun[1]])
        if begun[0]:
            self.successors += 1
            self.doing.add(cast(int, begun[0].id))

    async def _retry(self) -> None:
        if (job_id := self._random_job_id(0.8)) is None:
            return
        retry_at = datetime.now(UTC) + self.random.choice([LATER, -LATER])
        priority = self.random.choice([None, 2])
        queue = self.random.choice([None, "a"])
        lock = self.random.choice([None, "l1"])
        await self._same(
            lambda manager, side: manager.retry_job_by_id_async(
                self._paired(job_id, side), retry_at, priority=priority, queue=queue, lock=lock
            )
        )
        self.doing.discard(job_id)

    async def _cancel(self, *, abort: bool = False) -> None:
        if (job_id := self._random_job_id(0.4)) is None:
            return
        delete = self.random.random() < 0.3
        await self._same(
            lambda manager, side: manager.cancel_job_by_id_async(
                self._paired(job_id, side), abort=abort, delete_job=delete
            )
        )

    async def _abort(self) -> None:
        await self._cancel(abort=True)

    async def _periodic(self) -> None:
        tick = self.random.randrange(20)
        job = Job(
            queue="a",
            lock=None,
            queueing_lock=self.random.choice([None, "pq", f"once:tick:{tick}"]),
            task_name="p",
            task_kwargs={"timestamp": tick},
        )
        name = self.random.choice(["", "other"])
        on_postgres, on_sqlite = await self._both(lambda manager, _: manager.defer_periodic_job(job, name, tick))
        if on_postgres[0] == "returned":
            self._pair(on_postgres[1], on_sqlite[1])

    async def _list_jobs(self) -> None:
        filters: dict[str, Any] = self.random.choice(
            [{"queue": "a"}, {"lock": "l1"}, {"status": "todo"}, {"task": "t"}, {"queueing_lock": "q1"}]
        )
        on_postgres, on_sqlite = await self._both(lambda manager, _: manager.list_jobs_async(**filters))
        self._compare_jobs(list(cast(list[Job], on_postgres[1])), list(cast(list[Job], on_sqlite[1])))

    async def _list_all(self) -> None:
        on_postgres, on_sqlite = await self._both(lambda manager, _: manager.list_jobs_async())
        self._compare_jobs(list(cast(list[Job], on_postgres[1])), list(cast(list[Job], on_sqlite[1])))

    async def _counts(self) -> None:
        filters = self.random.choice([{}, {"queue": "a"}, {"lock": "l1"}, {"status": "doing"}, {"task": "t"}])
        await self._same(lambda manager, _: manager.list_queues_async(**filters))
        await self._same(lambda manager, _: manager.list_tasks_async(**filters))
        await self._same(lambda manager, _: manager.list_locks_async(**filters))

    async def _stalled(self) -> None:
        since = self.random.choice([-10.0, 3600.0])
        queue = self.random.choice([None, "a"])
        on_postgres, on_sqlite = await self._both(
            lambda manager, _: manager.get_stalled_jobs(queue=queue, seconds_since_heartbeat=since)
        )
        self._compare_unordered(on_postgres, on_sqlite)

    def _compare_unordered(self, on_postgres: Answer, on_sqlite: Answer) -> None:
        by_id = [
            sorted(cast(list[Job], answer[1]), key=lambda job: cast(int, job.id)) for answer in (on_postgres, on_sqlite)
        ]
        self._compare_jobs(list(by_id[0]), list(by_id[1]))

    async def _to_abort(self) -> None:
        on_postgres, on_sqlite = await self._both(lambda manager, _: manager.list_jobs_to_abort_async())
        assert {self.twin_of[job_id] for job_id in cast(list[int], on_postgres[1])} == set(
            cast(list[int], on_sqlite[1])
        )

    async def _requeue_stalled(self) -> None:
        await self._silence(self.random.choice(self.workers))
        on_postgres, on_sqlite = [await requeue_stalled(connector, seconds=3000) for connector in self.connectors]
        assert {(self.twin_of[job.job_id], job.task, job.status, job.attempts) for job in on_postgres} == {
            (job.job_id, job.task, job.status, job.attempts) for job in on_sqlite
        }, self.steps
        self.doing -= {job.job_id for job in on_postgres}
        await self._register()

    async def _silence(self, worker: tuple[int, int]) -> None:
        self.workers.remove(worker)
        for connector, worker_id in zip(self.connectors, worker, strict=True):
            await connector.execute_query_async(
                "UPDATE procrastinate_workers SET last_heartbeat = to_timestamp(date_part('epoch', now()) - 3600)"
                " WHERE id = %(worker_id)s",
                worker_id=worker_id,
            )

    async def _requeue_all(self) -> None:
        on_postgres, on_sqlite = [await requeue_all(connector) for connector in self.connectors]
        assert {self.twin_of[job.job_id] for job in on_postgres} == {job.job_id for job in on_sqlite}, self.steps
        self.doing.clear()
        self.workers.clear()

    async def _worker_stopped(self) -> None:
        worker = self.workers.pop(self.random.randrange(len(self.workers)))
        await self._same(lambda manager, side: manager.unregister_worker(worker[side]))

    async def _age(self) -> None:
        """Move a job's history into the past."""
        if (job_id := self._random_job_id(0.0)) is None:
            return
        days = self.random.choice([8, 31])
        for side, connector in enumerate(self.connectors):
            await connector.execute_query_async(
                "UPDATE procrastinate_events SET at = to_timestamp(date_part('epoch', at) - %(seconds)s)"
                " WHERE job_id = %(job_id)s",
                seconds=days * 86400,
                job_id=self._paired(job_id, side),
            )

    async def _remove_old(self) -> None:
        on_postgres, on_sqlite = [await remove_old(connector) for connector in self.connectors]
        assert on_postgres == on_sqlite, self.steps

    async def _delete_old(self) -> None:
        await self._same(
            lambda manager, _: manager.delete_old_jobs(nb_hours=24 * 30, queue="b", include_cancelled=True)
        )
