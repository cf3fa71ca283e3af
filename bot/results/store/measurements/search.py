"""Look for changes of what tests measure, in the nights that have arrived since the last search, and store them.

The stored changes depend on the nights alone, not on the order in which they arrived
(docs/decisions/stored-level-changes.md). Usually one night is new: then only series whose newest nights are far from
their level are analysed as a whole. If an older night arrived or changed, all are.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import sqlalchemy as sa
from nightjar_formats.measurements import Measurement
from nightjar_formats.model import TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.measurements.changes import LEVEL_NIGHTS, NEW_NIGHTS, LevelChange, analysis_of, exact_changes
from bot.results.measurements.noise import trimmed_mean
from bot.results.settings.measurements import DEFAULT_LIMITS, ChangeLimits
from bot.results.store.history.series_names import series_names
from bot.results.store.measurements.number_blocks import BLOCK, Decimal, number_in, read_block, slots_in
from bot.results.store.measurements.write import SuiteMetric, count_of, metrics_of
from bot.results.store.tables import revisions, schema
from bot.results.store.tables.names import all_names
from bot.results.store.tables.points import (
    LinkedPoint,
    Position,
    SuiteOnTarget,
    newest_points,
    stored_runs,
    suites_on_targets,
)

NIGHTS, JUDGED = 500, 250
"""The newest nights that are read, and those whose changes are stored if there are more: the others are history."""
WINDOW = LEVEL_NIGHTS + NEW_NIGHTS + 2
"""The newest nights that are read of every series."""
NEW_AT_ONCE = 5
"""If more nights are new, all series are analysed."""
RECENT = 60
"""A series that changed in so many newest nights is analysed, since its level is not that of the window."""
MOST_SERIES = 20_000
"""The series of a suite on a target in which changes are looked for."""
_LEAST_SUM, _PART_OF_LEAST = 2.0, 0.4
"""The newest two nights may confirm a change if their offsets are so large: in deviations together, and each as a part
of the least change. `bot/results/measurements/changes.py` asks for more, with a deviation from more nights."""
_MAD_OF_NORMAL = 1.4826
_DIGEST, _ID_LENGTH = 4, 16
_BEGIN: Position = (float("-inf"), "")

_CHANGES, _SEARCHED, _NUMBERS, _MEASUREMENTS = (
    schema.level_changes,
    schema.searched_nights,
    schema.numbers,
    schema.measurements,
)
_OF_SUITE = sa.select(
    *(_MEASUREMENTS.c[name] for name in ("ordinal", "metric_id", "position", "digits", "exponent"))
).where(_MEASUREMENTS.c.suite_id == sa.bindparam("suite"))
_BLOCKS = sa.select(_NUMBERS.c.block, _NUMBERS.c.run_id, _NUMBERS.c.numbers).where(
    _NUMBERS.c.series_id == sa.bindparam("series"),
    _NUMBERS.c.block.in_(sa.bindparam("blocks", expanding=True)),
    _NUMBERS.c.run_id.in_(sa.bindparam("runs", expanding=True)),
)
_REVISIONS = sa.select(schema.checks.c.sha, schema.checks.c.revision).where(
    schema.checks.c.target_id == sa.bindparam("target"),
    schema.checks.c.sha.in_(sa.bindparam("shas", expanding=True)),
)
_STORED = sa.select(_CHANGES).where(_CHANGES.c.series_id == sa.bindparam("series"))

SeriesId = tuple[int, int]
"""A series of measurements within a suite on a target: the ordinal of the test's name, and the ID of the metric."""
Row = dict[str, Any]


class _Piece(NamedTuple):
    """Where the values of a series are while its test had one name: from the commit `since` until another one."""

    position: int
    base: Decimal
    since: Position
    until: Position


class _Pieces(NamedTuple):
    """Where all values of a series are, and the IDs that the series had under the names of its test."""

    pieces: Sequence[_Piece]
    names: Sequence[SeriesId]


class NightValue(NamedTuple):
    """A value, and the number of its night among those that were read."""

    night: int
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
    searches = []
    for suite in suites_on_targets(connection, target.repository, target.lab, target.target):
        if count_of(connection, suite.row) and (search := _Search(connection, suite, limits, aliases).result()):
            searches.append(search)
    return searches


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
    before, after = stored["before"], stored["after"]
    ends = [
        row
        for row in rows
        if (row["ordinal"], row["metric_id"]) == (stored["ordinal"], stored["metric_id"])
        and (row["after"] > row["before"]) != (after > before)
        and abs(row["after"] - before) < abs(row["after"] - after)
    ]
    return min(ends, key=lambda row: row["since_at"], default=None)


class _Search:
    """Searches a suite on a target."""

    def __init__(self, connection: sa.Connection, suite: SuiteOnTarget, limits: ChangeLimits, aliases: Aliases) -> None:
        self._connection = connection
        self._suite = suite
        self._limits = limits
        self._aliases = aliases
        self._points: list[LinkedPoint] = newest_points(connection, [suite.series], NIGHTS).get(suite.series, [])
        self._metrics: dict[int, SuiteMetric] = {}
        self._names: Sequence[str] = ()
        self._night_of: dict[int, int] = {}

    def result(self) -> SuiteSearch | None:
        """Return what is new; None if no night is."""
        statement = sa.select(_SEARCHED.c.nights).filter_by(series_id=self._suite.series)
        searched: bytes = self._connection.execute(statement).scalar() or b""
        nights = self._digests()
        if nights == searched or not self._points:
            return None
        self._metrics = metrics_of(self._connection, self._suite.row)
        self._names = all_names(self._connection, self._suite.row)
        self._night_of = self._nights_of_runs()
        new_nights = _count_new(searched, nights)
        series = self._series(len(self._points) - new_nights if new_nights else 0)
        if new_nights:
            series = self._candidates(series, new_nights)
        is_long = len(self._points) == NIGHTS
        judged_from = self._points[-JUDGED].committed_at if is_long else 0.0
        rows: dict[str, Row] = {}
        for key, values in self._values(series, 0):
            rows |= {row["id"]: row for row in self._rows(key, values) if row["since_at"] >= judged_from}
        # Renamed tests have rows under their earlier names.
        analysed = {(ordinal, metric) for pieces in series.values() for ordinal, metric in pieces.names}
        return SuiteSearch(self._suite, nights, analysed, rows, judged_from)

    def _digests(self) -> bytes:
        """Return what identifies the nights, the runs of each, and the limits: a digest of four bytes of each."""
        revision_of: dict[str, int] = {}
        shas = [point.sha for point in self._points]
        for chunk in schema.in_chunks(shas):
            parameters = {"target": self._suite.target_id, "shas": chunk}
            revision_of |= {row.sha: row.revision for row in self._connection.execute(_REVISIONS, parameters)}
        return _digest(repr(self._limits)) + b"".join(_digest(f"{sha}:{revision_of.get(sha, 0)}") for sha in shas)

    def _nights_of_runs(self) -> dict[int, int]:
        """Return the night of each run, by its number: in order, so that the last run of a night comes last."""
        night_of_place = {self._suite.place_at(point.sha): night for night, point in enumerate(self._points)}
        runs_at = stored_runs(self._connection, night_of_place)
        return {run.number: night for place, night in night_of_place.items() for run in runs_at.get(place, ())}

    def _series(self, first_night: int) -> dict[SeriesId, _Pieces]:
        """Return the series that have a value since a night, each with where its values are."""
        placed = {
            (ordinal, metric): (position, Decimal(digits, exponent))
            for ordinal, metric, position, digits, exponent in self._connection.execute(
                _OF_SUITE, {"suite": self._suite.row.id}
            )
        }
        present = self._present(first_night, max((position for position, _ in placed.values()), default=0))
        ordinals = {ordinal for (ordinal, _), (position, _) in placed.items() if position in present}
        names = series_names(self._connection, self._suite.series, self._names, self._aliases, ordinals)
        ordinals = {names.now(ordinal, _BEGIN) for ordinal in ordinals}
        spans = {ordinal: list(names.spans(ordinal)) for ordinal in ordinals}
        series: dict[SeriesId, _Pieces] = {}
        metrics_of_ordinal = defaultdict[int, list[int]](list)
        for ordinal, metric in placed:
            metrics_of_ordinal[ordinal].append(metric)
        for ordinal in sorted(ordinals):
            for metric in sorted({metric for name, *_ in spans[ordinal] for metric in metrics_of_ordinal[name]}):
                pieces = [
                    _Piece(*placed[name, metric], since, until)
                    for name, since, until in spans[ordinal]
                    if (name, metric) in placed
                ]
                if any(piece.position in present for piece in pieces):
                    series[ordinal, metric] = _Pieces(pieces, [(name, metric) for name, *_ in spans[ordinal]])
        by_position = sorted(series.items(), key=lambda item: item[1].pieces[0].position)
        return dict(by_position[:MOST_SERIES])

    def _present(self, first_night: int, last_position: int) -> set[int]:
        """Return the positions that have a value since a night."""
        present = set[int]()
        for block, _, blob in self._blocks(range(last_position // BLOCK + 1), first_night):
            present.update(block * BLOCK + slot for slot in slots_in(read_block(blob)))
        return present

    def _candidates(self, series: Mapping[SeriesId, _Pieces], new_nights: int) -> dict[SeriesId, _Pieces]:
        """Return the series in which one of the new nights may confirm a change."""
        recent_from = self._points[-RECENT:][0].committed_at
        recent = {
            (row.ordinal, row.metric_id)
            for row in self._connection.execute(_STORED, {"series": self._suite.series})
            if row.since_at >= recent_from
        }
        first_night = max(0, len(self._points) - WINDOW - new_nights)
        oldest_new = len(self._points) - new_nights
        return {
            key: series[key]
            for key, values in self._values(series, first_night)
            if not recent.isdisjoint(series[key].names) or _may_confirm(values, oldest_new, *self._metric(key))
        }

    def _metric(self, key: SeriesId) -> tuple[float, bool]:
        """Return the least change of a series, and whether its numbers are exact."""
        metric = self._metrics[key[1]]
        return self._limits.least(metric.name, metric.unit), Measurement(metric.name, 0.0, metric.unit).is_exact

    def _values(
        self, series: Mapping[SeriesId, _Pieces], first_night: int
    ) -> Iterator[tuple[SeriesId, Sequence[NightValue]]]:
        """Yield the values of each series since a night, in order."""
        keys = list(series)
        # A block has as many series, and all of them are read at once.
        for start in range(0, len(keys), BLOCK):
            chunk = keys[start : start + BLOCK]
            in_block = defaultdict[int, list[tuple[dict[int, float], int, _Piece]]](list)
            values_of: dict[SeriesId, dict[int, float]] = {key: {} for key in chunk}
            for key in chunk:
                for piece in series[key].pieces:
                    block, slot = divmod(piece.position, BLOCK)
                    in_block[block].append((values_of[key], slot, piece))
            for block, night, blob in self._blocks(sorted(in_block), first_night):
                data, position = read_block(blob), self._position(night)
                for values, slot, (_, base, since, until) in in_block[block]:
                    if since <= position < until and (value := number_in(data, slot, base)) is not None:
                        values[night] = value
            for key, values in values_of.items():
                yield key, [NightValue(*item) for item in sorted(values.items())]

    def _blocks(self, blocks: Sequence[int], first_night: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield blocks since a night, each with its number and the night, in the order of the runs."""
        runs = [number for number, night in self._night_of.items() if night >= first_night]
        order = {number: place for place, number in enumerate(runs)}
        for few in schema.in_chunks(blocks):
            for chunk in schema.in_chunks(runs):
                parameters = {"series": self._suite.series, "blocks": few, "runs": chunk}
                rows = self._connection.execute(_BLOCKS, parameters).all()
                for block, run, blob in sorted(rows, key=lambda row: order[row.run_id]):
                    yield block, self._night_of[run], blob

    def _position(self, night: int) -> Position:
        return self._points[night].committed_at, self._points[night].sha

    def _rows(self, key: SeriesId, values: Sequence[NightValue]) -> Iterator[Row]:
        """Yield the rows of the changes of a series."""
        (least, is_exact), numbers = self._metric(key), [value for _, value in values]
        changes = exact_changes(numbers, least) if is_exact else analysis_of(numbers, least).changes
        for change in changes:
            yield self._row(key, change, [self._points[night] for night, _ in values])

    def _row(self, key: SeriesId, change: LevelChange, points: Sequence[LinkedPoint]) -> Row:
        (ordinal, metric), target = key, self._suite.target
        since, confirmed = points[change.begin], points[change.confirmed]
        end = None if change.end is None else points[change.end]
        identity = (target.repository, target.full_name, self._suite.name, self._names[ordinal])
        digest = hashlib.sha256("\0".join((*identity, *self._metrics[metric], since.sha)).encode())
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
        older, added = nights[:_DIGEST], nights[-count * _DIGEST :]
        known = searched[_DIGEST:] + added
        if searched[:_DIGEST] == older and nights == older + known[-(most - _DIGEST) :]:
            return count
    return 0


def _may_confirm(values: Sequence[NightValue], oldest_new: int, least: float, is_exact: bool) -> bool:
    """Say cheaply whether a night from `oldest_new` on may confirm a change, from the values of a window."""
    numbers = [value for _, value in values]
    new = [place for place, (night, _) in enumerate(values) if night >= oldest_new and place]
    if is_exact:
        has_moved = any(numbers[place] != numbers[place - 1] for place in new)
        return has_moved and max(numbers) - min(numbers) >= least / 2 * abs(numbers[-1])
    return any(_is_far(numbers[max(0, place - 1 - LEVEL_NIGHTS) : place + 1], least) for place in new)


def _is_far(numbers: Sequence[float], least: float) -> bool:
    """Say whether the last two numbers are far from the level of the others, on the same side."""
    *older, first, second = numbers
    if not older:
        return False
    ordered = sorted(older)
    level = trimmed_mean(ordered)
    offsets = (first - level, second - level)
    deviation = _MAD_OF_NORMAL * median(abs(number - level) for number in ordered)
    return (
        offsets[0] * offsets[1] > 0
        and min(map(abs, offsets)) >= _PART_OF_LEAST * least * abs(level)
        and abs(sum(offsets)) >= _LEAST_SUM * deviation
    )
