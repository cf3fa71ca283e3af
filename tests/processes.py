"""Share the processes that read text from outside among the tests of a worker: a start costs more than most tests.

Each job runs in a process that is forked for it and ends with it, so no state of a test remains for the next one.
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
    # Not after an error, because its jobs may still run.
    assert not pool.waiting
    _idle.append(pool)


def _started() -> Pool:
    pool = new_pool()
    atexit.register(pool.close)
    return pool
