"""Jobs wait while many deliveries are being stored, but never for ever."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

from bot.engine.intake import Intake

FOREVER = 60.0


async def going_on(intake: Intake) -> asyncio.Task[None]:
    """Begin to give way, and go as far as possible."""
    task = asyncio.create_task(intake.give_way())
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_a_worker_waits_while_many_deliveries_are_being_stored() -> None:
    intake = Intake(few=2, longest_pause=FOREVER)
    with ExitStack() as few:
        few.enter_context(intake.accepting())
        few.enter_context(intake.accepting())
        assert (await going_on(intake)).done()
        with intake.accepting():
            waiting = await going_on(intake)
            assert not waiting.done()
        await waiting


async def test_a_delivery_that_could_not_be_stored_blocks_nobody() -> None:
    intake = Intake(few=0, longest_pause=FOREVER)
    storing = asyncio.create_task(_store_for_ever(intake))
    waiting = await going_on(intake)
    assert not waiting.done()
    storing.cancel()
    await waiting


async def test_jobs_begin_even_under_a_constant_flood_of_deliveries() -> None:
    intake = Intake(few=0, longest_pause=0.001)
    with intake.accepting():
        await intake.give_way()


async def _store_for_ever(intake: Intake) -> None:
    with intake.accepting():
        await asyncio.Event().wait()
