"""Set how a process manages memory: the C library's allocator, and the garbage collector."""

from __future__ import annotations

import ctypes
import gc

# Numbers of glibc's malloc.h, see mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

LARGE = 128 * 1024
"""Bytes from which malloc maps a block by itself, and returns it to the system when it is freed.

This is glibc's own default. Without the setting, glibc raises it to up to 32 MiB once such a block was freed, and large
bodies then leave holes that are never returned.
"""
OBJECTS_AT_ONCE = 10_000
"""New objects after which the garbage collector runs. Python's default is 700, and the bot often makes thousands."""
ARENAS = 2
"""Heaps that threads share. By default, glibc makes up to eight for a core, and each keeps its largest size."""


def return_freed_memory() -> None:
    """Set the allocator's limits, once for the process and before it has threads; without glibc nothing is done."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    for option, value in ((_MMAP_THRESHOLD, LARGE), (_TRIM_THRESHOLD, LARGE), (_ARENA_MAX, ARENAS)):
        mallopt(ctypes.c_int(option), ctypes.c_int(value))


def collect_what_comes_later() -> None:
    """Exempt existing objects from garbage collection, and collect new ones less often; call it after the start.

    Modules and the parts of the bot live as long as the process. When the collector visited them each time, that took a
    quarter of the time to store the results of a run: https://docs.python.org/3/library/gc.html#gc.freeze
    """
    # Collect first: what is garbage when it is frozen is never freed.
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_AT_ONCE)
