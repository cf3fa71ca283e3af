"""Store which commits are ancestors of others, as GitHub answered: once for all targets, because it never changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bot.results.compare.ancestors import Relation
from bot.results.store.tables import revisions, schema

_RELATIONS = sa.select(*(schema.ancestry.c[name] for name in ("sha", "other", "is_ancestor", "url", "met_at"))).where(
    schema.ancestry.c.repository == sa.bindparam("repository"),
    schema.ancestry.c.sha.in_(sa.bindparam("shas", expanding=True)),
)
# Another replica may have asked GitHub about the same commits meanwhile.
_LEARN = {
    "postgresql": postgresql.insert(schema.ancestry).on_conflict_do_nothing(),
    "sqlite": sqlite.insert(schema.ancestry).on_conflict_do_nothing(),
}


def relations(connection: sa.Connection, repository: str, shas: Collection[str]) -> list[Relation]:
    """Return the stored relations of these commits to others."""
    return [
        Relation(*row)
        for chunk in schema.in_chunks(sorted(shas))
        for row in connection.execute(_RELATIONS, {"repository": repository, "shas": chunk})
    ]


def learn(connection: sa.Connection, repository: str, learned: Sequence[Relation]) -> None:
    """Store relations; existing ones stay unchanged."""
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
        connection.execute(_LEARN[connection.dialect.name], rows)
        revisions.grow(connection, repository)
