"""Measure how soon a command begins while thousands of deliveries wait that no handler accepts."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace

from benchmarks.first_write import BOT
from benchmarks.report import Options, Row, command
from benchmarks.stage import BenchmarkStage, open_stage
from benchmarks.traffic import COMMAND, UNWANTED, templates
from bot.core.events import lock_key
from bot.engine.jobs.definitions import delivery_job
from bot.engine.jobs.inbox import store_delivery
from bot.engine.service import Engine
from sandbox import PullRequest

TITLE = "From a comment with a command to 👀 on GitHub, behind a backlog"
BACKLOG = 42_000
AT_ONCE = 1_000
COMMANDS = 5
PATIENCE = 900.0


async def measure(options: Options) -> list[Row]:
    """Fill the queue while the bot is stopped, start it, and send commands one after the other."""
    async with open_stage(options.database, COMMANDS) as stage:
        pulls = [repo.open_pull_request("hubot", "Make it faster", "It reads less.") for repo in stage.repos]
        await stage.quiet()
        await stage.bot.stop()
        await _fill(stage, options.count(BACKLOG))
        await stage.bot.start()
        stage.app.webhook_url = f"{stage.bot.url}/webhook"
        waiting = await stage.waiting()
        waits = [await _answered(stage, pull) for pull in pulls]
        waiting_at_end = await stage.waiting()
    first, *later_waits = waits
    return [
        {
            "waiting at first": waiting,
            "first command s": round(first, 2),
            "next command s, longest": round(max(later_waits), 2),
            "left waiting": waiting_at_end,
        }
    ]


async def _fill(stage: BenchmarkStage, count: int) -> None:
    """Store deliveries as the webhook does, many in one transaction."""
    made = templates(stage.github, stage.repo, 200)[UNWANTED]
    async with Engine(stage.url) as engine:
        for start in range(0, count, AT_ONCE):
            storing = []
            for number in range(start, min(start + AT_ONCE, count)):
                body = made[number % len(made)].body(number).decode()
                lock = lock_key("status", json.loads(body))
                job = delivery_job(f"backlog-{number}", "status", time.time(), lock)
                job = replace(job, lock=f"{job.lock}:{number % 200}")
                storing.append(store_delivery(engine.database.connector, job, body.encode()))
            await asyncio.gather(*storing)


async def _answered(stage: BenchmarkStage, pull: PullRequest) -> float:
    comment = pull.comment("hubot", COMMAND)
    began = time.perf_counter()
    await stage.github.until(
        lambda: "eyes" in pull.reactions(comment, by=BOT), timeout=PATIENCE, what="the first write"
    )
    return time.perf_counter() - began


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
