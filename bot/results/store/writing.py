"""Write the results of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import sqlalchemy as sa
from nightjar_formats.columns.collect import Columns

from bot.results.store import blobs, names, schema
from bot.results.store.blobs import LaidOut, Placement
from bot.results.store.names import MAX_KNOWN, SuiteNames, SuiteRow


def lay_out(connection: sa.Connection, known: SuiteNames, suite: SuiteRow, columns: Columns) -> LaidOut:
    """Put a run into the order of the names that its suite has now."""
    # The first cases are the usual ones, and look up no names: a new suite, and the same tests in the same order.
    if not suite.names:
        return blobs.lay_out_in_order(columns, is_new=True)
    if suite.names == len(columns) and list(names.blocks(connection, suite).values()) == columns.names:
        return blobs.lay_out_in_order(columns, is_new=False)
    if suite.names <= MAX_KNOWN:
        placed = known.placed(connection, suite, columns.names)
        if isinstance(placed, Placement):
            return placed.lay_out(columns)
        return blobs.lay_out(columns, lambda: zip(placed, columns.tests, strict=True), suite.names)
    # Too many names to hold in memory: walk through the compressed blocks instead.
    every = list(names.blocks(connection, suite).values())
    return blobs.lay_out(columns, partial(blobs.placed_by_walk, every), suite.names)


_NEW = schema.columns.insert()


def save(connection: sa.Connection, run: int, laid_out: LaidOut, number_of: Mapping[int, int], *, is_new: bool) -> bool:
    """Write the results of a run in place of its stored ones, if any; return False if those were the same.

    `number_of` are the numbers of failures' texts. `is_new`: nothing is stored for the run yet.
    """
    reasons = laid_out.stored.reasons
    whys = [why._replace(text=number_of[why.text]) if why.text else why for why in reasons.whys]
    values = {
        "run_id": run,
        "statuses": laid_out.statuses,
        "durations": laid_out.durations,
        "reasons": blobs.reasons_blob(replace(reasons, whys=whys)) if reasons.ordinals else None,
    }
    if not is_new:
        table = schema.columns
        before = connection.execute(sa.select(table).filter_by(run_id=run)).mappings().first()
        if before is not None and dict(before) == values:
            return False
        connection.execute(table.delete().filter_by(run_id=run))
    connection.execute(_NEW, values)
    return True
