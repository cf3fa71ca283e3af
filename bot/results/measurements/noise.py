"""Estimate how much a series varies from night to night, and how likely noise alone explains its newest values. No I/O.

A residual is the difference between the value of a night and the level before it. The residuals of a year show how wide
the noise of a series is, how often it has outliers, and how much neighbors have in common.

Noise explains the newest values in one of these ways: some of them are outliers, and the others are ordinary.

- Ordinary values have Student's t distribution. If neighbors have something in common, such as the temperature of a
  room, the mean of several varies more than if they were independent.
- The chance of so many outliers in a row follows from their number in the history, with Jeffreys' prior. So only a long
  history without outliers rules out that two of them come in two nights: 240 nights, or 90 for three.

Both are approximations. `tests/signal/measurements.py` measures how often they are wrong (docs/signal.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from statistics import median

from bot.results.measurements.student import quantile, upper_tail

TAIL_LIMITS = (2.0, 3.0, 4.0, 5.0)
"""Values beyond the first of these standard deviations may be outliers, as often as those beyond the same limit.

Only the last one counts if the noise is close to normal, whose values beyond the others are ordinary.
"""
ORDINARY = 3.0
"""Residuals within so many standard deviations make up the standard deviation; others are cut off at it."""
QUIET_NIGHTS = 150
"""With fewer residuals, nobody knows how heavy the tails are."""
MOST_KURTOSIS, MOST_SKEWNESS = 0.8, 0.45
"""Noise with more excess kurtosis or skewness is not close to normal: 1 in 100 normal series of a year has more."""
CHANCE, CHANCE_OF_TAILS = 1.3e-5, 2.5e-6
"""The chance below which noise does not explain the newest values; the second if the noise is not close to normal.

Several hundred nights may be tested in a year, each with several lengths of the new part. The second is lower because
the tails of a distribution are known less well than its width.
"""
TRIMMED = 8
"""One value of so many is left out at each side of a mean."""
TRIMMED_VARIANCE = 1.1
"""The variance of a trimmed mean of normal values, divided by that of their mean."""
MAD_OF_NORMAL = 1.4826
"""The standard deviation, divided by the median absolute deviation."""
_BLOCKS = 1.5
"""Overlapping blocks of some length tell as much about their variance as so many times the blocks side by side."""
_ROUNDING = math.sqrt(12)
"""The unit to which values are rounded, divided by the standard deviation that rounding adds."""
_LEAST_DEVIATION = 1e-9
_ONE_UNIT = 1.01
_MOST_UNIT = 0.1
"""Who rounds to a larger share of a value rounds to its last decimal digit."""
_LEAST_DIVISOR = 1e-3
"""As a share of the largest value: a lab may have rounded multiples of some unit to five digits, or to four."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a series.

    `center` and `deviation` are the mean and the standard deviation of the ordinary `residuals`; `clipped` has all,
    less the center, cut off at ORDINARY deviations. `has_tails`: the noise is not known to be close to normal. `blur`
    is half the unit to which the values are rounded, in deviations.
    """

    residuals: Sequence[float]
    center: float
    deviation: float
    clipped: Sequence[float]
    has_tails: bool
    blur: float

    @property
    def most_chance(self) -> float:
        """Return the chance below which noise does not explain the newest values."""
        return CHANCE_OF_TAILS if self.has_tails else CHANCE

    def beyond(self, limit: float, sign: int) -> int:
        """Return how many residuals are beyond a limit in deviations, above (1) or below (-1) the center."""
        distance = (limit - min(self.blur, limit / 2)) * self.deviation
        return sum([sign * (residual - self.center) >= distance for residual in self.residuals])

    def inflation(self, nights: int) -> float:
        """Return the variance of the mean of so many neighbors, divided by that of independent ones; at least 1."""
        sums = list(accumulate(self.clipped, initial=0.0))
        blocks = [(end - begin) ** 2 for begin, end in zip(sums, sums[nights:], strict=False)]
        squares = sum([offset * offset for offset in self.clipped])
        if not blocks or not squares:
            return 1.0
        return max(1.0, sum(blocks) / len(blocks) / nights / squares * len(self.clipped))

    def freedom(self, nights: int = 1) -> float:
        """Return the degrees of freedom of the variance of a mean of so many nights."""
        return max(1.0, _BLOCKS * len(self.clipped) / nights)

    def margin(self, nights: int, level_nights: int) -> float:
        """Return half the 95 % interval of a difference between the trimmed means of so many new and older nights."""
        variance = TRIMMED_VARIANCE * (self.inflation(nights) / nights + 1 / level_nights)
        return self.deviation * (quantile(0.975, self.freedom(nights)) * math.sqrt(variance) + self.blur)

    def explains(self, offsets: Sequence[float], level_nights: int) -> bool:
        """Whether noise explains the newest values, as their differences from the level of so many nights before."""
        return self.chance(offsets, level_nights) > self.most_chance

    def is_rounding(self, shift: float) -> bool:
        """Whether a series that never varied is at another level only because its values are rounded to a unit."""
        unit, furthest = 2 * self.blur * self.deviation, max([abs(offset) for offset in self.clipped])
        return furthest < _LEAST_DEVIATION and abs(shift) <= _ONE_UNIT * unit

    def chance(self, offsets: Sequence[float], level_nights: int) -> float:
        """Return the chance of the newest values, or others further from the level, in the likeliest way."""
        sign = 1 if sum(offsets) >= self.center * len(offsets) else -1
        heights = sorted([sign * (offset - self.center) / self.deviation for offset in offsets], reverse=True)
        limits = TAIL_LIMITS if self.has_tails else TAIL_LIMITS[-1:]
        inflation, likeliest, rest, combinations = self.inflation(len(heights)), 0.0, sum(heights), 1.0
        for outliers, height in enumerate([math.inf, *heights]):
            if height < limits[0]:
                break
            ordinary = len(heights) - outliers
            if outliers:
                rest -= height
                combinations *= (ordinary + 1) / outliers
            tail = 1.0
            if ordinary and rest > 0:
                error = math.sqrt(inflation / ordinary + TRIMMED_VARIANCE / level_nights)
                tail = upper_tail(rest / ordinary / error, self.freedom(ordinary))
            if not outliers:
                chance = 2 * tail  # on both sides
            else:
                limit = max(limit for limit in limits if limit <= height)
                chance = combinations * self._chance_of_outliers(outliers, self.beyond(limit, sign)) * tail
            likeliest = max(likeliest, chance)
        return min(1.0, likeliest)

    def _chance_of_outliers(self, nights: int, known: int) -> float:
        """Return the chance that each of so many nights is an outlier, if so many of the history are known to be."""
        nights_before = len(self.residuals)
        return math.prod((known + 0.5 + night) / (nights_before + 1 + night) for night in range(nights))

    def bounds(self, coverage: float, level_nights: int) -> tuple[float, float]:
        """Return between which differences from the level the next value is with a probability.

        If there are enough nights, or the noise has tails, the bounds are at least as wide as those of the history.
        """
        beyond, ordered = (1 - coverage) / 2, sorted(self.residuals)
        width = quantile(1 - beyond, self.freedom()) * self.deviation * math.sqrt(1 + TRIMMED_VARIANCE / level_nights)
        rounding = self.blur * self.deviation
        low, high = self.center - width, self.center + width
        rank = int((len(ordered) + 1) * beyond)
        if rank or self.has_tails:
            low, high = min(low, ordered[max(0, rank - 1)]), max(high, ordered[-max(1, rank)])
        return low - rounding, high + rounding


def trimmed_mean(ordered: Sequence[float]) -> float:
    """Return the mean of sorted values without an eighth at each side; of three or more, at least without one."""
    size = len(ordered)
    trimmed = max(1, size // TRIMMED) if size > 2 else 0
    return sum(ordered[trimmed : size - trimmed]) / (size - 2 * trimmed)


def common_divisor(values: Sequence[float]) -> float:
    """Return the largest number of which all values are multiples, but for what rounding adds to them; 0 for zeros.

    >>> round(common_divisor([5.13, 6.27, 6.27]), 9)
    0.57
    """
    least = _LEAST_DIVISOR * max(map(abs, values))
    divisor = 0.0
    for value in values:
        rest = abs(value)
        while rest > least:
            divisor, rest = rest, abs(math.remainder(divisor, rest))
    return divisor


def rounding_unit(values: Sequence[float]) -> float:
    """Return the unit to which values may be rounded: their common divisor, if that is small; else their last digit.

    A common divisor above a tenth of the least value is chance: 12.5 and 25 are not rounded to multiples of 12.5. Zeros
    at the end of a whole number are digits.

    >>> round(rounding_unit([0.90, 0.85]), 9), rounding_unit([12.5, 25.0]), rounding_unit([700.0, 1050.0])
    (0.05, 0.1, 1.0)
    """
    divisor = common_divisor(values)
    if divisor <= _MOST_UNIT * min(map(abs, values)):
        return divisor
    decimals = [Decimal(repr(value)).normalize() for value in set(values)]
    places = max(len(number.as_tuple().digits) - 1 - number.adjusted() for number in decimals)
    return min(divisor, 10.0 ** -max(0, places))


def noise_of(residuals: Sequence[float], unit: float = 0) -> Noise:
    """Return the noise of a series from its residuals, at least two; its values are rounded to a `unit`, or it is 0."""
    middle = median(residuals)
    least = max(unit / _ROUNDING, _LEAST_DEVIATION)
    limit = ORDINARY * max(MAD_OF_NORMAL * median([abs(residual - middle) for residual in residuals]), least)
    ordinary = [residual for residual in residuals if abs(residual - middle) <= limit]
    center = sum(ordinary) / len(ordinary)
    squares = sum([(residual - center) ** 2 for residual in ordinary])
    deviation = max(math.sqrt(squares / max(1, len(ordinary) - 1)), least)
    limit = ORDINARY * deviation
    offsets = [residual - center for residual in residuals]
    clipped = [max(-limit, min(limit, offset)) for offset in offsets]
    has_tails = len(residuals) < QUIET_NIGHTS or unit > deviation or not _close_to_normal(offsets, clipped)
    return Noise(residuals, center, deviation, clipped, has_tails, unit / deviation / 2)


def _close_to_normal(offsets: Sequence[float], clipped: Sequence[float]) -> bool:
    squares, clipped_squares = (sum([value * value for value in values]) for values in (offsets, clipped))
    if not clipped_squares:
        return True
    size = len(offsets)
    kurtosis = sum([offset**4 for offset in offsets]) * size / squares**2 - 3
    skewness = sum([offset**3 for offset in clipped]) * math.sqrt(size) / clipped_squares**1.5
    return kurtosis <= MOST_KURTOSIS and abs(skewness) <= MOST_SKEWNESS
