"""What moved: read the stored changes of what tests measure, for pages, messages and the API.

`search.py` finds and stores them when a nightly run has arrived, so nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.model import TargetKey
from nightjar_formats.text_enum import TextEnum

from bot.results.measurements.changes import LevelChange
from bot.results.measurements.texts import change_text
from bot.results.store.tables import runs, schema
from bot.results.store.tables.names import SuiteRow, all_names


class MoveState(TextEnum):
    """What a change means now: only those that are OPEN alarm people."""

    OPEN = "open"
    ENDED = "ended"
    IMPROVEMENT = "improvement"
    NEITHER = "neither"
    """It lasts, and nobody said which values are better."""


class MoveCursor(NamedTuple):
    """Where a list of changes, newest first, goes on: after the change with this time of confirmation and ID."""

    confirmed_at: float
    id: str


@dataclass(frozen=True, slots=True)
class MovedSeries:
    """A change of the level of what a test measures on a target. Times are those of commits, in seconds since 1970.

    The new level begins at the nightly commit `since`; `good` is the last one before it that has the measurement. The
    commit `confirmed_in` is the first whose night confirms it. The levels `before` and `after` are in `unit`, and the
    new one is between `low` and `high` with 95 % confidence; for an exact number, all three are equal. The change ended
    at the commit `ended_in`, empty while it lasts: the level is closer to the one before again.
    """

    id: str
    target: TargetKey
    suite: str
    test: str
    name: str
    unit: str
    better: Better
    since: str
    since_at: float
    good: str
    confirmed_in: str
    confirmed_at: float
    before: float
    after: float
    low: float
    high: float
    ended_in: str
    ended_at: float

    @property
    def is_rise(self) -> bool:
        """Whether the new level is higher."""
        return self.after > self.before

    @property
    def is_worse(self) -> bool:
        """Whether the new level is worse."""
        return self.better is (Better.LOWER if self.is_rise else Better.HIGHER)

    @property
    def is_exact(self) -> bool:
        """Whether the measurement is a number without noise, such as a count."""
        return Measurement(self.name, self.after, self.unit).is_exact

    @property
    def state(self) -> MoveState:
        """What the change means now."""
        if self.ended_in:
            return MoveState.ENDED
        if self.better is Better.NONE:
            return MoveState.NEITHER
        return MoveState.OPEN if self.is_worse else MoveState.IMPROVEMENT

    @property
    def share(self) -> float | None:
        """Return by which share of the level before it the level changed; None if that was 0 or negative."""
        return self.after / self.before - 1 if self.before > 0 else None

    @property
    def text(self) -> str:
        """Return the change in a line: `latency 412 -> 467 ms, +13 % (11 to 15)`."""
        change = LevelChange(0, 0, self.before, self.after, self.low, self.high)
        return change_text(self.name, self.unit, change)

    @property
    def cursor(self) -> MoveCursor:
        """Where a list goes on after this change."""
        return MoveCursor(self.confirmed_at, self.id)


_CHANGES, _SERIES, _SUITES, _TARGETS, _METRICS = (
    schema.level_changes,
    schema.series,
    schema.suites,
    schema.targets,
    schema.metrics,
)
_MOVED = (
    sa.select(_CHANGES, _SUITES.c.id.label("suite_id"), _SUITES.c.suite, _SUITES.c.names, _TARGETS.c.lab)
    .add_columns(_TARGETS.c.target, _METRICS.c.name, _METRICS.c.unit, _METRICS.c.better)
    .select_from(
        _CHANGES.join(_SERIES, _CHANGES.c.series_id == _SERIES.c.id)
        .join(_SUITES, _SERIES.c.suite_id == _SUITES.c.id)
        .join(_TARGETS, _CHANGES.c.target_id == _TARGETS.c.id)
        .join(_METRICS, _CHANGES.c.metric_id == _METRICS.c.id)
    )
)
_FIELDS = tuple(MovedSeries.__dataclass_fields__.keys() - {"target", "test", "better"})


def moved_series(
    connection: sa.Connection,
    repository: str,
    target: TargetKey | None = None,
    limit: int = 50,
    before: MoveCursor | None = None,
    *,
    since: float | None = None,
) -> list[MovedSeries]:
    """Return the changes of a repository, or of one of its targets, newest confirmation first, at most `limit`.

    `before` is the cursor of the last change of the page before. With `since`, only those confirmed by a commit of that
    time, in seconds since 1970, or a newer one.
    """
    if target is None:
        statement = _MOVED.where(_CHANGES.c.repository == repository)
    else:
        statement = _MOVED.where(_CHANGES.c.target_id == runs.target_id(connection, target))
    if before is not None:
        # SQLite uses no index for pairs alone.
        statement = statement.where(_CHANGES.c.confirmed_at <= before.confirmed_at)
        statement = statement.where(sa.tuple_(_CHANGES.c.confirmed_at, _CHANGES.c.id) < sa.tuple_(*before))
    if since is not None:
        statement = statement.where(_CHANGES.c.confirmed_at >= since)
    return _read(connection, statement.order_by(_CHANGES.c.confirmed_at.desc(), _CHANGES.c.id.desc()).limit(limit))


def moved_by_id(connection: sa.Connection, ids: Collection[str]) -> dict[str, MovedSeries]:
    """Return the changes with these IDs, by ID; those that are not stored, or not any more, are left out."""
    moved: dict[str, MovedSeries] = {}
    ordered = sorted(ids)
    for chunk in schema.in_chunks(ordered):
        moved |= {change.id: change for change in _read(connection, _MOVED.where(_CHANGES.c.id.in_(chunk)))}
    return moved


def _read(connection: sa.Connection, statement: sa.Select[tuple[object, ...]]) -> list[MovedSeries]:
    return [
        MovedSeries(
            target=TargetKey(row["repository"], row["lab"], row["target"]),
            test=all_names(connection, SuiteRow(row["suite_id"], row["names"]))[row["ordinal"]],
            better=Better(row["better"]),
            **{name: row[name] for name in _FIELDS},
        )
        for row in connection.execute(statement).mappings().all()
    ]
