"""Measure how several worker processes share the jobs of one PostgreSQL: what they wait for, and what each job costs.

Jobs do nothing, so that only the statements of the engine are measured. Commits take 2 ms. On a machine with few free
processors, read the waits for locks and the processor time; the rate says little there.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from typing import LiteralString

import psycopg
from procrastinate.jobs import Job, Status

from benchmarks.report import Options, Row, command
from bot.engine.database import Database
from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.worker.guard import Guard
from bot.engine.worker.manager import EngineJobManager
from tests.postgres import running_server

TITLE = "Workers on one PostgreSQL: jobs that do nothing, commits of 2 ms"
WORKERS = (1, 2, 4)
JOBS = 10_000
CONCURRENCY = 50
BATCH = 1_000
SAMPLE = 0.01
SERVER = {"fsync": "on", "commit_delay": "2000", "commit_siblings": "0"}
WAITS: LiteralString = """
SELECT coalesce(wait_event_type || ' ' || wait_event, 'runs') FROM pg_stat_activity
 WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()
"""
NOTIFY_LOCK = "Lock object"
LOCKED = "one lock"
"""All jobs but a hundred wait for one lock, and come first."""


async def measure(options: Options) -> list[Row]:
    """Measure each number of workers on a fresh database of one server."""
    rows = []
    with running_server(SERVER) as server:
        for workers, lock in [*((workers, "") for workers in WORKERS), (1, LOCKED)]:
            url = server.create_database()
            rows.append(await _measured(url, workers, lock, options.count(JOBS)))
            server.drop_database(url)
    return rows


async def _measured(url: str, workers: int, lock: str, count: int) -> Row:
    database = Database(url)
    await database.open()
    await deferred(database, count, lock)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("LISTEN procrastinate_any_queue_v1")
        began = time.perf_counter()
        processes = [await _started(url, most=count // 20 if lock else count) for _ in range(workers)]
        working = asyncio.gather(*(process.communicate() for process in processes))
        states, notifications = Counter[str](), 0
        while not working.done():
            states.update(state for (state,) in await (await connection.execute(WAITS)).fetchall())
            async for _ in connection.notifies(timeout=SAMPLE):
                notifications += 1
        seconds = time.perf_counter() - began
    done = [[float(number) for number in output.split()] for output, _ in await working]
    await database.close()
    jobs_done, cpu = sum(row[0] for row in done), sum(row[1] for row in done)
    return {
        "workers": f"{workers}, {lock or 'a lock each'}",
        "per second": round(jobs_done / max(row[2] for row in done)),
        "CPU ms a job": round(1000 * cpu / jobs_done, 2),
        "samples that wait for the lock of NOTIFY %": round(100 * states[NOTIFY_LOCK] / max(1, states.total()), 1),
        "notifications a job": round(notifications / jobs_done, 3),
        "seconds": round(seconds, 1),
    }


async def deferred(database: Database, count: int, lock: str = "") -> None:
    """Store jobs with a lock each; all but the last hundred with one, if it is given."""
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        jobs = [
            NewJob(f"k{number}", "t", {}, lock=lock if lock and number < count - 100 else f"l{number}")
            for number in numbers
        ]
        await defer_once(database.connector, jobs)


async def _started(url: str, most: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.workers", "work", url, str(most), stdout=asyncio.subprocess.PIPE
    )


async def work(url: str, most: int) -> None:
    """Run jobs as `work_off`; print their number, and the processor and other seconds."""
    database = Database(url)
    await database.open()
    began, cpu = time.perf_counter(), time.process_time()
    done = await work_off(database, most)
    sys.stdout.write(f"{done} {time.process_time() - cpu} {time.perf_counter() - began}\n")
    await database.close()


async def work_off(database: Database, most: int) -> int:
    """Run jobs until none is left or so many have run; return their number."""
    manager = EngineJobManager(database.connector, Guard(), lambda: None, concurrency=CONCURRENCY)
    worker = await manager.register_worker()
    running, done = set[asyncio.Task[None]](), 0
    while done < most:
        while len(running) < CONCURRENCY and (job := await manager.fetch_job(None, worker)):
            running.add(asyncio.create_task(_end(manager, job)))
            done += 1
        if not running:
            break
        _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*running)
    await manager.unregister_worker(worker)
    return done


async def _end(manager: EngineJobManager, job: Job) -> None:
    await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)


main = command(measure, TITLE)

if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        asyncio.run(work(sys.argv[2], int(sys.argv[3])))
    else:
        main()
