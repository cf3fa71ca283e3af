"""What moved: read the stored changes of what tests measure, for pages, messages and the API.

`search.py` finds and stores them when a nightly run has arrived, so nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain

import sqlalchemy as sa
from nightjar_formats.measurements import Better
from nightjar_formats.model import TargetKey

from bot.results.measurements.moved import MoveCursor, MovedSeries
from bot.results.store.tables import runs, schema
from bot.results.store.tables.names import SuiteRow, all_names, find_ordinal
from bot.results.store.tables.points import suites_on_targets

__all__ = [
    "MoveCursor",
    "MovedSeries",
    "confirmed_series",
    "moved_by_id",
    "moved_of_test",
    "moved_of_tests",
    "moved_series",
]

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
) -> list[MovedSeries]:
    """Return the changes of a repository, or of one of its targets, newest first, at most `limit`.

    `before` is the cursor of the last change of the page before.
    """
    if target is None:
        statement = _MOVED.where(_CHANGES.c.repository == repository)
    else:
        target_id = runs.target_id(connection, target)
        if target_id is None:
            return []
        statement = _MOVED.where(_CHANGES.c.target_id == target_id)
    if before is not None:
        # SQLite uses no index for pairs alone.
        statement = statement.where(_CHANGES.c.since_at <= before.since_at)
        statement = statement.where(sa.tuple_(_CHANGES.c.since_at, _CHANGES.c.id) < sa.tuple_(*before))
    return _read(connection, statement.order_by(_CHANGES.c.since_at.desc(), _CHANGES.c.id.desc()).limit(limit))


def confirmed_series(connection: sa.Connection, repository: str, limit: int, since: float) -> list[MovedSeries]:
    """Return the changes of a repository that a commit has confirmed since a moment, in seconds since 1970.

    The last ones to be confirmed come first, at most `limit`.
    """
    statement = _MOVED.where(_CHANGES.c.repository == repository, _CHANGES.c.confirmed_at >= since)
    return _read(connection, statement.order_by(_CHANGES.c.confirmed_at.desc(), _CHANGES.c.id.desc()).limit(limit))


def moved_of_test(
    connection: sa.Connection, repository: str, test: str, target: TargetKey | None = None
) -> list[MovedSeries]:
    """Return the changes of what a test measures, under its present name, newest first."""
    lab, name = (target.lab, target.target) if target else (None, None)
    suites = suites_on_targets(connection, repository, lab, name)
    moved = moved_of_tests(connection, {suite.series: find_ordinal(connection, suite.row, test) for suite in suites})
    return sorted(chain.from_iterable(moved.values()), key=lambda change: change.cursor, reverse=True)


def moved_of_tests(connection: sa.Connection, ordinals: Mapping[int, int | None]) -> dict[int, list[MovedSeries]]:
    """Return the changes of a test of each suite on a target, newest first, by the number of the suite on the target.

    `ordinals` has the tests, by the same numbers; None for a suite that lacks the test.
    """
    moved: dict[int, list[MovedSeries]] = {series: [] for series in ordinals}
    pairs = [(series, ordinal) for series, ordinal in ordinals.items() if ordinal is not None]
    for chunk in schema.in_chunks(pairs):
        series, names = zip(*chunk, strict=True)
        # Both sides are named, because SQLite uses no index for pairs.
        of_test = _MOVED.where(_CHANGES.c.series_id.in_(set(series)), _CHANGES.c.ordinal.in_(set(names)))
        rows = connection.execute(of_test.order_by(_CHANGES.c.since_at.desc(), _CHANGES.c.id.desc())).mappings().all()
        for row in rows:
            if row["ordinal"] == ordinals[row["series_id"]]:
                moved[row["series_id"]].append(_moved(connection, row))
    return moved


def moved_by_id(connection: sa.Connection, ids: Collection[str]) -> dict[str, MovedSeries]:
    """Return the changes with these IDs, by ID; those that are not stored, or not any more, are left out."""
    moved: dict[str, MovedSeries] = {}
    ordered = sorted(ids)
    for chunk in schema.in_chunks(ordered):
        moved |= {change.id: change for change in _read(connection, _MOVED.where(_CHANGES.c.id.in_(chunk)))}
    return moved


def _read(connection: sa.Connection, statement: sa.Select[tuple[object, ...]]) -> list[MovedSeries]:
    return [_moved(connection, row) for row in connection.execute(statement).mappings().all()]


def _moved(connection: sa.Connection, row: sa.RowMapping) -> MovedSeries:
    return MovedSeries(
        target=TargetKey(row["repository"], row["lab"], row["target"]),
        test=all_names(connection, SuiteRow(row["suite_id"], row["names"]))[row["ordinal"]],
        better=Better(row["better"]),
        **{name: row[name] for name in _FIELDS},
    )
