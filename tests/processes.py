"""Processes that read text from outside, shared by the tests of a worker: to start them costs more than most tests.

A job works in a process that is forked for it and ends with it, so nothing of a test is left for the next one.
"""

from __future__ import annotations

import atexit
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.app.services import new_pool
from bot.core.untrusted.limits import AllLimits
from bot.core.untrusted.pool import Pool

_idle: list[Pool] = []


@asynccontextmanager
async def lent_pool() -> AsyncIterator[Pool]:
    """Lend a pool that nobody else uses meanwhile, with the usual limits."""
    pool = _idle.pop() if _idle else _started()
    pool.limits = AllLimits()
    yield pool
    # Not after an error: its jobs may go on.
    assert not pool.waiting
    _idle.append(pool)


def _started() -> Pool:
    pool = new_pool()
    atexit.register(pool.close)
    return pool
