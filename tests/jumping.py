"""A clock that jumps a minute whenever a test reads it, to find tests that compare two readings of a clock.

    NIGHTJAR_CLOCK_STEP=60 pytest -p tests.jumping tests/conversations

Two clocks jump: the sandbox GitHub's, when a test calls it or changes something there, and `time.time` and
`datetime.now` in the modules of tests. The product's own clock is real, and the sandbox's clock does not jump during
its requests over HTTP, because a minute for each would expire every token. For the same reason, the clocks jump at most
`FURTHEST` in one test. The monotonic clock does not jump, because time-outs compare no readings. In a test with the
marker `one_clock`, nothing jumps: it tests how the bot compares GitHub's or the test's clock with its own.
"""

from __future__ import annotations

import datetime
import os
import sys
import time
from pathlib import Path
from time import struct_time
from types import FrameType, ModuleType
from typing import Any

import pytest

from sandbox import clock as sandbox_clock

STEP = float(os.environ.get("NIGHTJAR_CLOCK_STEP", "0"))
FURTHEST = 50 * 60.0
"""Seconds: less than a token's hour, after which the bot would request another one."""
SANDBOX, TESTS = Path(sandbox_clock.__file__).parent, Path(__file__).parent


class Jump:
    """The time by which the clocks have jumped in the current test."""

    def __init__(self) -> None:
        self.begin(STEP)

    def begin(self, step: float) -> None:
        self._step, self.seconds = step, 0.0

    def once(self) -> float:
        self.seconds = min(self.seconds + self._step, FURTHEST)
        return self.seconds


JUMP = Jump()


class JumpingDatetime(datetime.datetime):
    """A `datetime` whose `now` jumps."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        return datetime.datetime.fromtimestamp(JUMPING.time(), tz)


class JumpingTimeModule(ModuleType):
    """The module `time` with another `time`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        return time.time() + (JUMP.once() if _is_read_by_a_test() else JUMP.seconds)

    def gmtime(self, seconds: float | None = None) -> struct_time:
        return time.gmtime(self.time() if seconds is None else seconds)


JUMPING = JumpingTimeModule("time")


def pytest_configure() -> None:
    """Let the sandbox's clock jump."""
    exactly = sandbox_clock.Clock._exactly

    def jumping(self: sandbox_clock.Clock) -> datetime.datetime:
        if self._stopped is not None:
            return self._stopped
        return exactly(self) + datetime.timedelta(seconds=JUMP.once() if _is_read_by_a_test() else JUMP.seconds)

    sandbox_clock.Clock._exactly = jumping  # type: ignore[method-assign]


def _is_read_by_a_test() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(str(SANDBOX)):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(str(TESTS))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin each test without a jump."""
    JUMP.begin(0.0 if item.get_closest_marker("one_clock") else STEP)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests' own clocks jump, once their modules are imported."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("tests.", "sandbox.")) and name != __name__:
            if getattr(module, "time", None) is time:
                module.time = JUMPING  # type: ignore[attr-defined]
            if name.startswith("tests.") and getattr(module, "datetime", None) is datetime.datetime:
                module.datetime = JumpingDatetime  # type: ignore[attr-defined]
