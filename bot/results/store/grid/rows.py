"""Find the points of a grid: suites on targets, their newest commits, and the row of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.paired import PairedTargets
from bot.results.compare.quarantine import QuarantineOf
from bot.results.store.tables import schema
from bot.results.store.tables.names import SuiteRow
from bot.results.store.tables.points import Position, SuiteOnTarget, first_on_nightly, select_suites_on_targets


@dataclass(frozen=True, slots=True)
class GridLine(SuiteOnTarget):
    """A suite on a target, and the time of its first commit on the nightly branch, None for none."""

    first: float | None


@dataclass(frozen=True, slots=True)
class GridRange:
    """Which part of a repository's results a grid shows: at most `limit` commits, from `since` to before `until`.

    `lab`, `target` and `suite` are None for all. `until` and `since` are in seconds since 1970. With `counts`, points
    have their stored counts and no columns; points without stored counts, and those that app.yaml now counts
    differently, still have columns.

    To find tests and show them takes two grids: one with `newest_only`, which has the newest point of each line with
    complete and usable results, as all counts do, even if it is older than all commits of the grid, and one with the
    `ordinals` of tests by series, which has the points of those series and explains the failures of those tests alone.
    Without `explain`, no failure is explained.

    `paired` has the simulators and the device of each target that has some, as LAB/TARGET.

    With `most_targets`, only so many targets have points, from the place `first_target` in the order of
    `targets_in_order`; the commits are those of all targets.
    """

    repository: str
    lab: str | None = None
    target: str | None = None
    suite: str | None = None
    limit: int = 14
    until: float | None = None
    since: float = 0.0
    aliases: Aliases = NO_ALIASES
    quarantine: QuarantineOf | None = field(default=None, compare=False)
    paired: Mapping[str, PairedTargets] = field(default_factory=dict, compare=False)
    counts: bool = False
    newest_only: bool = False
    explain: bool = True
    ordinals: Mapping[int, Collection[int]] | None = field(default=None, compare=False)
    configured: Sequence[str] = ()
    first_target: int = 0
    most_targets: int | None = None

    @property
    def end(self) -> float:
        """The time of `until`, infinite without one."""
        return float("inf") if self.until is None else self.until


def targets_in_order(configured: Sequence[str], lines: Iterable[GridLine]) -> list[str]:
    """Return the targets of app.yaml, with or without results, and then all others that have lines, as LAB/TARGET."""
    return list(dict.fromkeys([*configured, *(line.target.full_name for line in lines)]))


def targets_on_page(grid_range: GridRange, lines: Iterable[GridLine]) -> list[str]:
    """Return the targets whose points a grid has."""
    ordered = targets_in_order(grid_range.configured, lines)
    return ordered[grid_range.first_target :][: grid_range.most_targets]


# Made once, because making the statements takes longer than answering them.
_SERIES, _POINTS = schema.series, schema.points
_NEWER, _EARLIER = _POINTS.alias(), _POINTS.alias()
_FIRST = first_on_nightly().label("first")
_OF_SERIES: sa.BindParameter[Any] = sa.bindparam("series", expanding=True)


def _newest_first(points: sa.FromClause) -> tuple[sa.ColumnElement[Any], ...]:
    return points.c.committed_at.desc(), points.c.sha.desc()


def _nth_newest(*conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[float]:
    """Return the time of the point of a series on the nightly branch that has `newer` newer ones."""
    return (
        sa.select(_NEWER.c.committed_at)
        .where(_NEWER.c.series_id == _SERIES.c.id, _NEWER.c.mainline, *conditions)
        .order_by(*_newest_first(_NEWER))
        .limit(1)
        .offset(sa.bindparam("newer"))
        .correlate(_SERIES)
        .scalar_subquery()
    )


def _linked_before(time: sa.ColumnElement[Any], newer: sa.ColumnElement[int]) -> sa.Select[Any]:
    """Return the statement for the linked point of each series before a time that has `newer` newer ones."""
    last = (
        sa.select(_EARLIER.c.id)
        .where(_EARLIER.c.series_id == _SERIES.c.id, _EARLIER.c.linked, _EARLIER.c.committed_at < time)
        .order_by(*_newest_first(_EARLIER))
        .limit(1)
        .offset(newer)
        .correlate(_SERIES)
        .scalar_subquery()
    )
    joined = _SERIES.join(_POINTS, _POINTS.c.id == last)
    return sa.select(_POINTS).select_from(joined).where(_SERIES.c.id.in_(_OF_SERIES))


_UNTIL: sa.BindParameter[float] = sa.bindparam("until", type_=sa.Double)
_OLDEST = sa.select(_nth_newest(_NEWER.c.committed_at < _UNTIL)).where(_SERIES.c.id.in_(_OF_SERIES))
_COMMITS = (
    sa.select(_POINTS.c.committed_at, _POINTS.c.sha)
    .where(_POINTS.c.series_id.in_(_OF_SERIES), _POINTS.c.committed_at >= sa.bindparam("since"), _POINTS.c.mainline)
    .where(_POINTS.c.committed_at < _UNTIL)
    .distinct()
)
_AT_COMMITS = sa.select(_POINTS).where(
    _POINTS.c.series_id.in_(_OF_SERIES),
    _POINTS.c.mainline,
    _POINTS.c.committed_at.between(sa.bindparam("first"), sa.bindparam("last")),
)
_LAST_BEFORE = _linked_before(sa.bindparam("before", type_=sa.Double), sa.bindparam("newer", type_=sa.Integer))
NewestRow = sa.Row[int, int, float, str, bool, bool, str]
"""The columns of `_NEWEST`."""
_NEWEST: sa.Select[int, int, float, str, bool, bool, str] = (
    sa.select(*(_POINTS.c[name] for name in ("series_id", "id", "committed_at", "sha", "linked", "complete", "infra")))
    .select_from(_SERIES.join(_POINTS, _POINTS.c.series_id == _SERIES.c.id))
    .where(_SERIES.c.id.in_(_OF_SERIES), _POINTS.c.mainline)
    .where(_POINTS.c.committed_at >= sa.func.coalesce(_nth_newest(), 0.0))
    .order_by(_POINTS.c.series_id, *_newest_first(_POINTS))
)


def lines_of(connection: sa.Connection, grid_range: GridRange) -> list[GridLine]:
    """Return the suites on targets that a grid shows."""
    statement = select_suites_on_targets(grid_range.repository, grid_range.lab, grid_range.target, grid_range.suite)
    return [
        GridLine(
            row.id,
            row.suite,
            SuiteRow(row.suite_id, row.names),
            TargetKey(grid_range.repository, row.lab, row.target),
            row.target_id,
            row.first,
        )
        for row in connection.execute(statement.add_columns(_FIRST)).all()
    ]


def newest_commits(connection: sa.Connection, lines: Sequence[GridLine], grid_range: GridRange) -> list[Position]:
    """Return the newest commits with results in any line, one more than `grid_range.limit`."""
    parameters = {"series": [line.series for line in lines], "until": grid_range.end}
    oldest_times = connection.execute(_OLDEST, {**parameters, "newer": grid_range.limit}).scalars()
    # No older commit is shown: one line alone has enough newer ones, and those of others only add to them.
    since = max((time for time in oldest_times if time is not None), default=0.0)
    rows = connection.execute(_COMMITS, {**parameters, "since": max(since, grid_range.since)})
    committed_at_of = {sha: committed_at for committed_at, sha in rows}
    ordered = sorted(((committed_at, sha) for sha, committed_at in committed_at_of.items()), reverse=True)
    return ordered[: grid_range.limit + 1]


def rows_at(connection: sa.Connection, series: Collection[int], commits: Sequence[Position]) -> Sequence[sa.RowMapping]:
    """Return the points of some series at commits of the nightly branch, which are given newest first."""
    parameters = {"series": list(series), "first": commits[-1][0], "last": commits[0][0]}
    return connection.execute(_AT_COMMITS, parameters).mappings().all()


def rows_of_commit(connection: sa.Connection, series: Collection[int], sha: str) -> Sequence[sa.RowMapping]:
    """Return the points of some series at one commit, on the nightly branch or not."""
    points = schema.points
    statement = sa.select(points).where(points.c.series_id.in_(series), points.c.sha == sha)
    return connection.execute(statement).mappings().all()


def commits_beginning_with(connection: sa.Connection, series: Collection[int], digits: str, limit: int) -> list[str]:
    """Return the commits of some series whose SHA begins with some hexadecimal digits."""
    points = schema.points
    # All digits sort before `g`, so the index of each series has these commits side by side.
    of_series = points.c.series_id.in_(series), points.c.sha >= digits, points.c.sha < f"{digits}g"
    return list(connection.execute(sa.select(points.c.sha).where(*of_series).distinct().limit(limit)).scalars())


def rows_before(connection: sa.Connection, series: Collection[int], oldest: Position) -> dict[int, sa.RowMapping]:
    """Return the last linked point of each series before the commits of a grid, to compare the first of them with."""
    # Not those with the same time: `rows_at` has them.
    parameters = {"series": list(series), "before": oldest[0], "newer": 0}
    return {row["series_id"]: row for row in connection.execute(_LAST_BEFORE, parameters).mappings()}


def newest_linked_rows(
    connection: sa.Connection, series: Collection[int], grid_range: GridRange
) -> tuple[list[sa.RowMapping], dict[int, sa.RowMapping]]:
    """Return the newest linked point of each series in the time of a grid, and the linked one before it, if any."""
    parameters = {"series": list(series), "before": grid_range.end}
    newest, before = (
        connection.execute(_LAST_BEFORE, parameters | {"newer": newer}).mappings().all() for newer in range(2)
    )
    return [row for row in newest if row["committed_at"] >= grid_range.since], {row["series_id"]: row for row in before}


def newest_rows(connection: sa.Connection, series: Collection[int], count: int) -> dict[int, list[NewestRow]]:
    """Return the newest points of each series on the nightly branch, oldest first, at most `count` of each.

    Series without points are left out.
    """
    rows = connection.execute(_NEWEST, {"series": list(series), "newer": count - 1}).all()
    # More than `count` are found if others have the same time as the oldest one.
    return {number: list(islice(found, count))[::-1] for number, found in groupby(rows, key=itemgetter(0))}


def with_earlier(
    rows: Sequence[sa.RowMapping], previous: Mapping[int, sa.RowMapping]
) -> list[tuple[sa.RowMapping, sa.RowMapping | None]]:
    """Return points in their order, each with the one that it is compared with.

    `previous` has the last linked point of each series before all of them.
    """
    pairs, newest = [], dict(previous)
    for row in sorted(rows, key=lambda row: (row["committed_at"], row["sha"])):
        pairs.append((row, newest.get(row["series_id"])))
        if row["linked"]:
            newest[row["series_id"]] = row
    return pairs
