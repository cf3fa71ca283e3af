"""Store the test IDs of a suite as a dictionary of compressed blocks. Blocks are only added, so places never change."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import NamedTuple, cast

import sqlalchemy as sa
from cachetools import LRUCache
from nightjar_formats.columns.collect import read_names
from nightjar_formats.limits import MAX_SUITE_NAMES
from nightjar_formats.refused import TooMuch

from bot.results.store import texts
from bot.results.store.tables import schema
from bot.results.store.tables.blobs import Placement

MAX_KNOWN = 200_000
"""Names that a process caches; with their places, they take about 50 MB."""
MAX_PLACED = 1_000_000
"""Tests of runs whose places a process caches: 4 MB, or up to 12 MB if few follow each other in the suite."""


class SuiteRow(NamedTuple):
    """A suite's number, and how many names it has."""

    id: int
    names: int


_FIND = sa.select(schema.suites.c.id, schema.suites.c.names).where(
    schema.suites.c.repository == sa.bindparam("repository"), schema.suites.c.suite == sa.bindparam("suite")
)


def find(connection: sa.Connection, repository: str, suite: str, *, make: bool = False) -> SuiteRow | None:
    """Return a suite of a repository. If it is unknown: None, or a new one with `make`."""
    table = schema.suites
    row = connection.execute(_FIND, {"repository": repository, "suite": suite}).first()
    if row is not None:
        return SuiteRow(row.id, row.names)
    if not make:
        return None
    values = {"repository": repository, "suite": suite, "names": 0}
    return SuiteRow(connection.execute(table.insert().values(values).returning(table.c.id)).scalar_one(), 0)


def blocks(connection: sa.Connection, suite: SuiteRow, start: int = 0) -> dict[int, bytes]:
    """Return the blocks of names that a suite had when `suite` was read, by the place of their first name.

    A block begins at the place `start`, and those before it are left out.
    """
    table = schema.names
    statement = sa.select(table.c.first, table.c.names).filter_by(suite_id=suite.id)
    # Somebody else may have added blocks since the row was read.
    statement = statement.where(table.c.first >= start, table.c.first < suite.names)
    return {row.first: row.names for row in connection.execute(statement.order_by(table.c.first))}


def read_all(connection: sa.Connection, suite: SuiteRow) -> list[str]:
    """Return all names of a suite."""
    return list(read_names(blocks(connection, suite).values()))


def add(connection: sa.Connection, suite: SuiteRow, new: int, block: bytes) -> SuiteRow:
    """Add a block of names that the suite lacks. Raises `TooMuch` if the suite would have too many."""
    if not new:
        return suite
    # Names are never removed, so names that differ in every run would grow without an end.
    if suite.names + new > MAX_SUITE_NAMES:
        raise TooMuch(texts.TOO_MANY_NAMES)
    values = {"suite_id": suite.id, "first": suite.names, "names": block}
    connection.execute(schema.names.insert().values(values))
    count = suite.names + new
    connection.execute(schema.suites.update().filter_by(id=suite.id).values(names=count))
    return SuiteRow(suite.id, count)


class NamesAtMoment:
    """The names of a suite at a moment, in their order; they are not to be changed."""

    def __init__(self, ordered: list[str]) -> None:
        self.ordered = ordered

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each name."""
        return dict(zip(self.ordered, range(len(self.ordered)), strict=True))

    def take_places(self, before: NamesAtMoment) -> None:
        """Copy the places of earlier names, if they were computed: that costs a tenth of computing them again."""
        if "places" in vars(before):
            start = len(before.ordered)
            new = self.ordered[start:]
            self.places = {**before.places, **dict(zip(new, range(start, start + len(new)), strict=True))}


class SuiteNames:
    """The names of the suites that were asked about last, for any number of threads.

    Names are only ever added, so what a process has read of a suite it never reads again.
    """

    def __init__(self) -> None:
        self._suites: LRUCache[int, NamesAtMoment] = LRUCache(MAX_KNOWN, getsizeof=lambda known: len(known.ordered))
        self._placed: LRUCache[tuple[int, bytes], Placement] = LRUCache(MAX_PLACED, getsizeof=len)
        self._lock = threading.Lock()

    def all(self, connection: sa.Connection, suite: SuiteRow) -> list[str]:
        """Return all names of a suite, which are not to be changed."""
        return self._committed(connection, suite).ordered

    def uncommitted(self, connection: sa.Connection, suite: SuiteRow) -> list[str]:
        """Return all names of a suite likewise, in a transaction that may have added some, and may be undone."""
        # Not cached: after a rollback, another run may give these places to other names.
        return self._read(connection, suite).ordered

    def places(self, connection: sa.Connection, suite: SuiteRow) -> Mapping[str, int]:
        """Return the places of all names of a suite."""
        return self._committed(connection, suite).places

    def ordinal(self, connection: sa.Connection, suite: SuiteRow, name: str) -> int | None:
        """Return the place of a name, None for an unknown one."""
        return self.places(connection, suite).get(name)

    def placed(
        self, connection: sa.Connection, suite: SuiteRow, blobs: Collection[bytes]
    ) -> Placement | list[int | None]:
        """Return the places of a run's names, which stand in blobs: a list with None where the suite lacks one.

        Most runs of a target have the same names as the run before, in the same order: their digest finds the places.
        """
        key = suite.id, hashlib.sha256(b"".join(blobs)).digest()
        with self._lock:
            known = self._placed.get(key)
        if known is not None:
            return known
        ordinals = list(map(self.places(connection, suite).get, read_names(blobs)))
        if None in ordinals:
            return ordinals
        found = Placement(cast("list[int]", ordinals))
        with self._lock:
            # The cache raises ValueError for a value that is larger than itself.
            if len(found) <= MAX_PLACED:
                self._placed[key] = found
        return found

    def _committed(self, connection: sa.Connection, suite: SuiteRow) -> NamesAtMoment:
        known = self._read(connection, suite)
        with self._lock:
            before = self._suites.get(suite.id)
            # The cache raises ValueError for a value that is larger than itself.
            if suite.names <= MAX_KNOWN and (before is None or len(before.ordered) < suite.names):
                if before is not None:
                    known.take_places(before)
                self._suites[suite.id] = known
        return known

    def _read(self, connection: sa.Connection, suite: SuiteRow) -> NamesAtMoment:
        with self._lock:
            known = self._suites.get(suite.id)
        if known is None:
            return NamesAtMoment(read_all(connection, suite))
        count = len(known.ordered)
        if count == suite.names:
            return known
        if count > suite.names:  # this transaction began before others added names
            return NamesAtMoment(known.ordered[: suite.names])
        return NamesAtMoment([*known.ordered, *read_names(blocks(connection, suite, count).values())])
