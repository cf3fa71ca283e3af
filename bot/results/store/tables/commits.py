"""Store what people recognize tested commits by: once for each, because a commit never changes.

`docs/decisions/commit-summaries.md` says where it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bot.results.state import CommitSummary, Run
from bot.results.store.tables import schema

_TABLE = schema.commits
_FIND = sa.select(_TABLE.c.sha, _TABLE.c.title, _TABLE.c.author, _TABLE.c.pull_request).where(
    _TABLE.c.repository == sa.bindparam("repository"), _TABLE.c.sha.in_(sa.bindparam("shas", expanding=True))
)
_ADD = {
    dialect: insert(_TABLE).on_conflict_do_nothing()
    for dialect, insert in (("postgresql", postgresql.insert), ("sqlite", sqlite.insert))
}


def save(connection: sa.Connection, run: Run) -> None:
    """Store the summary of a run's commit, if its admission has one; a stored one stays unchanged."""
    summary = run.admission.summary if run.admission else None
    if summary is not None:
        row = {
            "repository": run.key.repository,
            "sha": run.key.sha,
            "title": summary.title,
            "author": summary.author,
            "pull_request": summary.pull_request,
        }
        connection.execute(_ADD[connection.dialect.name], row)


def summaries_of(connection: sa.Connection, repository: str, shas: Iterable[str]) -> dict[str, CommitSummary]:
    """Return the summaries of commits, by SHA; commits that no lab has tested have none."""
    summaries = {}
    ordered = sorted(set(shas))
    for chunk in schema.in_chunks(ordered):
        for sha, *summary in connection.execute(_FIND, {"repository": repository, "shas": chunk}):
            summaries[sha] = CommitSummary(*summary)
    return summaries
