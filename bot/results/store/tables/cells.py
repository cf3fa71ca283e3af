"""Count the results of a suite at a commit, compared with the commit before: on whole columns, without I/O.

The classes are those of `bot.results.compare.diff`: a new failure is a test that fails and did not fail before, whether
it passed, was skipped or was absent then. One of our tests compares both modules.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from functools import cache
from operator import add

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
        return CellCounts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def total(self) -> int:
        """Return the number of tests."""
        return self.passed + self.failed + self.skipped


NO_TESTS = CellCounts()
PAIRS = STATUS_BYTES * STATUS_BYTES
"""Bytes of a `paired_column` are less than this."""


def _is(codes: Iterable[int]) -> bytes:
    wanted = set(codes)
    return bytes(byte < STATUS_BYTES and byte & STATUS_BITS in wanted for byte in range(256))


_GOOD, _BAD, _SKIPPED = _is(GOOD_CODES), _is(BAD_CODES), _is([CODES[Status.SKIPPED]])
_FLAKY = bytes(byte < STATUS_BYTES and bool(byte & FLAKY) for byte in range(256))
_FAILED = CODES[Status.FAILED]


FAILS = frozenset(byte for byte in range(STATUS_BYTES) if status_of(byte) in BAD and not is_flaky(byte))
"""The status bytes of failures; a flaky one passed on the same commit."""
IS_FAILURE = bytes(byte in FAILS for byte in range(256))


def renamed_column(before: bytes, renames: Mapping[int, int]) -> bytes:
    """Return a column with renamed tests at their new positions; `renames` has old positions by new ones."""
    if not renames:
        return before
    moved = bytearray(before.ljust(max(renames) + 1, b"\0"))
    # All old places first: the new place of one test may be the old one of another.
    for old in renames.values():
        if old < len(moved):
            moved[old] = ABSENT
    for new, old in renames.items():
        moved[new] = at(before, old)
    return bytes(moved)


def explained_column(before: bytes, places: Collection[int]) -> bytes:
    """Return a column in which some tests failed already, so that their failures are not new."""
    if not places:
        return before
    explained = bytearray(before.ljust(max(places) + 1, b"\0"))
    for place in places:
        explained[place] = _FAILED
    return bytes(explained)


def count_cell(before: bytes | None, now: bytes) -> CellCounts:
    """Count the tests of a column; `before` is that of the commit before, None where there is none."""
    bad = now.translate(_BAD)
    new = fixed = 0
    if before is not None:
        # Tests beyond the end of `now` are absent, so they are neither new nor fixed.
        was_bad = _number(before.translate(_BAD)[: len(now)])
        new = (_number(bad) & ~was_bad).bit_count()
        fixed = (_number(now.translate(_GOOD)) & was_bad).bit_count()
    good, skipped, flaky = (now.translate(table).count(1) for table in (_GOOD, _SKIPPED, _FLAKY))
    return CellCounts(good, bad.count(1), skipped, flaky, new, fixed)


def new_failures(before: bytes | None, now: bytes) -> list[int]:
    """Return the places of the tests that fail and did not fail before."""
    if before is None:
        return []
    fresh = _number(now.translate(_BAD)) & ~_number(before.translate(_BAD)[: len(now)])
    return marked_places(fresh.to_bytes(len(now), "little")) if fresh else []


def both_marked(one: bytes, other: bytes) -> bytes:
    """Return 1 where both of two columns of 0 and 1 have it."""
    return (_number(one) & _number(other)).to_bytes(max(len(one), len(other)), "little")


def marked_places(column: bytes, most: int = sys.maxsize) -> list[int]:
    """Return the first places that hold 1; mostly they are few, and found without a step for each of the others."""
    places, place = list[int](), column.find(1)
    while place >= 0 and len(places) < most:
        places.append(place)
        place = column.find(1, place + 1)
    return places


def paired_column(before: bytes | None, now: bytes) -> bytes:
    """Return one byte for each test of a column: its status byte before, times 16, and its status byte now."""
    # A status byte is less than `STATUS_BYTES`, so both fit into one byte, and no test runs over into its neighbor.
    was = _number((before or b"")[: len(now)]) * STATUS_BYTES
    return (was | _number(now)).to_bytes(len(now), "little")


def count_groups(before: bytes | None, now: bytes, groups: Sequence[int]) -> dict[int, CellCounts]:
    """Count the tests of each group of a column.

    `groups` has the number of the group of each place, times `PAIRS`; less than 0 for none.
    """
    sums: dict[int, list[int]] = {}
    counts_of = _counts_of_pairs(has_before=before is not None)
    for key, times in Counter(map(add, groups, paired_column(before, now))).items():
        group, pair = divmod(key, PAIRS)
        if pair % STATUS_BYTES and group >= 0:
            of_group = sums.setdefault(group, [0] * len(counts_of[pair]))
            for place, count in enumerate(counts_of[pair]):
                of_group[place] += times * count
    return {group: CellCounts(*of_group) for group, of_group in sums.items()}


@cache
def _counts_of_pairs(*, has_before: bool) -> list[tuple[int, ...]]:
    """Return what each byte of a `paired_column` counts."""
    pairs = (divmod(pair, STATUS_BYTES) for pair in range(PAIRS))
    return [astuple(count_cell(bytes([was]) if has_before else None, bytes([now]))) for was, now in pairs]


def _number(column: bytes) -> int:
    # Operations on large numbers run in C, for all tests of a column at once.
    return int.from_bytes(column, "little")
