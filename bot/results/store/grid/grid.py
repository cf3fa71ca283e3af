"""Read results by commit: for each suite of each target, the runs of the nightly branch with their tests.

A grid takes a few statements, which indices answer, and works on whole columns, however many tests there are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, at, differences

from bot.core.aliases import Aliases
from bot.results.compare.quarantine import NO_QUARANTINE
from bot.results.state import Run
from bot.results.store.grid.paired_points import (
    NOT_ONE_SIDED,
    FailingPoint,
    OneSidedFailures,
    one_sided_failures,
)
from bot.results.store.grid.rows import (
    GridLine,
    GridRange,
    lines_of,
    newest_commits,
    newest_linked_rows,
    rows_at,
    rows_before,
    rows_of_commit,
    targets_on_page,
    with_earlier,
)
from bot.results.store.grid.stored_counts import read_counts
from bot.results.store.history.explained import PointColumn, explained_ordinals, quarantined_failures
from bot.results.store.tables import runs, schema
from bot.results.store.tables.cells import IS_FAILURE, CellCounts, explained_column, renamed_column
from bot.results.store.tables.names import all_names
from bot.results.store.tables.points import Position
from bot.results.store.tables.rename_pairs import RenamePairs
from bot.results.store.tables.runs import Place, status_columns

SeriesCommit = tuple[int, str]
"""A series, and a commit."""


@dataclass(frozen=True, slots=True)
class GridPoint:
    """The outcome of a suite on a target at a commit.

    `column` is the status column at this commit, and `previous` that at the commit that it is compared with, with the
    tests under their present names. `previous` is None if there is no such commit. It has `KNOWN` for a test whose
    failure now is explained, by a quarantine or by its flakiness. A quarantine explains failures without such a commit
    too: then all other tests are `UNCOMPARED`. `infra` says why the run has no usable results.

    A point with `counts`, which only a grid of counts has, has no columns, so `has_baseline` says whether there is a
    commit to compare with.

    `one_sided` has the failures that pass on a simulator or on the simulated device, for paired targets.
    """

    run: Run
    complete: bool
    infra: str
    has_baseline: bool
    previous: bytes | None
    column: bytes
    stored: Sequence[int] = ()
    """The numbers of the runs with results, in their order."""
    counts: CellCounts | None = None
    one_sided: OneSidedFailures = NOT_ONE_SIDED


@dataclass(frozen=True, slots=True)
class Grid:
    """Lines, commits (newest first), and the points by series and SHA. `older`: there are older commits."""

    lines: Sequence[GridLine]
    commits: Sequence[Position]
    points: Mapping[tuple[int, str], GridPoint]
    older: bool = False


def grid_of(connection: sa.Connection, grid_range: GridRange) -> Grid:
    """Return the grid of a part of a repository's results."""
    lines = lines_of(connection, grid_range)
    commits = newest_commits(connection, lines, grid_range)
    # One more commit was read, only to know whether there are older ones.
    older, commits = len(commits) > grid_range.limit, commits[: grid_range.limit]
    if not commits:
        return Grid(lines, commits, {}, older)
    listed_targets = set(targets_on_page(grid_range, lines))
    by_series = {
        line.series: line
        for line in lines
        if line.target.full_name in listed_targets
        and (grid_range.ordinals is None or line.series in grid_range.ordinals)
    }
    if grid_range.newest_only:
        return Grid(lines, commits, _newest_points(connection, by_series, grid_range), older)
    # These may include commits that are as old as the last one shown: others are compared with them.
    rows, previous = rows_at(connection, by_series, commits), rows_before(connection, by_series, commits[-1])
    points = _points(connection, by_series, rows, previous, grid_range)
    listed = {sha for _, sha in commits}
    return Grid(lines, commits, {place: point for place, point in points.items() if place[1] in listed}, older)


def newest_of_lines(
    connection: sa.Connection, lines: Sequence[GridLine], grid_range: GridRange
) -> dict[int, GridPoint]:
    """Return the newest point of lines with complete and usable results, however old, by series."""
    by_series = {line.series: line for line in lines}
    return {series: point for (series, _), point in _newest_points(connection, by_series, grid_range).items()}


@dataclass(frozen=True, slots=True)
class CommitGrid:
    """All suites on all targets at one commit: the grid has no other commit, and none if there are no results.

    `bases` has the commit that each series is compared with. A commit that is not `mainline` is compared with none
    here: its check run knows the commit that its branch began at.
    """

    grid: Grid
    bases: Mapping[int, Position]
    mainline: bool = True
    pull_request: int | None = None


def grid_of_commit(connection: sa.Connection, grid_range: GridRange, sha: str) -> CommitGrid:
    """Return the results of a commit, the counts as in a grid of many commits."""
    lines = lines_of(connection, grid_range)
    by_series = {line.series: line for line in lines}
    rows = rows_of_commit(connection, by_series, sha)
    if not rows:
        return CommitGrid(Grid(lines, [], {}), {})
    mainline = any(row["mainline"] for row in rows)
    position = (min(row["committed_at"] for row in rows), sha)
    earlier = rows_before(connection, by_series, position) if mainline else {}
    return CommitGrid(
        Grid(lines, [position], _points(connection, by_series, rows, earlier, grid_range)),
        {series: (row["committed_at"], row["sha"]) for series, row in earlier.items()},
        mainline,
        max((row["pull_request"] for row in rows if row["pull_request"] is not None), default=None),
    )


def _newest_points(
    connection: sa.Connection, by_series: Mapping[int, GridLine], grid_range: GridRange
) -> dict[SeriesCommit, GridPoint]:
    """Return the newest point with complete and usable results of each series."""
    rows, previous = newest_linked_rows(connection, by_series, grid_range)
    return _points(connection, by_series, rows, previous, grid_range)


def _points(
    connection: sa.Connection,
    by_series: Mapping[int, GridLine],
    rows: Sequence[sa.RowMapping],
    previous: dict[int, sa.RowMapping],
    grid_range: GridRange,
) -> dict[SeriesCommit, GridPoint]:
    """Return the points of a grid.

    `rows` are the rows of its points, and `previous` has the last linked row before them, by series.
    """
    counted = {row["id"]: counts for row in rows if (counts := _stored_counts(row, by_series, grid_range))}
    compared = with_earlier(rows, previous)
    read = [(row, earlier) for row, earlier in compared if not grid_range.counts or _needs_columns(row, counted)]
    columns_of = {_place(row, by_series) for pair in read for row in pair if row is not None}
    reported = _by_suite(
        runs.reported_runs_at(
            connection, {_place(row, by_series)[:2] for row, _ in compared} | {place[:2] for place in columns_of}
        )
    )
    columns = status_columns(
        connection, {place: runs.stored(reported[place]) for place in columns_of if place in reported}
    )
    renames = _renames(connection, by_series, [row["id"] for row, _ in read if row["linked"]])
    points = dict[SeriesCommit, GridPoint]()
    failing, uncompared = dict[int, list[PointColumn]](), dict[int, list[PointColumn]]()
    for row, earlier in compared:
        line, place = by_series[row["series_id"]], _place(row, by_series)
        if place not in reported:
            continue
        column, previous_column = columns.get(place, b""), None
        if not row["infra"] and row["id"] not in counted:
            linked = column
            if earlier is not None:
                earlier_column = columns.get(_place(earlier, by_series), b"")
                previous_column = _previous_column(
                    connection, line, earlier_column, column, renames.get(row["id"], {}), grid_range
                )
                # A point that is not linked adds nothing to the series, whose newest column is the earlier one.
                linked = column if row["linked"] else earlier_column
            if grid_range.explain:
                ordinals = None if grid_range.ordinals is None else grid_range.ordinals[line.series]
                (uncompared if earlier is None else failing).setdefault(line.series, []).append(
                    PointColumn((row["committed_at"], row["sha"]), column, linked, ordinals)
                )
        points[line.series, row["sha"]] = GridPoint(
            reported[place][-1][1],
            row["complete"],
            row["infra"],
            earlier is not None,
            previous_column,
            column,
            runs.stored(reported[place]),
            counted.get(row["id"]),
        )
    explained = _explained(connection, by_series, failing, uncompared, grid_range)
    points |= {
        place: replace(point, previous=explained_column(point.previous, explained[place], point.column))
        for place, point in points.items()
        if explained.get(place)
    }
    paired = [
        FailingPoint(line, (row["committed_at"], row["sha"]), point.previous, point.column)
        for row, _ in compared
        if (line := by_series[row["series_id"]]).target.full_name in grid_range.paired
        and (point := points.get((line.series, row["sha"]))) is not None
        and not point.infra
        and _has_failures(point)
    ]
    one_sided = one_sided_failures(connection, paired, grid_range.paired)
    return points | {place: replace(points[place], one_sided=failures) for place, failures in one_sided.items()}


def _previous_column(
    connection: sa.Connection,
    line: GridLine,
    earlier_column: bytes,
    column: bytes,
    renames: Mapping[int, int],
    grid_range: GridRange,
) -> bytes:
    """Return the column to compare with, in which renamed tests have their present ordinals, as for a check run."""
    if grid_range.aliases:
        renames = {**renames, **_by_alias(connection, line, earlier_column, column, grid_range.aliases)}
    return renamed_column(earlier_column, renames)


def _explained(
    connection: sa.Connection,
    lines: Mapping[int, GridLine],
    columns: Mapping[int, Sequence[PointColumn]],
    uncompared: Mapping[int, Sequence[PointColumn]],
    grid_range: GridRange,
) -> dict[SeriesCommit, list[int]]:
    """Return which failures are explained, by a quarantine or by the flakiness of their tests.

    Only a quarantine explains failures of `uncompared` columns, which have no commit before.
    """
    suites = {series: line.row for series, line in lines.items()}
    failing = {
        series: failed for series, points in columns.items() if (failed := [p for p in points if _has_failures(p)])
    }
    explained = explained_ordinals(connection, suites, failing, grid_range.aliases)
    for series in {**failing, **uncompared}:
        quarantine = grid_range.quarantine(lines[series].target) if grid_range.quarantine else NO_QUARANTINE
        if quarantine.exact or quarantine.prefixes:
            for point in (*failing.get(series, ()), *uncompared.get(series, ())):
                quarantined = quarantined_failures(connection, suites[series], quarantine, point.column, point.ordinals)
                explained.setdefault((series, point.position[1]), []).extend(quarantined)
    return explained


def _has_failures(point: PointColumn | GridPoint) -> bool:
    return 1 in point.column.translate(IS_FAILURE)


def _by_alias(
    connection: sa.Connection, line: GridLine, earlier_column: bytes, column: bytes, aliases: Aliases
) -> dict[int, int]:
    """Return the tests that aliases rename between two columns: the old ordinals by the new ones."""
    changed = list(differences(earlier_column, column))
    name_of = all_names(connection, line.row)
    removed = {name_of[ordinal]: ordinal for ordinal in changed if at(column, ordinal) == ABSENT}
    added = {name_of[ordinal]: ordinal for ordinal in changed if at(earlier_column, ordinal) == ABSENT}
    return {added[new]: removed[name] for name, new in aliases.pairs(removed, added).items()}


def _stored_counts(row: sa.RowMapping, lines: Mapping[int, GridLine], grid_range: GridRange) -> CellCounts | None:
    """Return the stored counts of a point; None if aliases, a quarantine or pairs of app.yaml may change them."""
    counts = read_counts(row) if grid_range.counts else None
    # An alias may pair a failing test with one that failed before under another name.
    if counts is None or (counts.failed and grid_range.aliases):
        return None
    # Which failures pass on a paired target is not stored.
    if counts.failing and lines[row["series_id"]].target.full_name in grid_range.paired:
        return None
    quarantine = (
        grid_range.quarantine(lines[row["series_id"]].target)
        if counts.failing and grid_range.quarantine
        else NO_QUARANTINE
    )
    return None if quarantine.exact or quarantine.prefixes else counts


def _needs_columns(row: sa.RowMapping, counted: Collection[int]) -> bool:
    return row["id"] not in counted and not row["infra"]


def _place(row: sa.RowMapping, lines: Mapping[int, GridLine]) -> Place:
    return lines[row["series_id"]].place_at(row["sha"])


def _by_suite(reported: Mapping[tuple[int, str], list[runs.Numbered]]) -> dict[Place, list[runs.Numbered]]:
    """Group runs by suite; runs without claims, whose manifest could not be read, are left out."""
    runs_at: dict[Place, list[runs.Numbered]] = {}
    for (target, sha), numbered in reported.items():
        for number, run in numbered:
            if run.claims:
                runs_at.setdefault((target, sha, run.claims.suite), []).append((number, run))
    return runs_at


# Made once, because making the statement takes longer than answering it.
_RENAMES = sa.select(schema.renames.c.point_id, schema.renames.c.pairs).where(
    schema.renames.c.series_id.in_(sa.bindparam("series", expanding=True)),
    schema.renames.c.point_id.in_(sa.bindparam("points", expanding=True)),
)


def _renames(connection: sa.Connection, series: Collection[int], points: Sequence[int]) -> dict[int, dict[int, int]]:
    """Return the renames at points: the old ordinals of tests by the new ones."""
    renames_of: dict[int, dict[int, int]] = {}
    for chunk in schema.in_chunks(points):
        rows = connection.execute(_RENAMES, {"series": list(series), "points": chunk})
        renames_of |= {row.point_id: dict(RenamePairs(row.pairs)) for row in rows}
    return renames_of
