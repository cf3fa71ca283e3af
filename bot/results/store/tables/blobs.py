"""Write and read the blobs of the store: columns, names, and the reasons of tests that did not simply pass."""

from __future__ import annotations

import json
import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise, repeat
from operator import sub
from typing import Any

from nightjar_formats import zstd
from nightjar_formats.columns import status_and_duration
from nightjar_formats.columns.collect import PIECE, Columns, NamesWriter, Reason, read_names
from nightjar_formats.columns.text_packs import LEVEL
from nightjar_formats.measurements import Measurement
from nightjar_formats.model import Trouble

_HEAD = struct.Struct("<II")
_TROUBLES = {trouble.value: trouble for trouble in Trouble}


@dataclass(frozen=True, slots=True)
class Reasons:
    """The reasons of tests that did not simply pass.

    `ordinals` are the tests, ascending; `numbers` has the place of each test's reason in `distinct`.
    """

    ordinals: Sequence[int]
    numbers: Sequence[int]
    distinct: list[Reason]


@dataclass(frozen=True, slots=True)
class RunColumns:
    """The stored results of one run: its status column, decompressed, and the reasons of its tests."""

    statuses: bytes
    reasons: Reasons


Measured = Sequence[tuple[int, tuple[Measurement, ...]]]
"""Ordinals of tests, each with what the test measured."""


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A run in the order of its suite's names: its compressed columns, and the names that are new in the suite.

    In `stored`, texts have the numbers that they have in the run. `measured` has the ordinals of the tests that
    measured something, with what they measured.
    """

    statuses: bytes
    durations: bytes
    stored: RunColumns
    new_count: int
    new_names: bytes
    measured: Measured


def compressed(raw: bytes) -> bytes:
    """Compress a blob."""
    return zstd.compress(raw, LEVEL)


def raw(blob: bytes) -> bytes:
    """Decompress a blob."""
    return zstd.decompress(blob)


def first_bytes(blob: bytes, count: int) -> bytes:
    """Return the first `count` bytes of a blob, or all if it has fewer, at two thirds of the cost of `raw`."""
    return zstd.ZstdDecompressor().decompress(blob, count)


Placed = Iterator[tuple[int | None, int]]
"""Ordinals of names in a suite, each with the hash of its test.

The ordinal is None for a name that the suite does not have. Some hashes may belong to no test of the run. A hash of 64
bits stands for a name, because 300,000 names take 50 MB; a collision occurs in one of 400 million such runs
(docs/decisions/results-as-columns.md).
"""


def placed_by_walk(name_blocks: Sequence[bytes]) -> Placed:
    """Yield the ordinals of all names of a suite, for suites whose names are too many for memory."""
    return enumerate(map(hash, read_names(name_blocks)))


def lay_out(columns: Columns, placed: Callable[[], Placed], count: int) -> LaidOut:
    """Put a run into the order of the `count` names that its suite has; new names follow them.

    Each call of `placed` returns an iterator over the tests that the suite has.
    """
    column = array("H", bytes(2 * count))
    tests, reasons = columns.tests, columns.reasons
    with_reasons: list[tuple[int, int]] = []
    matched = 0
    for ordinal, key in placed():
        if ordinal is not None and key in tests:
            matched += 1
            column[ordinal] = tests[key]
            if key in reasons:
                with_reasons.append((ordinal, reasons[key]))
    new_tests = _new_tests(tests, placed, matched)
    column.extend(new_tests.values())
    # `placed` may go through the names in the order of the run, but stored reasons are in the order of the suite.
    with_reasons.sort()
    with_reasons += ((ordinal, reasons[key]) for ordinal, key in enumerate(new_tests, count) if key in reasons)
    measured = [*_measured(columns, placed()), *_measured(columns, enumerate(new_tests, count))]
    return _laid_out(
        columns,
        column,
        [ordinal for ordinal, _ in with_reasons],
        [number for _, number in with_reasons],
        new_tests,
        measured,
    )


def lay_out_in_order(columns: Columns, *, is_new: bool) -> LaidOut:
    """Lay out a run whose names are those of its suite, in the same order, or are all new."""
    ordinals, numbers = _reasons_at(range(len(columns.tests)), columns)
    return _laid_out(
        columns,
        array("H", columns.tests.values()),
        ordinals,
        numbers,
        columns.tests if is_new else {},
        _measured(columns, enumerate(columns.tests)),
    )


def _measured(columns: Columns, placed: Placed) -> Measured:
    """Return the ordinals of the tests that measured something, with what they measured."""
    measurements = columns.measurements
    if not measurements:
        return []
    return [(ordinal, measurements[key]) for ordinal, key in placed if ordinal is not None and key in measurements]


def _reasons_at(ordinals: Sequence[int], columns: Columns) -> tuple[list[int], list[int]]:
    """Return the ordinals of the tests that did not simply pass, and the numbers of their reasons."""
    numbers = list(map(columns.reasons.get, columns.tests))
    explained = [ordinal for ordinal, number in zip(ordinals, numbers, strict=True) if number is not None]
    return explained, [number for number in numbers if number is not None]


class Placement:
    """The ordinals of a run's tests in its suite, cached so that the next run with the same tests needs no search."""

    __slots__ = ("_firsts", "_is_ascending", "_length", "_ordinals", "_starts")

    def __init__(self, ordinals: Sequence[int]) -> None:
        self._ordinals = array("I", ordinals)
        self._length = max(ordinals, default=-1) + 1
        # Ranges of tests that also follow each other in the suite. They are few, so they are copied as slices.
        breaks = [
            index for index, (ordinal, next_ordinal) in enumerate(pairwise(ordinals), 1) if next_ordinal != ordinal + 1
        ]
        self._starts = array("I", [0, *breaks])
        self._firsts = array("I", [ordinals[start] for start in self._starts] if ordinals else [])
        self._is_ascending = all(first < next_first for first, next_first in pairwise(self._firsts))

    def __len__(self) -> int:
        """Return how many tests there are."""
        return len(self._ordinals)

    def lay_out(self, columns: Columns) -> LaidOut:
        """Lay out a run that has exactly these tests."""
        packed = array("H", columns.tests.values())
        column = array("H", bytes(2 * self._length))
        for start, end, first in zip(self._starts, [*self._starts[1:], len(packed)], self._firsts, strict=False):
            column[first : first + end - start] = packed[start:end]
        ordinals, numbers = _reasons_at(self._ordinals, columns)
        if not self._is_ascending and ordinals:
            ordinals, numbers = map(list, zip(*sorted(zip(ordinals, numbers, strict=True)), strict=True))
        measured = _measured(columns, zip(self._ordinals, columns.tests, strict=True))
        return _laid_out(columns, column, ordinals, numbers, {}, measured)


def _laid_out(
    columns: Columns,
    column: array[int],
    ordinals: Sequence[int],
    numbers: Sequence[int],
    new_tests: dict[int, int],
    measured: Measured,
) -> LaidOut:
    # Zeros at the end need no room: beyond its end, a column reads as absent (`columns.at`).
    statuses, durations = (half.rstrip(b"\0") for half in status_and_duration(column))
    return LaidOut(
        compressed(statuses),
        compressed(durations),
        RunColumns(statuses, Reasons(array("I", ordinals), array("I", numbers), list(columns.whys))),
        len(new_tests),
        _names_of(columns, new_tests) if new_tests else b"",
        measured,
    )


def _new_tests(tests: dict[int, int], placed: Callable[[], Placed], matched: int) -> dict[int, int]:
    """Return the tests that the suite lacks; it has `matched` of them. Nothing is copied if that is none or all."""
    if matched in (0, len(tests)):
        return {} if matched else tests
    new_tests = dict(tests)
    for ordinal, key in placed():
        if ordinal is not None:
            new_tests.pop(key, None)
    return new_tests


def _names_of(columns: Columns, keys: Collection[int]) -> bytes:
    if len(keys) == len(columns.tests):
        return b"".join(columns.names)  # frames that follow each other are read as one
    return names_blob(name for name in read_names(columns.names) if hash(name) in keys)


def reasons_blob(reasons: Reasons) -> bytes:
    """Write reasons as a blob: JSON, then the distances between tests, then the numbers of reasons."""
    # A list for each field, because similar values side by side compress better. Numbers of texts mostly rise by one.
    texts = [reason.text for reason in reasons.distinct]
    fields = [
        [reason.trouble for reason in reasons.distinct],
        [reason.message for reason in reasons.distinct],
        [number - previous for previous, number in pairwise([0, *texts])],
        [reason.path for reason in reasons.distinct],
        [reason.line for reason in reasons.distinct],
        [reason.measures for reason in reasons.distinct],
    ]
    text = json.dumps(fields, separators=(",", ":")).encode()
    count = len(reasons.ordinals)
    distances = struct.pack(f"<{count}I", *map(sub, reasons.ordinals, chain([0], reasons.ordinals)))
    numbers = struct.pack(f"<{count}I", *reasons.numbers)
    return compressed(_HEAD.pack(len(text), count) + text + distances + numbers)


def read_columns(statuses: bytes, reasons: bytes | None) -> RunColumns:
    """Read the stored columns of a run."""
    return RunColumns(raw(statuses), read_reasons(reasons))


def read_reasons(blob: bytes | None) -> Reasons:
    """Read what `reasons_blob` wrote."""
    if blob is None:
        return Reasons([], [], [])
    (troubles, messages, texts, *remaining), ordinals, numbers = _unpacked_reasons(blob)
    fields = (map(_TROUBLES.__getitem__, troubles), messages, accumulate(texts), *remaining)
    # `Reason._make` would be a call of Python for each of thousands of reasons.
    reasons: list[Reason] = list(map(tuple.__new__, repeat(Reason), zip(*fields, strict=True)))
    return Reasons(ordinals, list(numbers), reasons)


def read_reason(blob: bytes | None, ordinal: int) -> Reason | None:
    """Return the reason of one test from what `reasons_blob` wrote; None if the test has none."""
    if blob is None:
        return None
    (troubles, messages, texts, *remaining), ordinals, numbers = _unpacked_reasons(blob)
    index = bisect_left(ordinals, ordinal)
    if index == len(ordinals) or ordinals[index] != ordinal:
        return None
    number = numbers[index]
    fields = (field[number] for field in remaining)
    return Reason(_TROUBLES[troubles[number]], messages[number], sum(texts[: number + 1]), *fields)


def _unpacked_reasons(blob: bytes) -> tuple[list[list[Any]], list[int], Sequence[int]]:
    """Return the fields of the distinct reasons, the tests with a reason, and the number of each test's reason."""
    data = raw(blob)
    length, count = _HEAD.unpack_from(data)
    fields = json.loads(data[_HEAD.size : _HEAD.size + length])  # noqa: TID251  # ours
    numbers = struct.unpack_from(f"<{2 * count}I", data, _HEAD.size + length)
    return fields, list(accumulate(numbers[:count])), numbers[count:]


def names_blob(names: Iterable[str]) -> bytes:
    """Write names as a block."""
    writer = NamesWriter()
    iterator = iter(names)
    while piece := list(islice(iterator, PIECE)):
        writer.write(piece)
    return writer.finish()
