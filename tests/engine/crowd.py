"""A process that books forty writes: `python -m tests.engine.crowd URL`.

It prints how many were granted without a wait.
"""

from __future__ import annotations

import asyncio
import sys

from bot.engine.budget import WriteBudget, WritePace
from bot.engine.database import Database

AT_ONCE = 40
PACE = WritePace(per_minute=80, per_hour=450, burst=10_000, spacing=0.0)


async def main(url: str) -> None:
    """Book the writes, and print the number granted without a wait."""
    database = Database(url)
    await database.open()
    budget = WriteBudget(database.connector)
    waits = await asyncio.gather(*(budget.book("42", PACE, 0.0) for _ in range(AT_ONCE)))
    sys.stdout.write(f"{waits.count(0.0)}\n")
    await database.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
