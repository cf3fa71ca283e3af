"""Measure how many commands are handled a second, and what one costs, beside probot with pg-boss.

Both store each command before they answer its webhook. Then they send the same five requests: they read the pull
request, react with 👀, read its comments, write a comment, and react with 👍. A bare bot that stores nothing shows what
these requests alone cost in Python. This GitHub answers each request after `LATENCY`, and does not limit writes. Of
each server, its own processor time counts, and that of PostgreSQL beside it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import click

from benchmarks import bare_commands, probot_server
from benchmarks.load import Load, generate
from benchmarks.processes import tree_seconds
from benchmarks.report import Options, Row, command
from benchmarks.stage import DURABLE, POSTGRESQL, SQLITE, BenchmarkStage, open_stage
from benchmarks.traffic import COMMAND, COMMANDS, templates, write
from sandbox import PullRequest, Request
from tests.postgres import PostgresServer, running_server

TITLE = f"`{COMMAND}`, handled a second and processor time of one, beside probot with pg-boss"
COUNTS = (500, 2_000)
"""How many commands are sent as fast as they are accepted."""
ALONE = "one at a time"
CONNECTIONS = 64
INSTALLATIONS, PULLS_EACH = 40, 5
"""The commands come in turn from pull requests of many installations, each by another person: no limit delays them."""
SINGLE = 40
"""Commands that come to an idle server, one after the other, each of another installation."""
LATENCY = 0.01
SETTLED_AFTER = 0.3
"""Seconds after the last reaction: a server is done with the webhook of its own comment then."""
CHECK_EVERY = 0.02
PATIENCE = 3600.0
REACTIONS = "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"
COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
REQUESTS_EACH = (
    "GET /repos/{owner}/{repo}/pulls/{pull_number}",
    f"POST {REACTIONS}",
    f"GET {COMMENTS}",
    f"POST {COMMENTS}",
    f"POST {REACTIONS}",
)
NIGHTJAR, NIGHTJAR_POSTGRESQL, PROBOT = "nightjar, SQLite", "nightjar, PostgreSQL", "probot, pg-boss"
BARE = "aiohttp and gidgethub, nothing stored"


@dataclass(frozen=True)
class AnsweringServer:
    """A server that answers commands, and what it needs to be measured."""

    stage: BenchmarkStage
    port: int
    pid: int
    postgres: PostgresServer | None

    def cpu(self) -> tuple[float, float, float]:
        """Return the processor time of the server, of PostgreSQL and of the sandbox, seconds."""
        database = tree_seconds(self.postgres.pid) if self.postgres else 0.0
        return tree_seconds(self.pid), database, time.process_time()


Serving = Callable[[], AbstractAsyncContextManager[AnsweringServer]]


@asynccontextmanager
async def _nightjar(database: str) -> AsyncIterator[AnsweringServer]:
    async with AsyncExitStack() as held:
        postgres = held.enter_context(running_server(DURABLE)) if database == POSTGRESQL else None
        url = postgres.create_database() if postgres else ""
        stage = await held.enter_async_context(open_stage(database, INSTALLATIONS, database_url=url, limits=False))
        await stage.quiet()
        yield AnsweringServer(stage, stage.bot.port, stage.bot.pid, postgres)


@asynccontextmanager
async def _probot() -> AsyncIterator[AnsweringServer]:
    with running_server(DURABLE) as postgres:
        async with open_stage(SQLITE, INSTALLATIONS, started=False) as stage:
            answering = probot_server.answering_commands(postgres.create_database(), stage.app, stage.github.url)
            async with answering as process:
                stage.app.webhook_url = f"http://127.0.0.1:{process.port}/webhook"
                yield AnsweringServer(stage, process.port, process.pid, postgres)


@asynccontextmanager
async def _bare() -> AsyncIterator[AnsweringServer]:
    async with AsyncExitStack() as held:
        stage = await held.enter_async_context(open_stage(SQLITE, INSTALLATIONS, started=False))
        process = await held.enter_async_context(bare_commands.serving(stage.app, stage.github.url))
        stage.app.webhook_url = f"http://127.0.0.1:{process.port}/webhook"
        yield AnsweringServer(stage, process.port, process.pid, None)


async def measure(options: Options) -> list[Row]:
    """Measure each server in turn, each with an empty store: many commands at once, then single ones."""
    servers: dict[str, Serving] = {
        NIGHTJAR: partial(_nightjar, SQLITE),
        NIGHTJAR_POSTGRESQL: partial(_nightjar, POSTGRESQL),
        BARE: _bare,
    }
    if without := await probot_server.missing():
        click.echo(without, err=True)
    else:
        servers[PROBOT] = _probot
    rows: list[Row] = []
    for name, serving in servers.items():
        async with serving() as server:
            server.stage.github.faults.add("*", "*", delay=LATENCY, times=None)
            # First, because Node.js compiles what it runs often.
            at_once: list[Row] = []
            for count in COUNTS:
                figures = await _at_once(server, options.count(count))
                at_once.append({"server": name, "commands": f"{count:,} at once", **figures})
            single = await _single(server, options.count(SINGLE))
            rows += [{"server": name, "commands": ALONE, **single}, *at_once]
    return rows


async def _single(server: AnsweringServer, count: int) -> dict[str, float]:
    """Send one command after the other, the first one of each installation unmeasured: it fetches a token."""
    pulls = [repo.open_pull_request("hubot", "Make it faster", "It reads less.") for repo in server.stage.repos[:count]]
    for pull in pulls:
        await _answered(server.stage, pull)
    taken, waits = [], []
    for pull in pulls:
        await asyncio.sleep(SETTLED_AFTER)
        cpu_before, began = server.cpu(), time.perf_counter()
        await _answered(server.stage, pull)
        waits.append(time.perf_counter() - began)
        await asyncio.sleep(SETTLED_AFTER)
        taken.append([end - start for end, start in zip(server.cpu(), cpu_before, strict=True)])
    server_cpu, database, sandbox = (median(column) for column in zip(*taken, strict=True))
    return _figures(1 / median(waits), server_cpu, database, sandbox)


async def _answered(stage: BenchmarkStage, pull: PullRequest) -> None:
    seen = len(stage.github.requests.records)
    pull.comment("hubot", COMMAND)
    await stage.github.until(
        lambda: sum(map(_is_reaction, stage.github.requests.records[seen:])) == 2, timeout=PATIENCE, what="the answer"
    )


async def _at_once(server: AnsweringServer, count: int) -> dict[str, float]:
    stage = server.stage
    path: Path = stage.folder / f"commands-{count}"
    repos = stage.repos
    commands = -(-count // (len(repos) * PULLS_EACH))
    made = [
        templates(stage.github, repo, PULLS_EACH, long=True, commands=commands, people=PULLS_EACH)[COMMANDS]
        for repo in repos
    ]
    write(path, [template for round_of_pulls in zip(*made, strict=True) for template in round_of_pulls])
    cpu_before, first = server.cpu(), len(stage.github.requests.records)
    load = Load(server.port, str(path), CONNECTIONS, seconds=3600, warm_up=0.0, count=count)
    loading = asyncio.create_task(generate(load))
    await stage.github.until(lambda: len(stage.github.requests.records) > first, timeout=PATIENCE, what="a request")
    began = time.perf_counter()
    await _all_answered(stage, first, count)
    seconds = time.perf_counter() - began
    waits = await loading
    if not waits.statuses.keys() <= {"200", "202"}:
        raise AssertionError(f"not everything was stored: {waits.statuses}")
    await stage.github.delivered()
    await asyncio.sleep(SETTLED_AFTER)
    cpu_each = [(end - start) / count for end, start in zip(server.cpu(), cpu_before, strict=True)]
    return _figures(count / seconds, *cpu_each)


async def _all_answered(stage: BenchmarkStage, first: int, count: int) -> None:
    """Wait for the last reaction; raise an error unless each command had exactly the requests that it needs."""
    records, done, reactions = stage.github.requests.records, first, 0
    async with asyncio.timeout(PATIENCE):
        while reactions < 2 * count:
            await asyncio.sleep(CHECK_EVERY)
            while done < len(records) and records[done].status:
                reactions += _is_reaction(records[done])
                done += 1
    sent = Counter(f"{request.method} {request.route}" for request in records[first:])
    for route, times in Counter(REQUESTS_EACH).items():
        if sent[route] != times * count:
            raise AssertionError(f"{sent[route]} times {route} for {count} commands")


def _is_reaction(request: Request) -> bool:
    return request.method == "POST" and request.route == REACTIONS and request.status == 201


def _figures(per_second: float, server_cpu: float, database: float, sandbox: float) -> dict[str, float]:
    return {
        "handled /s": round(per_second, 1),
        "CPU ms each": round(1000 * server_cpu, 2),
        "PostgreSQL ms each": round(1000 * database, 2),
        "both ms each": round(1000 * (server_cpu + database), 2),
        "sandbox ms each": round(1000 * sandbox, 2),
    }


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
