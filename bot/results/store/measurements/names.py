"""Search what tests measure by words of their names, in several repositories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import sqlalchemy as sa

from bot.results.store.tables import schema
from bot.results.store.tables.names import SuiteRow, all_names

MOST_SUITES = 200
MOST_NAMES = 500_000
"""Suites with measurements, and names of tests, that one search reads."""
MOST_CANDIDATES = 200
"""Tests whose names match, of which the measurements are looked up."""

_METRICS, _MEASUREMENTS, _SUITES = schema.metrics, schema.measurements, schema.suites


class NamedMeasurement(NamedTuple):
    """A measurement of a test of a repository."""

    repository: str
    test: str
    name: str


class _Suite(NamedTuple):
    repository: str
    row: SuiteRow
    metrics: dict[int, str]
    """The names of its metrics, by their numbers."""


def measurements_with_words(
    connection: sa.Connection, repositories: Sequence[str], words: Sequence[str], limit: int
) -> list[NamedMeasurement]:
    """Return measurements of tests, where each word is a part of the measurement's name or of the test's.

    `words` are in lower case, one at least. At most `limit` are returned.
    """
    matches = dict[NamedMeasurement, None]()
    for suite in _measuring(connection, repositories):
        for match in _of_suite(connection, suite, words, limit):
            matches[match] = None
        if len(matches) >= limit:
            break
    return list(matches)[:limit]


def _measuring(connection: sa.Connection, repositories: Sequence[str]) -> list[_Suite]:
    """Return the suites that have measurements, in the order of the repositories, as many as a search may read."""
    suites: dict[int, _Suite] = {}
    for chunk in schema.in_chunks(repositories):
        statement = (
            sa.select(_SUITES.c.id, _SUITES.c.repository, _SUITES.c.names)
            .add_columns(_METRICS.c.id.label("metric"), _METRICS.c.name)
            .join(_METRICS, _METRICS.c.suite_id == _SUITES.c.id)
            .where(_SUITES.c.repository.in_(chunk))
            .order_by(_SUITES.c.suite)
        )
        for row in connection.execute(statement):
            suite = suites.setdefault(row.id, _Suite(row.repository, SuiteRow(row.id, row.names), {}))
            suite.metrics[row.metric] = row.name
    place = {name: number for number, name in enumerate(repositories)}
    remaining, readable = MOST_NAMES, []
    for suite in sorted(suites.values(), key=lambda suite: place[suite.repository])[:MOST_SUITES]:
        if suite.row.names <= remaining:
            remaining -= suite.row.names
            readable.append(suite)
    return readable


def _of_suite(connection: sa.Connection, suite: _Suite, words: Sequence[str], limit: int) -> Iterator[NamedMeasurement]:
    names = all_names(connection, suite.row)
    of_tests: dict[tuple[str, ...], list[int]] = {}
    for number, name in suite.metrics.items():
        of_tests.setdefault(tuple(word for word in words if word not in name.lower()), []).append(number)
    for rest, metrics in sorted(of_tests.items(), key=lambda pair: len(pair[0])):
        statement = sa.select(_MEASUREMENTS.c.ordinal, _MEASUREMENTS.c.metric_id).where(
            _MEASUREMENTS.c.suite_id == suite.row.id, _MEASUREMENTS.c.metric_id.in_(metrics)
        )
        if rest:
            matches = (ordinal for ordinal, name in enumerate(names) if all(word in name.lower() for word in rest))
            ordinals = list(islice(matches, MOST_CANDIDATES))
            if not ordinals:
                continue
            statement = statement.where(_MEASUREMENTS.c.ordinal.in_(ordinals))
        for ordinal, metric in connection.execute(statement.order_by(_MEASUREMENTS.c.ordinal).limit(limit)):
            yield NamedMeasurement(suite.repository, names[ordinal], suite.metrics[metric])
