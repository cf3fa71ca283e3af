"""Find runs: one by its folder, lists of them, those that wait for files, and how many there are of whom."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from nightjar_formats.model import RunKey, TargetKey
from nightjar_formats.runs.manifest import ArtifactEntry

from bot.results.state import Admission, Run, RunState
from bot.results.store.tables import artifacts, runs, schema

NEWEST = 100
# Built once, because each scan or run needs them, and building one takes longer than executing it.
_WAITING = (
    sa.select(schema.targets.c.repository, sa.func.count().label("runs"))
    .select_from(schema.runs.join(schema.targets))
    .where(schema.runs.c.state == RunState.WAITING.value)
    .group_by(schema.targets.c.repository)
)
# A refused run counts too, but without its bytes: its files were not ingested.
_INGESTED_BYTES = sa.case((schema.runs.c.state != RunState.REFUSED.value, schema.runs.c.bytes), else_=0)
_USAGE = (
    sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(_INGESTED_BYTES), 0))
    .select_from(schema.runs.join(schema.targets))
    .where(
        schema.targets.c.repository == sa.bindparam("repository"),
        schema.targets.c.lab == sa.bindparam("lab"),
        schema.runs.c.received_at >= sa.bindparam("since"),
    )
)


def _target_ids(connection: sa.Connection, repository: str | None, lab: str | None, target: str | None) -> list[int]:
    """Return the IDs of targets; None matches all. The letter case of the repository does not matter."""
    table = schema.targets
    name = repository.lower() if repository else None
    filters = {sa.func.lower(table.c.repository): name, table.c.lab: lab, table.c.target: target}
    statement = sa.select(table.c.id).where(
        *(column == value for column, value in filters.items() if value is not None)
    )
    return list(connection.execute(statement).scalars())


def run_with_artifacts(connection: sa.Connection, key: RunKey) -> tuple[Run | None, list[ArtifactEntry]]:
    """Return a run, or None if nothing is stored about it, and its artifacts, sorted by name."""
    numbered_run = runs.find(connection, key)
    return (numbered_run[1], artifacts.of_run(connection, numbered_run[0])) if numbered_run else (None, [])


def list_runs(
    connection: sa.Connection,
    repository: str | None = None,
    *,
    lab: str | None = None,
    target: str | None = None,
    sha: str | None = None,
    state: RunState | None = None,
    last_listed: RunKey | None = None,
    limit: int = NEWEST,
) -> list[Run]:
    """Return runs, newest first; `last_listed` is the last one of the page before.

    Raises LookupError if `last_listed` is not stored.

    Filters that are None match anything. The repository may be in any letter case: a run whose folder writes it
    otherwise than app.yaml is refused, and listed under its own name.
    """
    table = schema.runs
    sort_key = (table.c.received_at, table.c.id)
    statement = runs.select().order_by(*(column.desc() for column in sort_key)).limit(limit)
    anywhere = not (repository or lab or target or sha)
    if state is not None:
        statement = statement.where((table.c.state if anywhere else schema.unindexed_state) == state.value)
    if last_listed is not None:
        last = runs.find(connection, last_listed, any_case=True)
        if last is None:
            raise LookupError(last_listed.folder)
        statement = statement.where(sa.tuple_(*sort_key) < sa.tuple_(last[1].received_at, last[0]))
    # One statement with the index of states; below, one for each target with the indices of targets.
    if state is not None and anywhere:
        return [runs.read(row) for row in connection.execute(statement).mappings()]
    # Indices have the runs of a target in their order, and the runs of a commit.
    if sha is not None:
        statement = statement.where(table.c.sha == sha)
    rows = [
        row
        for number in _target_ids(connection, repository, lab, target)
        for row in connection.execute(statement.where(table.c.target_id == number)).mappings()
    ]
    rows.sort(key=lambda row: (row["received_at"], row["id"]), reverse=True)
    return [runs.read(row) for row in rows[:limit]]


def commits_since(connection: sa.Connection, repository: str, moment: float) -> set[tuple[TargetKey, str]]:
    """Return the targets and commits with a run that arrived since a moment, in seconds since 1970."""
    table, targets = schema.runs, schema.targets
    statement = (
        sa.select(targets.c.lab, targets.c.target, table.c.sha)
        .select_from(targets.join(table))
        .where(targets.c.repository == repository, table.c.received_at >= moment)
        .distinct()
    )
    return {(TargetKey(repository, row.lab, row.target), row.sha) for row in connection.execute(statement)}


def commits_with_runs(connection: sa.Connection, target: TargetKey, shas: Collection[str]) -> set[str]:
    """Return those of the commits with a run on the target, in any state."""
    table = schema.runs
    number = runs.target_id(connection, target)
    if number is None:
        return set()
    statement = sa.select(table.c.sha).where(table.c.target_id == number).distinct()
    return {
        sha
        for chunk in schema.in_chunks(list(shas))
        for sha in connection.scalars(statement.where(table.c.sha.in_(chunk)))
    }


def waiting_runs(connection: sa.Connection, repository: str) -> list[Run]:
    """Return the runs of a repository that wait for their files, oldest first."""
    table = schema.runs
    statement = runs.select().where(table.c.state == RunState.WAITING.value, schema.targets.c.repository == repository)
    oldest_first = statement.order_by(table.c.received_at, table.c.id)
    return [runs.read(row) for row in connection.execute(oldest_first).mappings()]


def waiting_counts(connection: sa.Connection) -> dict[str, int]:
    """Return how many runs of each repository wait for their files; repositories without one are left out."""
    return {row.repository: row.runs for row in connection.execute(_WAITING)}


def newest_arrivals(connection: sa.Connection, *repositories: str, on_nightly: bool = False) -> dict[TargetKey, float]:
    """Return when the newest stored run of each target of these repositories arrived, in seconds since 1970.

    With `on_nightly`, runs of pull requests do not count: they would hide that nightly runs are missing.
    """
    table, targets = schema.runs, schema.targets
    # One subquery per target stops at its last run in the index `nightjar_runs_received`.
    last_received = (
        sa.select(table.c.received_at)
        .where(table.c.target_id == targets.c.id, schema.unindexed_state == RunState.STORED.value)
        .where(table.c.mainline if on_nightly else sa.true())
        .order_by(table.c.received_at.desc())
        .limit(1)
        .correlate(targets)
        .scalar_subquery()
    )
    columns = (targets.c.repository, targets.c.lab, targets.c.target, last_received.label("received_at"))
    rows = [
        row
        for chunk in schema.in_chunks(repositories)
        for row in connection.execute(sa.select(*columns).where(targets.c.repository.in_(chunk)))
    ]
    return {
        TargetKey(row.repository, row.lab, row.target): row.received_at for row in rows if row.received_at is not None
    }


def targets_of_commit(connection: sa.Connection, repository: str, sha: str) -> list[TargetKey]:
    """Return the targets with anything stored about a commit."""
    table, targets_table = schema.runs, schema.targets
    statement = (
        sa.select(targets_table.c.lab, targets_table.c.target)
        .select_from(table.join(targets_table))
        .where(targets_table.c.repository == repository, table.c.sha == sha)
        .where(runs.in_reported_state)
        .distinct()
    )
    return sorted(TargetKey(repository, row.lab, row.target) for row in connection.execute(statement))


def check_revisions(connection: sa.Connection, repository: str, sha: str) -> dict[TargetKey, int]:
    """Return the targets with anything stored about a commit, each with the revision of its check run there.

    A revision grows with every change of what the check run says, such as a run of an older commit that arrives late.
    """
    checks, targets_table = schema.checks, schema.targets
    revision_of = {
        TargetKey(repository, row.lab, row.target): row.revision
        for row in connection.execute(
            sa.select(targets_table.c.lab, targets_table.c.target, checks.c.revision)
            .select_from(targets_table.join(checks, checks.c.target_id == targets_table.c.id))
            .where(targets_table.c.repository == repository, checks.c.sha == sha)
        )
    }
    return {target: revision_of.get(target, 0) for target in targets_of_commit(connection, repository, sha)}


def lab_usage(connection: sa.Connection, repository: str, lab: str, since: float) -> tuple[int, int]:
    """Return how many runs of a lab arrived since a moment, and the bytes of the ingested files."""
    count, size = connection.execute(_USAGE, {"repository": repository, "lab": lab, "since": since}).one()
    return int(count), int(size)


def admission_of_commit(connection: sa.Connection, repository: str, sha: str) -> Admission | None:
    """Return the admission of a commit for which a run of any lab was ingested, or None."""
    statement = runs.select().where(
        schema.targets.c.repository == repository, schema.runs.c.sha == sha, runs.in_reported_state
    )
    return runs.admission(runs.read(row) for row in connection.execute(statement).mappings())
