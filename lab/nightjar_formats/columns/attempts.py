"""Fold the cases of one test, as packed numbers: attempts at it, and the same test in other places. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from nightjar_formats.columns import CODES, FLAKY, STATUS_BITS, STATUS_BYTES
from nightjar_formats.model import BAD, GOOD, Status

_SEVERITY = ("skipped", "xfailed", "passed", "xpassed", "errored", "failed")
_RANK = {CODES[Status(word)]: rank for rank, word in enumerate(_SEVERITY)}
_BAD = frozenset(CODES[status] for status in BAD)
_GOOD = frozenset(CODES[status] for status in GOOD)


class AttemptGroups:
    """Folds the attempts of one group after another, and each group with the cases before it.

    `own` has what the group alone says about its tests; None without a group, and in the first one, whose tests are
    all that there are, as in nearly all files.
    """

    __slots__ = ("_before", "group", "own")

    def __init__(self) -> None:
        self.group = 0
        self.own: dict[int, int] | None = None
        self._before: dict[int, int] = {}  # what the cases before the group say about its tests

    def begin(self, group: int, tests: Mapping[int, int]) -> None:
        """Begin a group after these tests, unless it is the current one already."""
        if group != self.group:
            self.group = group
            self.own = {} if group and tests else None
            self._before = {}

    def fold(self, tests: Mapping[int, int], key: int, now: int) -> tuple[int, bool]:
        """Fold a case into those of a known test; the second value says whether this case is the one that counts."""
        if self.own is None:
            return (_attempts if self.group else worse)(tests[key], now)
        counts = True
        if key in self.own:
            now, counts = _attempts(self.own[key], now)
        else:
            self._before[key] = tests[key]
        self.own[key] = now
        if key in self._before:
            now, is_worse = worse(self._before[key], now)
            counts &= is_worse
        return now, counts


def _attempts(before: int, now: int) -> tuple[int, bool]:
    """Fold two attempts; the second value says whether the later one is the one that counts."""
    one, other = before & STATUS_BITS, now & STATUS_BITS
    if one in _BAD or other in _BAD:
        # Attempts that looked passed were no passes, so what they made flaky is not.
        packed, later = _joined(before, now, later=one not in _BAD)
        return packed & ~FLAKY | (now if later else before) & FLAKY, later
    packed, later = _joined(before, now, later=other in _GOOD or one == other)
    return (packed | FLAKY if one in _GOOD and other in _GOOD else packed), later


def worse(before: int, now: int) -> tuple[int, bool]:
    """Fold a test in two places; the second value says whether the later one is worse, so that it counts."""
    return _joined(before, now, later=_RANK[now & STATUS_BITS] > _RANK[before & STATUS_BITS])


def _joined(before: int, now: int, *, later: bool) -> tuple[int, bool]:
    status = (now if later else before) & STATUS_BITS
    duration = max(before // STATUS_BYTES, now // STATUS_BYTES)
    return status | (before | now) & FLAKY | duration * STATUS_BYTES, later
