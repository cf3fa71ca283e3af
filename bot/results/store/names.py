"""The dictionary of test IDs of a suite: compressed blocks to which is only ever added, so that a place stays."""

from __future__ import annotations

import threading
from typing import NamedTuple

import sqlalchemy as sa
from cachetools import LRUCache

from bot.core.refused import TooMuch
from bot.results.limits import MAX_SUITE_NAMES
from bot.results.store import schema
from bot.results.store.collect import read_names

TOO_MANY_NAMES = (
    f"the suite's tests have had more than {MAX_SUITE_NAMES:,} names, so they seem to differ in every run; give "
    "parameters IDs of their own (pytest: `ids=`), and the suite another name"
)
MAX_KNOWN = 200_000
"""Names that a process keeps at hand; they take about 30 MB."""


class SuiteRow(NamedTuple):
    """A suite's number, and how many names it has."""

    id: int
    names: int


def find(connection: sa.Connection, repository: str, suite: str, *, make: bool = False) -> SuiteRow | None:
    """Return a suite of a repository; None, or a new one, where nothing is known of it."""
    table = schema.suites
    statement = sa.select(table.c.id, table.c.names).filter_by(repository=repository, suite=suite)
    row = connection.execute(statement).first()
    if row is not None:
        return SuiteRow(row.id, row.names)
    if not make:
        return None
    values = {"repository": repository, "suite": suite, "names": 0}
    return SuiteRow(connection.execute(table.insert().values(values).returning(table.c.id)).scalar_one(), 0)


def blocks(connection: sa.Connection, suite: SuiteRow) -> dict[int, bytes]:
    """Return the blocks of names that a suite had at that moment, by the place of their first name."""
    table = schema.names
    statement = sa.select(table.c.first, table.c.names).filter_by(suite_id=suite.id).where(table.c.first < suite.names)
    return {row.first: row.names for row in connection.execute(statement.order_by(table.c.first))}


def every(connection: sa.Connection, suite: SuiteRow) -> list[str]:
    """Return all names of a suite."""
    return list(read_names(blocks(connection, suite).values()))


def add(connection: sa.Connection, suite: SuiteRow, new: int, block: bytes) -> SuiteRow:
    """Add a block of new names that the suite does not have. Raises `TooMuch` where it has had too many names."""
    if not new:
        return suite
    if suite.names + new > MAX_SUITE_NAMES:
        raise TooMuch(TOO_MANY_NAMES)
    values = {"suite_id": suite.id, "first": suite.names, "names": block}
    connection.execute(schema.names.insert().values(values))
    count = suite.names + new
    connection.execute(schema.suites.update().filter_by(id=suite.id).values(names=count))
    return SuiteRow(suite.id, count)


class SuiteNames:
    """The names of the suites that were asked about last, for any number of threads.

    What a suite with so many names is called never changes; so only what is committed may be asked for here.
    """

    def __init__(self) -> None:
        self._lists: LRUCache[SuiteRow, list[str]] = LRUCache(MAX_KNOWN, getsizeof=len)
        self._lock = threading.Lock()

    def every(self, connection: sa.Connection, suite: SuiteRow) -> list[str]:
        """Return all names of a suite, which are not to be changed."""
        with self._lock:
            known = self._lists.get(suite)
        if known is None:
            known = every(connection, suite)
            if suite.names <= MAX_KNOWN:
                with self._lock:
                    self._lists[suite] = known
        return known

    def ordinal(self, connection: sa.Connection, suite: SuiteRow, name: str) -> int | None:
        """Return the place of a name, None for an unknown one."""
        try:
            return self.every(connection, suite).index(name)
        except ValueError:
            return None
