"""Readiness reports that no thread is left for blocking work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from bot.core.threads import MOST_THREADS, PATIENCE, ThreadProbe, bound_threads


@pytest.fixture
async def release() -> AsyncIterator[threading.Event]:
    """Return an event that lets busy threads end."""
    event, pool = threading.Event(), bound_threads()
    yield event
    event.set()
    pool.shutdown()


async def test_an_exhausted_thread_pool_is_reported_and_a_short_wait_is_not(
    release: threading.Event,
) -> None:
    current_time = 100.0
    probe = ThreadProbe(lambda: current_time)
    await probe.probe()
    assert probe.problem() is None
    busy = [asyncio.create_task(asyncio.to_thread(release.wait)) for _ in range(MOST_THREADS)]
    await asyncio.sleep(0)  # the tasks take the threads
    asking = asyncio.create_task(probe.probe())
    await asyncio.sleep(0)
    current_time += PATIENCE
    assert probe.problem() is None
    current_time += 0.5
    assert probe.problem() == (
        "all 16 threads for blocking work have been busy for 16 s, so results and long texts wait; check the database "
        "and the log, and restart the process if this lasts"
    )
    release.set()
    await asyncio.gather(*busy, asking)
    assert probe.problem() is None
