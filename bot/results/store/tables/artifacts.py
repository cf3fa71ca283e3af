"""Store and read which artifacts a run has: its log and other files, whose content stays in the bucket."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from nightjar_formats.runs.manifest import ArtifactEntry

from bot.results.store.tables import schema

_OF_RUN = (
    sa.select(schema.artifacts.c.name, schema.artifacts.c.bytes, schema.artifacts.c.sha256)
    .where(schema.artifacts.c.run_id == sa.bindparam("number"))
    .order_by(schema.artifacts.c.name)
)
_REMOVE = schema.artifacts.delete().where(schema.artifacts.c.run_id == sa.bindparam("number"))
_NEW = schema.artifacts.insert()


def save(connection: sa.Connection, number: int, artifacts: Sequence[ArtifactEntry], *, is_new: bool) -> None:
    """Write the artifacts of the run with a number in place of its stored ones; with `is_new`, it has none."""
    if not is_new:
        connection.execute(_REMOVE, {"number": number})
    if artifacts:
        rows = [{"run_id": number, "name": file.name, "bytes": file.bytes, "sha256": file.sha256} for file in artifacts]
        connection.execute(_NEW, rows)


def of_run(connection: sa.Connection, number: int) -> list[ArtifactEntry]:
    """Return the artifacts of the run with a number, sorted by name."""
    return [ArtifactEntry(*row) for row in connection.execute(_OF_RUN, {"number": number})]
