"""Set how a process manages memory: the C library's allocator, and the garbage collector."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

# Numbers of glibc's malloc.h, see mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8

LARGE = 128 * 1024
"""Bytes from which malloc maps a block by itself, and returns it to the system when it is freed.

This is glibc's own default. Without the setting, glibc raises it to up to 32 MiB once such a block was freed. Large
bodies then leave holes that the process never returns.
"""
OBJECTS_AT_ONCE = 10_000
"""New objects after which the garbage collector runs. Python's default is 700, and the bot often makes thousands."""
ARENAS = 2
"""Heaps that threads share. By default, glibc makes up to eight for a core, and each keeps its largest size."""


def return_freed_memory() -> None:
    """Set the allocator's limits. Call it once in a process, before it has threads. Does nothing without glibc."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    for option, value in ((_MMAP_THRESHOLD, LARGE), (_TRIM_THRESHOLD, LARGE), (_ARENA_MAX, ARENAS)):
        mallopt(ctypes.c_int(option), ctypes.c_int(value))


def freeze_startup_objects() -> None:
    """Exempt existing objects from garbage collection, and collect new ones less often. Call it after the start.

    Modules and the parts of the bot live as long as the process. Visiting them in each collection took a quarter of the
    time to store the results of a run: https://docs.python.org/3/library/gc.html#gc.freeze

    What the start itself has freed goes back to the system, where the C library can do that (malloc_trim(3)).
    """
    # Collect first: frozen garbage is never freed. After a change of app.yaml, that is what the earlier start froze.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_AT_ONCE)
    gc.enable()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
