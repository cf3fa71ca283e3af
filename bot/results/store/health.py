"""Count the tests that flip back in the newest runs of a target, from the runs' columns.

Each column is treated as one large number, so a run of 300,000 tests takes a few milliseconds, whatever has changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from nightjar_formats.columns import STATUS_BYTES, is_flaky, status_of
from nightjar_formats.model import GOOD, TargetKey

from bot.results.compare.health import LOOKBACK, WINDOW, RunFlips, SuiteHealth, suite_health
from bot.results.store import runs, schema
from bot.results.store.failures import FAILS


def _bits(of: set[int]) -> bytes:
    return bytes(byte in of for byte in range(256))


_FAILED = _bits(set(FAILS))
_PASSED = _bits({byte for byte in range(STATUS_BYTES) if status_of(byte) in GOOD or is_flaky(byte)})
"""A flaky failure counts as a pass, as in all other modules."""


def of_target(connection: sa.Connection, about: TargetKey, sha: str = "") -> dict[str, SuiteHealth]:
    """Return the health of each suite of a target at a commit, by default at its newest run."""
    return {suite: suite_health(runs) for suite, runs in flips_of_target(connection, about, sha).items()}


def flips_of_target(connection: sa.Connection, about: TargetKey, sha: str = "") -> dict[str, list[RunFlips]]:
    """Return the flips of the last runs of each suite up to a commit (by default the newest), oldest first."""
    points, target = schema.points, runs.target_id(connection, about)
    suites = sa.select(schema.series.c.id, schema.suites.c.suite).join(schema.suites)
    # By the repository too, so that an index of the suites is used.
    suites = suites.where(schema.suites.c.repository == about.repository, schema.series.c.target_id == target)
    found = {}
    for series, suite in connection.execute(suites).all():
        newest = sa.select(points.c.sha).where(points.c.series_id == series, points.c.linked)
        if sha:
            here = connection.execute(
                sa.select(points.c.committed_at).where(points.c.series_id == series, points.c.sha == sha)
            ).scalar()
            if here is None:
                continue
            until = sa.tuple_(sa.literal(here, sa.Double), sa.literal(sha, sa.Text))
            newest = newest.where(sa.tuple_(points.c.committed_at, points.c.sha) <= until)
        newest = newest.order_by(points.c.committed_at.desc(), points.c.sha.desc()).limit(WINDOW)
        shas = list(connection.execute(newest).scalars())[::-1]
        if shas and target is not None:
            reported = runs.reported_runs_at(connection, [(target, one) for one in shas], suite)
            columns = runs.statuses(connection, [runs.stored(reported[target, one]) for one in shas])
            found[suite] = list(flips(shas, columns))
    return found


def flips(shas: Sequence[str], columns: Sequence[bytes]) -> Iterator[RunFlips]:
    """Yield how many tests flipped back in each run; runs in which a test was skipped or absent are ignored for it."""
    passed = failed = 0
    recent = deque[int](maxlen=LOOKBACK)
    for sha, column in zip(shas, columns, strict=True):
        passes, fails = (int.from_bytes(column.translate(table), "little") for table in (_PASSED, _FAILED))
        flipped = (passed & fails) | (failed & passes)
        before = 0
        for one in recent:
            before |= one
        yield RunFlips(sha, (flipped & before).bit_count(), (passes | fails).bit_count())
        recent.append(flipped)
        passed, failed = (passed & ~fails) | passes, (failed & ~passes) | fails
