"""Run the bot on uvloop if it is installed, because it takes less CPU time, otherwise on Python's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

_new_loop: Callable[[], asyncio.AbstractEventLoop]
try:
    import uvloop
except ImportError:  # not available for this machine
    _new_loop = asyncio.new_event_loop
else:
    _new_loop = uvloop.new_event_loop


def run_on_fastest_loop(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, as `asyncio.run`."""
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(main)


def loop_name() -> str:
    """Return the package of the running event loop: uvloop or asyncio."""
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]
