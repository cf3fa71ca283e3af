"""Find out from the runs of a commit whether its point is complete, and whether its results are usable."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlalchemy as sa
from nightjar_formats.columns import merged
from nightjar_formats.model import SeenTest

from bot.results.store import runs
from bot.results.store.blobs import Stored
from bot.results.store.combine import has_evidence, verdicts
from bot.results.store.series import Facts, Series

Infra = Callable[[Mapping[str, SeenTest]], str]
"""Says why the results of a suite are unusable, or nothing."""


def point_facts(
    connection: sa.Connection, series: Series, sha: str, known: Mapping[int, Stored], infra_of: Infra
) -> tuple[Facts | None, bytes]:
    """Return the facts of a commit's point (None if none of its runs was admitted) and its merged status column.

    `known` are runs by their number whose results need not be read.
    """
    reported = runs.reported(connection, series.target_id, sha, series.suite_name)
    admission = runs.admission(run for _, run in reported)
    if admission is None:
        return None, b""
    stored = runs.stored(reported)
    complete = bool(stored) and runs.shards(run for _, run in reported).complete
    columns = runs.columns(connection, stored, known)
    infra = ""
    # An incomplete point stays outside the series anyway. Most complete ones have evidence, which is faster to see.
    if complete and not has_evidence(columns):
        seen, _ = verdicts(series.known.uncommitted(connection, series.suite), columns)
        infra = infra_of(seen)
    facts = Facts(sha, admission.committed_at, admission.pull_request, admission.mainline, complete, infra)
    return facts, merged([one.statuses for one in columns])
