"""Find the names that tests of a series had from commit to commit, by detected renames and by listed aliases."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT

from bot.core.aliases import Aliases
from bot.results.store.tables import schema
from bot.results.store.tables.points import Position
from bot.results.store.tables.rename_pairs import PointRenames, renames_of

END: Position = (float("inf"), "")
"""After every commit."""

ChangesOf = dict[int, list[tuple[Position, int, int]]]
"""The changes of each test: at which commit, and its status byte before and after."""


@dataclass(slots=True)
class SeriesNames:
    """The renames of a series, each at its commit: `old_of` by the new name, `new_of` by the old one."""

    old_of: dict[int, list[tuple[Position, int]]] = field(default_factory=lambda: defaultdict(list))
    new_of: dict[int, list[tuple[Position, int]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, position: Position, old: int, new: int) -> None:
        """Add a rename, in place of another one of the same test at the same commit."""
        self.old_of[new].append((position, old))
        self.new_of[old] = [*(rename for rename in self.new_of[old] if rename[0] != position), (position, new)]

    def now(self, ordinal: int, since: Position) -> int:
        """Return the present name of the test that had a name after a commit."""
        while True:
            later_renames = [rename for rename in self.new_of.get(ordinal, ()) if rename[0] > since]
            if not later_renames:
                return ordinal
            since, ordinal = min(later_renames)

    def spans(self, ordinal: int) -> Iterator[tuple[int, Position, Position]]:
        """Yield the names of a test, newest first, each with the commits from and until which the test had it."""
        until = END
        while True:
            rename = max((rename for rename in self.old_of.get(ordinal, ()) if rename[0] < until), default=None)
            yield ordinal, rename[0] if rename else (float("-inf"), ""), until
            if rename is None:
                return
            until, ordinal = rename


def series_names(
    connection: sa.Connection,
    series: int,
    name_of: Sequence[str],
    aliases: Aliases,
    tests: Iterable[int],
    renames: Sequence[PointRenames] | None = None,
) -> SeriesNames:
    """Return the renames of a series; `aliases`, which maintainers list, are applied to `tests`.

    `name_of` are all names of the suite. `renames` are the stored renames of the series; they are read if it is None.
    Nothing is stored, so an alias has no effect once it is removed from the list.
    """
    names, ordinals = SeriesNames(), set(tests)
    point_renames = renames_of(connection, [series]) if renames is None else renames
    # An alias may join any tests, so all renames are needed; for many tests, one pass is faster than a search for each.
    if aliases or len(ordinals) > schema.MAX_IN_VALUES:
        for point in point_renames:
            for new, old in point.pairs:
                names.add(point.position, old, new)
    elif point_renames:
        _add_renames_of(point_renames, ordinals, names)
    if aliases and (groups := _same_tests(name_of, aliases, names, ordinals)):
        changes = changes_of(connection, series, {ordinal for group in groups for ordinal in group})
        for group in groups:
            for position, old, new in _alias_renames(group, changes, names):
                names.add(position, old, new)
    return names


def all_names_of(point_renames: Sequence[PointRenames], ordinals: Collection[int]) -> set[int]:
    """Return all names that tests of a series have or had, including `ordinals` themselves."""
    all_ordinals, waiting = set(ordinals), list(ordinals)
    while waiting and point_renames:
        ordinal = waiting.pop()
        for point in point_renames:
            for other_name in (point.pairs.old_of(ordinal), point.pairs.new_of(ordinal)):
                if other_name is not None and other_name not in all_ordinals:
                    all_ordinals.add(other_name)
                    waiting.append(other_name)
    return all_ordinals


def _add_renames_of(point_renames: Sequence[PointRenames], ordinals: Iterable[int], names: SeriesNames) -> None:
    """Add to `names` only the renames of some tests, earlier and later: a release may have renamed all others."""
    seen = set(ordinals)
    waiting = list(seen)
    while waiting:
        ordinal = waiting.pop()
        for _, position, pairs in point_renames:
            sides = (names.old_of, pairs.old_of(ordinal)), (names.new_of, pairs.new_of(ordinal))
            for side, other_name in sides:
                if other_name is not None:
                    side[ordinal].append((position, other_name))
                    if other_name not in seen:
                        seen.add(other_name)
                        waiting.append(other_name)


# Made once, because making the statement takes longer than answering it.
_CHANGES, _POINTS, _OTHERS = schema.changes, schema.points, schema.points.alias()
_MOMENT: sa.BindParameter[Any] = sa.bindparam("since")
# SQLite finds no index for `IN` with pairs, so the pairs are a table that it joins: it looks each of them up.
_PAIRS = {
    "sqlite": sa.text(
        "SELECT json_extract(value, '$[0]') AS series, json_extract(value, '$[1]') AS ordinal FROM json_each(:pairs)"
    ),
    "postgresql": sa.text(
        "SELECT CAST(value->>0 AS bigint) AS series, CAST(value->>1 AS integer) AS ordinal"
        " FROM json_array_elements(CAST(:pairs AS json)) AS pair (value)"
    ),
}


def _changes_of_pairs(pairs: sa.TextClause) -> sa.Select[Any]:
    """Return the statement for the changes of pairs of a series and a test since a moment."""
    tests = pairs.columns(sa.column("series", sa.Integer), sa.column("ordinal", sa.Integer)).cte("tests")
    # Points mostly have their numbers in the order of their commits, so the index passes over the changes before them.
    first = (
        sa.select(sa.func.min(_OTHERS.c.id))
        .where(_OTHERS.c.series_id.in_(sa.select(tests.c.series)), _OTHERS.c.committed_at >= _MOMENT)
        .scalar_subquery()
    )
    return (
        sa.select(*(_CHANGES.c[name] for name in ("series_id", "ordinal", "before", "after")))
        .add_columns(_POINTS.c.committed_at, _POINTS.c.sha)
        .select_from(
            tests.join(
                _CHANGES, sa.and_(_CHANGES.c.series_id == tests.c.series, _CHANGES.c.ordinal == tests.c.ordinal)
            ).join(_POINTS)
        )
        .where(_CHANGES.c.point_id >= first, _POINTS.c.committed_at >= _MOMENT)
    )


_SINCE = {dialect: _changes_of_pairs(pairs) for dialect, pairs in _PAIRS.items()}


def changes_since(
    connection: sa.Connection, ordinals: Mapping[int, Collection[int]], since: float
) -> dict[int, ChangesOf]:
    """Return the changes of some tests of each series, at commits made since a moment; `ordinals` are the tests."""
    changes: dict[int, ChangesOf] = {series: {} for series in ordinals}
    pairs = [(series, ordinal) for series, tests in ordinals.items() for ordinal in tests]
    if not pairs:
        return changes
    parameters = {"pairs": json.dumps(pairs), "since": since}
    for series, ordinal, old_status, new_status, committed_at, sha in connection.execute(
        _SINCE[connection.dialect.name], parameters
    ).all():
        changes[series].setdefault(ordinal, []).append(((committed_at, sha), old_status, new_status))
    return changes


def changes_of(
    connection: sa.Connection, series: int, ordinals: Collection[int], points: Collection[int] | None = None
) -> ChangesOf:
    """Return the changes of some tests of a series; with `points`, which must be few, only those at these points."""
    table, commits = schema.changes, schema.points
    changes: ChangesOf = {}
    sorted_ordinals = sorted(ordinals)
    at_points = sa.true() if points is None else table.c.point_id.in_(points)
    for chunk in schema.in_chunks(sorted_ordinals):
        of_tests = table.c.ordinal.in_(chunk)
        statement = sa.select(table, commits.c.committed_at, commits.c.sha).join(commits)
        for row in connection.execute(statement.where(table.c.series_id == series, of_tests, at_points)):
            changes.setdefault(row.ordinal, []).append(((row.committed_at, row.sha), row.before, row.after))
    return changes


def _same_tests(
    name_of: Sequence[str], aliases: Aliases, renames: SeriesNames, tests: Iterable[int]
) -> list[tuple[int, ...]]:
    """Return the groups of names that aliases join, for all names that some tests have or had."""
    by_name = defaultdict[str, list[int]](list)
    canonical = [aliases.canonical(name) for name in name_of]
    for ordinal, name in enumerate(canonical):
        by_name[name].append(ordinal)
    groups: dict[str, tuple[int, ...]] = {}
    seen, waiting = set[int](), list(tests)
    while waiting:
        ordinal = waiting.pop()
        if ordinal in seen:
            continue
        seen.add(ordinal)
        same_test = by_name[canonical[ordinal]]
        if len(same_test) > 1 and canonical[ordinal] not in groups:
            groups[canonical[ordinal]] = tuple(same_test)
            waiting += same_test
        waiting += (
            other_name for _, other_name in [*renames.old_of.get(ordinal, ()), *renames.new_of.get(ordinal, ())]
        )
    return list(groups.values())


def _alias_renames(
    group: Collection[int], changes: Mapping[int, list[tuple[Position, int, int]]], names: SeriesNames
) -> list[tuple[Position, int, int]]:
    """Return the renames within a group: the old name of a name that appears is the one that was removed last."""
    events = [
        (position, new_status != ABSENT, ordinal)
        for ordinal in group
        for position, old_status, new_status in changes.get(ordinal, ())
        if ABSENT in (old_status, new_status)
    ]
    events += [(position, False, ordinal) for ordinal in group for position, _ in names.new_of.get(ordinal, ())]
    renames, removed = [], dict[int, None]()
    for position, appears, ordinal in sorted(events):
        last = next(reversed(removed), ordinal)
        removed.pop(ordinal, None)
        if not appears:
            removed[ordinal] = None
        elif last != ordinal:
            del removed[last]
            renames.append((position, last, ordinal))
    return renames
