"""Read long texts in a thread, so that the event loop continues.

The Markdown parser takes two seconds for a hostile text of GitHub's greatest length (65,536 characters). On the event
loop, the server would answer no webhook in that time.

A thread has no limits. So a function that runs here must take time in proportion to its text, and the text must have a
bounded length: tests/test_text_work.py and tests/test_handler_work.py count the steps of each function. Separate
processes read all other text from outside (`bot.core.untrusted`).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TypeVar

LONG_TEXT = 1000
"""Characters; the hardest text of this length takes about 30 ms."""

TURN = 0.0005
"""Seconds after which a computing thread lets others run. With Python's own 5 ms, the database's thread and the event
loop, which wait several times for each delivery, would be ten times as slow meanwhile."""

Result = TypeVar("Result")


def shorten_thread_switch_interval() -> None:
    """Let other threads run sooner while one computes. Call it once in a process."""
    sys.setswitchinterval(TURN)


async def run_in_thread(read: Callable[[], Result], *texts: str | None) -> Result:
    """Return the result of `read`; run it in a thread if `texts` are long, so that the event loop continues."""
    if sum(len(text or "") for text in texts) > LONG_TEXT:
        return await asyncio.to_thread(read)
    return read()
