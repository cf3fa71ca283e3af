"""Find the names that tests of a series had from commit to commit, by detected renames and by listed aliases."""

from __future__ import annotations

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
        self.new_of[old] = [*(one for one in self.new_of[old] if one[0] != position), (position, new)]

    def now(self, ordinal: int, since: Position) -> int:
        """Return what a test is called now that had a name at a moment."""
        while True:
            later = [one for one in self.new_of.get(ordinal, ()) if one[0] > since]
            if not later:
                return ordinal
            since, ordinal = min(later)

    def spans(self, ordinal: int) -> Iterator[tuple[int, Position, Position]]:
        """Yield the names of a test, newest first, each with the moments from and until which it had it."""
        until = END
        while True:
            came = max((one for one in self.old_of.get(ordinal, ()) if one[0] < until), default=None)
            yield ordinal, came[0] if came else (float("-inf"), ""), until
            if came is None:
                return
            until, ordinal = came


def series_names(
    connection: sa.Connection,
    series: int,
    name_of: Sequence[str],
    aliases: Aliases,
    wanted: Iterable[int],
    renames: Sequence[PointRenames] | None = None,
) -> SeriesNames:
    """Return the renames of a series; `aliases`, which maintainers list, are applied to the `wanted` tests.

    `name_of` are all names of the suite, and `renames` those of the series that were found, where they are known.
    Nothing is stored, so an alias has no effect once it is removed from the list.
    """
    found, asked = SeriesNames(), set(wanted)
    every = renames_of(connection, [series]) if renames is None else renames
    # An alias may join any tests, so all renames are needed; for many tests, one pass is faster than a search for each.
    if aliases or len(asked) > schema.MAX_IN_VALUES:
        for point in every:
            for new, old in point.pairs:
                found.add(point.position, old, new)
    elif every:
        _add_renames_of(every, asked, found)
    if aliases and (groups := _same_tests(name_of, aliases, found, asked)):
        changes = changes_of(connection, series, {ordinal for group in groups for ordinal in group})
        for group in groups:
            for position, old, new in _alias_renames(group, changes, found):
                found.add(position, old, new)
    return found


def all_names_of(every: Sequence[PointRenames], wanted: Collection[int]) -> set[int]:
    """Return all names that some tests of a series have or had, the given ones included."""
    found, waiting = set(wanted), list(wanted)
    while waiting and every:
        ordinal = waiting.pop()
        for point in every:
            for other in (point.pairs.old_of(ordinal), point.pairs.new_of(ordinal)):
                if other is not None and other not in found:
                    found.add(other)
                    waiting.append(other)
    return found


def _add_renames_of(every: Sequence[PointRenames], wanted: Iterable[int], found: SeriesNames) -> None:
    """Add only the renames of some tests, before and after: a release may have renamed all others too."""
    asked = set(wanted)
    waiting = list(asked)
    while waiting:
        ordinal = waiting.pop()
        for _, position, pairs in every:
            others = (found.old_of, pairs.old_of(ordinal)), (found.new_of, pairs.new_of(ordinal))
            for side, other in others:
                if other is not None:
                    side[ordinal].append((position, other))
                    if other not in asked:
                        asked.add(other)
                        waiting.append(other)


# Made once, because making the statement takes longer than answering it.
_CHANGES, _POINTS, _OTHERS = schema.changes, schema.points, schema.points.alias()
_OF_SERIES: sa.BindParameter[Any] = sa.bindparam("series", expanding=True)
_MOMENT: sa.BindParameter[Any] = sa.bindparam("since")
# Points mostly have their numbers in the order of their commits, so the index passes over the changes before them.
_FIRST = (
    sa.select(sa.func.min(_OTHERS.c.id))
    .where(_OTHERS.c.series_id.in_(_OF_SERIES), _OTHERS.c.committed_at >= _MOMENT)
    .scalar_subquery()
)
_SINCE = (
    sa.select(*(_CHANGES.c[name] for name in ("series_id", "ordinal", "before", "after")))
    .add_columns(_POINTS.c.committed_at, _POINTS.c.sha)
    .join(_POINTS)
    # SQLite uses no index for pairs. So the statement also names both sides, and SQLite looks up their combinations.
    .where(_CHANGES.c.series_id.in_(_OF_SERIES))
    .where(_CHANGES.c.ordinal.in_(sa.bindparam("ordinals", expanding=True)))
    .where(sa.tuple_(_CHANGES.c.series_id, _CHANGES.c.ordinal).in_(sa.bindparam("pairs", expanding=True)))
    .where(_CHANGES.c.point_id >= _FIRST, _POINTS.c.committed_at >= _MOMENT)
)
MOST_LOOKED_UP = 2_000
"""Combinations that one statement looks up. Each takes a microsecond, and a statement itself some hundred."""


def changes_since(
    connection: sa.Connection, ordinals: Mapping[int, Collection[int]], since: float
) -> dict[int, ChangesOf]:
    """Return the changes of some tests of each of some series, at commits made since a moment."""
    found: dict[int, ChangesOf] = {series: {} for series in ordinals}
    for pairs in _pairs_at_once(ordinals):
        sides = {"series": sorted({one for one, _ in pairs}), "ordinals": sorted({one for _, one in pairs})}
        rows = connection.execute(_SINCE, {**sides, "pairs": pairs, "since": since})
        for series, ordinal, before, after, committed_at, sha in rows:
            found[series].setdefault(ordinal, []).append(((committed_at, sha), before, after))
    return found


def _pairs_at_once(ordinals: Mapping[int, Collection[int]]) -> Iterator[list[tuple[int, int]]]:
    """Yield pairs of a series and a test in parts: those of one statement."""
    pairs: list[tuple[int, int]] = []
    tests = set[int]()
    many = 0
    for series, those in sorted(ordinals.items()):
        many += bool(those)
        for ordinal in sorted(those):
            looked_up = many * (len(tests) + (ordinal not in tests))
            if pairs and (len(pairs) >= schema.MAX_IN_VALUES or looked_up > MOST_LOOKED_UP):
                yield pairs
                pairs, tests, many = [], set(), 1
            pairs.append((series, ordinal))
            tests.add(ordinal)
    if pairs:
        yield pairs


def changes_of(
    connection: sa.Connection, series: int, ordinals: Collection[int], points: Collection[int] | None = None
) -> ChangesOf:
    """Return the changes of some tests of a series; where `points` are given, which are few, those at them alone."""
    table, places = schema.changes, schema.points
    found: ChangesOf = {}
    wanted = sorted(ordinals)
    there = sa.true() if points is None else table.c.point_id.in_(points)
    for part in schema.in_chunks(wanted):
        some = table.c.ordinal.in_(part)
        statement = sa.select(table, places.c.committed_at, places.c.sha).join(places)
        for row in connection.execute(statement.where(table.c.series_id == series, some, there)):
            found.setdefault(row.ordinal, []).append(((row.committed_at, row.sha), row.before, row.after))
    return found


def _same_tests(
    name_of: Sequence[str], aliases: Aliases, names: SeriesNames, wanted: Iterable[int]
) -> list[tuple[int, ...]]:
    """Return the groups of names that stand for one test, of those that the wanted tests have or had."""
    by_name = defaultdict[str, list[int]](list)
    canonical = [aliases.canonical(name) for name in name_of]
    for ordinal, name in enumerate(canonical):
        by_name[name].append(ordinal)
    groups: dict[str, tuple[int, ...]] = {}
    seen, waiting = set[int](), list(wanted)
    while waiting:
        ordinal = waiting.pop()
        if ordinal in seen:
            continue
        seen.add(ordinal)
        same = by_name[canonical[ordinal]]
        if len(same) > 1 and canonical[ordinal] not in groups:
            groups[canonical[ordinal]] = tuple(same)
            waiting += same
        waiting += (one for _, one in [*names.old_of.get(ordinal, ()), *names.new_of.get(ordinal, ())])
    return list(groups.values())


def _alias_renames(
    group: Collection[int], changes: Mapping[int, list[tuple[Position, int, int]]], names: SeriesNames
) -> list[tuple[Position, int, int]]:
    """Return the renames within a group: the old name of one that appears is the one that was removed last."""
    events = [
        (position, after != ABSENT, ordinal)
        for ordinal in group
        for position, before, after in changes.get(ordinal, ())
        if ABSENT in (before, after)
    ]
    events += [(position, False, ordinal) for ordinal in group for position, _ in names.new_of.get(ordinal, ())]
    found, removed = [], dict[int, None]()
    for position, appears, ordinal in sorted(events):
        last = next(reversed(removed), ordinal)
        removed.pop(ordinal, None)
        if not appears:
            removed[ordinal] = None
        elif last != ordinal:
            del removed[last]
            found.append((position, last, ordinal))
    return found
