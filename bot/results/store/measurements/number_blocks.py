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
from collections.abc import Mapping
from typing import NamedTuple

BLOCK = 256
"""Measurements in one block. More compress a little better, but a series reads a block for each night."""
_ABSENT, _BITS = 254, 255
"""In place of digits: the run does not have the measurement; the bits of the double are stored instead."""
_MOST_DIGITS = 40
_DIFFERENCES = 1 << 64
_MOST_EXACT, _EXACT_POWER = 1 << 53, 22
"""Whole numbers and powers of ten up to these are exact as doubles, so dividing one by the other rounds once."""
_LEVEL, _RAW_DEFLATE = 6, -zlib.MAX_WBITS
_LARGEST = 1 + 9 * BLOCK
_DOUBLE, _WHOLE = struct.Struct("<d"), struct.Struct("<Q")


class Decimal(NamedTuple):
    """The number `digits` * 10 ** `exponent`."""

    digits: int
    exponent: int


class NumberBlock(NamedTuple):
    """A block, decompressed."""

    data: bytes

    @property
    def slots(self) -> list[int]:
        """Return the slots with a number."""
        count = (len(self.data) - 1) // (self.data[0] + 1)
        return [slot for slot, code in enumerate(self.data[1 : 1 + count]) if code != _ABSENT]

    def number_of(self, slot: int, base: Decimal) -> float | None:
        """Return the number in a slot, whose measurement has this base; None if the run does not have it."""
        data = self.data
        width = data[0]
        count = (len(data) - 1) // (width + 1)
        code = data[1 + slot] if slot < count else _ABSENT
        if code == _ABSENT:
            return None
        stored = int.from_bytes(data[1 + count + slot :: count], "little")
        if code == _BITS:
            (number,) = _DOUBLE.unpack(_WHOLE.pack(stored))
            return float(number)
        difference = -(stored >> 1) - 1 if stored & 1 else stored >> 1
        return double_of(Decimal(base.digits * 10**code + difference, base.exponent - code))


def decimal_of(number: float) -> Decimal:
    """Return the decimal number with the fewest digits that is read back as the same finite double."""
    significand, _, power = repr(number).partition("e")
    whole, _, fraction = significand.partition(".")
    fraction = fraction.rstrip("0")
    return Decimal(int(whole + fraction), int(power or 0) - len(fraction))


def double_of(decimal: Decimal) -> float:
    """Return the double that is nearest to a decimal number."""
    digits, exponent = decimal
    if -_EXACT_POWER <= exponent <= 0 and -_MOST_EXACT <= digits <= _MOST_EXACT:
        power: int = 10**-exponent
        return digits / power
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


def read_block(blob: bytes) -> NumberBlock:
    """Return what `block_of` wrote."""
    # Not zstd, as for columns: for blocks as small as these, it takes five times as long, and they are larger.
    return NumberBlock(zlib.decompress(blob, _RAW_DEFLATE, _LARGEST))


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
