"""What a series of nights shows: its changes and its level. Pure; a series that has not changed is analysed once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nightjar_formats.measurements import Measurement

from bot.results.measurements.changes import SeriesAnalysis, analysis_of, exact_changes
from bot.results.store.measurements.read import MeasuredNight

MOST_CACHED = 500
"""Series whose analyses a process remembers, with up to 500 nights each: 8 MB at most."""


def is_exact(night: MeasuredNight) -> bool:
    """Whether the value of a night has no noise."""
    return Measurement("", night.value, night.unit).is_exact


def in_newest_unit(nights: Sequence[MeasuredNight]) -> list[MeasuredNight]:
    """Return the nights that have the unit of the newest one: others cannot be compared with it."""
    return [night for night in nights if night.unit == nights[-1].unit]


def analysed(nights: Sequence[MeasuredNight], least: float) -> SeriesAnalysis:
    """Return what nights of one unit show, oldest first, at least one; `least` is the least change that counts."""
    # The values themselves are the key: only with a new night, or another value, there is anything new to compute.
    return _analysed(tuple(night.value for night in nights), least, exact=is_exact(nights[-1]))


@lru_cache(MOST_CACHED)
def _analysed(values: tuple[float, ...], least: float, *, exact: bool) -> SeriesAnalysis:
    if exact:
        return SeriesAnalysis(exact_changes(values, least), values[-1], None)
    return analysis_of(values, least)
