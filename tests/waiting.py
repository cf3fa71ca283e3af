"""Wait for a condition instead of sleeping."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable

DEADLINE = 60.0
"""Seconds: far more than anything here takes, so that only a fault meets it."""

PAUSE = 0.01


async def until(condition: Callable[[], object], *, deadline: float = DEADLINE, pause: float = PAUSE) -> object:
    """Return the condition's value, awaited if need be, as soon as it is true; fail when the deadline is over.

    It is checked once in each `pause`, in seconds.
    """
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline} s: {getattr(condition, '__qualname__', condition)}")
        await asyncio.sleep(pause)
