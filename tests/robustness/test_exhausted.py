"""A process that has no threads or report processes left says so, and still answers webhooks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.app.doctor.doctor import HealthWatch
from bot.core.threads import MOST_THREADS, bound_threads
from bot.core.untrusted.limits import Limits
from bot.core.untrusted.pool import POOL
from bot.core.untrusted.queue import Owner
from tests.conversations.town import Town, town
from tests.core.untrusted import hostile
from tests.waiting import DEADLINE, until

STEPS = 8
"""More than the event loop takes from a request for a round to its beginning."""
ENDLESS = Limits("reading one artifact", cpu=600, wall=DEADLINE, memory=1 << 30)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Town]:
    async with town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        await until(lambda: place.bot.engine.ready() is None)
        yield place


async def reason(place: Town) -> str:
    """Return why the process says that it is not ready; empty if it is ready."""
    status, _, answer = await place.ask("/readyz")
    assert (status == 200) is (answer["reason"] == "")
    return str(answer["reason"])


def in_an_hour() -> float:
    return time.monotonic() + 3600


@pytest.fixture
async def release(place: Town) -> AsyncIterator[threading.Event]:
    """Return an event that lets the busy threads end; the fixture's teardown sets it in any case."""
    event = threading.Event()
    bound_threads()
    yield event
    event.set()


async def test_the_checks_end_even_if_a_round_is_requested_at_that_moment(place: Town) -> None:
    """They are cancelled at each step of the event loop between the request and the round."""
    for steps in range(STEPS):
        watch = HealthWatch(place.bot.watch.doctor)
        running = asyncio.create_task(watch.run())
        await watch.checked.wait()
        request = asyncio.create_task(watch.check_now())
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running}, timeout=DEADLINE)
        assert running.cancelled(), steps
        request.cancel()


async def test_readiness_says_that_no_thread_is_left(place: Town, release: threading.Event) -> None:
    busy = [asyncio.create_task(asyncio.to_thread(release.wait)) for _ in range(MOST_THREADS)]
    await asyncio.sleep(0)
    probe = asyncio.create_task(place.bot.threads.probe())
    await asyncio.sleep(0)
    assert await reason(place) == ""
    place.bot.threads.clock = in_an_hour
    assert "all 16 threads for blocking work have been busy for 36" in await reason(place)
    release.set()
    await asyncio.gather(*busy, probe)
    assert await reason(place) == ""


async def test_readiness_says_that_no_process_is_left_while_commands_are_still_answered(place: Town) -> None:
    pool, owner = place.bot.services.part(POOL), Owner("octocat/compiler", "1")
    jobs = [asyncio.create_task(pool.run(owner, ENDLESS, hostile.backtrack)) for _ in range(5)]
    await until(lambda: pool.waiting)
    assert await reason(place) == ""
    pull = place.repo.open_pull_request("hubot", "Faster")
    pull.comment("hubot", "@ci help")
    await place.quiet()
    assert len(place.answers(pull)) == 1
    assert pool.waiting, "nothing was answered because a process was free again"
    assert (await place.ask("/healthz"))[0] == 200
    pool.clock = in_an_hour
    assert "although some are waiting" in await reason(place)
    for job in jobs:
        job.cancel()
    await asyncio.gather(*jobs, return_exceptions=True)
    assert await reason(place) == ""
