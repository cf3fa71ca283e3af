"""Read the levels of a series before and after a stored change, and how its noise crosses the middle between them."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.measurements.changes import LEVEL_NIGHTS
from bot.results.measurements.levels import MeasuredLevels
from bot.results.store.measurements.moved import moved_of_tests
from bot.results.store.measurements.read import series_on_target
from bot.results.store.tables.names import find_ordinal
from bot.results.store.tables.points import suites_on_targets


class SeriesName(NamedTuple):
    """What finds a series on a target: its suite, its test, and the name of the measurement."""

    suite: str
    test: str
    name: str


class LevelsBefore(NamedTuple):
    """The levels around a change, and the nights before it: how many were closer to the new level, and all others."""

    levels: MeasuredLevels
    crossed: int
    others: int


def levels_before(
    connection: sa.Connection, target: TargetKey, series: SeriesName, since: str, aliases: Aliases = NO_ALIASES
) -> LevelsBefore | None:
    """Return the levels of a series around its change at the nightly commit `since`; None if none is stored.

    The nights are the newest ones before the change, at most `LEVEL_NIGHTS`, and none from before an earlier change.
    """
    on_targets = suites_on_targets(connection, target.repository, target.lab, target.target, series.suite)
    ordinal = find_ordinal(connection, on_targets[0].row, series.test) if on_targets else None
    if ordinal is None:
        return None
    on_target = on_targets[0]
    of_test = moved_of_tests(connection, {on_target.series: ordinal})[on_target.series]
    moved = [change for change in of_test if change.name == series.name]
    change = next((change for change in moved if change.since == since), None)
    if change is None:
        return None
    levels = MeasuredLevels(change.before, change.after, change.unit)
    key = (ordinal, series.name)
    nights = series_on_target(connection, on_target, [key], aliases).get(key, [])
    earlier = [other.since_at for other in moved if other.since_at < change.since_at]
    begin = max(earlier, default=float("-inf"))
    values = [
        night.value for night in nights if begin <= night.committed_at < change.since_at and night.unit == change.unit
    ]
    return LevelsBefore(levels, *levels.count_new(values[-LEVEL_NIGHTS:]))
