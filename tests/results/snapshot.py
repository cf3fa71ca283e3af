"""Everything stored about a repository, as JSON that does not depend on the order of arrival and internal numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from nightjar_formats.columns import duration

from bot.results.state import RunState
from bot.results.store.measurements.read import measurements_of_run
from bot.results.store.tables import blobs, names, runs, schema
from bot.results.store.tables.combine import Details, Fetch, verdicts
from bot.results.store.tables.failure_texts import TextReader
from bot.results.store.tables.names import NamesAtMoment
from bot.results.store.tables.rename_pairs import renames_of


def snapshot_of(connection: sa.Connection, repository: str) -> dict[str, object]:
    """Return a repository as JSON: runs with their tests, points with their changes, and the commits with checks."""
    fetch = TextReader(connection.engine.begin).text
    suites = {
        row.suite: (row.id, names.all_names(connection, names.SuiteRow(row.id, row.names)))
        for row in connection.execute(sa.select(schema.suites).filter_by(repository=repository))
    }
    return {
        "runs": _runs(connection, repository, {suite: name_of for suite, (_, name_of) in suites.items()}, fetch),
        "series": {suite: _series(connection, number, name_of) for suite, (number, name_of) in sorted(suites.items())},
        "checks": _checks(connection, repository),
    }


def _runs(
    connection: sa.Connection, repository: str, name_of: Mapping[str, list[str]], fetch: Fetch
) -> dict[str, object]:
    documents = {}
    statement = runs.select().where(schema.targets.c.repository == repository)
    for row in connection.execute(statement).mappings().all():
        run = runs.read(row)
        document = asdict(run)
        # The folder names the document below, and the time of arrival must not matter.
        del document["key"], document["received_at"]
        if run.state is RunState.STORED and run.claims:
            document["tests"] = _tests(connection, row["id"], name_of[run.claims.suite], fetch)
            document["measurements"] = measurements_of_run(connection, run.key)
        documents[run.key.folder] = document
    return dict(sorted(documents.items()))


def _tests(connection: sa.Connection, run: int, name_of: list[str], fetch: Fetch) -> dict[str, object]:
    stored = runs.columns(connection, [run])
    seen, reasons = verdicts(NamesAtMoment(name_of), stored)
    details = Details(reasons, fetch)
    durations = blobs.raw(
        connection.execute(sa.select(schema.columns.c.durations).filter_by(run_id=run)).scalar_one()
    ).ljust(len(name_of), b"\0")
    seconds = dict(zip(name_of, map(duration, durations), strict=True))
    return {
        test: {
            "status": result.status.value,
            "flaky": result.flaky,
            "seconds": seconds[test],
            "detail": details[test]._asdict() if test in details else None,
        }
        for test, result in sorted(seen.items())
    }


def _series(connection: sa.Connection, suite: int, name_of: list[str]) -> dict[str, object]:
    points = schema.points
    statement = (
        sa.select(points, schema.targets.c.lab, schema.targets.c.target)
        .select_from(points.join(schema.series).join(schema.targets))
        .where(schema.series.c.suite_id == suite)
        .order_by(points.c.committed_at, points.c.sha)
    )
    points_of: dict[str, Any] = {}
    rows = connection.execute(statement).all()
    point_renames = renames_of(connection, {row.series_id for row in rows})
    renames = {(point.series_id, point.position): point.pairs for point in point_renames}
    for row in rows:
        document = {
            key: getattr(row, key)
            for key in ("sha", "committed_at", "pull_request", "mainline", "complete", "infra", "linked")
        }
        changes = connection.execute(sa.select(schema.changes).filter_by(point_id=row.id))
        document["changes"] = sorted([name_of[change.ordinal], change.before, change.after] for change in changes)
        pairs = renames.get((row.series_id, (row.committed_at, row.sha)), ())
        document["renames"] = sorted([name_of[old], name_of[new]] for new, old in pairs)
        points_of.setdefault(f"{row.lab}/{row.target}", []).append(document)
    return points_of


def _checks(connection: sa.Connection, repository: str) -> list[list[str]]:
    checks, targets = schema.checks, schema.targets
    statement = sa.select(targets.c.lab, targets.c.target, checks.c.sha).select_from(checks.join(targets))
    return sorted([*row] for row in connection.execute(statement.where(targets.c.repository == repository)))
