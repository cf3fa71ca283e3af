"""Measure how many deliveries are accepted a second, beside others that store each delivery before they answer.

The others are what people would pick for durable webhooks: an aiohttp handler with one SQLite commit a delivery, and
one with plain Procrastinate; probot with pg-boss and with graphile-worker (PostgreSQL), and with BullMQ (a Redis that
appends each write to its file before it answers). Without npm or Redis, those that need it are left out.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from benchmarks import probot_server, processes, redis_server
from benchmarks.accepted import CONNECTIONS, HALF_OF, SECONDS
from benchmarks.load import Load, Waits, generate
from benchmarks.report import Options, Row, command
from benchmarks.stage import DURABLE, PULLS, BenchmarkStage, open_stage
from benchmarks.traffic import COMMENTS, UNWANTED, templates, write
from tests.postgres import PostgresServer, running_server

TITLE = "Signed deliveries to 202, each stored before it is answered"
ROUNDS = 2
NIGHTJAR = "nightjar"
KINDS = {"comments": COMMENTS, "unwanted": UNWANTED}

Serving = Callable[[], AbstractAsyncContextManager[int]]
"""Starts a server with an empty store; yields its port."""


async def measure(options: Options) -> list[Row]:
    """Measure all servers in turn at each number of connections, each with an empty store."""
    without_node, without_redis = await probot_server.missing(), redis_server.missing()
    for text in filter(None, (without_node, without_redis)):
        click.echo(text, err=True)
    node = [] if without_node else [probot_server.PG_BOSS, probot_server.GRAPHILE]
    node += [] if without_node or without_redis else [probot_server.BULLMQ]
    rows = []
    with running_server(DURABLE) as postgres:
        for kind in KINDS:
            rate = 0.0
            for connections in CONNECTIONS:
                waits = await _measured(options, kind, connections, postgres, node)
                rows.append(_row(kind, f"{connections} connections", waits))
                if connections == HALF_OF:
                    rate = waits[NIGHTJAR].per_second / 2
            waits = await _measured(options, kind, CONNECTIONS[-1], postgres, node, rate)
            rows.append(_row(kind, f"half of what {HALF_OF} connections reach", waits))
    return rows


async def _measured(
    options: Options,
    kind: str,
    connections: int,
    postgres: PostgresServer,
    node: Sequence[str],
    rate: float | None = None,
) -> dict[str, Waits]:
    waits = {}
    async with open_stage(options.database, limits=False) as stage:
        load = _load(stage, kind, connections, options.seconds(SECONDS), rate)
        for name, serving in _others(stage.folder, postgres, node).items():
            async with serving() as port:
                waits[name] = _stored(await generate(replace(load, port=port)))
        waits[NIGHTJAR] = _stored(await generate(load))
    return waits


def _stored(waits: Waits) -> Waits:
    """Raise an error unless everything was stored; probot answers with 200 then, and the others with 202."""
    if not waits.statuses.keys() <= {"200", "202"}:
        raise AssertionError(f"not everything was stored: {waits.statuses}")
    return waits


def _load(stage: BenchmarkStage, kind: str, connections: int, seconds: float, rate: float | None) -> Load:
    path: Path = stage.folder / "templates"
    write(path, templates(stage.github, stage.repo, PULLS, long=True)[KINDS[kind]])
    return Load(stage.bot.port, str(path), connections, seconds, rate)


def _others(folder: Path, postgres: PostgresServer, node: Sequence[str]) -> dict[str, Serving]:
    """Return the servers that can run here, by the names of the columns."""

    def python(kind: str, place: str) -> AbstractAsyncContextManager[int]:
        return processes.serving(sys.executable, "-m", "benchmarks.durable_server", kind, place)

    return {
        "SQLite commit": lambda: python("sqlite", str(folder / "others.db")),
        "Procrastinate": lambda: python("procrastinate", postgres.create_database()),
        **{queue: partial(_probot, queue, folder, postgres) for queue in node},
    }


@asynccontextmanager
async def _probot(queue: str, folder: Path, postgres: PostgresServer) -> AsyncIterator[int]:
    async with AsyncExitStack() as held:
        if queue == probot_server.BULLMQ:
            address = await held.enter_async_context(redis_server.running_redis(folder / "redis"))
        else:
            address = postgres.create_database()
        yield await held.enter_async_context(probot_server.serving_with(queue, address))


def _row(kind: str, load: str, waits: Mapping[str, Waits]) -> Row:
    others = {name: wait for name, wait in waits.items() if name != NIGHTJAR}
    fastest = max(wait.per_second for wait in others.values())
    lowest_p99 = min(wait.p99 for wait in others.values())
    return {
        "deliveries": kind,
        "load": load,
        **{f"{name} /s": wait.per_second for name, wait in others.items()},
        "nightjar /s": waits[NIGHTJAR].per_second,
        "of the best": round(waits[NIGHTJAR].per_second / fastest, 2),
        "best p99 ms": lowest_p99,
        "nightjar p99 ms": waits[NIGHTJAR].p99,
        "p99 of the best": round(waits[NIGHTJAR].p99 / lowest_p99, 2),
        "generator busy": max(wait.busy for wait in waits.values()),
    }


main = command(measure, TITLE, ROUNDS)

if __name__ == "__main__":
    main()
