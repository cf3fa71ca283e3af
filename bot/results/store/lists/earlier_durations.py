"""How long the tests of a suite took in the last runs of a branch, and how often a target is tested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.results.store.commit import durations_of_commit
from bot.results.store.tables import runs, schema
from bot.results.store.tables.points import newest_points, suites_on_targets

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class EarlierDurations:
    """The last runs of a suite: the total of each, oldest first, and the longest time of each test, in seconds."""

    totals: tuple[float, ...] = ()
    longest: Mapping[str, float] = field(default_factory=dict)


def earlier_durations(
    connection: sa.Connection, target: TargetKey, suite: str, until: str, count: int
) -> EarlierDurations:
    """Return the durations of at most `count` nightly runs of a suite up to the commit `until`, which is included."""
    totals, longest = list[float](), dict[str, float]()
    for series in suites_on_targets(connection, target.repository, target.lab, target.target, suite):
        for point in newest_points(connection, [series.series], count, until=until).get(series.series, []):
            seconds = durations_of_commit(connection, target, suite, point.sha)
            totals.append(sum(seconds.values()))
            for test, taken in seconds.items():
                longest[test] = max(taken, longest.get(test, 0.0))
    return EarlierDurations(tuple(totals), longest)


def commits_per_day(connection: sa.Connection, target: TargetKey, moment: float, days: int) -> float:
    """Return how many commits a target tested on average on each of the last days before a moment."""
    target_id, table = runs.target_id(connection, target), schema.runs
    statement = sa.select(sa.func.count(sa.distinct(table.c.sha))).where(
        table.c.target_id == target_id, table.c.received_at >= moment - days * DAY
    )
    return float(connection.execute(statement).scalar_one()) / days
