"""Store the bot's durable state between deliveries: one typed value per key.

Each kind of record is a `Record`. Its prefix and the shape of its values are durable names: a later version of the bot
reads what this one wrote.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, LiteralString, Protocol, TypeVar, cast

from pydantic import ValidationError

from bot.core.adapters import adapter_of
from bot.core.errors import DeclarationError
from bot.core.events import Json
from bot.engine.sql.portable import dumps, loads

if TYPE_CHECKING:
    from bot.engine.sql.transactions import Connector

SEPARATOR, AFTER_SEPARATOR = ":", ";"
"""The separator of a key's parts, and the next character, before which a range of keys ends."""

DAY = 86400.0
MOST_KEYS = 500
"""Records that one statement reads by their keys."""

GET: LiteralString = "SELECT value AS stored, version FROM nightjar_records WHERE key = %(key)s"
GET_SOME: LiteralString = "SELECT key, value AS stored, version FROM nightjar_records WHERE key = ANY(%(keys)s)"
_REPLACE: LiteralString = """
ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version, at = excluded.at,
    expires_at = excluded.expires_at
"""
PUT: LiteralString = (
    """
INSERT INTO nightjar_records (key, value, version, at, expires_at)
VALUES (%(key)s, %(value)s, %(version)s, %(at)s, %(expires_at)s)
"""
    + _REPLACE
)
FIELDS = ("key", "value", "version", "at", "expires_at")
MOST_ROWS = 500
"""The most records that one statement writes. SQLite allows 32,766 parameters
(https://sqlite.org/limits.html#max_variable_number)."""
INSERT: LiteralString = """
INSERT INTO nightjar_records (key, value, version, at, expires_at)
VALUES (%(key)s, %(value)s, %(version)s, %(at)s, %(expires_at)s) ON CONFLICT (key) DO NOTHING RETURNING key
"""
EXCHANGE: LiteralString = """
UPDATE nightjar_records SET value = %(value)s, version = %(version)s, at = %(at)s, expires_at = %(expires_at)s
WHERE key = %(key)s AND value = CAST(%(was)s AS text) RETURNING key
"""
REMOVE: LiteralString = "DELETE FROM nightjar_records WHERE key = %(key)s"
REMOVE_SOME: LiteralString = "DELETE FROM nightjar_records WHERE key = ANY(%(keys)s)"
# The column compares bytes (COLLATE "C"), as SQLite does, so that the primary key's index answers a range.
UNDER: LiteralString = """
SELECT key, value AS stored, version FROM nightjar_records WHERE key >= %(first)s AND key < %(end)s ORDER BY key
"""
UNDER_PAGE: LiteralString = """
SELECT key, value AS stored, version FROM nightjar_records WHERE key > %(after)s AND key < %(end)s ORDER BY key
LIMIT %(most)s
"""
NEWEST_UNDER: LiteralString = """
SELECT key, value AS stored, version FROM nightjar_records WHERE key >= %(first)s AND key < %(end)s ORDER BY key DESC
LIMIT %(most)s
"""
PAGE = 1000
"""The records of one page."""
NEWER = (
    "the record {key} has version {found} of {prefix}, but this release supports {known}; install the newer release "
    "again"
)
UNREADABLE = "the record {key} is not a valid {prefix}: {why}"
TWO_KINDS = "two kinds of records have the prefix {prefix}"
BAD_PREFIX = "the prefix {prefix!r} of a record must not be empty or contain a colon"

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class RecordError(Exception):
    """A record that cannot be read; the text names its kind and its key."""


class NewerRecord(RecordError):
    """A newer version of the bot wrote the record."""


class UnreadableRecord(RecordError):
    """The record does not have the shape of its kind."""


@dataclass(frozen=True)
class Record(Generic[T]):
    """One kind of record: values of `codec` under keys that begin with `prefix`.

    `holds` describes the values in the documentation. Retention removes a record that was not written for `days`; None
    stores it for ever. When the shape changes, raise `version`, and let the codec read the older shapes too. Raises
    ValueError for a prefix with a colon.
    """

    prefix: str
    version: int
    codec: type[T]
    holds: str
    days: float | None

    def __post_init__(self) -> None:
        if not self.prefix or SEPARATOR in self.prefix:
            raise ValueError(BAD_PREFIX.format(prefix=self.prefix))

    def of(self, *ids: int | str) -> Key[T]:
        """Return the key of one record. Only the last part may hold a colon, or two records could have one key."""
        return Key(self, SEPARATOR.join([self.prefix, *map(str, ids)]))

    def dump(self, value: T) -> dict[str, Any]:
        """Convert a value to JSON values."""
        return cast("dict[str, Any]", adapter_of(self.codec).dump_python(value, mode="json"))

    def load(self, key: str, stored: Any, version: int) -> T:
        """Read a value back. Raises `NewerRecord` or `UnreadableRecord`."""
        if version > self.version:
            raise NewerRecord(NEWER.format(key=key, found=version, known=self.version, prefix=self.prefix))
        try:
            return adapter_of(self.codec).validate_python(stored)
        except ValidationError as error:
            # Only the place and the kind of each fault: the value itself may be anybody's text.
            faults = (f"{'.'.join(map(str, fault['loc'])) or 'value'}: {fault['type']}" for fault in error.errors())
            reasons = ", ".join(faults)
            raise UnreadableRecord(UNREADABLE.format(key=key, prefix=self.prefix, why=reasons)) from None


@dataclass(frozen=True, slots=True)
class Key(Generic[T_co]):
    """The key of one record, with the kind of its value."""

    record: Record[T_co]
    name: str

    def __str__(self) -> str:
        """Return the name."""
        return self.name


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value as it is written, for a plan that is stored before it is applied."""

    value: Json
    version: int
    days: float | None

    @classmethod
    def of(cls, key: Key[T], value: T) -> StoredValue:
        """Return the stored form of a value, as `Records.put` writes it."""
        return cls(key.record.dump(value), key.record.version, key.record.days)


class RecordRegistry:
    """All kinds of records, each with the name of the feature that it belongs to.

    Raises ValueError for two kinds of one prefix.
    """

    def __init__(self, kinds: Iterable[tuple[str, Record[Any]]]) -> None:
        self.features: dict[str, str] = {}
        self.kinds: dict[str, Record[Any]] = {}
        for feature, record in kinds:
            if record.prefix in self.kinds:
                raise DeclarationError(TWO_KINDS.format(prefix=record.prefix))
            self.kinds[record.prefix], self.features[record.prefix] = record, feature


class RecordReader(Protocol):
    """Reads records: `Records`, or `bot.engine.changes.Changes`, which includes what is not stored yet."""

    async def get(self, key: Key[T]) -> T | None:
        """Return the value of a key, or None."""
        ...


class FetchedRecords:
    """Reads records of which one statement has fetched some; the others are read when somebody asks for them."""

    def __init__(self, records: Records, names: Collection[str], rows: Mapping[str, dict[str, Any]]) -> None:
        self._records = records
        self._names = names
        self._rows = rows

    async def get(self, key: Key[T]) -> T | None:
        """Return the value of a key, or None. Raises `RecordError` for this key alone."""
        if key.name not in self._names:
            return await self._records.get(key)
        value, _ = value_and_text(key, self._rows.get(key.name))
        return value


@dataclass(slots=True)
class JobRecords:
    """What a job reads first. The next job of its plan reads the same, so the statement that begins that job reads it.

    `names` are the records' keys. `rows` has those that exist, as they were at `read_at` (monotonic); None if they are
    not read, or used already. `effects` has the stored effects of a plan for its conclusion
    (`bot.engine.jobs.store.OF_HANDLER`), None likewise.
    """

    names: list[str] = field(default_factory=list)
    rows: Sequence[dict[str, Any]] | None = None
    effects: Sequence[dict[str, Any]] | None = None
    seen: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    """The rows that the job has fetched so far, by the names of their keys; None for records that did not exist."""
    read_at: float = field(default_factory=time.monotonic)


FRESH = 5.0
"""Seconds for which a job may use what was read when it began; it may wait longer while a suspect runs alone."""

JOB_RECORDS: ContextVar[JobRecords | None] = ContextVar("records of the running job", default=None)
"""What the running job reads first; None outside of jobs."""


class Records:
    """The records of one database.

    All methods raise DatabaseFailure when it cannot be reached, and those that read raise `RecordError`.
    """

    def __init__(self, connector: Connector) -> None:
        self.connector = connector

    async def get(self, key: Key[T]) -> T | None:
        """Return the value of a key, or None."""
        value, _ = await self.get_with_text(key)
        return value

    async def get_with_text(self, key: Key[T]) -> tuple[T | None, str | None]:
        """Return the value of a key and its stored text, or None and None."""
        rows = await self.connector.execute_query_all_async(GET, key=key.name)
        return value_and_text(key, rows[0] if rows else None)

    async def get_some(self, keys: Collection[Key[T]]) -> dict[str, T]:
        """Return the values of these keys, by key; keys without a value are left out."""
        kinds = {key.name: key.record for key in keys}
        names, values = list(kinds), dict[str, T]()
        # Other work of the event loop runs between two statements.
        for start in range(0, len(names), MOST_KEYS):
            rows = await self.connector.execute_query_all_async(GET_SOME, keys=names[start : start + MOST_KEYS])
            values |= {row["key"]: _load(kinds[row["key"]], row["key"], row) for row in rows}
        return values

    async def fetch(self, *keys: Key[Any]) -> FetchedRecords:
        """Fetch at most `MOST_KEYS` records, of any kinds, with one statement."""
        return await self._fetch([key.name for key in keys], None)

    async def fetch_ahead(self, *keys: Key[Any]) -> FetchedRecords:
        """Fetch records like `fetch`, the first of them also for the next `fetch_first` of the running job."""
        return await self._fetch([key.name for key in keys], JOB_RECORDS.get())

    async def _fetch(self, names: list[str], job: JobRecords | None) -> FetchedRecords:
        rows = await self.connector.execute_query_all_async(GET_SOME, keys=names)
        if job is not None:
            job.names, job.rows, job.read_at = names, rows, time.monotonic()
        row_of = {row["key"]: row for row in rows}
        if (running := JOB_RECORDS.get()) is not None:
            running.seen |= {name: row_of.get(name) for name in names}
        return FetchedRecords(self, set(names), row_of)

    async def fetch_first(self, *keys: Key[Any]) -> FetchedRecords:
        """Fetch the records that each job of a plan reads first.

        The first call takes what the statement that began the job, or `fetch_ahead`, has read, unless the job had to
        wait since then; later calls read them again.
        """
        job, names = JOB_RECORDS.get(), [key.name for key in keys]
        if job is not None:
            rows, is_same = job.rows, job.names[: len(names)] == names
            is_fresh = time.monotonic() - job.read_at < FRESH
            job.names, job.rows = names, None
            if rows is not None and is_same and is_fresh:
                return FetchedRecords(self, names, {row["key"]: row for row in rows})
        return await self._fetch(names, None)

    async def put(self, key: Key[T], value: T) -> None:
        """Store a value, replacing an earlier one."""
        await self.write(key.name, StoredValue.of(key, value))

    async def put_all(self, values: Mapping[Key[Any], Any]) -> None:
        """Store values under their keys. Up to `MOST_ROWS` are stored by one statement: together, or not at all."""
        # In the order of keys: otherwise two processes that write the same records could wait for each other.
        rows = [
            values_of_record(key.name, StoredValue.of(key, value))
            for key, value in sorted(values.items(), key=lambda item: item[0].name)
        ]
        for start in range(0, len(rows), MOST_ROWS):
            chunk = rows[start : start + MOST_ROWS]
            parameters = {f"{field}_{n}": row[field] for n, row in enumerate(chunk) for field in FIELDS}
            await self.connector.execute_query_async(_put_statement(len(chunk)), **parameters)

    async def remove_all(self, keys: Iterable[Key[Any]]) -> None:
        """Remove the values of these keys."""
        await self.connector.execute_query_async(REMOVE_SOME, keys=[key.name for key in keys])

    async def remove(self, key: Key[Any]) -> None:
        """Remove the value of a key."""
        await self.remove_name(key.name)

    async def change(self, key: Key[T], change: Callable[[T | None], T | None]) -> bool:
        """Replace a value with the result of `change`; None leaves it unchanged.

        Return whether the value is as `change` wants it; False if another process has written or removed it meanwhile.
        """
        old, text = await self.get_with_text(key)
        new = change(old)
        if new is None or new == old:
            return True
        values = values_of_record(key.name, StoredValue.of(key, new))
        if text is None:
            return bool(await self.connector.execute_query_all_async(INSERT, **values))
        return bool(await self.connector.execute_query_all_async(EXCHANGE, was=text, **values))

    async def update(self, key: Key[T], change: Callable[[T | None], T | None]) -> None:
        """Replace a value like `change`; start again from the new value whenever another process was faster."""
        while not await self.change(key, change):
            pass

    async def under(self, record: Record[T], *ids: int | str) -> dict[str, T]:
        """Return all records of a kind whose keys begin with these parts, by the rest of their keys."""
        first = record.of(*ids).name + SEPARATOR
        # A range instead of LIKE: there `_` and `%` in a name match anything, and SQLite ignores case.
        end = first[:-1] + AFTER_SEPARATOR
        rows = await self.connector.execute_query_all_async(UNDER, first=first, end=end)
        return {row["key"].removeprefix(first): _load(record, row["key"], row) for row in rows}

    async def newest_under(self, record: Record[T], *ids: int | str, most: int, end_part: str | None = None) -> list[T]:
        """Return the last records whose keys begin with these parts, the last key first, at most `most`.

        With `end_part`, only those whose next part of the key is less.
        """
        first = record.of(*ids).name + SEPARATOR
        end = first[:-1] + AFTER_SEPARATOR if end_part is None else first + end_part
        rows = await self.connector.execute_query_all_async(NEWEST_UNDER, first=first, end=end, most=most)
        return [_load(record, row["key"], row) for row in rows]

    async def pages(self, record: Record[T], most: int = PAGE) -> AsyncIterator[list[T]]:
        """Yield all values of a kind, at most so many at a time: of many, each page is read by its own statement."""
        first = record.of().name + SEPARATOR
        last_key, end = first, first[:-1] + AFTER_SEPARATOR
        while True:
            rows = await self.connector.execute_query_all_async(UNDER_PAGE, after=last_key, end=end, most=most)
            if rows:
                yield [_load(record, row["key"], row) for row in rows]
            if len(rows) < most:
                return
            last_key = rows[-1]["key"]

    async def stored(self, name: str) -> dict[str, Any] | None:
        """Return the JSON that is stored under a key's name, whatever its kind."""
        rows = await self.connector.execute_query_all_async(GET, key=name)
        return cast("dict[str, Any]", loads(rows[0]["stored"])) if rows else None

    async def write(self, name: str, value: StoredValue) -> None:
        """Store a value, as a plan has it, under the name of a key."""
        await self.connector.execute_query_async(PUT, **values_of_record(name, value))

    async def remove_name(self, name: str) -> None:
        """Remove the value of a key, by the key's name."""
        await self.connector.execute_query_async(REMOVE, key=name)


def value_and_text(key: Key[T], row: dict[str, Any] | None) -> tuple[T | None, str | None]:
    """Return the value of a row and its stored text, or None and None. Raises `RecordError`."""
    return (_load(key.record, key.name, row), row["stored"]) if row is not None else (None, None)


def _load(record: Record[T], key: str, row: dict[str, Any]) -> T:
    return record.load(key, loads(row["stored"]), row["version"])


@lru_cache(maxsize=64)
def _put_statement(count: int) -> str:
    rows = ", ".join(f"({', '.join(f'%({field}_{n})s' for field in FIELDS)})" for n in range(count))
    return f"INSERT INTO nightjar_records ({', '.join(FIELDS)}) VALUES {rows}{_REPLACE}"  # noqa: S608  # parameters' names


def values_of_record(name: str, value: StoredValue) -> dict[str, Any]:
    """Return the values of `PUT`, `INSERT` and `EXCHANGE` for a value under a key's name."""
    moment = time.time()
    expires_at = None if value.days is None else moment + value.days * DAY
    written = dumps(dict(value.value))
    return {"key": name, "value": written, "version": value.version, "at": moment, "expires_at": expires_at}
