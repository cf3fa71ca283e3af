"""Find and count runs: for lists, runs that wait for files, and a lab's quota."""

from __future__ import annotations

import sqlalchemy as sa
from nightjar_formats.model import RunKey, TargetKey

from bot.results.state import Run, RunState
from bot.results.store.tables import runs, schema


def page(
    connection: sa.Connection,
    repository: str | None,
    lab: str | None,
    target: str | None,
    sha: str | None,
    state: RunState | None,
    before: RunKey | None,
    limit: int,
) -> list[Run]:
    """Return runs as `ResultsStore.runs` does. Raises LookupError for the key `before`."""
    table = schema.runs
    place = (table.c.received_at, table.c.id)
    statement = runs.select().order_by(*(column.desc() for column in place)).limit(limit)
    anywhere = not (repository or lab or target or sha)
    if state is not None:
        statement = statement.where((table.c.state if anywhere else schema.found_state) == state.value)
    if before is not None:
        last = runs.find(connection, before, any_case=True)
        if last is None:
            raise LookupError(before.folder)
        statement = statement.where(sa.tuple_(*place) < sa.tuple_(last[1].received_at, last[0]))
    # One statement with the index of states; below, one for each target with the indices of targets.
    if state is not None and anywhere:
        return [runs.read(row) for row in connection.execute(statement).mappings()]
    # An index has the runs of a target in their order, and those of a commit.
    if sha is not None:
        statement = statement.where(table.c.sha == sha)
    found = [
        row
        for number in _targets(connection, repository, lab, target)
        for row in connection.execute(statement.where(table.c.target_id == number)).mappings()
    ]
    found.sort(key=lambda row: (row["received_at"], row["id"]), reverse=True)
    return [runs.read(row) for row in found[:limit]]


def _targets(connection: sa.Connection, repository: str | None, lab: str | None, target: str | None) -> list[int]:
    """Return the numbers of targets, where needed of a repository in any letter case."""
    table = schema.targets
    name = repository.lower() if repository else None
    wanted = {sa.func.lower(table.c.repository): name, table.c.lab: lab, table.c.target: target}
    statement = sa.select(table.c.id).where(*(column == value for column, value in wanted.items() if value is not None))
    return list(connection.execute(statement).scalars())


def waiting(connection: sa.Connection, repository: str) -> list[Run]:
    """Return the runs of a repository that wait for their files, oldest first."""
    table = schema.runs
    statement = runs.select().where(table.c.state == RunState.WAITING.value, schema.targets.c.repository == repository)
    oldest_first = statement.order_by(table.c.received_at, table.c.id)
    return [runs.read(row) for row in connection.execute(oldest_first).mappings()]


def newest(connection: sa.Connection, repository: str) -> dict[TargetKey, float]:
    """Return when the newest stored run of each target arrived, in seconds since 1970."""
    table, targets = schema.runs, schema.targets
    # One subquery per target stops at its last run in the index `nightjar_runs_received`.
    at = (
        sa.select(table.c.received_at)
        .where(table.c.target_id == targets.c.id, schema.found_state == RunState.STORED.value)
        .order_by(table.c.received_at.desc())
        .limit(1)
        .correlate(targets)
        .scalar_subquery()
    )
    statement = sa.select(targets.c.lab, targets.c.target, at.label("at")).where(targets.c.repository == repository)
    found = connection.execute(statement)
    return {TargetKey(repository, row.lab, row.target): row.at for row in found if row.at is not None}


def targets(connection: sa.Connection, repository: str, sha: str) -> list[TargetKey]:
    """Return the targets with anything stored about a commit."""
    table, known = schema.runs, schema.targets
    statement = (
        sa.select(known.c.lab, known.c.target)
        .select_from(table.join(known))
        .where(known.c.repository == repository, table.c.sha == sha)
        .where(runs.in_reported_state)
        .distinct()
    )
    return sorted(TargetKey(repository, row.lab, row.target) for row in connection.execute(statement))


def usage(connection: sa.Connection, repository: str, lab: str, since: float) -> tuple[int, int]:
    """Return how many runs of a lab arrived since a moment, and the bytes of the ingested files."""
    table, targets = schema.runs, schema.targets
    # A refused run counts too, but without its bytes: its files were not ingested.
    taken = table.c.state != RunState.REFUSED.value
    statement = (
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((taken, table.c.bytes), else_=0)), 0))
        .select_from(table.join(targets))
        .where(targets.c.repository == repository, targets.c.lab == lab, table.c.received_at >= since)
    )
    count, size = connection.execute(statement).one()
    return int(count), int(size)
