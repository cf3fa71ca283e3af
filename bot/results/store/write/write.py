"""Write the results of a run, and find out what they mean for the series of its suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import sqlalchemy as sa
from nightjar_formats.columns import merged
from nightjar_formats.columns.collect import Columns
from nightjar_formats.model import SeenTest

from bot.results.store.tables import blobs, names, runs, schema
from bot.results.store.tables.blobs import LaidOut, Placement, RunColumns
from bot.results.store.tables.combine import has_evidence, verdicts
from bot.results.store.tables.names import MAX_CACHED_NAMES, SuiteRow, place_names, uncommitted_names
from bot.results.store.write.series import Facts, Series


def lay_out(connection: sa.Connection, suite: SuiteRow, columns: Columns) -> LaidOut:
    """Put a run into the order of the names that its suite has now; new names follow them."""
    # The first cases are the usual ones, and look up no names: a new suite, and the same tests in the same order.
    if not suite.names:
        return blobs.lay_out_in_order(columns, is_new=True)
    if suite.names == len(columns) and list(names.blocks(connection, suite).values()) == columns.names:
        return blobs.lay_out_in_order(columns, is_new=False)
    if suite.names <= MAX_CACHED_NAMES:
        placed = place_names(connection, suite, columns.names)
        if isinstance(placed, Placement):
            return placed.lay_out(columns)
        return blobs.lay_out(columns, lambda: zip(placed, columns.tests, strict=True), suite.names)
    # Too many names to hold in memory: walk through the compressed blocks instead.
    name_blocks = list(names.blocks(connection, suite).values())
    return blobs.lay_out(columns, partial(blobs.placed_by_walk, name_blocks), suite.names)


_NEW = schema.columns.insert()


def save(connection: sa.Connection, run: int, laid_out: LaidOut, number_of: Mapping[int, int], *, is_new: bool) -> bool:
    """Write the results of a run in place of its stored ones, if any; return False if those were the same.

    `number_of` has the stored number of each failure text by its number in the run. With `is_new`, nothing is stored
    for the run yet.
    """
    reasons = laid_out.stored.reasons
    distinct = [reason._replace(text=number_of[reason.text]) if reason.text else reason for reason in reasons.distinct]
    values = {
        "run_id": run,
        "statuses": laid_out.statuses,
        "durations": laid_out.durations,
        "reasons": blobs.reasons_blob(replace(reasons, distinct=distinct)) if reasons.ordinals else None,
    }
    if not is_new:
        table = schema.columns
        stored = connection.execute(sa.select(table).filter_by(run_id=run)).mappings().first()
        if stored is not None and dict(stored) == values:
            return False
        connection.execute(table.delete().filter_by(run_id=run))
    connection.execute(_NEW, values)
    return True


Infra = Callable[[Mapping[str, SeenTest]], str]
"""Returns why the results of a suite are unusable, or an empty text."""


def point_facts(
    connection: sa.Connection, series: Series, sha: str, already_read: Mapping[int, RunColumns], find_infra: Infra
) -> tuple[Facts | None, bytes]:
    """Return the facts of a commit's point (None if none of its runs was admitted) and its merged status column.

    `already_read` has the results of runs that need not be read, by the number of the run.
    """
    reported = runs.reported(connection, series.target_id, sha, series.suite_name)
    admission = runs.admission(run for _, run in reported)
    if admission is None:
        return None, b""
    stored = runs.stored(reported)
    complete = bool(stored) and runs.shards(run for _, run in reported).complete
    columns = runs.columns(connection, stored, already_read)
    infra = ""
    # An incomplete point stays outside the series anyway. Most complete ones have evidence, which is faster to see.
    if complete and not has_evidence(columns):
        seen, _ = verdicts(uncommitted_names(connection, series.suite), columns)
        infra = find_infra(seen)
    facts = Facts(sha, admission.committed_at, admission.pull_request, admission.mainline, complete, infra)
    return facts, merged([run.statuses for run in columns])
