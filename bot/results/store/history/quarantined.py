"""Find the failures in a status column that a quarantine of app.yaml explains."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from nightjar_formats.columns import at

from bot.results.compare.quarantine import Quarantine
from bot.results.store.tables.cells import FAILS, IS_FAILURE, marked_places
from bot.results.store.tables.names import SuiteRow, all_names, find_ordinal


def quarantined_failures(
    connection: sa.Connection,
    suite: SuiteRow,
    quarantine: Quarantine,
    column: bytes,
    ordinals: Collection[int] | None = None,
) -> list[int]:
    """Return the quarantined tests that fail in a status column of a suite.

    With `ordinals`, only those of them.
    """
    if quarantine.prefixes:
        candidates = marked_places(column.translate(IS_FAILURE)) if ordinals is None else ordinals
        name_of = all_names(connection, suite)
        tests = {ordinal for ordinal in candidates if quarantine.of(name_of[ordinal])}
    else:
        # A broken lab may have 100,000 failures, and app.yaml names a few tests.
        named = {find_ordinal(connection, suite, test) for test in quarantine.exact}
        tests = {ordinal for ordinal in named if ordinal is not None and (ordinals is None or ordinal in ordinals)}
    return sorted(ordinal for ordinal in tests if at(column, ordinal) in FAILS)
