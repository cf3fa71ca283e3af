"""Combine several cases of one test into one packed number, a duration code and a status byte. No I/O.

The cases are attempts at the test, or the same test in several places of a report.
"""

from __future__ import annotations

from collections.abc import Mapping

from nightjar_formats.columns import CODES, FLAKY, STATUS_BITS, STATUS_BYTES
from nightjar_formats.model import BAD, GOOD, Status

_SEVERITY = ("skipped", "xfailed", "passed", "xpassed", "errored", "failed")
_RANK = {CODES[Status(word)]: rank for rank, word in enumerate(_SEVERITY)}
_BAD = frozenset(CODES[status] for status in BAD)
_GOOD = frozenset(CODES[status] for status in GOOD)


class AttemptGroups:
    """Combines the attempts within each group, and each group with the cases before it.

    A group is one suite of a report, whose cases of one name are attempts at one test; 0 stands for no group. `own` has
    the packed numbers of the tests in the current group alone. It is None without a group, and in the first group of a
    file, because then `tests` has the same numbers; nearly all files have only one group.
    """

    __slots__ = ("_earlier", "group", "own")

    def __init__(self) -> None:
        self.group = 0
        self.own: dict[int, int] | None = None
        self._earlier: dict[int, int] = {}  # packed numbers of the group's tests from the cases before the group

    def begin(self, group: int, tests: Mapping[int, int]) -> None:
        """Begin a group after these tests, unless it is the current one already."""
        if group != self.group:
            self.group = group
            self.own = {} if group and tests else None
            self._earlier = {}

    def fold(self, tests: Mapping[int, int], key: int, packed: int) -> tuple[int, bool]:
        """Combine a case with the earlier cases of its test.

        `tests` has the packed number of each test so far, by the hash of its ID, `key`. Return the combined packed
        number, and whether the status and the reason are those of this case.
        """
        if self.own is None:
            return (_fold_attempts if self.group else worse)(tests[key], packed)
        counts = True
        if key in self.own:
            packed, counts = _fold_attempts(self.own[key], packed)
        else:
            self._earlier[key] = tests[key]
        self.own[key] = packed
        if key in self._earlier:
            packed, is_worse = worse(self._earlier[key], packed)
            counts &= is_worse
        return packed, counts


def _fold_attempts(earlier: int, later: int) -> tuple[int, bool]:
    """Combine two attempts. Return the packed number, and whether the later attempt decided its status."""
    earlier_status, later_status = earlier & STATUS_BITS, later & STATUS_BITS
    if earlier_status in _BAD or later_status in _BAD:
        # pytest writes a failed attempt that was rerun as if it had passed, so a pass beside it shows no flakiness.
        packed, takes_later = _combined(earlier, later, takes_later=earlier_status not in _BAD)
        return packed & ~FLAKY | (later if takes_later else earlier) & FLAKY, takes_later
    is_later = later_status in _GOOD or earlier_status == later_status
    packed, takes_later = _combined(earlier, later, takes_later=is_later)
    return (packed | FLAKY if earlier_status in _GOOD and later_status in _GOOD else packed), takes_later


def worse(earlier: int, later: int) -> tuple[int, bool]:
    """Combine one test's results from two places. Return the packed number, and whether the later result is worse."""
    return _combined(earlier, later, takes_later=_RANK[later & STATUS_BITS] > _RANK[earlier & STATUS_BITS])


def _combined(earlier: int, later: int, *, takes_later: bool) -> tuple[int, bool]:
    """Return the chosen status with the longer duration, flaky if either is, and `takes_later` unchanged."""
    status = (later if takes_later else earlier) & STATUS_BITS
    duration = max(earlier // STATUS_BYTES, later // STATUS_BYTES)
    return status | (earlier | later) & FLAKY | duration * STATUS_BYTES, takes_later
