"""Measure how many deliveries of the mix one and two replicas on PostgreSQL accept a second, compared with SQLite."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from benchmarks.accepted import accepted, load_of
from benchmarks.load import generate
from benchmarks.report import Options, Row, command
from benchmarks.stage import POSTGRESQL, SQLITE, BenchmarkStage, open_stage
from sandbox.bot_process import BotProcess

TITLE = "The mix to 202: PostgreSQL with one and two replicas, beside SQLite"
CONNECTIONS = 32
"""Connections to all replicas together."""
SECONDS = 5.0
WAYS = ((SQLITE, 1), (POSTGRESQL, 1), (POSTGRESQL, 2))


async def measure(options: Options) -> list[Row]:
    """Measure each in turn, on an empty database."""
    rows: list[Row] = []
    for database, replicas in WAYS:
        async with open_stage(database, limits=False) as stage:
            per_second = await _accepted(stage, replicas, options.seconds(SECONDS))
        first = float(rows[0]["per second"]) if rows else per_second
        rows.append(
            {
                "database": database,
                "replicas": str(replicas),
                "per second": per_second,
                "of SQLite": round(per_second / first, 2),
            }
        )
    return rows


async def _accepted(stage: BenchmarkStage, replicas: int, seconds: float) -> float:
    """Send each replica its own deliveries; return how many they accept together."""
    other_bots = [
        BotProcess(stage.bot.environment, config=stage.bot.config, module=stage.bot.module) for _ in range(replicas - 1)
    ]
    try:
        for bot in other_bots:
            await bot.start()
        ports = [bot.port for bot in (stage.bot, *other_bots)]
        loads = [replace(load_of(stage, CONNECTIONS // replicas, seconds), port=port) for port in ports]
        return sum(accepted(waits).per_second for waits in await asyncio.gather(*map(generate, loads)))
    finally:
        for bot in other_bots:
            await bot.stop()


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
