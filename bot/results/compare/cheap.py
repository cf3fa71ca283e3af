"""Whether two runs can be compared at once: not in a process of its own with limits. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from nightjar_formats.model import SeenTest

from bot.results.compare.restructured import SMALL_CLASS

MOST_CHEAP_TESTS = 100_000
MOST_CHEAP_MESSAGES = 1_000


def is_cheap(now: Mapping[str, SeenTest], before: Mapping[str, SeenTest] | None) -> bool:
    """Return whether to compare two runs takes some milliseconds, whatever their names and messages are.

    That is so where so few names came or were removed that no renamed tests are searched for, and few messages differ.
    """
    if len(now) + len(before or ()) > MOST_CHEAP_TESTS:
        return False
    messages = {id(seen) for seen in now.values() if seen.message}
    if len(messages) > MOST_CHEAP_MESSAGES:
        return False
    return before is None or min(len(before.keys() - now.keys()), len(now.keys() - before.keys())) < SMALL_CLASS
