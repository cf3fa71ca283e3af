"""Send a large project's month at once: 1.2 million deliveries of the mix. Measure their rows, and the memory.

There are 200 people, who may write 30 commands an hour each. So the bot runs 6,000 of the 60,000 commands, and only
notes the others. Then retention removes all jobs that ended before the last quarter of the deliveries arrived, because
it retains about a quarter of a month.
"""

from __future__ import annotations

import sqlite3
import time
from itertools import pairwise

from benchmarks.accepted import accepted
from benchmarks.load import Load, generate
from benchmarks.memory import MIB
from benchmarks.report import Options, Row, command
from benchmarks.stage import PULLS, SQLITE, BenchmarkStage, open_stage
from bot.engine.service import Engine
from bot.engine.upkeep import DAY, remove_old

TITLE = "A month of a large project in one go"
COUNT, QUICK_COUNT = 1_200_000, 20_000
PARTS = 12
REMOVED = 9
"""The number of parts whose jobs retention removes."""
COMMANDS = 6_000
WITHIN = 3_600.0


async def measure(options: Options) -> list[Row]:
    """Send all deliveries in parts, as fast as they are accepted, and measure the bot after each part."""
    count = QUICK_COUNT if options.quick else COUNT
    async with open_stage(options.database, limits=False) as stage:
        path = str(stage.mix(COMMANDS if not options.quick else count // 20, PULLS))
        load = Load(stage.bot.port, path, connections=64, seconds=3600, warm_up=0.0, count=count // PARTS)
        began, cpu = time.perf_counter(), stage.cpu()
        memory, moment = [], 0.0
        for part in range(PARTS):
            accepted(await generate(load))
            stage.github.requests.clear()
            memory.append(stage.memory() / MIB)
            if part + 1 == REMOVED:
                await stage.drained(within=WITHIN)
                moment = time.time()
        await stage.drained(within=WITHIN)
        seconds, cpu = time.perf_counter() - began, stage.cpu() - cpu
        await stage.bot.stop()
        rows = [
            _row("deliveries", count),
            _row("replayed, s", seconds),
            _row("a second", count / seconds),
            _row("CPU ms each", 1000 * cpu / count),
            *(_row(f"memory, MiB, {label}", value) for label, value in _samples(memory)),
        ]
        return rows if stage.url.startswith("postgresql") else [*rows, *await _sizes(stage, count, moment)]


def _samples(memory: list[float]) -> list[tuple[str, float]]:
    """Return the first and last sample, and the largest growth between two samples after the first quarter."""
    growth = max(later - earlier for earlier, later in pairwise(memory[PARTS // 4 :]))
    return [("after a twelfth", memory[0]), ("at the end", memory[-1]), ("largest growth of a twelfth", growth)]


async def _sizes(stage: BenchmarkStage, count: int, moment: float) -> list[Row]:
    """Measure the database, remove jobs that ended before a moment, as retention does, and measure again."""
    stored = _used_bytes(stage)
    began = time.perf_counter()
    async with Engine(stage.url) as engine:
        removed = await remove_old(engine.database.connector, done_days=(time.time() - moment) / DAY)
    seconds = time.perf_counter() - began
    return [
        _row("database, bytes for each delivery", stored / count),
        _row("… of the month's, after retention", _used_bytes(stage) / count),
        _row("jobs that retention removed", removed),
        _row("… in s", seconds),
    ]


def _used_bytes(stage: BenchmarkStage) -> int:
    """Return the bytes of the pages in use: a file of SQLite does not shrink."""
    connection = sqlite3.connect(stage.url.removeprefix(f"{SQLITE}:///"))
    try:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    finally:
        connection.close()
    return int((pages - free) * size)


def _row(label: str, value: float) -> Row:
    return {"what": label, "measured": round(value, 3)}


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
