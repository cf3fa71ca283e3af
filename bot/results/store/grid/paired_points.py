"""Find the failures of a grid whose tests pass on a paired target: on a simulator, or on the device that it simulates.

However many targets are paired, it takes a few statements, which indices answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.results.compare.paired import PairedTargets
from bot.results.store.failures.contexts import RECENT
from bot.results.store.grid.rows import GridLine, rows_before
from bot.results.store.tables import schema
from bot.results.store.tables.cells import failing_marks, marked_in_any, passing_marks
from bot.results.store.tables.points import Position, select_suites_on_targets
from bot.results.store.tables.runs import Place, columns_at

_POINTS = schema.points
_SuitePlace = tuple[int, str]
"""The number of a suite's names, and a target as LAB/TARGET."""


@dataclass(frozen=True, slots=True)
class OneSidedFailures:
    """Columns with 1 for each unexplained failure whose test passes on a paired target.

    `device_only` failures pass on a simulator of the target, `simulator_only` ones on the device that it simulates.
    """

    device_only: bytes = b""
    simulator_only: bytes = b""


NOT_ONE_SIDED = OneSidedFailures()


@dataclass(frozen=True, slots=True)
class FailingPoint:
    """A point with failures: its line and position, its column, and that of the commit that it is compared with."""

    line: GridLine
    position: Position
    previous: bytes | None
    column: bytes


@dataclass(frozen=True, slots=True)
class _Partner:
    """A suite on a paired target: where the runs of its nightly commits are, oldest first, and of all its commits."""

    target_id: int
    name: str
    nightly: list[Position]
    commits: set[str]

    def place_for(self, position: Position) -> Place | None:
        """Return its run at a commit, or else its newest nightly run up to there; None if that is too old."""
        committed_at, sha = position
        if sha not in self.commits:
            index = bisect_right(self.nightly, (committed_at, "~"))
            if not index or self.nightly[index - 1][0] < committed_at - RECENT:
                return None
            sha = self.nightly[index - 1][1]
        return self.target_id, sha, self.name


def one_sided_failures(
    connection: sa.Connection, points: Sequence[FailingPoint], paired: Mapping[str, PairedTargets]
) -> dict[tuple[int, str], OneSidedFailures]:
    """Return which failures of points pass on a paired target, by series and SHA; `paired` has the pairs of targets.

    As in a check run, the run of the other target at the same commit counts, or else its newest nightly run up to
    there.
    """
    partners = _partners(connection, points, paired)
    place_of = {
        (point.line.series, point.position[1], name): place
        for point in points
        for name in paired[point.line.target.full_name].names
        if (partner := partners.get((point.line.row.id, name))) and (place := partner.place_for(point.position))
    }
    columns = columns_at(connection, {*place_of.values()})
    passing = {place: passing_marks(column) for place, column in columns.items()}
    failures = {}
    for point in points:
        key, pair = (point.line.series, point.position[1]), paired[point.line.target.full_name]
        failing = failing_marks(point.previous, point.column)
        failures[key] = OneSidedFailures(
            *(
                marked_in_any(failing, [passing[place] for name in names if (place := place_of.get((*key, name)))])
                for names in (pair.simulators, {pair.device})
            )
        )
    return failures


def _partners(
    connection: sa.Connection, points: Sequence[FailingPoint], paired: Mapping[str, PairedTargets]
) -> dict[_SuitePlace, _Partner]:
    """Return the suites of points on the targets that are paired with theirs, with their commits."""
    targets, suites = schema.targets, schema.suites
    names = {name for point in points for name in paired[point.line.target.full_name].names}
    if not names:
        return {}
    labs, names_in_labs = zip(*(name.split("/", 1) for name in sorted(names)), strict=True)
    statement = select_suites_on_targets(points[0].line.target.repository).where(
        targets.c.lab.in_({*labs}),
        targets.c.target.in_({*names_in_labs}),
        suites.c.id.in_({point.line.row.id for point in points}),
    )
    partners, series = dict[_SuitePlace, _Partner](), dict[int, _Partner]()
    for row in connection.execute(statement):
        # The statement also finds targets of these names in other labs.
        if (name := f"{row.lab}/{row.target}") in names:
            partner = _Partner(row.target_id, row.suite, [], set())
            series[row.id] = partners[row.suite_id, name] = partner
    for point in _rows(connection, series, [failing.position for failing in points]):
        partner = series[point["series_id"]]
        if point["complete"] and not point["infra"]:
            partner.commits.add(point["sha"])
        if point["linked"]:
            partner.nightly.append((point["committed_at"], point["sha"]))
    for partner in partners.values():
        partner.nightly.sort()
    return partners


def _rows(connection: sa.Connection, series: Iterable[int], positions: Sequence[Position]) -> list[sa.RowMapping]:
    """Return the points of series in the time of some commits, and the last linked one of each before."""
    numbers, oldest, newest = list(series), min(positions), max(positions)
    statement = sa.select(_POINTS).where(
        _POINTS.c.series_id.in_(numbers), _POINTS.c.committed_at.between(oldest[0], newest[0])
    )
    return [*connection.execute(statement).mappings(), *rows_before(connection, numbers, oldest).values()]
