"""Read what the tests of a suite on a target measured in its newest nights: all series at once, in few statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import sqlalchemy as sa

from bot.core.aliases import Aliases
from bot.results.store.history.series_names import series_names
from bot.results.store.measurements.number_blocks import BLOCK, Decimal, number_in, numbers_in, read_block, slots_in
from bot.results.store.measurements.write import SuiteMetric, metrics_of
from bot.results.store.tables import schema
from bot.results.store.tables.names import all_names
from bot.results.store.tables.points import LinkedPoint, Position, SuiteOnTarget, newest_points
from bot.results.store.tables.runs import stored_runs

NIGHTS = 500
"""The newest nights that are read."""
MOST_SERIES = 20_000
"""The series of a suite on a target in which changes are looked for."""

_BEGIN: Position = (float("-inf"), "")
_NUMBERS, _MEASUREMENTS = schema.numbers, schema.measurements
_OF_SUITE = sa.select(
    *(_MEASUREMENTS.c[name] for name in ("ordinal", "metric_id", "position", "digits", "exponent"))
).where(_MEASUREMENTS.c.suite_id == sa.bindparam("suite"))
_BLOCKS = sa.select(_NUMBERS.c.block, _NUMBERS.c.run_id, _NUMBERS.c.numbers).where(
    _NUMBERS.c.series_id == sa.bindparam("series"),
    _NUMBERS.c.block.in_(sa.bindparam("blocks", expanding=True)),
    _NUMBERS.c.run_id.in_(sa.bindparam("runs", expanding=True)),
)

SeriesId = tuple[int, int]
"""A series of measurements within a suite on a target: the ordinal of the test's name, and the ID of the metric."""


class Piece(NamedTuple):
    """Where the values of a series are while its test had one name: from the commit `since` until another one."""

    position: int
    base: Decimal
    since: Position
    until: Position


class SeriesPieces(NamedTuple):
    """Where all values of a series are, and the IDs that the series had under the names of its test."""

    pieces: Sequence[Piece]
    names: Sequence[SeriesId]


NightValue = tuple[int, float]
"""The number of a night among those that were read, and a value."""
_Slot = tuple[int, Decimal]
"""The place of a series in its block, and its base."""
_PieceValues = tuple[dict[int, float], Position, Position]
"""The values of a series by night, and the commits from which and until which a block has them."""


def points_of(connection: sa.Connection, suite: SuiteOnTarget, until: str = "") -> Sequence[LinkedPoint]:
    """Return the newest NIGHTS nights of a suite on a target, oldest first; with `until`, those up to that commit."""
    return newest_points(connection, [suite.series], NIGHTS, until).get(suite.series, [])


class NightlyNumbers:
    """The numbers of a suite on a target at `points`, which are oldest first (`points_of`); a night is one of them."""

    def __init__(
        self, connection: sa.Connection, suite: SuiteOnTarget, aliases: Aliases, points: Sequence[LinkedPoint]
    ) -> None:
        self._connection = connection
        self.suite = suite
        self.points = points
        self.metrics: dict[int, SuiteMetric] = metrics_of(connection, suite.row)
        self.names: Sequence[str] = all_names(connection, suite.row)
        self._aliases = aliases
        self._night_of = self._nights_of_runs()

    def series(self, first_night: int) -> dict[SeriesId, SeriesPieces]:
        """Return the series that have a value since a night, at most MOST_SERIES, each with where its values are."""
        return self._series_at(self._present(first_night))

    def series_of(self, ids: Iterable[SeriesId]) -> dict[SeriesId, SeriesPieces]:
        """Return the series with these IDs, or of tests that now have other names."""
        return self._series_at({self._placed[key][0] for key in ids if key in self._placed})

    def numbers_at(self, runs: Sequence[int]) -> dict[SeriesId, tuple[SeriesPieces, float]]:
        """Return the series that runs of another commit measured, by their numbers, with the value of the last run."""
        order = {number: place for place, number in enumerate(runs)}
        rows = sorted(self._read_blocks(self._all_blocks, runs), key=lambda row: order[row.run_id])
        blocks = [(block, read_block(blob)) for block, _, blob in rows]
        present = {block * BLOCK + slot for block, data in blocks for slot in slots_in(data)}
        numbers: dict[SeriesId, tuple[SeriesPieces, float]] = {}
        for key, pieces in self._series_at(present).items():
            for piece in pieces.pieces:
                for block, data in blocks:
                    if block == piece.position // BLOCK:
                        value = number_in(data, piece.position % BLOCK, piece.base)
                        numbers |= {} if value is None else {key: (pieces, value)}
        return numbers

    @cached_property
    def _placed(self) -> dict[SeriesId, tuple[int, Decimal]]:
        """The position of each series in the blocks, and its base."""
        rows = self._connection.execute(_OF_SUITE, {"suite": self.suite.row.id})
        return {
            (ordinal, metric): (position, Decimal(digits, exponent))
            for ordinal, metric, position, digits, exponent in rows
        }

    @property
    def _all_blocks(self) -> range:
        return range(max((position for position, _ in self._placed.values()), default=0) // BLOCK + 1)

    def _series_at(self, present: Collection[int]) -> dict[SeriesId, SeriesPieces]:
        """Return the series of which some values are at these positions."""
        placed = self._placed
        ordinals = {ordinal for (ordinal, _), (position, _) in placed.items() if position in present}
        names = series_names(self._connection, self.suite.series, self.names, self._aliases, ordinals)
        ordinals = {names.now(ordinal, _BEGIN) for ordinal in ordinals}
        spans = {ordinal: list(names.spans(ordinal)) for ordinal in ordinals}
        series: dict[SeriesId, SeriesPieces] = {}
        metrics_of_ordinal = defaultdict[int, list[int]](list)
        for ordinal, metric in placed:
            metrics_of_ordinal[ordinal].append(metric)
        for ordinal in sorted(ordinals):
            for metric in sorted({metric for name, *_ in spans[ordinal] for metric in metrics_of_ordinal[name]}):
                pieces = [
                    Piece(*placed[name, metric], since, until)
                    for name, since, until in spans[ordinal]
                    if (name, metric) in placed
                ]
                if any(piece.position in present for piece in pieces):
                    series[ordinal, metric] = SeriesPieces(pieces, [(name, metric) for name, *_ in spans[ordinal]])
        by_position = sorted(series.items(), key=lambda item: item[1].pieces[0].position)
        return dict(by_position[:MOST_SERIES])

    def _present(self, first_night: int) -> set[int]:
        """Return the positions that have a value since a night."""
        present = set[int]()
        for block, _, blob in self._blocks(self._all_blocks, first_night):
            present.update(block * BLOCK + slot for slot in slots_in(read_block(blob)))
        return present

    def values(
        self, series: Mapping[SeriesId, SeriesPieces], first_night: int
    ) -> Iterator[tuple[SeriesId, Sequence[NightValue]]]:
        """Yield the values of each series since a night, in the order of the nights."""
        keys = list(series)
        # A block has as many series, and all of them are read at once.
        for start in range(0, len(keys), BLOCK):
            chunk = keys[start : start + BLOCK]
            pieces_of, series_of = defaultdict[int, list[_PieceValues]](list), defaultdict[int, list[_Slot]](list)
            values_of: dict[SeriesId, dict[int, float]] = {key: {} for key in chunk}
            for key in chunk:
                for position, base, since, until in series[key].pieces:
                    block, slot = divmod(position, BLOCK)
                    pieces_of[block].append((values_of[key], since, until))
                    series_of[block].append((slot, base))
            for block, night, blob in self._blocks(sorted(pieces_of), first_night):
                commit = self._position(night)
                numbers = numbers_in(read_block(blob), series_of[block])
                for (values, since, until), number in zip(pieces_of[block], numbers, strict=True):
                    if number is not None and since <= commit < until:
                        values[night] = number
            for key, values in values_of.items():
                yield key, sorted(values.items())

    def _blocks(self, blocks: Sequence[int], first_night: int) -> Iterator[tuple[int, int, bytes]]:
        """Yield blocks since a night, each with its number and the night, in the order of the runs."""
        runs = [number for number, night in self._night_of.items() if night >= first_night]
        order = {number: place for place, number in enumerate(runs)}
        for few in schema.in_chunks(blocks):
            for block, run, blob in sorted(self._read_blocks(few, runs), key=lambda row: order[row.run_id]):
                yield block, self._night_of[run], blob

    def _read_blocks(self, blocks: Sequence[int], runs: Sequence[int]) -> list[sa.Row[int, int, bytes]]:
        """Return blocks of runs, each with its number and that of the run."""
        return [
            row
            for few in schema.in_chunks(blocks)
            for chunk in schema.in_chunks(runs)
            for row in self._connection.execute(_BLOCKS, {"series": self.suite.series, "blocks": few, "runs": chunk})
        ]

    def _position(self, night: int) -> Position:
        return self.points[night].committed_at, self.points[night].sha

    def _nights_of_runs(self) -> dict[int, int]:
        """Return the night of each run, by its number: in order, so that the last run of a night comes last."""
        night_of_place = {self.suite.place_at(point.sha): night for night, point in enumerate(self.points)}
        runs_at = stored_runs(self._connection, night_of_place)
        return {run.number: night for place, night in night_of_place.items() for run in runs_at.get(place, ())}
