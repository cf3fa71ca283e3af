"""Few jobs begin while many deliveries come in, but some always do."""

from __future__ import annotations

import asyncio

from bot.engine.worker.intake import AT_LEAST, Intake

FOREVER = 60.0
MOST = 50


async def going_on(intake: Intake, running: int) -> asyncio.Task[int]:
    """Ask for room for a worker that runs some jobs, and go as far as possible."""
    task = asyncio.create_task(intake.room(range(running), MOST))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


def flooded(pause: float = FOREVER) -> Intake:
    """Return an intake after many deliveries."""
    intake = Intake(few=4, pause=pause, many=3, within=FOREVER)
    for _ in range(3):
        intake.count()
    return intake


async def test_all_jobs_may_begin_beside_a_few_deliveries() -> None:
    intake = Intake(few=4, pause=FOREVER, many=3, within=FOREVER)
    assert await intake.room(range(4), MOST) == MOST - 4
    intake.count()
    intake.count()
    assert await intake.room(range(4), MOST) == MOST - 4
    assert await intake.room(range(MOST - 1), MOST) == 1


async def test_deliveries_of_some_time_ago_do_not_count() -> None:
    intake = Intake(few=4, pause=FOREVER, many=3, within=0)
    for _ in range(9):
        intake.count()
    assert await intake.room(range(4), MOST) == MOST - 4


async def test_few_jobs_begin_at_once_beside_a_flood() -> None:
    intake = flooded()
    assert await intake.room(range(0), MOST) == 4
    assert await intake.room(range(3), MOST) == AT_LEAST
    assert await intake.room(range(0), 1) == 1


async def test_a_worker_that_runs_enough_jobs_pauses_beside_a_flood() -> None:
    waiting = await going_on(flooded(), 4)
    assert not waiting.done()
    waiting.cancel()


async def test_jobs_begin_however_long_a_flood_lasts() -> None:
    intake = flooded(pause=0.001)
    assert await intake.room(range(4), MOST) == AT_LEAST
    assert await intake.room(range(MOST - 1), MOST) == 1


async def test_jobs_that_ended_during_the_pause_make_room() -> None:
    running = [1, 2, 3, 4]
    asyncio.get_running_loop().call_soon(running.clear)
    assert await flooded(pause=0.001).room(running, MOST) == 4
