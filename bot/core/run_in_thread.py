"""Read long texts beside the event loop.

A text of the greatest length that GitHub takes (65,536 characters), made to be hard to read, keeps the Markdown parser
busy for two seconds; meanwhile no webhook would be answered and no other pull request served.

A thread has no limits, so what runs here must take time in proportion to the text, and the text must be of bounded
length: tests/test_text_work.py and tests/test_handler_work.py count the steps of each function. All other text from
outside is read in processes of their own (`bot.core.untrusted`).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TypeVar

LONG_TEXT = 1000
"""Characters; the hardest text of this length takes about 30 ms."""

TURN = 0.0005
"""Seconds for which a thread that computes may keep the others waiting. By Python's own 5 ms, the database's thread and
the event loop, which give way several times for each delivery, would be ten times as slow meanwhile."""

Result = TypeVar("Result")


def give_way_sooner() -> None:
    """Let threads that compute give way sooner; call it once in a process."""
    sys.setswitchinterval(TURN)


async def run_in_thread(read: Callable[[], Result], *texts: str | None) -> Result:
    """Return the result of `read`; run it in a thread if `texts` are long, so that the event loop continues."""
    if sum(len(text or "") for text in texts) > LONG_TEXT:
        return await asyncio.to_thread(read)
    return read()
