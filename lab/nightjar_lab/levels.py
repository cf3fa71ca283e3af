"""The levels of tests, from those that run on every pull request to those that run before a release.

A run of a level has all tests of that level and of the levels before it.
"""

from __future__ import annotations

PULL_REQUEST, MAIN, NIGHTLY, RELEASE = "pull-request", "main", "nightly", "release"
LEVELS = (PULL_REQUEST, MAIN, NIGHTLY, RELEASE)
"""Tests without a mark have the first level, and slow tests the second: `@pytest.mark.slow`, `NIGHTJAR_SLOW()`."""
VARIABLE = "NIGHTJAR_LEVEL"


def is_above(level: str, other: str) -> bool:
    """Say whether a level comes after another one."""
    return LEVELS.index(level) > LEVELS.index(other)
