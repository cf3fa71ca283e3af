"""Random operations on two databases, which must give the same answers.

Procrastinate's PostgreSQL functions define the right answers. IDs are compared through a map, because PostgreSQL also
uses up numbers for inserts that it refuses.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ProcrastinateException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.jobs.steps import FETCH
from bot.engine.upkeep import remove_old, requeue_all, requeue_stalled
from bot.engine.worker.manager import QuietJob

WEIGHTS = {
    "defer": 28,
    "defer_several": 4,
    "once": 8,
    "fetch": 20,
    "fetch_several": 8,
    "finish": 18,
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
Answer = tuple[str, object]


class Twins:
    """The same operations on PostgreSQL and SQLite; `step` runs one and compares the answers."""

    def __init__(self, postgres: BaseAsyncConnector, sqlite: BaseAsyncConnector, seed: int) -> None:
        self.connectors = (postgres, sqlite)
        self.managers = tuple(JobManager(connector) for connector in self.connectors)
        self.workers: list[tuple[int, int]] = []
        self.random = random.Random(seed)
        self.twin_of: dict[int, int] = {}
        self.doing: set[int] = set()
        self.done: Counter[str] = Counter()
        self.steps = 0

    async def step(self) -> None:
        """Run one operation on both."""
        if not self.workers:
            await self._register()
        name = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        self.done[name] += 1
        self.steps += 1
        operation: Callable[[], Awaitable[None]] = getattr(self, f"_{name}")
        await operation()

    async def finish(self) -> None:
        """Compare all jobs and their notes."""
        await self._list_all()
        events = (
            "SELECT job_id, type, count(*) AS count FROM procrastinate_events GROUP BY job_id, type ORDER BY job_id"
        )
        theirs, ours = [await connector.execute_query_all_async(events) for connector in self.connectors]
        assert {(self.twin_of[cast(int, e["job_id"])], e["type"], e["count"]) for e in theirs} == {
            (e["job_id"], e["type"], e["count"]) for e in ours
        }

    async def _both(self, ask: Callable[[JobManager, int], Awaitable[object]]) -> tuple[Answer, Answer]:
        answers: list[Answer] = []
        for which, manager in enumerate(self.managers):
            try:
                answers.append(("returned", await ask(manager, which)))
            except ProcrastinateException as error:
                answers.append(("raised", type(error)))
        theirs, ours = answers
        assert theirs[0] == ours[0], (self.steps, theirs, ours)
        if theirs[0] == "raised":
            assert theirs == ours, (self.steps, theirs, ours)
        return theirs, ours

    async def _same(self, ask: Callable[[JobManager, int], Awaitable[object]]) -> None:
        theirs, ours = await self._both(ask)
        assert theirs == ours, (self.steps, theirs, ours)

    def _pair(self, theirs: object, ours: object) -> None:
        if theirs is None:
            assert ours is None, self.steps
        else:
            assert self.twin_of.setdefault(cast(int, theirs), cast(int, ours)) == ours, self.steps

    def _paired(self, job_id: int, which: int) -> int:
        return job_id if which == 0 else self.twin_of[job_id]

    def _job(self) -> Job:
        now = datetime.now(UTC)
        return Job(
            queue=self.random.choice(QUEUES),
            lock=self.random.choice(LOCKS),
            queueing_lock=self.random.choice([None, None, None, "q1", "q2", f"once:{self.random.randrange(400)}"]),
            task_name=self.random.choice(TASKS),
            priority=self.random.choice([0, 0, 0, 1, -1]),
            task_kwargs={"n": self.steps},
            scheduled_at=self.random.choice([None, None, None, now + LATER, now - LATER]),
        )

    def _some_job(self, running: float) -> int | None:
        pool = sorted(self.doing) if self.random.random() < running else sorted(self.twin_of)
        return self.random.choice(pool) if pool else None

    async def _register(self) -> None:
        theirs, ours = await self._both(lambda manager, _: manager.register_worker())
        self.workers.append((cast(int, theirs[1]), cast(int, ours[1])))

    async def _defer(self) -> None:
        job = self._job()
        theirs, ours = await self._both(lambda manager, _: manager.defer_job_async(job))
        if theirs[0] == "returned":
            self._pair(cast(Job, theirs[1]).id, cast(Job, ours[1]).id)

    async def _defer_several(self) -> None:
        jobs = [self._job() for _ in range(3)]
        theirs, ours = await self._both(lambda manager, _: manager.batch_defer_jobs_async(jobs))
        if theirs[0] == "returned":
            for one, other in zip(cast(list[Job], theirs[1]), cast(list[Job], ours[1]), strict=True):
                self._pair(one.id, other.id)

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
        theirs, ours = [await defer_once(connector, jobs) for connector in self.connectors]
        for one, other in zip(theirs, ours, strict=True):
            self._pair(one.job_id, other.job_id)
            assert (one.status, one.new) == (other.status, other.new), self.steps

    async def _fetch(self) -> None:
        queues = self.random.choice([None, ["a"], ["b"], ["a", "b"]])
        worker = self.random.choice(self.workers)
        theirs, ours = await self._both(lambda manager, which: manager.fetch_job(queues, worker[which]))
        self._compare_jobs([cast(Job | None, theirs[1])], [cast(Job | None, ours[1])])
        if isinstance(theirs[1], Job):
            self.doing.add(cast(int, theirs[1].id))

    async def _fetch_several(self) -> None:
        worker, most = self.random.choice(self.workers), self.random.randint(1, 4)
        theirs, ours = [
            [
                QuietJob.from_row(row)
                for row in await connector.execute_query_all_async(
                    FETCH, worker_id=worker[which], most=most, window=1000
                )
                if row["id"] is not None
            ]
            for which, connector in enumerate(self.connectors)
        ]
        ours.sort(key=lambda job: (-job.priority, cast(int, job.id)))  # as the manager does
        self._compare_jobs(list(theirs), list(ours))
        self.doing |= {cast(int, job.id) for job in theirs}

    def _compare_jobs(self, theirs: list[Job | None], ours: list[Job | None]) -> None:
        assert [self._seen(job, 0) for job in theirs] == [self._seen(job, 1) for job in ours], self.steps

    def _seen(self, job: Job | None, which: int) -> dict[str, object] | None:
        if job is None:
            return None
        seen = cast(dict[str, object], job.asdict())
        seen.pop("holder", None)
        worker_of = {pair[which]: n for n, pair in enumerate(self.workers)}
        return seen | {
            "id": self.twin_of[cast(int, job.id)] if which == 0 else job.id,
            "worker_id": worker_of.get(job.worker_id, "removed") if job.worker_id else None,
        }

    async def _finish(self) -> None:
        if (job_id := self._some_job(0.8)) is None:
            return
        status = self.random.choice([Status.SUCCEEDED, Status.FAILED, Status.ABORTED, Status.CANCELLED])
        delete = self.random.random() < 0.2
        await self._same(
            lambda manager, which: manager.finish_job_by_id_async(self._paired(job_id, which), status, delete)
        )
        if status is not Status.CANCELLED:
            self.doing.discard(job_id)

    async def _retry(self) -> None:
        if (job_id := self._some_job(0.8)) is None:
            return
        when = datetime.now(UTC) + self.random.choice([LATER, -LATER])
        priority = self.random.choice([None, 2])
        queue = self.random.choice([None, "a"])
        lock = self.random.choice([None, "l1"])
        await self._same(
            lambda manager, which: manager.retry_job_by_id_async(
                self._paired(job_id, which), when, priority=priority, queue=queue, lock=lock
            )
        )
        self.doing.discard(job_id)

    async def _cancel(self, *, abort: bool = False) -> None:
        if (job_id := self._some_job(0.4)) is None:
            return
        delete = self.random.random() < 0.3
        await self._same(
            lambda manager, which: manager.cancel_job_by_id_async(
                self._paired(job_id, which), abort=abort, delete_job=delete
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
        theirs, ours = await self._both(lambda manager, _: manager.defer_periodic_job(job, name, tick))
        if theirs[0] == "returned":
            self._pair(theirs[1], ours[1])

    async def _list_jobs(self) -> None:
        asked: dict[str, Any] = self.random.choice(
            [{"queue": "a"}, {"lock": "l1"}, {"status": "todo"}, {"task": "t"}, {"queueing_lock": "q1"}]
        )
        theirs, ours = await self._both(lambda manager, _: manager.list_jobs_async(**asked))
        self._compare_jobs(list(cast(list[Job], theirs[1])), list(cast(list[Job], ours[1])))

    async def _list_all(self) -> None:
        theirs, ours = await self._both(lambda manager, _: manager.list_jobs_async())
        self._compare_jobs(list(cast(list[Job], theirs[1])), list(cast(list[Job], ours[1])))

    async def _counts(self) -> None:
        asked = self.random.choice([{}, {"queue": "a"}, {"lock": "l1"}, {"status": "doing"}, {"task": "t"}])
        await self._same(lambda manager, _: manager.list_queues_async(**asked))
        await self._same(lambda manager, _: manager.list_tasks_async(**asked))
        await self._same(lambda manager, _: manager.list_locks_async(**asked))

    async def _stalled(self) -> None:
        since = self.random.choice([-10.0, 3600.0])
        queue = self.random.choice([None, "a"])
        theirs, ours = await self._both(
            lambda manager, _: manager.get_stalled_jobs(queue=queue, seconds_since_heartbeat=since)
        )
        self._compare_unordered(theirs, ours)

    def _compare_unordered(self, theirs: Answer, ours: Answer) -> None:
        by_id = [sorted(cast(list[Job], answer[1]), key=lambda job: cast(int, job.id)) for answer in (theirs, ours)]
        self._compare_jobs(list(by_id[0]), list(by_id[1]))

    async def _to_abort(self) -> None:
        theirs, ours = await self._both(lambda manager, _: manager.list_jobs_to_abort_async())
        assert {self.twin_of[job_id] for job_id in cast(list[int], theirs[1])} == set(cast(list[int], ours[1]))

    async def _requeue_stalled(self) -> None:
        await self._silence(self.random.choice(self.workers))
        theirs, ours = [await requeue_stalled(connector, seconds=3000) for connector in self.connectors]
        assert {(self.twin_of[r.job_id], r.task, r.status, r.attempts) for r in theirs} == {
            (r.job_id, r.task, r.status, r.attempts) for r in ours
        }, self.steps
        self.doing -= {r.job_id for r in theirs}
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
        theirs, ours = [await requeue_all(connector) for connector in self.connectors]
        assert {self.twin_of[r.job_id] for r in theirs} == {r.job_id for r in ours}, self.steps
        self.doing.clear()
        self.workers.clear()

    async def _worker_stopped(self) -> None:
        worker = self.workers.pop(self.random.randrange(len(self.workers)))
        await self._same(lambda manager, which: manager.unregister_worker(worker[which]))

    async def _age(self) -> None:
        """Move a job's history into the past."""
        if (job_id := self._some_job(0.0)) is None:
            return
        days = self.random.choice([8, 31])
        for which, connector in enumerate(self.connectors):
            await connector.execute_query_async(
                "UPDATE procrastinate_events SET at = to_timestamp(date_part('epoch', at) - %(seconds)s)"
                " WHERE job_id = %(job_id)s",
                seconds=days * 86400,
                job_id=self._paired(job_id, which),
            )

    async def _remove_old(self) -> None:
        theirs, ours = [await remove_old(connector) for connector in self.connectors]
        assert theirs == ours, self.steps

    async def _delete_old(self) -> None:
        await self._same(
            lambda manager, _: manager.delete_old_jobs(nb_hours=24 * 30, queue="b", include_cancelled=True)
        )
