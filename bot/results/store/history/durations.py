"""Read how long the tests of a suite took at a commit, as its runs reported it."""

from __future__ import annotations

from itertools import compress

import sqlalchemy as sa
from nightjar_formats.columns import duration
from nightjar_formats.model import TargetKey

from bot.results.store.tables import names, runs, schema
from bot.results.store.tables.blobs import raw
from bot.results.store.tables.names import SuiteNames


def of_suite(connection: sa.Connection, known: SuiteNames, about: TargetKey, suite: str, sha: str) -> dict[str, float]:
    """Return the duration of each test in seconds, from the last run that has one.

    They are at most three percent off (`nightjar_formats.columns`).
    """
    found = names.find(connection, about.repository, suite)
    target = runs.target_id(connection, about)
    if found is None or target is None:
        return {}
    numbers = runs.stored(runs.reported(connection, target, sha, suite))
    table = schema.columns
    statement = sa.select(table.c.run_id, table.c.durations).where(table.c.run_id.in_(numbers))
    stored = {row.run_id: raw(row.durations) for row in connection.execute(statement)}
    name_of = known.all(connection, found)
    seconds: dict[str, float] = {}
    # In the order of the runs, so that a later one replaces what earlier ones measured. Code 0 is no duration.
    for column in (stored[number] for number in numbers):
        timed = (duration(code) or 0.0 for code in column if code)
        seconds.update(zip(compress(name_of, column), timed, strict=True))
    return seconds
