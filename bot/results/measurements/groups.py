"""Group changes that people should read about together. No I/O."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nightjar_formats.model import TargetKey

from bot.results.measurements.moved import MovedSeries


class SeriesOfTargets(NamedTuple):
    """What tests on several targets have in common: the suite, the test, the measurement, and whether it rose."""

    suite: str
    test: str
    name: str
    is_rise: bool

    @classmethod
    def of(cls, change: MovedSeries) -> SeriesOfTargets:
        """Return that of a change."""
        return cls(change.suite, change.test, change.name, change.is_rise)


def grouped(changes: Iterable[MovedSeries]) -> list[list[MovedSeries]]:
    """Return the groups of changes, by commit and targets; those of each in the order of targets and series.

    Changes of one commit on one target are one group. If the changes of another target are all of the same tests,
    measurements and directions, they are in it too: the cause is in the code, not in a device.
    """
    of_target = defaultdict[tuple[str, TargetKey], list[MovedSeries]](list)
    for change in changes:
        of_target[change.since, change.target].append(change)
    groups: dict[tuple[str, frozenset[SeriesOfTargets]], list[MovedSeries]] = {}
    for (commit, _), of_one in sorted(of_target.items(), key=lambda item: (-len(item[1]), item[0])):
        series = frozenset(map(SeriesOfTargets.of, of_one))
        key = next((key for key in groups if key[0] == commit and series <= key[1]), (commit, series))
        groups.setdefault(key, []).extend(of_one)
    in_order = [sorted(group, key=_order) for group in groups.values()]
    return sorted(in_order, key=lambda group: (group[0].since, _order(group[0])))


def clearest_change(changes: Iterable[MovedSeries]) -> MovedSeries:
    """Return the change, of one at least, that is largest beside the width of the interval of its new level."""
    return max(changes, key=_clearness)


def _clearness(change: MovedSeries) -> float:
    width = change.high - change.low
    return abs(change.after - change.before) / width if width > 0 else math.inf


def moved_likewise(change: MovedSeries, changes: Iterable[MovedSeries]) -> list[MovedSeries]:
    """Return a change, and those of the same series on other targets between the same commits."""
    series = SeriesOfTargets.of(change), change.good, change.since
    others = (other for other in changes if other.target != change.target)
    return [change, *(other for other in others if (SeriesOfTargets.of(other), other.good, other.since) == series)]


def targets_of(changes: Iterable[MovedSeries]) -> Sequence[TargetKey]:
    """Return the targets of changes, sorted."""
    return sorted({change.target for change in changes})


def _order(change: MovedSeries) -> tuple[TargetKey, str, str, str]:
    return change.target, change.suite, change.test, change.name
