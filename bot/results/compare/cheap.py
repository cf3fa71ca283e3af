"""Decide whether comparing two runs in this process is cheap. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from nightjar_formats.model import SeenTest

from bot.results.compare.restructured import SMALL_CLASS

MOST_CHEAP_TESTS = 100_000
MOST_CHEAP_MESSAGES = 1_000


def is_cheap(current: Mapping[str, SeenTest], baseline: Mapping[str, SeenTest] | None) -> bool:
    """Return whether a comparison of two runs takes only milliseconds, whatever their names and messages are.

    It does if few messages differ, and so few names were added or removed that no search for renamed tests is made.
    """
    if len(current) + len(baseline or ()) > MOST_CHEAP_TESTS:
        return False
    messages = {id(seen) for seen in current.values() if seen.message}
    if len(messages) > MOST_CHEAP_MESSAGES:
        return False
    return (
        baseline is None
        or min(len(baseline.keys() - current.keys()), len(current.keys() - baseline.keys())) < SMALL_CLASS
    )
