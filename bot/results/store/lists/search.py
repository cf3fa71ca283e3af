"""Search commits by the beginning of their SHA, and tests by a part of their name, over several repositories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.results.store.tables import schema
from bot.results.store.tables.names import SuiteRow, all_names

MOST_SUITES = 200
MOST_NAMES = 500_000
"""Suites and names that one search reads: about 50 ms where the names are cached."""
AFTER_DIGITS = "g"
"""Sorts after each hexadecimal digit."""


@dataclass(frozen=True, slots=True)
class CommitMatch:
    """A commit with results of a target, which is LAB/TARGET. `committed_at` is in seconds since 1970."""

    repository: str
    sha: str
    committed_at: float
    pull_request: int | None
    target: str


@dataclass(frozen=True, slots=True)
class TestMatches:
    """Pairs of a repository and a test, each once; `unsearched` repositories have suites that were not searched."""

    tests: Sequence[tuple[str, str]]
    unsearched: Sequence[str]


def commits_with_prefix(
    connection: sa.Connection, repositories: Sequence[str], digits: str, limit: int
) -> list[CommitMatch]:
    """Return commits whose SHA begins with some digits, newest first; at most `limit`."""
    suites, series, points, targets = schema.suites, schema.series, schema.points, schema.targets
    # A range, which the index `nightjar_points_once` answers on both databases; LIKE would ignore case.
    statement = (
        sa.select(suites.c.repository, points.c.sha, points.c.committed_at, points.c.pull_request)
        .add_columns(targets.c.lab, targets.c.target)
        .select_from(suites.join(series, series.c.suite_id == suites.c.id))
        .join(targets, series.c.target_id == targets.c.id)
        .join(points, points.c.series_id == series.c.id)
        .where(points.c.sha >= digits, points.c.sha < digits + AFTER_DIGITS)
        .order_by(points.c.committed_at.desc(), points.c.sha, targets.c.id)
    )
    commits: dict[tuple[str, str], CommitMatch] = {}
    for chunk in schema.in_chunks(repositories):
        for row in connection.execute(statement.where(suites.c.repository.in_(chunk))):
            commit = CommitMatch(row.repository, row.sha, row.committed_at, row.pull_request, f"{row.lab}/{row.target}")
            commits.setdefault((row.repository, row.sha), commit)
    return sorted(commits.values(), key=lambda commit: -commit.committed_at)[:limit]


def names_with_text(
    connection: sa.Connection, repositories: Sequence[str], text: str, limit: int, most_names: int = MOST_NAMES
) -> TestMatches:
    """Return tests whose name contains `text`, which is in lower case; at most `limit`, in the order of repositories.

    Suites that have too many names together are left out: the result says in which repositories.
    """
    table = schema.suites
    rows = [
        row
        for chunk in schema.in_chunks(repositories)
        for row in connection.execute(sa.select(table).where(table.c.repository.in_(chunk)).order_by(table.c.suite))
    ]
    place = {name: number for number, name in enumerate(repositories)}
    rows.sort(key=lambda row: place[row.repository])
    tests, unsearched = dict[tuple[str, str], None](), dict[str, None]()
    remaining = most_names
    for number, row in enumerate(rows):
        if number >= MOST_SUITES or row.names > remaining:
            unsearched[row.repository] = None
            continue
        remaining -= row.names
        for name in all_names(connection, SuiteRow(row.id, row.names)):
            if text in name.lower():
                tests[row.repository, name] = None
                if len(tests) == limit:
                    return TestMatches(list(tests), list(unsearched))
    return TestMatches(list(tests), list(unsearched))
