"""Measure the time from a command to its first write on GitHub, idle and under load, and its processor time."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from statistics import median

from benchmarks.load import Load, Waits, generate
from benchmarks.report import Options, Row, command
from benchmarks.stage import BenchmarkStage, open_stage
from benchmarks.traffic import COMMAND, COMMANDS, COMMENTS, mixed, templates, write
from sandbox import PullRequest

TITLE = "From a comment with a command to 👀 on GitHub"
LONGER = "@ci run slow tests"
"""For this command, the bot asks GitHub what has already run before it writes anything."""
HARD = COMMAND + "\n\n" + "![" * 32_000
"""The longest comment that GitHub accepts, made of what takes the Markdown parser longest."""
HARD_ONES = 4
INSTALLATIONS = 40
"""One command each: several in a row would wait for each other because of GitHub's limits on writes."""
PULLS = 200
RATE = 100.0
LOADED_SECONDS = 20.0
GOAL_RATE = 500.0
GOAL_SECONDS, GOAL_COMMANDS = 30.0, 3
"""Commands on each pull request at that rate: together, enough for a 99th percentile."""
IDLE_SECONDS = 10.0
PATIENCE = 30.0
BOT = "nightjar[bot]"


async def measure(options: Options) -> list[Row]:
    """Measure one command after another: idle, then under each kind of load."""
    async with open_stage(options.database, options.count(INSTALLATIONS)) as stage:
        made = templates(stage.github, stage.repo, PULLS)
        pulls = [repo.open_pull_request("hubot", "Make it faster", "It reads less.") for repo in stage.repos]
        await stage.quiet()
        rows = [
            await _commands(stage, pulls, f"`{COMMAND}`, idle"),
            await _commands(stage, pulls, f"`{LONGER}`, idle", LONGER),
        ]
        for kind, label in (("unwanted", "that nobody wants"), ("comments", "comments without a command")):
            path = stage.folder / f"{kind}.json"
            write(path, made[kind])
            load = Load(stage.bot.port, str(path), connections=16, seconds=options.seconds(LOADED_SECONDS), rate=RATE)
            rows.append(await _loaded(stage, pulls, load, f"`{COMMAND}`, {RATE:.0f}/s {label}"))
            rows.append(await _load_alone(stage, load, f"{RATE:.0f}/s {label}, no commands"))
            if kind == "unwanted":
                rows.append(
                    await _loaded(
                        stage, pulls[:HARD_ONES], load, f"64 KB made hard to read, {RATE:.0f}/s {label}", HARD
                    )
                )
        rows.append(await _idle(stage, options.seconds(IDLE_SECONDS)))
    return rows


async def at_goal_rate(options: Options) -> list[Row]:
    """Measure commands while the other deliveries of the mix arrive at the rate of the goal."""
    async with open_stage(options.database, options.count(INSTALLATIONS)) as stage:
        made = templates(stage.github, stage.repo, PULLS, long=True)
        pulls = [repo.open_pull_request("hubot", "Make it faster", "It reads less.") for repo in stage.repos]
        await stage.quiet()
        path = stage.folder / "mix"
        write(path, mixed(made | {COMMANDS: made[COMMENTS]}))
        seconds = options.seconds(GOAL_SECONDS)
        load = Load(stage.bot.port, str(path), connections=16, seconds=seconds, rate=GOAL_RATE)
        return [await _loaded(stage, pulls * GOAL_COMMANDS, load, f"`{COMMAND}`, {GOAL_RATE:.0f}/s of the mix")]


async def _commands(stage: BenchmarkStage, pulls: list[PullRequest], label: str, text: str = COMMAND) -> Row:
    cpu = stage.cpu()
    waits = []
    for pull in pulls:
        waits.append(await _answered(stage, pull, text))
        await _concluded(stage, pull)
    await stage.drained()
    return _row(label, waits, cpu_each=(stage.cpu() - cpu) / len(pulls))


async def _loaded(stage: BenchmarkStage, pulls: list[PullRequest], load: Load, label: str, text: str = COMMAND) -> Row:
    loading = asyncio.create_task(generate(load))
    await asyncio.sleep(load.warm_up)
    waits: list[float] = []
    for pull in pulls:
        next_at = time.perf_counter() + load.seconds / len(pulls)
        waits.append(await _answered(stage, pull, text))
        await asyncio.sleep(max(0.0, next_at - time.perf_counter()))
    generated = await loading
    waiting_at_end = await stage.waiting()
    await stage.drained()
    return _row(label, waits, generated, waiting_at_end=waiting_at_end)


async def _load_alone(stage: BenchmarkStage, load: Load, label: str) -> Row:
    cpu = stage.cpu()
    generated = await generate(replace(load, seconds=load.seconds / 2))
    waiting_at_end = await stage.waiting()
    await stage.drained()
    return _row(label, [], generated, waiting_at_end=waiting_at_end, cpu_each=(stage.cpu() - cpu) / generated.sent)


async def _idle(stage: BenchmarkStage, seconds: float) -> Row:
    cpu = stage.cpu()
    await asyncio.sleep(seconds)
    return _row(f"nothing at all, per second of {seconds:.0f}", [], cpu_each=(stage.cpu() - cpu) / seconds)


async def _answered(stage: BenchmarkStage, pull: PullRequest, text: str) -> float:
    """Write a comment; return the seconds from the time its webhook is sent until the first write arrives."""
    comment = pull.comment("hubot", text)
    began = time.perf_counter()
    route = f"/repos/{pull.repository.full_name}/issues/comments/{comment.id}/reactions"
    seen = len(stage.github.requests.records)
    await stage.github.until(
        lambda: any(r.method == "POST" and r.path == route for r in stage.github.requests.records[seen:]),
        timeout=PATIENCE,
        what="the first write",
    )
    return time.perf_counter() - began


async def _concluded(stage: BenchmarkStage, pull: PullRequest) -> None:
    comment = next(c for c in reversed(pull.comments) if c.user.login != BOT)
    await stage.github.until(lambda: "+1" in pull.reactions(comment, by=BOT), timeout=PATIENCE, what="the answer")


def _row(
    label: str,
    waits: list[float],
    generated: Waits | None = None,
    *,
    cpu_each: float = 0.0,
    waiting_at_end: float = 0.0,
) -> Row:
    ordered = sorted(waits) or [0.0]
    return {
        "what": label,
        "p50 ms": round(1000 * median(ordered), 1),
        "p90 ms": round(1000 * ordered[int(0.9 * (len(ordered) - 1))], 1),
        "p99 ms": round(1000 * ordered[int(0.99 * (len(ordered) - 1))], 1),
        "longest ms": round(1000 * ordered[-1], 1),
        "CPU ms each": round(1000 * cpu_each, 2),
        "202 p99 ms": generated.p99 if generated else 0.0,
        "202 longest ms": generated.longest if generated else 0.0,
        "left waiting": waiting_at_end,
    }


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
