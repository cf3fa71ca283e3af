"""Look for changes of what tests measure, in the nights that have arrived since the last search, and store them.

The stored changes depend on the nights alone, not on the order in which they arrived
(docs/decisions/stored-level-changes.md). Usually one night is new: then only series whose newest nights are far from
their level are analysed as a whole. If an older night arrived or changed, all are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

import sqlalchemy as sa
from nightjar_formats.measurements import Measurement
from nightjar_formats.model import TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.measurements.changes import (
    LEVEL_NIGHTS,
    SPLIT_NIGHTS,
    LevelChange,
    analysis_of,
    exact_changes,
    is_exact_change,
    may_confirm,
)
from bot.results.measurements.noise import MAD_OF_NORMAL, trimmed_mean
from bot.results.settings.measurements import DEFAULT_LIMITS, ChangeLimits
from bot.results.store.measurements.nights import NIGHTS, NightlyNumbers, NightValue, SeriesId, SeriesPieces, points_of
from bot.results.store.measurements.write import count_of
from bot.results.store.tables import revisions, schema
from bot.results.store.tables.points import (
    LinkedPoint,
    SuiteOnTarget,
    suites_on_targets,
)

JUDGED = 250
"""Of more than NIGHTS nights, the newest ones whose changes are stored: the others are history."""
WINDOW = SPLIT_NIGHTS + 2
"""The newest nights that are read of every series."""
NEW_AT_ONCE = 5
"""If more nights are new, all series are analysed."""
FEW_NIGHTS = 20
"""While a level has so few nights, its series is analysed with each new one."""
GONE = 7
"""A change ends when nothing was measured in so many nights in a row: the test was removed, or runs no more."""
_LEAST_SUM, _PART_OF_LEAST = 2.0, 0.4
"""The newest two nights may confirm a change if their offsets are so large: in deviations together, and each as a part
of the least change. `bot/results/measurements/changes.py` asks for more, with a deviation from more nights."""
_PART_OF_CHANGE = 0.8
"""A part of the least change: a series that is positive in the window may have had other values before."""
_DIGEST, _ID_LENGTH = 4, 16

_CHANGES, _SEARCHED = schema.level_changes, schema.searched_nights
_REVISIONS = sa.select(schema.checks.c.sha, schema.checks.c.revision).where(
    schema.checks.c.target_id == sa.bindparam("target"),
    schema.checks.c.sha.in_(sa.bindparam("shas", expanding=True)),
)
_MEASURED = (
    sa.select(schema.series.c.id)
    .join(schema.targets)
    .where(*(schema.targets.c[name] == sa.bindparam(name) for name in ("repository", "lab", "target")))
    .where(sa.exists().where(schema.numbers.c.series_id == schema.series.c.id))
    .limit(1)
)
_STORED = sa.select(_CHANGES).where(_CHANGES.c.series_id == sa.bindparam("series"))
_LEVELS = sa.select(*(_CHANGES.c[name] for name in ("ordinal", "metric_id", "since", "after", "ended_in"))).where(
    _CHANGES.c.series_id == sa.bindparam("series")
)

Row = dict[str, Any]


class _Level(NamedTuple):
    """The level of a series: the night since which it is there, and its value, both by the newest stored change."""

    since: int
    value: float


@dataclass(frozen=True, slots=True)
class SuiteSearch:
    """What a search found in a suite on a target: the rows of the series that were analysed, by ID.

    `nights` is what to store about the nights. Of stored rows, those of `analysed` series that are not among `rows` are
    removed, if their change began at `judged_from` or later.
    """

    suite: SuiteOnTarget
    nights: bytes
    analysed: Collection[SeriesId] = ()
    rows: Mapping[str, Row] | None = None
    judged_from: float = 0.0


def find_moves(
    connection: sa.Connection, target: TargetKey, limits: ChangeLimits = DEFAULT_LIMITS, aliases: Aliases = NO_ALIASES
) -> list[SuiteSearch]:
    """Return what is new on a target, for `store_moves`; empty if no night has arrived or changed since the last time.

    `limits` has the least changes, `aliases` the names of tests that maintainers renamed.
    """
    suites = suites_on_targets(connection, target.repository, target.lab, target.target)
    searches = (_Search(connection, suite, limits, aliases).result() for suite in suites)
    return [search for search in searches if search]


def has_new_nights(connection: sa.Connection, target: TargetKey, limits: ChangeLimits = DEFAULT_LIMITS) -> bool:
    """Return whether `find_moves` would search a target; for one without measurements, this is one statement."""
    if not is_measured(connection, target):
        return False
    suites = suites_on_targets(connection, target.repository, target.lab, target.target)
    return any(_Search(connection, suite, limits, NO_ALIASES).has_new_nights for suite in suites)


def is_measured(connection: sa.Connection, target: TargetKey) -> bool:
    """Return whether tests on a target ever measured anything."""
    names = {"repository": target.repository, "lab": target.lab, "target": target.target}
    return connection.execute(_MEASURED, names).first() is not None


def store_moves(connection: sa.Connection, searches: Iterable[SuiteSearch]) -> bool:
    """Store what `find_moves` returned; return whether that changed what is known about the target."""
    changed = False
    for search in searches:
        changed |= _store(connection, search)
        series = {"series_id": search.suite.series}
        connection.execute(_SEARCHED.delete().filter_by(**series))
        connection.execute(_SEARCHED.insert(), series | {"nights": search.nights})
    return changed


def _store(connection: sa.Connection, search: SuiteSearch) -> bool:
    rows, analysed = search.rows or {}, set(search.analysed)
    outdated, new = list[str](), dict(rows)
    stored_rows = connection.execute(_STORED, {"series": search.suite.series}).mappings().all() if analysed else ()
    for stored in map(dict, stored_rows):
        if (stored["ordinal"], stored["metric_id"]) not in analysed:
            continue
        if stored["since_at"] < search.judged_from:
            if not stored["ended_in"] and (end := _end_of(stored, rows.values())):
                outdated.append(stored["id"])
                new[stored["id"]] = {**stored, "ended_in": end["since"], "ended_at": end["since_at"]}
        elif rows.get(stored["id"]) == stored:
            del new[stored["id"]]
        else:
            outdated.append(stored["id"])
    for chunk in schema.in_chunks(outdated):
        connection.execute(_CHANGES.delete().where(_CHANGES.c.id.in_(chunk)))
    if new:
        connection.execute(_CHANGES.insert(), list(new.values()))
    if outdated or new:
        revisions.grow(connection, search.suite.target.repository)
    return bool(outdated or new)


def _end_of(stored: Mapping[str, Any], rows: Iterable[Row]) -> Row | None:
    """Return the first newer change of the same series whose level is closer to the one before a stored change."""
    old_level, new_level = stored["before"], stored["after"]
    ends = [
        row
        for row in rows
        if (row["ordinal"], row["metric_id"]) == (stored["ordinal"], stored["metric_id"])
        and (row["after"] > row["before"]) != (new_level > old_level)
        and abs(row["after"] - old_level) < abs(row["after"] - new_level)
    ]
    return min(ends, key=lambda row: row["since_at"], default=None)


class _Search:
    """Searches a suite on a target."""

    def __init__(self, connection: sa.Connection, suite: SuiteOnTarget, limits: ChangeLimits, aliases: Aliases) -> None:
        self._connection = connection
        self._suite = suite
        self._limits = limits
        self._aliases = aliases
        self._points = points_of(connection, suite)

    @property
    def has_new_nights(self) -> bool:
        """Whether nights have arrived or changed since the last search."""
        return (
            bool(self._points)
            and count_of(self._connection, self._suite.row) > 0
            and self._searched() != self._digests()
        )

    def result(self) -> SuiteSearch | None:
        """Return what is new; None if no night is."""
        if not self.has_new_nights:
            return None
        searched, nights = self._searched(), self._digests()
        new_nights = _count_new(searched, nights)
        series = self._numbers.series(len(self._points) - new_nights if new_nights else 0)
        if new_nights:
            series = self._candidates(series, new_nights)
        is_long = len(self._points) == NIGHTS
        judged_from = self._points[-JUDGED].committed_at if is_long else 0.0
        rows: dict[str, Row] = {}
        for key, values in self._numbers.values(series, 0):
            rows |= {row["id"]: row for row in self._rows(key, values) if row["since_at"] >= judged_from}
        # Renamed tests have rows under their earlier names.
        analysed = {(ordinal, metric) for pieces in series.values() for ordinal, metric in pieces.names}
        return SuiteSearch(self._suite, nights, analysed, rows, judged_from)

    @cached_property
    def _numbers(self) -> NightlyNumbers:
        return NightlyNumbers(self._connection, self._suite, self._aliases, self._points)

    def _searched(self) -> bytes:
        """Return the digests of the nights of the last search."""
        statement = sa.select(_SEARCHED.c.nights).filter_by(series_id=self._suite.series)
        return self._connection.execute(statement).scalar() or b""

    def _digests(self) -> bytes:
        """Return what identifies the nights, the runs of each, and the limits: a digest of four bytes of each."""
        revision_of: dict[str, int] = {}
        shas = [point.sha for point in self._points]
        for chunk in schema.in_chunks(shas):
            parameters = {"target": self._suite.target_id, "shas": chunk}
            revision_of |= {row.sha: row.revision for row in self._connection.execute(_REVISIONS, parameters)}
        return _digest(repr(self._limits)) + b"".join(_digest(f"{sha}:{revision_of.get(sha, 0)}") for sha in shas)

    def _candidates(self, series: Mapping[SeriesId, SeriesPieces], new_nights: int) -> dict[SeriesId, SeriesPieces]:
        """Return the series in which one of the new nights may confirm a change."""
        stored = self._connection.execute(_LEVELS, {"series": self._suite.series}).all()
        night_of = {point.sha: night for night, point in enumerate(self._points)}
        level_of = dict[SeriesId, _Level]()
        for row in stored:
            key, since = (row.ordinal, row.metric_id), night_of.get(row.since, -1)
            if since > level_of.get(key, _Level(-1, 0.0)).since:
                level_of[key] = _Level(since, row.after)
        first_night = max(0, len(self._points) - WINDOW - new_nights)
        oldest_new = len(self._points) - new_nights
        candidates = {}
        for key, values in self._numbers.values(series, first_night):
            levels = [level_of[name] for name in series[key].names if name in level_of]
            if _may_confirm(values, oldest_new, max(levels, default=None), *self._metric(key)):
                candidates[key] = series[key]
        return candidates | self._gone({(row.ordinal, row.metric_id) for row in stored if not row.ended_in})

    def _gone(self, lasting: Collection[SeriesId]) -> dict[SeriesId, SeriesPieces]:
        """Return the series with a `lasting` change in which nothing was measured in the newest nights."""
        if not lasting:
            return {}
        measured = self._numbers.series(max(0, len(self._points) - GONE)).values()
        return self._numbers.series_of(set(lasting) - {name for pieces in measured for name in pieces.names})

    def _metric(self, key: SeriesId) -> tuple[float, bool]:
        """Return the least change of a series, and whether its numbers are exact."""
        metric = self._numbers.metrics[key[1]]
        return self._limits.least(metric.name, metric.unit), Measurement(metric.name, 0.0, metric.unit).is_exact

    def _rows(self, key: SeriesId, values: Sequence[NightValue]) -> Iterator[Row]:
        """Yield the rows of the changes of a series."""
        (least, is_exact), numbers = self._metric(key), [value for _, value in values]
        changes = exact_changes(numbers, least) if is_exact else analysis_of(numbers, least).changes
        last_night = values[-1][0] + GONE if values else 0
        gone = self._points[last_night] if last_night < len(self._points) else None
        for change in changes:
            yield self._row(key, change, [self._points[night] for night, _ in values], gone)

    def _row(self, key: SeriesId, change: LevelChange, points: Sequence[LinkedPoint], gone: LinkedPoint | None) -> Row:
        """Return the row of a change; `gone` is the night that ends all changes which last."""
        (ordinal, metric), target = key, self._suite.target
        since, confirmed = points[change.begin], points[change.confirmed]
        end = gone if change.end is None else points[change.end]
        identity = (target.repository, target.full_name, self._suite.name, self._numbers.names[ordinal])
        digest = hashlib.sha256("\0".join((*identity, *self._numbers.metrics[metric], since.sha)).encode())
        return {
            "id": digest.hexdigest()[:_ID_LENGTH],
            "repository": target.repository,
            "target_id": self._suite.target_id,
            "series_id": self._suite.series,
            "ordinal": ordinal,
            "metric_id": metric,
            "since": since.sha,
            "since_at": since.committed_at,
            "good": points[change.begin - 1].sha,
            "confirmed_in": confirmed.sha,
            "confirmed_at": confirmed.committed_at,
            "before": change.before,
            "after": change.after,
            "low": change.low,
            "high": change.high,
            "ended_in": end.sha if end else "",
            "ended_at": end.committed_at if end else 0.0,
        }


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:_DIGEST]


def _count_new(searched: bytes, nights: bytes) -> int:
    """Return how many nights were added after the searched ones; 0 if there were other changes, or too many."""
    most = _DIGEST * (1 + NIGHTS)
    for count in range(1, NEW_AT_ONCE + 1):
        limits, added = nights[:_DIGEST], nights[-count * _DIGEST :]
        expected = searched[_DIGEST:] + added
        if searched[:_DIGEST] == limits and nights == limits + expected[-(most - _DIGEST) :]:
            return count
    return 0


def _may_confirm(
    values: Sequence[NightValue], oldest_new: int, level: _Level | None, least: float, is_exact: bool
) -> bool:
    """Say cheaply whether a night from `oldest_new` on may confirm a change, from the values of a window.

    `level` is that of the newest stored change, None if there is none: then the level is that of the window.
    """
    new = [place for place, (night, _) in enumerate(values) if night >= oldest_new]
    if level is not None and any(_was_gone(values, place) for place in new):
        return True
    numbers = [value for _, value in values]
    if is_exact and level is not None:
        return any(is_exact_change(numbers[place], level.value, least) for place in new)
    if is_exact:
        has_moved = any(numbers[place] != numbers[place - 1] for place in new if place)
        return has_moved and max(numbers) - min(numbers) >= least / 2 * abs(numbers[-1])
    first = 0 if level is None else sum(night < level.since for night, _ in values)
    if level is not None and any(place - first < FEW_NIGHTS for place in new):
        return True
    far = [
        place for place in new if place and _is_far(numbers[max(first, place - 1 - LEVEL_NIGHTS) : place + 1], least)
    ]
    # The exact split needs as many values as `analysis_of` would use.
    return any(
        min(numbers) <= 0
        or (not first and place < SPLIT_NIGHTS)
        or may_confirm(numbers[first : place + 1], _PART_OF_CHANGE * least)
        for place in far
    )


def _was_gone(values: Sequence[NightValue], place: int) -> bool:
    """Say whether nothing was measured in the nights before a value, so that changes had ended and now last again."""
    return not place or values[place][0] - values[place - 1][0] >= GONE


def _is_far(numbers: Sequence[float], least: float) -> bool:
    """Say whether the last two numbers are far from the level of the others, on the same side."""
    *older, first, second = numbers
    if not older:
        return False
    ordered = sorted(older)
    level = trimmed_mean(ordered)
    offsets = (first - level, second - level)
    if offsets[0] * offsets[1] <= 0 or min(map(abs, offsets)) < _PART_OF_LEAST * least * abs(level):
        return False
    deviation = MAD_OF_NORMAL * median([abs(number - level) for number in ordered])
    return abs(sum(offsets)) >= _LEAST_SUM * deviation
