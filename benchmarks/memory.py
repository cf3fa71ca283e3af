"""Measure the bot's memory and disk usage, at rest and after a hundred thousand deliveries."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.load import Load, generate
from benchmarks.report import Options, Row, command
from benchmarks.stage import BenchmarkStage, open_stage
from benchmarks.traffic import templates, write

TITLE = "Memory and disk, with 10 kB bodies"
STEPS = 5
EACH = 20_000
PULLS = 200
RATE = 250.0
"""Less than the bot can process, so that no backlog is measured."""
MIB = 1024 * 1024


async def measure(options: Options) -> list[Row]:
    """Measure at rest, then after every fifth of the deliveries."""
    async with open_stage(options.database) as stage:
        path = stage.folder / "templates.json"
        made = templates(stage.github, stage.repo, PULLS)
        write(path, [*made["unwanted"] * 4, *made["comments"]])
        rows = [_row(stage, 0)]
        load = Load(stage.bot.port, str(path), connections=16, seconds=3600, count=options.count(EACH), rate=RATE)
        sent = 0
        for _ in range(STEPS):
            sent += (await generate(replace(load))).sent
            await stage.drained()
            rows.append(_row(stage, sent))
    return rows


def _row(stage: BenchmarkStage, sent: int) -> Row:
    return {
        "deliveries": float(sent),
        "memory MiB": round(stage.memory() / MIB, 1),
        "database MiB": round(stage.database_bytes() / MIB, 1),
        "CPU s": round(stage.cpu(), 1),
    }


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
