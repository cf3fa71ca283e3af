"""Find when the level of a nightly series changed, and by how much. No I/O.

The nights are read in the order of their commits. When the newest two nights are on the same side of the level, and far
enough from it, the newest nights are split where E-divisive would split them (`energy.py`). The new part is a change of
the level if the noise that the series has shown so far does not explain it (`noise.py`). MongoDB and Apache Otava use a
permutation test and a t-test there, which report too much in series with outliers, and in those that are rounded or
follow the weather: docs/signal.md compares them, and docs/decisions/changes-of-measurements.md says why.

So a change is confirmed by a certain night, and a later one does not undo it: people get one message.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from bot.results.measurements.energy import newest_part
from bot.results.measurements.noise import Noise, noise_of, rounding_unit, trimmed_mean
from bot.results.settings.measurements import LEAST_CHANGE

CONFIRMING_NIGHTS = 2
"""So many newest nights must be closer to the new level than to the old one."""
LEVEL_NIGHTS = 40
"""The level is a mean of so many nights before."""
HISTORY = 365
"""The nights whose noise counts."""
LEAST_HISTORY = 20
"""With fewer nights before, nothing is reported."""
NEW_NIGHTS = 15
"""The most nights between the begin of a change and its report: a smaller change stays unreported."""
WINDOW = 50
"""The newest nights in which a change begins."""
SPLIT_NIGHTS = LEVEL_NIGHTS + NEW_NIGHTS
"""The newest nights that say where a change begins, and how large it is."""
PREDICTED = 0.99
"""The share of values that are within a prediction interval."""
_LEAST_SUM, _LEAST_HEIGHT = 3.0, 0.5
"""In deviations: the least sum of the newest two offsets, and the least of each, to look for a change."""
_LEAST_SCORE = 3.2
"""The least standard score of new nights before their exact chance is computed: no smaller one passes."""
_PART_OF_SCORE = 2 / 3
"""A part of that score: the deviation of the newest nights alone is only roughly that of a year."""
_LARGEST = 1e9
"""Values of a series that is not positive are cut off at so many times their usual size."""
_LARGEST_LOGARITHM = math.log(1.7e308)
"""Levels and bounds of positive series are cut off here."""
_ROUGH_NIGHTS, _ROUGH_EVERY = 60, 20
"""The rough deviation is that of so many nights, and computed again after so many."""


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of the level, by numbers of nights, in the unit of the values.

    It is there since night `begin`, and night `confirmed` is the first that confirms it. The new level is between `low`
    and `high` with 95 % confidence; without noise, all three are equal. Night `end` is the first whose level is closer
    to `before` again; None if it lasts.
    """

    begin: int
    confirmed: int
    before: float
    after: float
    low: float
    high: float
    end: int | None = None

    @property
    def is_rise(self) -> bool:
        """Whether the new level is higher."""
        return self.after > self.before


@dataclass(frozen=True, slots=True)
class SeriesAnalysis:
    """What a series shows: its changes in order, and the level after them; None where it has too few nights.

    `predicted` has the bounds between which the value of the next night is with the probability PREDICTED; None too if
    a bound is beyond the largest double.
    """

    changes: Sequence[LevelChange]
    level: float | None
    predicted: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class _Scale:
    """Converts values so that equal shares of a level are equal differences, and back."""

    converted: Callable[[float], float]
    restored: Callable[[float], float]


def exact_changes(values: Sequence[float], least_share: float = 0) -> list[LevelChange]:
    """Return all changes of a series without noise, such as a count: each night whose value is not the level is one.

    The level is the value after the last change. A difference below the share `least_share` of it is no change, so slow
    drift becomes one when it has added up.
    """
    changes, level = list[LevelChange](), values[0] if values else 0.0
    for night, value in enumerate(values):
        if is_exact_change(value, level, least_share):
            changes.append(LevelChange(night, night, level, value, value, value))
            level = value
    return _with_ends(changes)


def is_exact_change(value: float, level: float, least_share: float) -> bool:
    """Return whether a value without noise differs from the level before it by `least_share` of that level or more."""
    return value != level and abs(value - level) >= least_share * abs(level)


def analysis_of(values: Sequence[float], least: float = LEAST_CHANGE) -> SeriesAnalysis:
    """Return what a series of finite values shows; changes below the share `least` of the level are left out.

    The time is linear in the number of nights: about 10 µs for each.
    """
    scan = _Scan(values, least)
    for night in range(len(values)):
        scan.add(night)
    return scan.analysis()


class _NewPart(NamedTuple):
    """The values of the newest nights, and how far their mean is from the `level`, that of the values `before`."""

    before: Sequence[float]
    values: Sequence[float]
    level: float
    shift: float

    def has_score(self, least: float, deviation: float) -> bool:
        """Return whether the standard score of the new values is at least so high, by the deviation of one value."""
        nights = len(self.values)
        return abs(sum(self.values) - nights * self.level) >= least * deviation * math.sqrt(nights)


def may_confirm(values: Sequence[float], least: float) -> bool:
    """Return whether the newest night of a positive series may confirm a change; if so, its whole noise decides.

    `values` are those since the last change, of the newest SPLIT_NIGHTS at least.
    """
    new_part = _new_part([math.log(value) for value in values[-SPLIT_NIGHTS:]], math.log1p(least))
    if new_part is None or len(new_part.before) < LEAST_HISTORY:
        return new_part is not None
    rough = noise_of([value - new_part.level for value in new_part.before]).deviation
    return new_part.has_score(_PART_OF_SCORE * _LEAST_SCORE, rough)


def _new_part(values: Sequence[float], least: float) -> _NewPart | None:
    """Split the newest nights; None if the new part began earlier, or is not at a level of its own."""
    window = values[-WINDOW:]
    if len(window) < 2 * CONFIRMING_NIGHTS:
        return None
    nights = newest_part(window, NEW_NIGHTS)
    if nights == NEW_NIGHTS and window[-nights - 1] == window[-nights]:
        return None
    before, part = sorted(values[-LEVEL_NIGHTS - nights : -nights]), window[-nights:]
    level = trimmed_mean(before)
    shift = trimmed_mean(sorted(part)) - level
    if abs(shift) < least or min([(value - level) / shift for value in part[-CONFIRMING_NIGHTS:]]) <= 0.5:
        return None
    return _NewPart(before, part, level, shift)


class _Scan:
    """Reads a series night by night."""

    def __init__(self, values: Sequence[float], least: float) -> None:
        self._values = values
        self._scale = _scale_of(values)
        self._converted = [self._scale.converted(value) for value in values]
        self._least = math.log1p(least)
        self._changes = list[LevelChange]()
        self._residuals = list[float]()
        self._rough = 0.0
        self._previous = 0.0
        self._begin = self._oldest = 0
        self._ordered = list[float]()

    def add(self, night: int) -> None:
        """Read the next night: find a change that it confirms, or a residual."""
        value, size = self._converted[night], len(self._ordered)
        if size >= CONFIRMING_NIGHTS:
            offset = value - trimmed_mean(self._ordered)
            if self._may_confirm(offset) and (change := self._change(night)):
                self._accept(change, night)
                return
            self._add_residual(offset, size)
            self._previous = offset
        insort(self._ordered, value)
        if size == LEVEL_NIGHTS:
            del self._ordered[bisect_left(self._ordered, self._converted[self._oldest])]
            self._oldest += 1

    def analysis(self) -> SeriesAnalysis:
        """Return what the nights so far show."""
        changes, predicted, level = _with_ends(self._changes), None, None
        if self._ordered:
            mean = trimmed_mean(self._ordered)
            level = self._scale.restored(mean)
            if len(self._residuals) >= LEAST_HISTORY:
                low, high = self._noise(0, len(self._converted)).bounds(PREDICTED, len(self._ordered))
                bounds = self._scale.restored(mean + low), self._scale.restored(mean + high)
                predicted = bounds if all(map(math.isfinite, bounds)) else None
        return SeriesAnalysis(changes, level, predicted)

    def _may_confirm(self, offset: float) -> bool:
        """Say cheaply whether the newest two nights may confirm a change: they hardly ever do."""
        previous = self._previous
        return (
            offset * previous > 0
            and len(self._residuals) >= LEAST_HISTORY
            and min(abs(offset), abs(previous)) >= max(self._least / 2, _LEAST_HEIGHT * self._rough)
            and abs(offset + previous) >= _LEAST_SUM * self._rough
        )

    def _change(self, night: int) -> LevelChange | None:
        oldest = max(self._begin, night + 1 - SPLIT_NIGHTS)
        new_part = _new_part(self._converted[oldest : night + 1], self._least)
        if new_part is None:
            return None
        before, part, level, shift = new_part
        nights = len(part)
        begin = night + 1 - nights
        if not new_part.has_score(_LEAST_SCORE, self._rough):
            return None
        if len(self._residuals) < LEAST_HISTORY + nights:
            return None
        noise, restored = self._noise(nights - 1, night + 1), self._scale.restored
        # After an error of zero, any other one counts.
        if restored(level) and noise.is_rounding(shift):
            return None
        if noise.explains([value - level for value in part], len(before)):
            return None
        margin = noise.margin(nights, len(before))
        low, high = restored(level + shift - margin), restored(level + shift + margin)
        return LevelChange(begin, night, restored(level), restored(level + shift), low, high)

    def _accept(self, change: LevelChange, night: int) -> None:
        self._changes.append(change)
        del self._residuals[len(self._residuals) - (night - change.begin) :]
        self._begin = self._oldest = change.begin
        self._ordered = sorted(self._converted[change.begin : night + 1])
        self._previous = 0.0

    def _add_residual(self, offset: float, level_nights: int) -> None:
        self._residuals.append(offset / math.sqrt(1 + 1 / level_nights))
        if len(self._residuals) % _ROUGH_EVERY == 0:
            self._rough = noise_of(self._residuals[-_ROUGH_NIGHTS:]).deviation

    def _noise(self, newest: int, end: int) -> Noise:
        """Return the noise before the newest residuals, for values that are rounded like those of the newest nights."""
        known = self._residuals[: len(self._residuals) - newest]
        oldest = max(self._begin, end - WINDOW)
        ordered = sorted(set(self._converted[oldest:end]))
        unit = min((higher - lower for lower, higher in pairwise(ordered)), default=0.0)
        level = self._values[oldest]
        if set(self._values[oldest : end - newest - 1]) == {level}:
            # The only known step is that to the new values. It is no unit if the values are no multiples of it.
            nights = self._values[oldest:end]
            least = min(map(abs, nights))
            next_value = least + rounding_unit(nights)
            unit = min(unit, self._scale.converted(next_value) - self._scale.converted(least))
        return noise_of(known[-HISTORY:], unit)


def _scale_of(values: Sequence[float]) -> _Scale:
    """Return logarithms for positive values, and else shares of their usual size."""
    if min(values, default=0.0) > 0:
        return _Scale(math.log, lambda logarithm: math.exp(min(logarithm, _LARGEST_LOGARITHM)))
    size = 2 * median(abs(value / 2) for value in values) if values else 1.0  # halves: no sum of two is infinite
    size = size or max(map(abs, values), default=1.0) or 1.0
    return _Scale(lambda value: max(-_LARGEST, min(_LARGEST, value / size)), lambda value: value * size)


def _with_ends(changes: Sequence[LevelChange]) -> list[LevelChange]:
    """Return the changes with their ends: the first later one whose level is closer to the one before them."""
    result = list(changes)
    lasting: dict[bool, list[int]] = {True: [], False: []}
    for number, change in enumerate(changes):
        opposite = lasting[not change.is_rise]
        while opposite:
            earlier = result[opposite[-1]]
            if abs(change.after - earlier.before) >= abs(change.after - earlier.after):
                break
            result[opposite.pop()] = replace(earlier, end=change.begin)
        lasting[change.is_rise].append(number)
    return result
