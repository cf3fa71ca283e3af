"""The revision of a repository's results: a number that grows with every change of what pages show.

It grows in the transaction of the change, so whatever is read after a revision is at least as new as it.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bot.results.store.tables import schema

_TABLE = schema.revisions
_FIND = sa.select(_TABLE).where(_TABLE.c.repository.in_(sa.bindparam("repositories", expanding=True)))
_NEXT = {"revision": _TABLE.c.revision + 1}
_RAISE = {
    dialect: insert(_TABLE)
    .values(repository=sa.bindparam("of"), revision=1)
    .on_conflict_do_update(index_elements=[_TABLE.c.repository], set_=_NEXT)
    for dialect, insert in (("postgresql", postgresql.insert), ("sqlite", sqlite.insert))
}


def grow(connection: sa.Connection, repository: str) -> None:
    """Note that what pages show of a repository has changed."""
    connection.execute(_RAISE[connection.dialect.name], {"of": repository.lower()})


def revisions_of(connection: sa.Connection, repositories: Sequence[str]) -> list[int]:
    """Return the revision of each repository, 0 if it has no results. Letter case does not matter."""
    names = [repository.lower() for repository in repositories]
    revision_of = {row.repository: row.revision for row in connection.execute(_FIND, {"repositories": names})}
    return [revision_of.get(name, 0) for name in names]
