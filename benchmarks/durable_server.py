"""Webhook servers to compare with that store each delivery before they answer, as people write them with a library.

`python -m benchmarks.durable_server sqlite FILE` has an aiohttp handler that commits each delivery to a table of
SQLite. `python -m benchmarks.durable_server procrastinate URL` defers a job of plain Procrastinate in PostgreSQL,
beside a worker whose task does nothing. Both print their port and serve until standard input ends.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import procrastinate
from aiohttp import web

from benchmarks.webhook_server import serve

Store = Callable[[str, str, bytes], Awaitable[None]]
"""Stores a delivery durably: its GUID, its event and its body."""
TABLE = "CREATE TABLE deliveries (guid TEXT PRIMARY KEY, event TEXT NOT NULL, body BLOB NOT NULL)"
CONNECTIONS = 10
"""Procrastinate's connections to PostgreSQL, its own default."""


@asynccontextmanager
async def in_sqlite(path: str) -> AsyncIterator[Store]:
    """Commit each delivery on its own, in the one thread that owns the connection; a power cut loses none."""
    with ThreadPoolExecutor(1) as thread:
        loop = asyncio.get_running_loop()
        connection = await loop.run_in_executor(thread, lambda: sqlite3.connect(path, isolation_level=None))
        for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", TABLE):
            await loop.run_in_executor(thread, connection.execute, statement)

        async def store(guid: str, event: str, body: bytes) -> None:
            insert = "INSERT INTO deliveries VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
            await loop.run_in_executor(thread, connection.execute, insert, (guid, event, body))

        yield store
        await loop.run_in_executor(thread, connection.close)


@asynccontextmanager
async def in_procrastinate(url: str) -> AsyncIterator[Store]:
    """Defer a job for each delivery."""
    connector = procrastinate.PsycopgConnector(conninfo=url, min_size=CONNECTIONS, max_size=CONNECTIONS)
    app = procrastinate.App(connector=connector)

    @app.task(name="deliver")
    async def deliver(guid: str, event: str, body: str) -> None:
        pass

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        worker = asyncio.create_task(app.run_worker_async(install_signal_handlers=False))

        async def store(guid: str, event: str, body: bytes) -> None:
            await deliver.configure(queueing_lock=guid).defer_async(guid=guid, event=event, body=body.decode())

        yield store
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


KINDS = {"sqlite": in_sqlite, "procrastinate": in_procrastinate}


async def _serve(kind: str, place: str) -> None:
    async with KINDS[kind](place) as store:

        async def handle(request: web.Request, body: bytes) -> None:
            await store(request.headers["X-GitHub-Delivery"], request.headers["X-GitHub-Event"], body)

        await serve(handle)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], sys.argv[2]))
