"""A bot that is stopped while it works, and one that was down when GitHub sent webhooks."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from tests.robustness.conversation import CONVERSATIONS
from tests.robustness.crashes import Crash, Undisturbed, alone, spread
from tests.robustness.place import Place, open_place
from tests.robustness.side_by_side import SideBySide
from tests.waiting import until

REDELIVERY = "/app/hook/deliveries/{delivery_id}/attempts"


async def stop(place: Place) -> asyncio.Task[int]:
    """Ask the bot to stop; return once it has begun to stop."""
    stopping = asyncio.create_task(place.bot.stop())
    await until(lambda: any(entry["event"] == "stopping" for entry in place.bot.logs))
    return stopping


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_jobs_in_progress_finish_before_the_process_stops(
    kind: str, undisturbed: Undisturbed, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("sqlite_url" if kind == "sqlite" else "postgres_url")
    async with open_place(tmp_path, url) as place:
        crash = Crash(place, alone(spread(undisturbed.around_writes, 8)))
        await place.start()
        await crash.reach_points()
        stopping = await stop(place)
        crash.release_held()
        assert await stopping == 0
        await place.start()
        await crash.side_by_side.end()
        assert crash.side_by_side.differences(undisturbed.seen) == {}


async def test_a_job_that_does_not_finish_in_time_is_left_for_the_next_process(
    undisturbed: Undisturbed, tmp_path: Path, sqlite_url: str
) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        crash = Crash(place, alone(spread(undisturbed.around_writes, 8)))
        await place.start()
        await crash.reach_points()
        assert await (await stop(place)) == 0
        crash.lose_what_is_held()
        await place.start()
        await crash.side_by_side.end()
        assert crash.side_by_side.differences(undisturbed.seen) == {}


async def test_a_second_signal_ends_the_process_at_once_and_nothing_is_lost(
    undisturbed: Undisturbed, tmp_path: Path, sqlite_url: str
) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        crash = Crash(place, alone(spread(undisturbed.around_writes, 4)))
        await place.start()
        await crash.reach_points()
        stopping = await stop(place)
        place.bot.send(signal.SIGTERM)
        assert await stopping == -signal.SIGTERM
        crash.lose_what_is_held()
        await place.start()
        await crash.side_by_side.end()
        assert crash.side_by_side.differences(undisturbed.seen) == {}


@pytest.mark.one_clock
async def test_missed_deliveries_are_requested_once_and_handled(
    undisturbed: Undisturbed, tmp_path: Path, sqlite_url: str
) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        side_by_side = SideBySide(place, {kind.__name__: kind for kind in CONVERSATIONS})
        await place.start()
        await place.bot.kill()
        side_by_side.begin()
        await place.github.until(
            lambda: all(conversation.repository.pulls for conversation in side_by_side.conversations.values())
        )
        await place.github.delivered()
        lost = {delivery.guid for delivery in place.github.webhooks.deliveries}
        assert {delivery.status_code for delivery in place.github.webhooks.deliveries} == {502}
        await place.start()
        await side_by_side.end()
        assert side_by_side.differences(undisturbed.seen) == {}
        redeliveries = Counter(d.guid for d in place.github.webhooks.deliveries if d.redelivery)
        assert redeliveries == dict.fromkeys(lost, 1)
        assert place.github.requests.count("POST", REDELIVERY) == len(lost)
        async with aiohttp.ClientSession() as session, session.get(f"{place.bot.url}/readyz") as answer:
            assert answer.status == 200
