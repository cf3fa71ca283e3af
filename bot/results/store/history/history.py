"""Trace one test from commit to commit, on every target and under every name that it had."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, STATUS_BYTES, at, is_flaky, status_of
from nightjar_formats.model import Status, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.store.tables import runs, schema
from bot.results.store.tables.names import names_of
from bot.results.store.tables.points import Position, SuiteOnTarget, suites_on_targets
from bot.results.store.tables.rename_pairs import PointRenames, renames_of

_END: Position = (float("inf"), "")
_START: Position = (float("-inf"), "")


class Segment(NamedTuple):
    """How a test ended from a commit on until the next segment; `status` is None if the test was absent.

    `name` is what the test was called then. `committed_at` is in seconds since 1970.
    """

    sha: str
    committed_at: float
    status: Status | None
    flaky: bool
    name: str


TestHistory = tuple[Segment, ...]
"""The segments of a test on one target, oldest first."""


@dataclass(frozen=True, slots=True)
class TracedTest:
    """A test in a series: each segment has an item of `begins`, `statuses` and `names`, the oldest first.

    `first_run` is the position of the first linked point of the series, whether it has the test or not. `begins` has
    the positions of the commits at which segments begin, `statuses` their status bytes, and `names` what the test was
    called. Before the first segment, the test was absent.
    """

    first_run: Position
    begins: Sequence[Position]
    statuses: bytes
    names: Sequence[str]

    @property
    def segments(self) -> TestHistory:
        """Return the segments, oldest first."""
        return tuple(
            Segment(sha, committed_at, *_ENDS[status], name)
            for (committed_at, sha), status, name in zip(self.begins, self.statuses, self.names, strict=True)
        )


_Change = tuple[Position, int, int | None, int | None]
"""The position of a commit, the ordinal of a name, and its status bytes before and after that commit.

Both status bytes are None where only the name changed. A plain tuple, because a test that is flaky on all targets has
thousands.
"""


class _Rename(NamedTuple):
    position: Position
    old: int
    new: int


@dataclass(slots=True)
class _Line:
    """A series, with the position of its first linked point and the changes of the test in it.

    `oldest` is the ordinal of the first name of the test.
    """

    first: Position
    oldest: int
    changes: list[_Change]


def history(
    connection: sa.Connection,
    repository: str,
    suite: str,
    test_id: str,
    aliases: Aliases = NO_ALIASES,
) -> dict[TargetKey, TestHistory]:
    """Return how a test ended on every target, under its earlier names too; targets without it are left out.

    `aliases` are the names of tests that maintainers renamed.
    """
    suites = suites_on_targets(connection, repository, suite=suite)
    traced = history_on_targets(connection, suites, test_id, aliases)
    segments = {on.target: traced[on.series].segments for on in suites if on.series in traced}
    return {target: segments[target] for target in sorted(segments) if segments[target]}


def history_on_targets(
    connection: sa.Connection, suites: Sequence[SuiteOnTarget], test_id: str, aliases: Aliases
) -> dict[int, TracedTest]:
    """Return how a test ended in the series of one suite on some targets, under its earlier names too, by series.

    Series without linked points are left out.
    """
    if not suites:
        return {}
    row = suites[0].row
    suite_names = names_of(connection, row)
    ordinal, name_of = suite_names.ordinals.get(test_id), suite_names.ordered
    if ordinal is None:
        return {}
    numbers = [suite.series for suite in suites]
    lines = {
        number: _Line((committed_at, sha), ordinal, [])
        for number, committed_at, sha in connection.execute(_FIRST_POINTS, {"series": numbers})
    }
    _trace(connection, lines, ordinal, _OtherNames(name_of, aliases))
    first_statuses = _first_statuses(connection, lines, suites)
    return {number: _traced(line, first_statuses[number], name_of) for number, line in lines.items()}


class _OtherNames:
    """The names of a suite that stand for the same test because of aliases, by their ordinals."""

    def __init__(self, name_of: Sequence[str], aliases: Aliases) -> None:
        self._name_of = name_of
        self._aliases = aliases
        self._ordinal_of: dict[str, int] = {}

    def of(self, ordinal: int) -> set[int]:
        """Return the ordinals of the other names of a test."""
        other_names = self._aliases.others(self._name_of[ordinal]) if self._aliases else []
        if other_names and not self._ordinal_of:
            self._ordinal_of = {name: ordinal for ordinal, name in enumerate(self._name_of)}
        return {self._ordinal_of[name] for name in other_names if name in self._ordinal_of}


def _trace(connection: sa.Connection, lines: Mapping[int, _Line], test: int, aliases: _OtherNames) -> None:
    """Go back through the names of a test, in all series at once, and store its changes in `lines`, oldest first.

    `test` is the ordinal of its present name.
    """
    # By series: the ordinal of the next name to follow, and the commit until which the test had that name.
    pending = dict.fromkeys(lines, (test, _END))
    point_renames = renames_of(connection, lines)
    # Each round goes back by one name in every series, so the number of queries is that of names, not of series.
    while pending:
        other_names = {ordinal: aliases.of(ordinal) for ordinal, _ in pending.values()}
        ordinals = other_names.keys() | {other_ordinal for names in other_names.values() for other_ordinal in names}
        changes = _changes(connection, pending, ordinals)
        renames = _renames(point_renames, pending, ordinals)
        earlier_names = {}
        for number, (ordinal, until) in pending.items():
            line = lines[number]
            line_renames = [rename for rename in renames.get(number, ()) if rename.position < until]
            found_rename = max((rename for rename in line_renames if rename.new == ordinal), default=None)
            line_changes = [change for change in changes.get(number, ()) if change[0] < until]
            alias = _rename_by_alias(ordinal, other_names[ordinal], line_changes, line_renames)
            rename = max((rename for rename in (found_rename, alias) if rename), default=None)
            since = rename.position if rename else _START
            name_changes = [change for change in line_changes if change[1] == ordinal and since <= change[0]]
            if rename and rename == alias:
                # It was not absent before, but had another name, which mostly ended at the same commit.
                old_status = next(
                    (before for position, name, before, _ in line_changes if (name, position) == (rename.old, since)),
                    None,
                )
                name_changes = [
                    (position, name, old_status if position == since else before, after)
                    for position, name, before, after in name_changes
                ]
            # Where a test gives up this name for another one, the name is absent from then on.
            given_up = [rename.position for rename in line_renames if rename.old == ordinal and rename.position > since]
            name_changes += [(position, ordinal, None, ABSENT) for position in given_up]
            if rename:
                # A rename alone is no change, but its segment has another name.
                if all(position != since for position, *_ in name_changes):
                    name_changes.append((since, ordinal, None, None))
                earlier_names[number] = (rename.old, since)
                line.oldest = rename.old
            line.changes = sorted(name_changes, key=itemgetter(0)) + line.changes
        pending = earlier_names


def _rename_by_alias(
    ordinal: int, other_ordinals: Collection[int], changes: Sequence[_Change], renames: Sequence[_Rename]
) -> _Rename | None:
    """Return the last rename to a name that an alias explains, or None.

    The test appeared under the name, and one of its other names had been removed by then: the last of these is the old
    name. If the name itself was removed after all others, the test only was absent for a while.
    """
    if not other_ordinals:
        return None
    appeared = [position for position, name, before, _ in changes if name == ordinal and before == ABSENT]
    for position in sorted(appeared, reverse=True):
        removed = []
        for other_ordinal in other_ordinals:
            events = [(change[0], change[3] == ABSENT) for change in changes if change[1] == other_ordinal]
            events += [
                (rename.position, rename.old == other_ordinal)
                for rename in renames
                if other_ordinal in (rename.old, rename.new)
            ]
            last = max((event for event in events if event[0] <= position), default=None)
            if last and last[1]:
                removed.append((last[0], other_ordinal))
        own_removals = (
            removal for removal, name, _, after in changes if name == ordinal and after == ABSENT and removal < position
        )
        if removed and max(removed)[0] > max(own_removals, default=_START):
            return _Rename(position, max(removed)[1], ordinal)
    return None


# Made once, because making the statements takes as long as answering them.
_SERIES, _POINTS, _CHANGES, _LINKED = schema.series, schema.points, schema.changes, schema.points.alias()
_FIRST = (
    sa.select(_LINKED.c.id)
    .where(_LINKED.c.series_id == _SERIES.c.id, _LINKED.c.linked)
    .order_by(_LINKED.c.committed_at, _LINKED.c.sha)
    .limit(1)
    .correlate(_SERIES)
    .scalar_subquery()
)
_OF_SERIES: sa.BindParameter[Any] = sa.bindparam("series", expanding=True)
_FIRST_POINTS = (
    sa.select(_SERIES.c.id, _POINTS.c.committed_at, _POINTS.c.sha)
    .select_from(_SERIES.join(_POINTS, _POINTS.c.id == _FIRST))
    .where(_SERIES.c.id.in_(_OF_SERIES))
)
_OF_NAMES = (
    sa.select(_CHANGES.c.series_id, _POINTS.c.committed_at, _POINTS.c.sha)
    .add_columns(*(_CHANGES.c[name] for name in ("ordinal", "before", "after")))
    .join(_POINTS)
    .where(_CHANGES.c.series_id.in_(_OF_SERIES), _CHANGES.c.ordinal.in_(sa.bindparam("ordinals", expanding=True)))
)


def _changes(connection: sa.Connection, series: Collection[int], ordinals: Collection[int]) -> dict[int, list[_Change]]:
    """Return the changes of some names, by series."""
    changes_of = defaultdict[int, list[_Change]](list)
    parameters = {"series": list(series), "ordinals": list(ordinals)}
    for number, committed_at, sha, ordinal, before, after in connection.execute(_OF_NAMES, parameters).all():
        changes_of[number].append(((committed_at, sha), ordinal, before, after))
    return changes_of


def _renames(
    point_renames: Iterable[PointRenames], series: Collection[int], ordinals: Collection[int]
) -> dict[int, list[_Rename]]:
    """Return the renames to and from some names, by series."""
    renames_of_series: dict[int, list[_Rename]] = {}
    for number, position, pairs in point_renames:
        if number in series:
            by_new = {(pairs.old_of(ordinal), ordinal) for ordinal in ordinals}
            by_old = {(ordinal, pairs.new_of(ordinal)) for ordinal in ordinals}
            renames = (
                _Rename(position, old, new) for old, new in by_new | by_old if old is not None and new is not None
            )
            renames_of_series.setdefault(number, []).extend(renames)
    return renames_of_series


def _first_statuses(
    connection: sa.Connection, lines: Mapping[int, _Line], suites: Iterable[SuiteOnTarget]
) -> dict[int, int]:
    """Return the status byte of the test at the first commit of each series.

    The first change in a series has it. The columns are read only of series without a change.
    """
    first_statuses = {}
    unknown = {}
    for number, line in lines.items():
        old_status = next((before for _, _, before, _ in line.changes if before is not None), None)
        if old_status is None:
            unknown[number] = line
        else:
            first_statuses[number] = old_status
    places = {
        suite.series: suite.place_at(unknown[suite.series].first[1]) for suite in suites if suite.series in unknown
    }
    columns = runs.columns_at(connection, places.values())
    return first_statuses | {number: at(columns[place], unknown[number].oldest) for number, place in places.items()}


_ENDS = [(status_of(byte), is_flaky(byte)) for byte in range(STATUS_BYTES)]
"""How a test ended, by its status byte."""


def _traced(line: _Line, first_status: int, name_of: Sequence[str]) -> TracedTest:
    """Return the segments of a series; `first_status` is the status byte at its first commit."""
    begins, statuses, names = [position for position, *_ in line.changes], bytearray(), list[str]()
    status = first_status
    if first_status:
        begins, names = [line.first, *begins], [name_of[line.oldest]]
        statuses.append(first_status)
    for _, ordinal, _, after in line.changes:
        status = status if after is None else after
        statuses.append(status)
        names.append(name_of[ordinal])
    return TracedTest(line.first, begins, bytes(statuses), names)
