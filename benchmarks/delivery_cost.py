"""Measure the total processor time of a delivery, from its first byte until all its jobs are done.

Deliveries that were seen before are sent again under the same GUIDs, when the table already has all of them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.accepted import accepted
from benchmarks.load import Load, generate, new_first
from benchmarks.report import Options, Row, command
from benchmarks.stage import PULLS, BenchmarkStage, open_stage
from benchmarks.traffic import COMMENTS, UNWANTED, Template, templates, write

TITLE = "What a delivery costs, all in"
RATE = 500.0
COUNT = 6_000
STORED = 12_000
"""New deliveries that are sent before the repeated ones."""


async def measure(options: Options) -> list[Row]:
    """Send deliveries at a rate that the bot can sustain, then as fast as possible: new ones, then the same ones."""
    async with open_stage(options.database) as stage:
        made = templates(stage.github, stage.repo, PULLS, long=True)
        paced = Load(
            stage.bot.port, "", connections=16, seconds=3600, rate=RATE, warm_up=0.0, count=options.count(COUNT)
        )
        rows = []
        for label, kind in (("that nobody wants", UNWANTED), ("comments without a command", COMMENTS)):
            rows.append(
                await _row(stage, f"{label}, {RATE:.0f}/s", replace(paced, templates=_stored(stage, made[kind])))
            )
        load = replace(paced, rate=None, connections=8, count=options.count(STORED), first=new_first())
        load = replace(load, templates=_stored(stage, made[UNWANTED]))
        rows.append(await _row(stage, "that nobody wants, 8 connections: new", load))
        rows.append(await _row(stage, "that nobody wants, 8 connections: seen before", load))
        return [
            *rows,
            await _row(stage, "that nobody wants, 64 connections", replace(load, connections=64, first=None)),
        ]


def _stored(stage: BenchmarkStage, order: list[Template]) -> str:
    path: Path = stage.folder / "templates"
    write(path, order)
    return str(path)


async def _row(stage: BenchmarkStage, label: str, load: Load) -> Row:
    cpu = stage.cpu()
    waits = accepted(await generate(load))
    await stage.drained()
    return {
        "what": label,
        "per second": waits.per_second,
        "p99 ms": waits.p99,
        "CPU ms each": round(1000 * (stage.cpu() - cpu) / waits.sent, 3),
    }


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
