"""Store a run as columns: one byte of status and one of duration for each test, in the order of the suite's names.

A status byte is 0 for a test that the run does not have, else the status's number, with FLAKY added for a flaky test.
A suite may have 300,000 tests, so these functions process whole columns with bytes and int operations, and loop over
single tests only where these cannot do it. No I/O.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import compress, count
from operator import ne

from nightjar_formats.model import BAD, SeenTest, Status

CODES = {
    Status.PASSED: 1,
    Status.FAILED: 2,
    Status.ERRORED: 3,
    Status.SKIPPED: 4,
    Status.XFAILED: 5,
    Status.XPASSED: 6,
}
"""The stored numbers of statuses. A released number never changes."""
FLAKY = 8
ABSENT = 0
STATUS_BITS = 7

_STATUSES = {code: status for status, code in CODES.items()}
GOOD_CODES = {CODES[status] for status in (Status.PASSED, Status.XFAILED, Status.XPASSED)}
BAD_CODES = {CODES[status] for status in BAD}

STATUS_BYTES = 16
"""The number of possible status bytes: each is less than this."""

LINEAR = 20
STEP = 1.06
UNKNOWN = 0
"""Codes 1 to 20 are whole milliseconds, the precision that pytest writes for short tests. Each further code stands for
a duration six percent longer than the previous code's, so a stored duration is at most three percent off. The last
code, for 4.6 hours, stands for all longer durations."""
MILLISECOND = 0.001
LAST = 255

CHUNK = 256
"""The number of tests in each piece of a comparison, so that equal pieces of columns are skipped at once."""


def _seconds() -> tuple[float, ...]:
    steps = LAST - LINEAR
    return (
        *(milliseconds * MILLISECOND for milliseconds in range(LINEAR)),
        *(LINEAR * MILLISECOND * STEP**step for step in range(steps)),
    )


_SECONDS = _seconds()
BOUNDS = tuple((seconds + next_seconds) / 2 for seconds, next_seconds in zip(_SECONDS, _SECONDS[1:]))
"""`bisect_right(BOUNDS, seconds) + 1` is the number of a duration."""


def duration_code(seconds: float | None) -> int:
    """Return the number that encodes a duration; UNKNOWN for None."""
    return UNKNOWN if seconds is None else bisect_right(BOUNDS, seconds) + 1


def duration(code: int) -> float | None:
    """Return the seconds that a number encodes; None for UNKNOWN."""
    return None if code == UNKNOWN else _SECONDS[code - 1]


def status_byte(status: Status, flaky: bool = False) -> int:
    """Return the status byte for a status, with or without FLAKY."""
    return CODES[status] | (FLAKY if flaky else 0)


def status_of(byte: int) -> Status | None:
    """Return the status in a byte; None if the run does not have the test."""
    return _STATUSES.get(byte & STATUS_BITS)


def is_flaky(byte: int) -> bool:
    """Say whether a byte marks the test as flaky."""
    return bool(byte & FLAKY)


def is_flip(earlier: int, later: int) -> bool:
    """Say whether a test changed from good to bad or back, or became flaky."""
    earlier_status, later_status = earlier & STATUS_BITS, later & STATUS_BITS
    has_turned = (earlier_status in GOOD_CODES and later_status in BAD_CODES) or (
        earlier_status in BAD_CODES and later_status in GOOD_CODES
    )
    return has_turned or (is_flaky(later) and not is_flaky(earlier))


SEEN = tuple(
    SeenTest(_STATUSES.get(byte & STATUS_BITS, Status.SKIPPED), is_flaky(byte)) for byte in range(STATUS_BYTES)
)
"""The test that each status byte describes on its own, if the run has the test."""


def _table(codes: set[int], value: int) -> bytes:
    return bytes(value if byte < STATUS_BYTES and byte & STATUS_BITS in codes else 0 for byte in range(256))


_PRESENT_MASK = _table(set(_STATUSES), 0xFF)
_GOOD_BIT = _table(GOOD_CODES, FLAKY)
_BAD_BIT = _table(BAD_CODES, FLAKY)
_STATUS_OF_LOW = bytes(byte % STATUS_BYTES for byte in range(256))
_HIGH_OF_LOW = bytes(byte // STATUS_BYTES for byte in range(256))
_LOW_OF_HIGH = bytes(byte % STATUS_BYTES * STATUS_BYTES for byte in range(256))
"""Tables for the two bytes of a packed number, which is duration code * STATUS_BYTES + status byte."""
_FLAKY_BIT = bytes(byte & FLAKY if byte < STATUS_BYTES else 0 for byte in range(256))


def merged(columns: Sequence[bytes]) -> bytes:
    """Merge the status columns of several runs, in the order of the runs.

    The last run that has a test decides its status. A test is flaky if it is flaky in any run, or good in one and bad
    in another.
    """
    if len(columns) == 1:
        return columns[0]
    last = flaky = good = bad = 0
    for column in columns:
        mask = _number(column.translate(_PRESENT_MASK))
        last = (last & ~mask) | _number(column)
        flaky |= _number(column.translate(_FLAKY_BIT))
        good |= _number(column.translate(_GOOD_BIT))
        bad |= _number(column.translate(_BAD_BIT))
    return (last | flaky | (good & bad)).to_bytes(max((len(column) for column in columns), default=0), "little")


def status_and_duration(packed: array[int]) -> tuple[bytes, bytes]:
    """Return the status bytes and the duration codes of tests; `packed` has one number with both for each test."""
    if sys.byteorder == "big":
        packed = array("H", packed)
        packed.byteswap()
    data = packed.tobytes()
    low, high = data[::2], data[1::2]
    durations = _number(low.translate(_HIGH_OF_LOW)) | _number(high.translate(_LOW_OF_HIGH))
    return low.translate(_STATUS_OF_LOW), durations.to_bytes(len(low), "little")


def good_and_bad(column: bytes) -> tuple[int, int]:
    """Count the good and the bad tests; skipped ones are neither."""
    return len(column) - column.translate(_GOOD_BIT).count(0), len(column) - column.translate(_BAD_BIT).count(0)


def _number(column: bytes) -> int:
    # As one large integer, a whole column takes part in AND and OR at the speed of the processor.
    return int.from_bytes(column, "little")


def differences(earlier: bytes, later: bytes) -> Iterator[int]:
    """Yield in order the tests whose bytes differ; tests beyond the end of a column are absent from it."""
    length = max(len(earlier), len(later))
    earlier, later = earlier.ljust(length, b"\0"), later.ljust(length, b"\0")
    for start in range(0, length, CHUNK):
        earlier_chunk, later_chunk = earlier[start : start + CHUNK], later[start : start + CHUNK]
        if earlier_chunk != later_chunk:
            yield from compress(count(start), map(ne, earlier_chunk, later_chunk))


def at(column: bytes, ordinal: int) -> int:
    """Return the byte of one test, ABSENT beyond the column's end."""
    return column[ordinal] if ordinal < len(column) else ABSENT
