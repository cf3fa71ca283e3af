"""Store the test IDs of a suite as a dictionary of compressed blocks.

The *ordinal* of a name is its place among all names of its suite. Blocks are only added, so ordinals never change.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Mapping
from functools import cached_property
from itertools import compress
from typing import NamedTuple, cast

import sqlalchemy as sa
from cachetools import LRUCache
from nightjar_formats.columns.collect import read_names
from nightjar_formats.limits import MAX_SUITE_NAMES
from nightjar_formats.refused import TooMuch

from bot.results.store import texts
from bot.results.store.tables import schema
from bot.results.store.tables.blobs import Placement
from bot.results.store.tables.operators import OperatorOrder

MAX_CACHED_NAMES = 200_000
"""Names that a process caches; with their ordinals, they take about 50 MB."""
MAX_CACHED_PLACES = 1_000_000
"""Tests of runs whose ordinals a process caches: 4 MB, or up to 12 MB if few follow each other in the suite."""
MAX_ORDERED_TESTS = 1_000_000
"""Tests whose order by operator a process caches, once for each measurement: 8 MB at the most."""


class SuiteRow(NamedTuple):
    """A suite's number, and how many names it has."""

    id: int
    names: int


_FIND = sa.select(schema.suites.c.id, schema.suites.c.names).where(
    schema.suites.c.repository == sa.bindparam("repository"), schema.suites.c.suite == sa.bindparam("suite")
)
_BLOCKS = (
    sa.select(schema.names.c.first, schema.names.c.names)
    .where(
        schema.names.c.suite_id == sa.bindparam("suite"),
        schema.names.c.first >= sa.bindparam("start"),
        schema.names.c.first < sa.bindparam("end"),
    )
    .order_by(schema.names.c.first)
)


def find(connection: sa.Connection, repository: str, suite: str, *, make: bool = False) -> SuiteRow | None:
    """Return a suite of a repository. If it is not stored, return None, or store it if `make` is set."""
    table = schema.suites
    row = connection.execute(_FIND, {"repository": repository, "suite": suite}).first()
    if row is not None:
        return SuiteRow(row.id, row.names)
    if not make:
        return None
    values = {"repository": repository, "suite": suite, "names": 0}
    return SuiteRow(connection.execute(table.insert().values(values).returning(table.c.id)).scalar_one(), 0)


def blocks(connection: sa.Connection, suite: SuiteRow, start: int = 0) -> dict[int, bytes]:
    """Return the blocks of names that a suite had when `suite` was read, by the ordinal of their first name.

    A block begins at the ordinal `start`, and those before it are left out.
    """
    # Somebody else may have added blocks since the row was read.
    rows = connection.execute(_BLOCKS, {"suite": suite.id, "start": start, "end": suite.names})
    return {row.first: row.names for row in rows}


def add(connection: sa.Connection, suite: SuiteRow, new_count: int, block: bytes) -> SuiteRow:
    """Add a block of `new_count` names that the suite lacks. Raises `TooMuch` if the suite would have too many."""
    if not new_count:
        return suite
    # Names are never removed, so the table would grow without limit if names differed in every run.
    if suite.names + new_count > MAX_SUITE_NAMES:
        raise TooMuch(texts.TOO_MANY_NAMES)
    values = {"suite_id": suite.id, "first": suite.names, "names": block}
    connection.execute(schema.names.insert().values(values))
    count = suite.names + new_count
    connection.execute(schema.suites.update().filter_by(id=suite.id).values(names=count))
    return SuiteRow(suite.id, count)


class NamesAtMoment:
    """The names of a suite at one moment, in their order. Callers must not change them."""

    def __init__(self, ordered: list[str]) -> None:
        self.ordered = ordered

    @cached_property
    def ordinals(self) -> Mapping[str, int]:
        """The ordinal of each name."""
        return dict(zip(self.ordered, range(len(self.ordered)), strict=True))

    @cached_property
    def by_name(self) -> list[int]:
        """All ordinals, in the order of the names."""
        return sorted(range(len(self.ordered)), key=self.ordered.__getitem__)

    def marked_by_name(self, column: bytes) -> list[int]:
        """Return the ordinals whose byte in a column is not 0, in the order of their names; the column may be short."""
        if not any(column):
            return []
        padded = column.ljust(len(self.ordered), b"\0")
        return list(compress(self.by_name, map(padded.__getitem__, self.by_name)))

    def copy_ordinals(self, earlier: NamesAtMoment) -> None:
        """Copy the ordinals of earlier names, if they were computed: that costs a tenth of computing them again."""
        if "ordinals" in vars(earlier):
            start = len(earlier.ordered)
            new = self.ordered[start:]
            self.ordinals = {**earlier.ordinals, **dict(zip(new, range(start, start + len(new)), strict=True))}


class NameCache:
    """The names of the suites that a process used most recently, for any number of threads.

    `ResultsDatabase` gives each connection the cache of its database. Names are only added, so a process reads each
    name of a cached suite once.
    """

    OPTION = "nightjar_names"

    def __init__(self) -> None:
        self.suites: LRUCache[int, NamesAtMoment] = LRUCache(
            MAX_CACHED_NAMES, getsizeof=lambda names: len(names.ordered)
        )
        self.placed: LRUCache[tuple[int, bytes], Placement] = LRUCache(MAX_CACHED_PLACES, getsizeof=len)
        self.orders: LRUCache[tuple[int, str], OperatorOrder] = LRUCache(
            MAX_ORDERED_TESTS, getsizeof=lambda order: len(order.tests)
        )
        self.lock = threading.Lock()


def cache_of(connection: sa.Connection) -> NameCache:
    """Return the cache of the database of a connection."""
    cache: NameCache = connection.get_execution_options()[NameCache.OPTION]
    return cache


def names_of(connection: sa.Connection, suite: SuiteRow) -> NamesAtMoment:
    """Return the names of a suite, and cache them. The transaction must not have added any.

    Their ordinals are computed at their first use.
    """
    cache, names = cache_of(connection), uncommitted_names(connection, suite)
    with cache.lock:
        cached = cache.suites.get(suite.id)
        # The cache raises ValueError for a value that is larger than itself.
        if suite.names <= cache.suites.maxsize and (cached is None or len(cached.ordered) < suite.names):
            if cached is not None:
                names.copy_ordinals(cached)
            cache.suites[suite.id] = names
    return names


def all_names(connection: sa.Connection, suite: SuiteRow) -> list[str]:
    """Return all names of a suite, by their ordinals. Callers must not change them."""
    return names_of(connection, suite).ordered


def ordinals_by_name(connection: sa.Connection, suite: SuiteRow) -> Mapping[str, int]:
    """Return the ordinals of all names of a suite."""
    return names_of(connection, suite).ordinals


def find_ordinal(connection: sa.Connection, suite: SuiteRow, name: str) -> int | None:
    """Return the ordinal of a name; None if the suite lacks it."""
    return ordinals_by_name(connection, suite).get(name)


def place_names(connection: sa.Connection, suite: SuiteRow, blobs: Collection[bytes]) -> Placement | list[int | None]:
    """Return the ordinals of a run's names, which `blobs` have: a list, with None where the suite lacks a name.

    Most runs of a target have the names of the run before, in the same order. Their digest finds the ordinals.
    """
    cache, key = cache_of(connection), (suite.id, hashlib.sha256(b"".join(blobs)).digest())
    with cache.lock:
        cached = cache.placed.get(key)
    if cached is not None:
        return cached
    ordinals = list(map(ordinals_by_name(connection, suite).get, read_names(blobs)))
    if None in ordinals:
        return ordinals
    placement = Placement(cast("list[int]", ordinals))
    with cache.lock:
        # The cache raises ValueError for a value that is larger than itself.
        if len(placement) <= MAX_CACHED_PLACES:
            cache.placed[key] = placement
    return placement


def uncommitted_names(connection: sa.Connection, suite: SuiteRow) -> NamesAtMoment:
    """Return the names of a suite, in a transaction that may have added some, and may be rolled back."""
    # Not cached: after a rollback, another run may give these ordinals to other names.
    cache = cache_of(connection)
    with cache.lock:
        cached = cache.suites.get(suite.id)
    if cached is None:
        return NamesAtMoment(list(read_names(blocks(connection, suite).values())))
    count = len(cached.ordered)
    if count == suite.names:
        return cached
    if count > suite.names:  # this transaction began before others added names
        return NamesAtMoment(cached.ordered[: suite.names])
    return NamesAtMoment([*cached.ordered, *read_names(blocks(connection, suite, count).values())])
