"""Measure how many deliveries of the mix one and two replicas on PostgreSQL accept a second, compared with SQLite."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from benchmarks.accepted import accepted, load_of
from benchmarks.load import generate
from benchmarks.report import Options, Row, command
from benchmarks.stage import POSTGRESQL, SQLITE, BenchmarkStage, stage
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
        async with stage(database, limits=False) as on:
            per_second = await _accepted(on, replicas, options.seconds(SECONDS))
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


async def _accepted(on: BenchmarkStage, replicas: int, seconds: float) -> float:
    """Send each replica its own deliveries; return how many they accept together."""
    more = [BotProcess(on.bot.environment, config=on.bot.config, module=on.bot.module) for _ in range(replicas - 1)]
    try:
        for bot in more:
            await bot.start()
        ports = [bot.port for bot in (on.bot, *more)]
        loads = [replace(load_of(on, CONNECTIONS // replicas, seconds), port=port) for port in ports]
        return sum(accepted(waits).per_second for waits in await asyncio.gather(*map(generate, loads)))
    finally:
        for bot in more:
            await bot.stop()


main = command(measure, TITLE)

if __name__ == "__main__":
    main()
