"""Write and read the blobs of the store: columns, names, and the reasons of tests that did not simply pass."""

from __future__ import annotations

import json
import struct
import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise
from operator import sub

import zstandard
from nightjar_formats.columns import status_and_duration
from nightjar_formats.columns.collect import PIECE, Columns, NamesWriter, Reason, read_names
from nightjar_formats.columns.text_packs import LEVEL
from nightjar_formats.model import Trouble

_HEAD = struct.Struct("<II")
_TROUBLES = {trouble.value: trouble for trouble in Trouble}


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reasons of tests that did not simply pass: the tests' positions, ascending, and the number of each reason."""

    ordinals: Sequence[int]
    numbers: Sequence[int]
    whys: list[Reason]


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored results of one run."""

    statuses: bytes
    reasons: Reasons


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A run in the order of its suite's names: its compressed columns, and the names that are new in the suite.

    In `stored`, texts have the numbers that they have in the run.
    """

    statuses: bytes
    durations: bytes
    stored: Stored
    new: int
    new_names: bytes


def compressed(raw: bytes) -> bytes:
    """Compress a blob."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(raw)


class _OfThread(threading.local):
    """What decompresses in one thread: making it takes as long as decompressing a column, and threads cannot share."""

    def __init__(self) -> None:
        self.decompressor = zstandard.ZstdDecompressor()


_OF_THREAD = _OfThread()


def raw(blob: bytes) -> bytes:
    """Decompress a blob."""
    return _OF_THREAD.decompressor.decompress(blob)


Placed = Iterator[tuple[int | None, int]]
"""Positions among the names of a suite, each with the hash of its test.

The position is None for a name that the suite does not have. Some hashes may belong to no test of the run. A hash of 64
bits stands for a name, because 300,000 names take 50 MB; a collision occurs in one of 400 million such runs
(docs/decisions/results-as-columns.md).
"""


def placed_by_walk(known: Sequence[bytes]) -> Placed:
    """Yield the positions of all names of a suite, one by one, for suites whose names are too many for memory."""
    return enumerate(map(hash, read_names(known)))


def lay_out(columns: Columns, placed: Callable[[], Placed], count: int) -> LaidOut:
    """Put a run into the order of its suite's `count` known names; new names follow them.

    `placed` returns the known tests of the suite, each time it is called.
    """
    column = array("H", bytes(2 * count))
    tests, reasons = columns.tests, columns.reasons
    explained: list[tuple[int, int]] = []
    found = 0
    for ordinal, key in placed():
        if ordinal is not None and key in tests:
            found += 1
            column[ordinal] = tests[key]
            if key in reasons:
                explained.append((ordinal, reasons[key]))
    left = _left(tests, placed, found)
    column.extend(left.values())
    # `placed` may go through the names in the order of the run, but stored reasons are in the order of the suite.
    explained.sort()
    explained += ((ordinal, reasons[key]) for ordinal, key in enumerate(left, count) if key in reasons)
    return _laid_out(columns, column, [one for one, _ in explained], [number for _, number in explained], left)


def lay_out_in_order(columns: Columns, *, is_new: bool) -> LaidOut:
    """Lay out a run whose names are those of its suite, in the same order, or are all new."""
    ordinals, numbers = _reasons_at(range(len(columns.tests)), columns)
    return _laid_out(columns, array("H", columns.tests.values()), ordinals, numbers, columns.tests if is_new else {})


def _reasons_at(ordinals: Sequence[int], columns: Columns) -> tuple[list[int], list[int]]:
    """Return the places of the tests that did not simply pass, and the numbers of their reasons."""
    every = list(map(columns.reasons.get, columns.tests))
    places = [ordinal for ordinal, number in zip(ordinals, every, strict=True) if number is not None]
    return places, [number for number in every if number is not None]


class Placement:
    """The places of a run's tests among the names of its suite, stored so that the next run needs no search."""

    __slots__ = ("_firsts", "_is_ascending", "_length", "_ordinals", "_starts")

    def __init__(self, ordinals: Sequence[int]) -> None:
        self._ordinals = array("I", ordinals)
        self._length = max(ordinals, default=-1) + 1
        # Stretches of tests that also follow each other in the suite. They are few, so they are copied as slices.
        breaks = [at for at, (one, next_one) in enumerate(pairwise(ordinals), 1) if next_one != one + 1]
        self._starts = array("I", [0, *breaks])
        self._firsts = array("I", [ordinals[at] for at in self._starts] if ordinals else [])
        self._is_ascending = all(one < next_one for one, next_one in pairwise(self._firsts))

    def __len__(self) -> int:
        """Return how many tests there are."""
        return len(self._ordinals)

    def lay_out(self, columns: Columns) -> LaidOut:
        """Lay out a run of just these tests."""
        packed = array("H", columns.tests.values())
        column = array("H", bytes(2 * self._length))
        for start, end, first in zip(self._starts, [*self._starts[1:], len(packed)], self._firsts, strict=False):
            column[first : first + end - start] = packed[start:end]
        ordinals, numbers = _reasons_at(self._ordinals, columns)
        if not self._is_ascending and ordinals:
            ordinals, numbers = map(list, zip(*sorted(zip(ordinals, numbers, strict=True)), strict=True))
        return _laid_out(columns, column, ordinals, numbers, {})


def _laid_out(
    columns: Columns, column: array[int], ordinals: Sequence[int], numbers: Sequence[int], left: dict[int, int]
) -> LaidOut:
    # Zeros at the end need no room: beyond its end, a column reads as absent (`columns.at`).
    statuses, durations = (each.rstrip(b"\0") for each in status_and_duration(column))
    return LaidOut(
        compressed(statuses),
        compressed(durations),
        Stored(statuses, Reasons(array("I", ordinals), array("I", numbers), list(columns.whys))),
        len(left),
        _names_of(columns, left) if left else b"",
    )


def _left(tests: dict[int, int], placed: Callable[[], Placed], found: int) -> dict[int, int]:
    """Return the tests that the suite lacks; it has `found` of them. If that is none or all, nothing is copied."""
    if found in (0, len(tests)):
        return {} if found else tests
    left = dict(tests)
    for ordinal, key in placed():
        if ordinal is not None:
            left.pop(key, None)
    return left


def _names_of(columns: Columns, keys: Collection[int]) -> bytes:
    if len(keys) == len(columns.tests):
        return b"".join(columns.names)  # frames that follow each other are read as one
    return names_blob(name for name in read_names(columns.names) if hash(name) in keys)


def reasons_blob(reasons: Reasons) -> bytes:
    """Write reasons as a blob: JSON, then the distances between tests, then the numbers of reasons."""
    # A list for each field, because similar values side by side compress better. Numbers of texts mostly rise by one.
    texts = [why.text for why in reasons.whys]
    fields = [
        [why.trouble for why in reasons.whys],
        [why.message for why in reasons.whys],
        [one - before for before, one in pairwise([0, *texts])],
        [why.path for why in reasons.whys],
        [why.line for why in reasons.whys],
        [why.measures for why in reasons.whys],
    ]
    text = json.dumps(fields, separators=(",", ":")).encode()
    count = len(reasons.ordinals)
    distances = struct.pack(f"<{count}I", *map(sub, reasons.ordinals, chain([0], reasons.ordinals)))
    numbers = struct.pack(f"<{count}I", *reasons.numbers)
    return compressed(_HEAD.pack(len(text), count) + text + distances + numbers)


def read_reasons(blob: bytes | None) -> Reasons:
    """Read what `reasons_blob` wrote."""
    if blob is None:
        return Reasons([], [], [])
    data = raw(blob)
    length, count = _HEAD.unpack_from(data)
    troubles, messages, texts, *others = json.loads(data[_HEAD.size : _HEAD.size + length])  # noqa: TID251  # ours
    numbers = struct.unpack_from(f"<{2 * count}I", data, _HEAD.size + length)
    fields = (map(_TROUBLES.__getitem__, troubles), messages, accumulate(texts), *others)
    whys = list(map(Reason._make, zip(*fields, strict=True)))
    return Reasons(list(accumulate(numbers[:count])), list(numbers[count:]), whys)


def names_blob(names: Iterable[str]) -> bytes:
    """Write names as a block."""
    writer = NamesWriter()
    every = iter(names)
    while piece := list(islice(every, PIECE)):
        writer.write(piece)
    return writer.finish()
