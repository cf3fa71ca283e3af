"""Measure how many deliveries of the mix are handled a second if 100,000 arrive as fast as they are accepted.

A delivery is handled when none of its jobs waits and its commands are answered on GitHub. A person may write 30
commands an hour, and the bot only notes further ones. So one measurement has a person for each pull request, and in the
other one person writes all commands.
"""

from __future__ import annotations

import time

from benchmarks.accepted import accepted
from benchmarks.load import Load, generate
from benchmarks.report import Options, Row, command
from benchmarks.stage import PULLS, open_stage
from benchmarks.traffic import CYCLE

TITLE = "100,000 deliveries of the mix, sent as fast as they are accepted, until all are handled"
COUNT = 100_000
WITHIN = 1_800.0


async def measure(options: Options) -> list[Row]:
    """Measure with many people, then with one."""
    return [
        await _handled(options, PULLS, "each command is carried out"),
        await _handled(options, 1, "one person writes all commands, and is over the limit"),
    ]


async def _handled(options: Options, people: int, label: str) -> Row:
    count = options.count(COUNT)
    async with open_stage(options.database, limits=False) as stage:
        path = stage.mix(count // CYCLE, people)
        cpu, began = stage.cpu(), time.perf_counter()
        waits = accepted(
            await generate(Load(stage.bot.port, str(path), connections=64, seconds=3600, warm_up=0.0, count=count))
        )
        waiting_at_end = await stage.waiting()
        await stage.drained(within=WITHIN)
        seconds = time.perf_counter() - began
        return {
            "what": label,
            "deliveries": count,
            "handled /s": round(count / seconds, 1),
            "accepted /s": waits.per_second,
            "left waiting": waiting_at_end,
            "all handled after s": round(seconds, 1),
            "CPU ms each": round(1000 * (stage.cpu() - cpu) / count, 3),
            "requests to GitHub": len(stage.github.requests.records),
        }


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
