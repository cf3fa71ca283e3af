"""Wait for a condition instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import traceback
from collections.abc import Callable

from tests.unclosed import in_transaction

DEADLINE = 1200.0
"""Seconds: far more than anything here takes on a machine with a load of 35, so that only a fault reaches it.

No test has another one (`tests/test_deadlines.py`): what a test waits for comes, and how soon depends on the machine.
"""

PAUSE, MOST = 0.01, 0.2
"""Seconds: the least and the most between two checks."""
SHARE = 0.1
"""How late a condition may be noticed, as a share of the time that it took: on a busy machine, checks are no load."""


async def until(condition: Callable[[], object], *, deadline: float = DEADLINE, pause: float = PAUSE) -> object:
    """Return the condition's value, awaited if necessary, as soon as it is true; fail after the deadline.

    It is checked after `pause` seconds, and the longer it takes, the less often: see `SHARE`.
    """
    # Of the loop, on which a busy machine costs no time: `tests.patient_loop`.
    clock = asyncio.get_running_loop().time
    begin = clock()
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        waited = clock() - begin
        if waited > deadline:
            message = f"not within {deadline} s: {getattr(condition, '__qualname__', condition)}"
            raise AssertionError("\n".join([message, *_possible_blockers()]))
        await asyncio.sleep(max(pause, min(waited * SHARE, MOST)))


def _possible_blockers() -> list[str]:
    """Return the open SQLite transactions of this process, and the stacks of its other threads."""
    here = threading.get_ident()
    stacks = [
        "".join(traceback.format_stack(frame, limit=12))
        for thread, frame in sys._current_frames().items()
        if thread != here
    ]
    return [f"in a transaction: {connection}" for connection in in_transaction()] + stacks
