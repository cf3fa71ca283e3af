"""Everything known about a repository in one form, independent of the order of arrival and of internal numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from nightjar_formats.columns import duration

from bot.results.state import RunState
from bot.results.store.tables import blobs, names, runs, schema
from bot.results.store.tables.combine import Details, Fetch, verdicts
from bot.results.store.tables.rename_pairs import renames_of


def of(connection: sa.Connection, repository: str, fetch: Fetch) -> dict[str, object]:
    """Return it as JSON: runs with their tests, points with what changed at each, and for which commits are checks."""
    suites = {
        row.suite: (row.id, names.read_all(connection, names.SuiteRow(row.id, row.names)))
        for row in connection.execute(sa.select(schema.suites).filter_by(repository=repository))
    }
    return {
        "runs": _runs(connection, repository, {suite: called for suite, (_, called) in suites.items()}, fetch),
        "series": {suite: _series(connection, number, called) for suite, (number, called) in sorted(suites.items())},
        "checks": _checks(connection, repository),
    }


def _runs(
    connection: sa.Connection, repository: str, name_of: Mapping[str, list[str]], fetch: Fetch
) -> dict[str, object]:
    found = {}
    statement = runs.select().where(schema.targets.c.repository == repository)
    for row in connection.execute(statement).mappings().all():
        run = runs.read(row)
        known = asdict(run)
        # The key names the item below, and the time of arrival must not matter.
        del known["key"], known["received_at"]
        if run.state is RunState.STORED and run.claims:
            known["tests"] = _tests(connection, row["id"], name_of[run.claims.suite], fetch)
        found[run.key.folder] = known
    return dict(sorted(found.items()))


def _tests(connection: sa.Connection, run: int, name_of: list[str], fetch: Fetch) -> dict[str, object]:
    stored = runs.columns(connection, [run])
    seen, reasons = verdicts(name_of, stored)
    details = Details(reasons, fetch)
    durations = blobs.raw(
        connection.execute(sa.select(schema.columns.c.durations).filter_by(run_id=run)).scalar_one()
    ).ljust(len(name_of), b"\0")
    seconds = dict(zip(name_of, map(duration, durations), strict=True))
    return {
        test: {
            "status": one.status.value,
            "flaky": one.flaky,
            "seconds": seconds[test],
            "detail": details[test]._asdict() if test in details else None,
        }
        for test, one in sorted(seen.items())
    }


def _series(connection: sa.Connection, suite: int, name_of: list[str]) -> dict[str, object]:
    points = schema.points
    statement = (
        sa.select(points, schema.targets.c.lab, schema.targets.c.target)
        .select_from(points.join(schema.series).join(schema.targets))
        .where(schema.series.c.suite_id == suite)
        .order_by(points.c.committed_at, points.c.sha)
    )
    found: dict[str, Any] = {}
    rows = connection.execute(statement).all()
    every = renames_of(connection, {row.series_id for row in rows})
    renames = {(point.series_id, point.position): point.pairs for point in every}
    for row in rows:
        known = {
            key: getattr(row, key)
            for key in ("sha", "committed_at", "pull_request", "mainline", "complete", "infra", "linked")
        }
        changes = connection.execute(sa.select(schema.changes).filter_by(point_id=row.id))
        known["changes"] = sorted([name_of[one.ordinal], one.before, one.after] for one in changes)
        pairs = renames.get((row.series_id, (row.committed_at, row.sha)), ())
        known["renames"] = sorted([name_of[old], name_of[new]] for new, old in pairs)
        found.setdefault(f"{row.lab}/{row.target}", []).append(known)
    return found


def _checks(connection: sa.Connection, repository: str) -> list[list[str]]:
    checks, targets = schema.checks, schema.targets
    statement = sa.select(targets.c.lab, targets.c.target, checks.c.sha).select_from(checks.join(targets))
    return sorted([*row] for row in connection.execute(statement.where(targets.c.repository == repository)))
