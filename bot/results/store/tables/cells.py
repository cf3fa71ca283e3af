"""Count the results of a suite at a commit, compared with the commit before: on whole columns, without I/O.

The classes are those of `bot.results.compare.diff`: a new failure is a test that fails and did not fail before, whether
it passed, was skipped or was absent then. One of our tests compares both modules.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from itertools import accumulate
from operator import itemgetter

from nightjar_formats.columns import (
    ABSENT,
    BAD_CODES,
    CODES,
    FLAKY,
    GOOD_CODES,
    STATUS_BITS,
    STATUS_BYTES,
    at,
    is_flaky,
    status_of,
)
from nightjar_formats.model import BAD, Status


@dataclass(frozen=True, slots=True)
class CellCounts:
    """The counts of a cell of the grid.

    `new` counts the new ones among the `failed`. Flaky tests count in `flaky` and in one of the others.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    flaky: int = 0
    new: int = 0
    fixed: int = 0

    def __add__(self, other: CellCounts) -> CellCounts:
        """Add the counts of two cells."""
        return CellCounts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def total(self) -> int:
        """Return the number of tests."""
        return self.passed + self.failed + self.skipped


NO_TESTS = CellCounts()
PAIRS = STATUS_BYTES * STATUS_BYTES
"""Bytes of a `paired_column` are less than this."""


def _is(codes: Iterable[int]) -> bytes:
    statuses = set(codes)
    return bytes(byte < STATUS_BYTES and byte & STATUS_BITS in statuses for byte in range(256))


_GOOD, _BAD, _SKIPPED = _is(GOOD_CODES), _is(BAD_CODES), _is([CODES[Status.SKIPPED]])
_PRESENT = bytes(byte % STATUS_BYTES > 0 for byte in range(256))
_FIELDS = range(len(fields(CellCounts)))
_FLAKY = bytes(byte < STATUS_BYTES and bool(byte & FLAKY) for byte in range(256))
_FAILED = CODES[Status.FAILED]


FAILS = frozenset(byte for byte in range(STATUS_BYTES) if status_of(byte) in BAD and not is_flaky(byte))
"""The status bytes of failures; a flaky one passed on the same commit."""
IS_FAILURE = bytes(byte in FAILS for byte in range(256))


def renamed_column(column: bytes, renames: Mapping[int, int]) -> bytes:
    """Return a column with renamed tests at their new positions; `renames` has old positions by new ones."""
    if not renames:
        return column
    renamed = bytearray(column.ljust(max(renames) + 1, b"\0"))
    # All old ordinals first: the new ordinal of one test may be the old one of another.
    for old in renames.values():
        if old < len(renamed):
            renamed[old] = ABSENT
    for new, old in renames.items():
        renamed[new] = at(column, old)
    return bytes(renamed)


def explained_column(column: bytes, places: Collection[int]) -> bytes:
    """Return a column in which the tests at these ordinals failed already, so that their failures are not new."""
    if not places:
        return column
    explained = bytearray(column.ljust(max(places) + 1, b"\0"))
    for place in places:
        explained[place] = _FAILED
    return bytes(explained)


def count_cell(previous: bytes | None, column: bytes) -> CellCounts:
    """Count the tests of a column; `previous` is the column of the commit before, None where there is none."""
    bad = column.translate(_BAD)
    new = fixed = 0
    if previous is not None:
        # Tests beyond the end of `column` are absent, so they are neither new nor fixed.
        was_bad = _number(previous.translate(_BAD)[: len(column)])
        new = (_number(bad) & ~was_bad).bit_count()
        fixed = (_number(column.translate(_GOOD)) & was_bad).bit_count()
    good, skipped, flaky = (column.translate(table).count(1) for table in (_GOOD, _SKIPPED, _FLAKY))
    return CellCounts(good, bad.count(1), skipped, flaky, new, fixed)


def new_failures(previous: bytes | None, column: bytes) -> list[int]:
    """Return the ordinals of the tests that fail and did not fail before."""
    if previous is None:
        return []
    fresh = _number(column.translate(_BAD)) & ~_number(previous.translate(_BAD)[: len(column)])
    return marked_places(fresh.to_bytes(len(column), "little")) if fresh else []


def both_marked(first: bytes, second: bytes) -> bytes:
    """Return a column with 1 where both columns of 0 and 1 have 1."""
    return (_number(first) & _number(second)).to_bytes(max(len(first), len(second)), "little")


def marked_places(column: bytes, most: int = sys.maxsize) -> list[int]:
    """Return the first ordinals at which a column has 1. The search skips all others in C."""
    places, place = list[int](), column.find(1)
    while place >= 0 and len(places) < most:
        places.append(place)
        place = column.find(1, place + 1)
    return places


def paired_column(previous: bytes | None, column: bytes) -> bytes:
    """Return one byte for each test of a column: its status byte before, times 16, and its status byte now."""
    # A status byte is less than `STATUS_BYTES`, so both fit into one byte, and no test runs over into its neighbor.
    shifted = _number((previous or b"")[: len(column)]) * STATUS_BYTES
    return (shifted | _number(column)).to_bytes(len(column), "little")


class TestGroups:
    """Groups of tests of a suite, whose tests are counted group by group; `groups` has the ordinals of each one."""

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        places = [place for group in groups for place in group]
        self._ends = list(accumulate(map(len, groups)))
        self._names = max(places, default=-1) + 1
        # An `itemgetter` of one item returns no tuple, so there is always one more.
        self._items = itemgetter(*places, 0, 0)

    def count(self, previous: bytes | None, column: bytes) -> list[CellCounts]:
        """Count the tests of each group; `previous` is the column of the commit before, None where there is none."""
        # Tests beyond the end of a column are absent.
        pairs = paired_column(previous, column).ljust(max(self._names, 1), b"\0")
        picked = bytes(self._items(pairs))
        counts_of = _counts_of_pairs(has_before=previous is not None)
        seen = [pair for pair in set(picked) if pair % STATUS_BYTES]
        counted = list[CellCounts]()
        start = 0
        for end in self._ends:
            times = [(counts_of[pair], picked.count(pair, start, end)) for pair in seen]
            counted.append(CellCounts(*(sum(counts[field] * time for counts, time in times) for field in _FIELDS)))
            start = end
        return counted


def seen_tests(columns: Iterable[bytes], names: int) -> bytes:
    """Return one byte for each of `names` tests of a suite: 1 if it is in one of the columns."""
    marks = 0
    for column in columns:
        marks |= _number(column.translate(_PRESENT))
    return marks.to_bytes(names, "little")


@cache
def _counts_of_pairs(*, has_before: bool) -> list[tuple[int, ...]]:
    """Return what each byte of a `paired_column` counts."""
    pairs = (divmod(pair, STATUS_BYTES) for pair in range(PAIRS))
    return [
        astuple(count_cell(bytes([previous]) if has_before else None, bytes([status]))) for previous, status in pairs
    ]


def _number(column: bytes) -> int:
    # Operations on large numbers run in C, for all tests of a column at once.
    return int.from_bytes(column, "little")
