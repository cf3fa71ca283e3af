"""Compare what a pull request's run measured with what the nightly runs up to its baseline lead to expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

import sqlalchemy as sa
from nightjar_formats.measurements import Measurement
from nightjar_formats.model import TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.measurements.changes import LEAST_HISTORY, analysis_of
from bot.results.measurements.noise import MAD_OF_NORMAL, trimmed_mean
from bot.results.measurements.unexpected import NOT_COMPARED, NumbersOfPull, UnexpectedNumber
from bot.results.settings.measurements import DEFAULT_LIMITS, ChangeLimits
from bot.results.store.measurements.nights import NightlyNumbers, SeriesId, SeriesPieces, points_of
from bot.results.store.measurements.search import WINDOW, is_measured
from bot.results.store.tables.points import suites_on_targets
from bot.results.store.tables.runs import stored_runs

LEVEL = 8
"""A number among those of so many newest nights is expected, without a look at the other nights."""
ORDINARY = 2.0
"""So is one within so many standard deviations of the nights of a window."""


def numbers_of_pull(
    connection: sa.Connection,
    target: TargetKey,
    sha: str,
    baselines: Mapping[str, str],
    limits: ChangeLimits = DEFAULT_LIMITS,
    aliases: Aliases = NO_ALIASES,
) -> NumbersOfPull:
    """Compare the runs of a commit with the nightly runs up to the baseline of each suite.

    `baselines` has the commits, by suite. Smaller differences than `limits` are expected. For a target without
    measurements, this is one statement.
    """
    if not baselines or not is_measured(connection, target):
        return NOT_COMPARED
    compared, unexpected = 0, list[UnexpectedNumber]()
    for suite in suites_on_targets(connection, target.repository, target.lab, target.target):
        runs = stored_runs(connection, [suite.place_at(sha)]).get(suite.place_at(sha), [])
        points = points_of(connection, suite, baselines[suite.name]) if runs and suite.name in baselines else ()
        if points:
            nights = NightlyNumbers(connection, suite, aliases, points)
            numbers = nights.numbers_at([run.number for run in runs])
            count, of_suite = _compared(nights, numbers, limits)
            compared += count
            unexpected += of_suite
    unexpected.sort(key=lambda number: (not number.is_worse, -number.distance, number.suite, number.test, number.name))
    return NumbersOfPull(compared, tuple(unexpected))


def _compared(
    nights: NightlyNumbers, numbers: Mapping[SeriesId, tuple[SeriesPieces, float]], limits: ChangeLimits
) -> tuple[int, list[UnexpectedNumber]]:
    """Return how many numbers were compared, and the unexpected ones."""
    compared, exact, candidates = 0, list[UnexpectedNumber](), dict[SeriesId, SeriesPieces]()
    pieces_of = {key: pieces for key, (pieces, _) in numbers.items()}
    for key, window in nights.values(pieces_of, max(0, len(nights.points) - WINDOW)):
        metric, value, older = nights.metrics[key[1]], numbers[key][1], [number for _, number in window]
        least = limits.least(metric.name, metric.unit)
        if Measurement(metric.name, value, metric.unit).is_exact:
            compared += bool(older)
            if older and value != older[-1] and abs(value - older[-1]) >= least * abs(older[-1]):
                exact.append(_number(nights, key, value, older[-1], older[-1], older[-1]))
        elif len(older) > LEAST_HISTORY + 1:
            compared += 1
            if _may_be_unexpected(older, value, least):
                candidates[key] = pieces_of[key]
    noisy = list[UnexpectedNumber]()
    for key, values in nights.values(candidates, 0):
        metric, value = nights.metrics[key[1]], numbers[key][1]
        least = limits.least(metric.name, metric.unit)
        analysis = analysis_of([number for _, number in values], least)
        if analysis.predicted is None or analysis.level is None:
            continue
        low, high = analysis.predicted
        if not low <= value <= high and abs(value - analysis.level) >= least * abs(analysis.level):
            noisy.append(_number(nights, key, value, analysis.level, low, high))
    return compared, [*exact, *noisy]


def _number(
    nights: NightlyNumbers, key: SeriesId, value: float, level: float, low: float, high: float
) -> UnexpectedNumber:
    metric = nights.metrics[key[1]]
    test = nights.names[key[0]]
    return UnexpectedNumber(nights.suite.name, test, metric.name, metric.unit, metric.better, value, level, low, high)


def _may_be_unexpected(older: Sequence[float], value: float, least: float) -> bool:
    """Say cheaply whether a number may be outside of the interval: most are not."""
    newest = older[-LEVEL:]
    if min(newest) <= value <= max(newest):
        return False
    level = trimmed_mean(sorted(newest))
    deviation = MAD_OF_NORMAL * median(abs(number - level) for number in newest)
    return abs(value - level) >= max(ORDINARY * deviation, least / 2 * abs(level))
