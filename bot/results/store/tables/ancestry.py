"""Store which commits are ancestors of others, as GitHub answered: once for all targets, because it never changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bot.results.compare.ancestors import Relation
from bot.results.store.tables import revisions, schema


def relations(connection: sa.Connection, repository: str, shas: Collection[str]) -> list[Relation]:
    """Return the stored relations of these commits to others."""
    table = schema.ancestry
    stored = []
    ordered = sorted(shas)
    for chunk in schema.in_chunks(ordered):
        statement = sa.select(table).where(table.c.repository == repository, table.c.sha.in_(chunk))
        stored += [
            Relation(row.sha, row.other, row.is_ancestor, row.url, row.met_at) for row in connection.execute(statement)
        ]
    return stored


def learn(connection: sa.Connection, repository: str, learned: Sequence[Relation]) -> None:
    """Store relations; existing ones stay unchanged."""
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    # Another replica may have asked GitHub about the same commits meanwhile.
    statement = insert(schema.ancestry).on_conflict_do_nothing()
    rows = [
        {
            "repository": repository,
            "sha": relation.sha,
            "other": relation.other,
            "is_ancestor": relation.is_ancestor,
            "url": relation.url,
            "met_at": relation.met_at,
        }
        for relation in learned
    ]
    if rows:
        connection.execute(statement, rows)
        revisions.grow(connection, repository)
