"""Count the results of a suite at a commit, compared with the commit before: on whole columns, without I/O.

The classes are those of `bot.results.compare.diff`: a new failure is a test that fails and did not fail before, whether
it passed, was skipped or was absent then. One of our tests compares both modules.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
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

    `new` counts the new ones among the `failed`, and `known` those that flakiness or a quarantine explains. Flaky tests
    count in `flaky` and in one of the others.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    flaky: int = 0
    new: int = 0
    fixed: int = 0
    known: int = 0

    def __add__(self, other: CellCounts) -> CellCounts:
        """Add the counts of two cells."""
        return CellCounts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def total(self) -> int:
        """Return the number of tests."""
        return self.passed + self.failed + self.skipped

    @property
    def failing(self) -> int:
        """Return the number of failures that nothing explains."""
        return self.failed - self.known


NO_TESTS = CellCounts()
PAIRS = STATUS_BYTES * STATUS_BYTES
"""Bytes of a `paired_column` are less than this."""


def _is(codes: Iterable[int]) -> bytes:
    statuses = set(codes)
    return bytes(byte < STATUS_BYTES and byte & STATUS_BITS in statuses for byte in range(256))


_GOOD, _BAD, _SKIPPED = _is(GOOD_CODES), _is(BAD_CODES), _is([CODES[Status.SKIPPED]])
IS_PRESENT = bytes(byte % STATUS_BYTES > 0 for byte in range(256))
"""Translates a status column into 1 for each test that is present, and 0 for others."""
RAN = bytes(0 < byte < STATUS_BYTES and byte & STATUS_BITS != CODES[Status.SKIPPED] for byte in range(256))
"""Translates a status column into 1 for each test that ran, and 0 for others."""
IS_FLAKY = bytes(byte < STATUS_BYTES and bool(byte & FLAKY) for byte in range(256))
KNOWN = 7
"""In the column of the commit before, and only in memory: a quarantine or flakiness explains the test's failure now.

No status has this number.
"""
UNCOMPARED = FLAKY
"""In the column of the commit before, and only in memory: there is no such commit. An absent test is never flaky."""
_WAS_BAD = _is([*BAD_CODES, KNOWN])
_WAS_KNOWN = _is([KNOWN])
_NEVER_NEW = bytes(byte == UNCOMPARED or bool(_WAS_BAD[byte]) for byte in range(256))


FAILS = frozenset(byte for byte in range(STATUS_BYTES) if status_of(byte) in BAD and not is_flaky(byte))
"""The status bytes of failures; a flaky one passed on the same commit."""
PASSES = frozenset(byte for byte in range(STATUS_BYTES) if byte & STATUS_BITS in GOOD_CODES and not is_flaky(byte))
"""The status bytes of passes; a flaky one failed on the same commit."""
IS_FAILURE = bytes(byte in FAILS for byte in range(256))
_IS_PASS = bytes(byte in PASSES for byte in range(256))
IS_FLAKY_FAILURE = bytes(byte < STATUS_BYTES and bool(_BAD[byte] and byte & FLAKY) for byte in range(256))


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


def explained_column(previous: bytes | None, places: Collection[int], column: bytes) -> bytes | None:
    """Return a column of the commit before in which the tests at these ordinals are `KNOWN`.

    `previous` is None if there is no such commit: then all others are `UNCOMPARED`, as long as the `column` now.
    """
    if not places:
        return previous
    before = bytes([UNCOMPARED]) * len(column) if previous is None else previous
    explained = bytearray(before.ljust(max(places) + 1, b"\0"))
    for place in places:
        explained[place] = KNOWN
    return bytes(explained)


def count_cell(previous: bytes | None, column: bytes) -> CellCounts:
    """Count the tests of a column; `previous` is the column of the commit before, None where there is none."""
    bad = column.translate(_BAD)
    known = _number(column.translate(IS_FLAKY_FAILURE))
    new = fixed = 0
    if previous is not None:
        # Tests beyond the end of `column` are absent, so they are neither new nor fixed.
        was_bad, never_new = (_number(previous.translate(table)[: len(column)]) for table in (_WAS_BAD, _NEVER_NEW))
        known |= _number(bad) & _number(previous.translate(_WAS_KNOWN)[: len(column)])
        new = (_number(bad) & ~never_new & ~known).bit_count()
        fixed = (_number(column.translate(_GOOD)) & was_bad).bit_count()
    good, skipped, flaky = (column.translate(table).count(1) for table in (_GOOD, _SKIPPED, IS_FLAKY))
    return CellCounts(good, bad.count(1), skipped, flaky, new, fixed, known.bit_count())


def failing_marks(previous: bytes | None, column: bytes) -> bytes:
    """Return a column with 1 for each failure that nothing explains; `previous` is as in `count_cell`."""
    known = _number((previous or b"")[: len(column)].translate(_WAS_KNOWN))
    return (_number(column.translate(IS_FAILURE)) & ~known).to_bytes(len(column), "little")


def passing_marks(column: bytes) -> bytes:
    """Return a column with 1 for each test that passed, and did not also fail."""
    return column.translate(_IS_PASS)


def marked_in_any(column: bytes, others: Iterable[bytes]) -> bytes:
    """Return a column of 0 and 1 with 1 only where one of the others has 1 too; empty if it has none."""
    marks = 0
    for other in others:
        marks |= _number(other[: len(column)])
    marks &= _number(column)
    return marks.to_bytes(len(column), "little") if marks else b""


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
    """Groups of tests, which are counted by group; `groups` has the sorted ordinals of each one, at least one."""

    def __init__(self, groups: Sequence[Sequence[int]]) -> None:
        self._names = max((group[-1] for group in groups), default=0) + 1
        self._spans = list[tuple[int, int]]()
        scattered = list[int]()
        for group in groups:
            # Mostly the tests of a folder follow each other. The others are copied to behind the column.
            if group[-1] - group[0] + 1 == len(group):
                self._spans.append((group[0], group[-1] + 1))
            else:
                start = self._names + len(scattered)
                self._spans.append((start, start + len(group)))
                scattered += group
        # An `itemgetter` of one item would return no tuple, but a group of one test is not scattered.
        self._scattered = itemgetter(*scattered) if scattered else None

    def count(self, previous: bytes | None, column: bytes) -> list[CellCounts]:
        """Count the tests of each group; `previous` is the column of the commit before, None where there is none."""
        pairs = self._with_scattered(paired_column(previous, column))
        tables = _marks_of_pairs(has_before=previous is not None)
        return list(map(CellCounts, *(self._count_ones(pairs.translate(table)) for table in tables)))

    def count_marked(self, column: bytes) -> list[int]:
        """Return how many tests of each group a column of 0 and 1 marks with 1."""
        return self._count_ones(self._with_scattered(column) if column else b"")

    def _count_ones(self, marks: bytes) -> list[int]:
        if 1 not in marks:
            return [0] * len(self._spans)
        return [marks.count(1, start, end) for start, end in self._spans]

    def _with_scattered(self, column: bytes) -> bytes:
        # Tests beyond the end of a column are absent.
        tests = column[: self._names].ljust(self._names, b"\0")
        return tests if self._scattered is None else tests + bytes(self._scattered(tests))


def seen_tests(columns: Iterable[bytes], names: int) -> bytes:
    """Return one byte for each of `names` tests of a suite: 1 if it is in one of the columns."""
    marks = 0
    for column in columns:
        marks |= _number(column.translate(IS_PRESENT))
    return marks.to_bytes(names, "little")


@cache
def _marks_of_pairs(*, has_before: bool) -> list[bytes]:
    """Return for each count of a cell the table that translates a `paired_column` into 1 for each test that counts."""
    pairs = (divmod(pair, STATUS_BYTES) for pair in range(PAIRS))
    counts = (
        astuple(count_cell(bytes([previous]) if has_before else None, bytes([status]))) for previous, status in pairs
    )
    return list(map(bytes, zip(*counts, strict=True)))


def _number(column: bytes) -> int:
    # Operations on large numbers run in C, for all tests of a column at once.
    return int.from_bytes(column, "little")
