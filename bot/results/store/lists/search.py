"""Search commits by SHA and title, and tests by a part of their name, in several repositories."""

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
    """A tested commit. What is not known is None, and a text is empty. `committed_at` is in seconds since 1970."""

    repository: str
    sha: str
    title: str
    author: str
    pull_request: int | None
    committed_at: float | None = None


@dataclass(frozen=True, slots=True)
class TestMatches:
    """Pairs of a repository and a test, each once; `unsearched` repositories have suites that were not searched."""

    tests: Sequence[tuple[str, str]]
    unsearched: Sequence[str]


def commits_with_prefix(
    connection: sa.Connection, repositories: Sequence[str], digits: str, limit: int
) -> list[CommitMatch]:
    """Return commits whose SHA begins with some digits, newest first; at most `limit`."""
    suites, series, points, commits = schema.suites, schema.series, schema.points, schema.commits
    # A range, which the index `nightjar_points_once` answers on both databases; LIKE would ignore case.
    statement = (
        sa.select(suites.c.repository, points.c.sha, points.c.committed_at)
        .add_columns(commits.c.title, commits.c.author, sa.func.coalesce(points.c.pull_request, commits.c.pull_request))
        .select_from(suites.join(series, series.c.suite_id == suites.c.id))
        .join(points, points.c.series_id == series.c.id)
        .join(
            commits,
            sa.and_(commits.c.repository == suites.c.repository, commits.c.sha == points.c.sha),
            isouter=True,
        )
        .where(points.c.sha >= digits, points.c.sha < digits + AFTER_DIGITS)
        .order_by(points.c.committed_at.desc(), points.c.sha)
    )
    matches: dict[tuple[str, str], CommitMatch] = {}
    for chunk in schema.in_chunks(repositories):
        rows = connection.execute(statement.where(suites.c.repository.in_(chunk)))
        for repository, sha, committed_at, title, author, pull_request in rows:
            match = CommitMatch(repository, sha, title or "", author or "", pull_request, committed_at)
            matches.setdefault((repository, sha), match)
    return sorted(matches.values(), key=lambda match: -(match.committed_at or 0.0))[:limit]


def commits_with_title(
    connection: sa.Connection, repositories: Sequence[str], text: str, limit: int
) -> list[CommitMatch]:
    """Return tested commits whose title contains `text`, which is in lower case; at most `limit`.

    It reads the titles of the repositories until enough match: one for each tested commit, about 10,000 a year.
    """
    table = schema.commits
    statement = sa.select(table).where(sa.func.lower(table.c.title).contains(text, autoescape=True)).limit(limit)
    matches = [
        CommitMatch(row.repository, row.sha, row.title, row.author, row.pull_request)
        for chunk in schema.in_chunks(repositories)
        for row in connection.execute(statement.where(table.c.repository.in_(chunk)))
    ]
    return matches[:limit]


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
