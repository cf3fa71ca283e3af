"""Write and read blocks of numbers: exact doubles, each in one to three bytes if it is near that of other runs.

A double is stored as the decimal number with the fewest digits that is read back as the same double (`repr`), and of
that, only the difference from a base: the first value that the measurement ever had. So noise of two percent on 412.7
is stored as whole numbers up to 83. The base decides how many bytes a value takes, never the value.

A block has the numbers of up to BLOCK measurements of one run, compressed: a byte with the width, a byte for each
number of digits, then the differences, of all first their lowest bytes, then their second ones, because similar bytes
side by side compress better. No I/O.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

BLOCK = 64
"""Measurements in one block. 256 would take a fifth less room, but a series reads a block of each night, in three times
the time."""
_MANY = 4
"""From so many numbers on, it is faster to unpack a whole block."""
_ABSENT, _BITS = 254, 255
"""In place of digits: the run does not have the measurement; the bits of the double are stored instead."""
_MOST_DIGITS = 40
_DIFFERENCES = 1 << 64
_MOST_EXACT, _EXACT_POWERS = 1 << 53, [float(10**power) for power in range(23)]
"""Whole numbers and powers of ten up to these are exact as doubles, so dividing one by the other rounds once."""
_LEVEL, _RAW_DEFLATE = 6, -zlib.MAX_WBITS
_LARGEST = 1 + 9 * BLOCK
_DOUBLE, _WHOLE = struct.Struct("<d"), struct.Struct("<Q")


class Decimal(NamedTuple):
    """The number `digits` * 10 ** `exponent`."""

    digits: int
    exponent: int


def number_in(data: bytes, slot: int, base: Decimal) -> float | None:
    """Return the number in a slot of a block, whose measurement has this base; None if the run does not have it."""
    width = data[0]
    count = (len(data) - 1) // (width + 1)
    code = data[1 + slot] if slot < count else _ABSENT
    if code == _ABSENT:
        return None
    stored = int.from_bytes(data[1 + count + slot :: count], "little")
    if code == _BITS:
        bits: tuple[float] = _DOUBLE.unpack(_WHOLE.pack(stored))
        return bits[0]
    digits, exponent = base
    difference = -(stored >> 1) - 1 if stored & 1 else stored >> 1
    # The usual number has the digits of the base.
    return _double_of(digits * 10**code + difference if code else digits + difference, exponent - code)


def numbers_in(data: bytes, series: Sequence[tuple[int, Decimal]]) -> list[float | None]:
    """Return what `number_in` returns for several measurements, each a slot and its base, in a third of the time."""
    if len(series) < _MANY:
        return [number_in(data, slot, base) for slot, base in series]
    width = data[0]
    count = (len(data) - 1) // (width + 1)
    codes, stored = data[1 : 1 + count], bytearray(8 * count)
    for place in range(width):
        stored[place::8] = data[1 + count * (place + 1) : 1 + count * (place + 2)]
    differences = struct.unpack(f"<{count}Q", stored)
    numbers: list[float | None] = []
    for slot, base in series:
        if slot >= count or codes[slot]:
            numbers.append(number_in(data, slot, base))
            continue
        difference = differences[slot]
        numbers.append(_double_of(base[0] + (-(difference >> 1) - 1 if difference & 1 else difference >> 1), base[1]))
    return numbers


def slots_in(data: bytes) -> list[int]:
    """Return the slots of a block that have a number."""
    count = (len(data) - 1) // (data[0] + 1)
    return [slot for slot, code in enumerate(data[1 : 1 + count]) if code != _ABSENT]


def decimal_of(number: float) -> Decimal:
    """Return the decimal number with the fewest digits that is read back as the same finite double."""
    significand, _, power = repr(number).partition("e")
    whole, _, fraction = significand.partition(".")
    fraction = fraction.rstrip("0")
    return Decimal(int(whole + fraction), int(power or 0) - len(fraction))


def _double_of(digits: int, exponent: int) -> float:
    """Return the double that is nearest to a decimal number."""
    if -len(_EXACT_POWERS) < exponent <= 0 and -_MOST_EXACT <= digits <= _MOST_EXACT:
        return digits / _EXACT_POWERS[-exponent]
    return float(f"{digits}e{exponent}")


def block_of(numbers: Mapping[int, float], bases: Mapping[int, Decimal]) -> bytes:
    """Return the block with finite numbers, by slots; `bases` has the base of each."""
    count = max(numbers) + 1
    codes = bytearray((_ABSENT,)) * count
    stored = [0] * count
    for slot, number in numbers.items():
        codes[slot], stored[slot] = _stored(number, bases[slot])
    width = (max(stored).bit_length() + 7) // 8
    flat = b"".join(difference.to_bytes(width, "little") for difference in stored)
    data = bytes((width,)) + codes + b"".join(flat[place::width] for place in range(width))
    return zlib.compress(data, _LEVEL, _RAW_DEFLATE)


def read_block(blob: bytes) -> bytes:
    """Return what `block_of` wrote, decompressed, for `number_in` and `slots_in`."""
    # Not zstd, as for columns: for blocks as small as these, it takes five times as long, and they are larger.
    return zlib.decompress(blob, _RAW_DEFLATE, _LARGEST)


def _stored(number: float, base: Decimal) -> tuple[int, int]:
    """Return how many more digits than the base a number has, and its difference; or _BITS, and the bits."""
    digits, exponent = decimal_of(number)
    more = base.exponent - exponent
    if -_MOST_DIGITS < more < 0:
        digits, more = digits * 10**-more, 0
    if 0 <= more < _MOST_DIGITS and (digits or math.copysign(1, number) > 0):  # no decimal stands for -0.0
        difference = digits - base.digits * 10**more
        stored = -2 * difference - 1 if difference < 0 else 2 * difference
        if stored < _DIFFERENCES:
            return more, stored
    return _BITS, _WHOLE.unpack(_DOUBLE.pack(number))[0]
