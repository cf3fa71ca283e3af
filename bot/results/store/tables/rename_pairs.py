"""The tests that were renamed from one point of a series to the next: one compressed row for all of them.

A runner that changes its rule for names renames thousands of tests in each series. A row for each cost 35 bytes with
its indices; here, a pair is a byte or two.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import sqlalchemy as sa

from bot.results.store.tables import schema
from bot.results.store.tables.blobs import compressed, raw

BYTES = 4
"""The size of an ordinal: the place of a name among those of its suite."""


class RenamePairs:
    """Pairs of a new and an old ordinal of renamed tests. Either one finds the other."""

    __slots__ = ("_by_old", "_new", "_new_of", "_old_of")

    def __init__(self, blob: bytes) -> None:
        planes = memoryview(raw(blob))
        count = len(planes) // BYTES
        interleaved = bytearray(len(planes))
        for plane in range(BYTES):
            interleaved[plane::BYTES] = planes[plane * count : (plane + 1) * count]
        numbers = array("I", bytes(interleaved))
        # Stored as little-endian, so that a database can move to another machine.
        if sys.byteorder == "big":
            numbers.byteswap()
        pairs = count // 4
        self._new, self._old_of, self._by_old, self._new_of = (
            numbers[side * pairs : (side + 1) * pairs] for side in range(4)
        )

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the new and the old ordinal of each pair."""
        return zip(self._new, self._old_of, strict=True)

    def old_of(self, new: int) -> int | None:
        """Return the old ordinal of a renamed test; None if it was not renamed."""
        return _paired(self._new, self._old_of, new)

    def new_of(self, old: int) -> int | None:
        """Return the new ordinal of a renamed test; None if it was not renamed."""
        return _paired(self._by_old, self._new_of, old)


def _paired(keys: array[int], values: array[int], key: int) -> int | None:
    index = bisect_left(keys, key)
    return values[index] if index < len(keys) and keys[index] == key else None


class PointRenames(NamedTuple):
    """The renames at a commit of a series; `position` is the commit's position in the series."""

    series_id: int
    position: tuple[float, str]
    pairs: RenamePairs


def pairs_blob(old_of: Mapping[int, int]) -> bytes:
    """Write pairs as a blob, once sorted by the new ordinal, and once by the old one, so that either finds the other.

    The first bytes of all numbers come first, then the second bytes, and so on. Ordinals mostly follow each other, so
    the higher bytes repeat and compress to nearly nothing.
    """
    old = old_of.__getitem__
    by_new = sorted(old_of)
    by_old = sorted(by_new, key=old)
    numbers = array("I", chain(by_new, map(old, by_new), map(old, by_old), by_old))
    if sys.byteorder == "big":
        numbers.byteswap()
    data = numbers.tobytes()
    return compressed(b"".join(data[plane::BYTES] for plane in range(BYTES)))


# Made once, because making the statement takes longer than answering it.
_RENAMES = (
    sa.select(schema.renames.c.series_id, schema.points.c.committed_at, schema.points.c.sha, schema.renames.c.pairs)
    .join(schema.points)
    .where(schema.renames.c.series_id.in_(sa.bindparam("numbers", expanding=True)))
    .order_by(schema.points.c.committed_at, schema.points.c.sha)
)


def renames_of(connection: sa.Connection, series: Collection[int]) -> list[PointRenames]:
    """Return the renames of some series, in the order of commits."""
    return [
        PointRenames(row.series_id, (row.committed_at, row.sha), RenamePairs(row.pairs))
        for row in connection.execute(_RENAMES, {"numbers": list(series)})
    ]
