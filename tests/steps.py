"""Count the work of a function: steps of the interpreter, the lengths that C functions process, and memory.

Time is no measure, because it depends on the machine and its other users, and not every kernel counts instructions. So
this counts

- every instruction that the interpreter executes;
- for every call of a C method of a text, a list, and so on, its length, unless the method takes constant time: a `find`
  or an `index` in a loop counts, although it is one instruction each time;
- the most bytes that are held at the same time.

It does not count the work of operators (`a + b`, `a[1:]`, `a in b`) and of RE2, which is linear by construction.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Sized
from types import FrameType
from typing import Any

# fmt: off
_CONSTANT = frozenset({
    "__contains__", "__enter__", "__exit__", "__getitem__", "__len__", "__next__", "__setitem__", "add", "append",
    "appendleft", "clear", "close", "discard", "endswith", "get", "isascii", "items", "keys", "pop", "popitem",
    "popleft", "send", "setdefault", "startswith", "throw", "values",
})
# fmt: on
FAR = 2.8
"""Twice the input may cost at most this many times the work to count as linear; quadratic work costs 4 times."""


def assert_linear(make: Callable[[int], Callable[[], object]], size: int, *, memory: bool = False) -> None:
    """Assert that twice the input takes about twice the steps; with `memory`, that it holds about twice as much.

    `make` prepares a function for an input of a size.
    """
    # Values that are made once and cached, such as compiled patterns, do not count. Also, Python 3.14 reports each
    # instruction of a function only from its second traced call on.
    steps_of(make(8))
    once, twice = steps_of(make(size)), steps_of(make(2 * size))
    assert twice <= FAR * once + 2_000, f"{once} steps for {size}, {twice} for twice as much"
    if memory:
        once, twice = _memory(make(size)), _memory(make(2 * size))
        assert twice <= FAR * once + 20_000, f"{once} bytes for {size}, {twice} for twice as much"


def steps_of(function: Callable[[], object]) -> int:
    """Return the number of steps of a function."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        if event == "opcode":
            steps += 1
        elif event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return trace

    def profile(_: FrameType, event: str, called: Any) -> None:
        nonlocal steps
        if event == "c_call" and called.__name__ not in _CONSTANT:
            owner = getattr(called, "__self__", None)
            if isinstance(owner, Sized) and not isinstance(owner, type):
                steps += len(owner)

    before = sys.gettrace(), sys.getprofile()
    sys.setprofile(profile)
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return steps


def _memory(function: Callable[[], object]) -> int:
    gc.collect()
    gc.freeze()  # what other tests have left would make each collection take a second
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        result = function()
        peak = tracemalloc.get_traced_memory()[1]
        del result
    finally:
        if not was_tracing:
            tracemalloc.stop()
    return peak - before
