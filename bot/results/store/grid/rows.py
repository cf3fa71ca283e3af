"""Find the points of a grid: suites on targets, their newest commits, and the row of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

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


def targets_in_order(configured: Sequence[str], lines: Iterable[GridLine]) -> list[str]:
    """Return the targets of app.yaml, with or without results, and then all others that have lines, as LAB/TARGET."""
    return list(dict.fromkeys([*configured, *(line.target.full_name for line in lines)]))


def targets_on_page(grid_range: GridRange, lines: Iterable[GridLine]) -> list[str]:
    """Return the targets whose points a grid has."""
    ordered = targets_in_order(grid_range.configured, lines)
    return ordered[grid_range.first_target :][: grid_range.most_targets]


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
        for row in connection.execute(statement.add_columns(first_on_nightly().label("first")))
    ]


def newest_commits(connection: sa.Connection, lines: Sequence[GridLine], grid_range: GridRange) -> list[Position]:
    """Return the newest commits with results in any line, one more than `grid_range.limit`."""
    series, points = schema.series, schema.points
    numbers = [line.series for line in lines]
    until = [points.c.committed_at < grid_range.until] if grid_range.until is not None else []
    oldest = (
        sa.select(points.c.committed_at)
        .where(points.c.series_id == series.c.id, points.c.mainline, *until)
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
        .limit(1)
        .offset(grid_range.limit)
        .correlate(series)
        .scalar_subquery()
    )
    oldest_times = connection.execute(sa.select(oldest).where(series.c.id.in_(numbers))).scalars()
    # No older commit is shown: one line alone has enough newer ones, and those of others only add to them.
    since = max((time for time in oldest_times if time is not None), default=0.0)
    statement = (
        sa.select(points.c.committed_at, points.c.sha)
        .where(
            points.c.series_id.in_(numbers), points.c.committed_at >= max(since, grid_range.since), points.c.mainline
        )
        .where(*until)
        .distinct()
    )
    committed_at_of = {row.sha: row.committed_at for row in connection.execute(statement)}
    ordered = sorted(((committed_at, sha) for sha, committed_at in committed_at_of.items()), reverse=True)
    return ordered[: grid_range.limit + 1]


def rows_at(connection: sa.Connection, series: Collection[int], commits: Sequence[Position]) -> Sequence[sa.RowMapping]:
    """Return the points of some series at commits of the nightly branch, which are given newest first."""
    points = schema.points
    statement = sa.select(points).where(
        points.c.series_id.in_(series), points.c.mainline, points.c.committed_at.between(commits[-1][0], commits[0][0])
    )
    return connection.execute(statement).mappings().all()


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
    table, points = schema.series, schema.points
    earlier = points.alias()
    newest = (
        sa.select(earlier.c.id)
        # Not those with the same time: `rows_at` has them.
        .where(earlier.c.series_id == table.c.id, earlier.c.linked, earlier.c.committed_at < oldest[0])
        .order_by(earlier.c.committed_at.desc(), earlier.c.sha.desc())
        .limit(1)
        .correlate(table)
        .scalar_subquery()
    )
    statement = sa.select(points).select_from(table.join(points, points.c.id == newest)).where(table.c.id.in_(series))
    return {row["series_id"]: row for row in connection.execute(statement).mappings()}


def newest_linked_rows(
    connection: sa.Connection, series: Collection[int], grid_range: GridRange
) -> tuple[list[sa.RowMapping], dict[int, sa.RowMapping]]:
    """Return the newest linked point of each series in the time of a grid, and the linked one before it, if any."""
    table, points = schema.series, schema.points
    linked = points.alias()
    until = [linked.c.committed_at < grid_range.until] if grid_range.until is not None else []
    newest_first = (
        sa.select(linked.c.id)
        .where(linked.c.series_id == table.c.id, linked.c.linked, *until)
        .order_by(linked.c.committed_at.desc(), linked.c.sha.desc())
        .limit(1)
        .correlate(table)
    )
    newest, before = (
        {
            row["series_id"]: row
            for row in connection.execute(
                sa.select(points)
                .select_from(table.join(points, points.c.id == newest_first.offset(place).scalar_subquery()))
                .where(table.c.id.in_(series))
            ).mappings()
        }
        for place in range(2)
    )
    return [row for row in newest.values() if row["committed_at"] >= grid_range.since], before


def newest_rows(
    connection: sa.Connection, series: Collection[int], count: int
) -> list[tuple[sa.RowMapping, sa.RowMapping | None]]:
    """Return the newest points of each series on the nightly branch, oldest first, each as `with_earlier` does."""
    table, points = schema.series, schema.points
    newer, earlier = points.alias(), points.alias()
    newest_first = newer.c.committed_at.desc(), newer.c.sha.desc()
    of_series = sa.select(newer.c.committed_at).where(newer.c.series_id == table.c.id, newer.c.mainline)
    oldest = of_series.order_by(*newest_first).limit(1).offset(count - 1).correlate(table).scalar_subquery()
    statement = (
        sa.select(points)
        .select_from(table.join(points, points.c.series_id == table.c.id))
        .where(table.c.id.in_(series), points.c.mainline, points.c.committed_at >= sa.func.coalesce(oldest, 0.0))
        .order_by(points.c.series_id, points.c.committed_at.desc(), points.c.sha.desc())
    )
    rows = list[sa.RowMapping]()
    for _, series_rows in groupby(connection.execute(statement).mappings().all(), key=lambda row: row["series_id"]):
        # More than `count` are found if others have the same time as the oldest one.
        rows += islice(series_rows, count)
    # Where `oldest` is NULL, all points of the series were read, and the comparison with NULL finds none before them.
    previous_point = (
        sa.select(earlier.c.id)
        .where(earlier.c.series_id == table.c.id, earlier.c.linked, earlier.c.committed_at < oldest)
        .order_by(earlier.c.committed_at.desc(), earlier.c.sha.desc())
        .limit(1)
        .correlate(table)
        .scalar_subquery()
    )
    linked = (
        sa.select(points).select_from(table.join(points, points.c.id == previous_point)).where(table.c.id.in_(series))
    )
    return with_earlier(rows, {row["series_id"]: row for row in connection.execute(linked).mappings()})


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
