"""The table of deliveries: each row is written once, with the body, and never changed.

The GUID is unique, so the table refuses a second delivery with it. A delivery that a handler accepts gets its job in
the same transaction, with the same ID. A delivery that no handler accepts has a note instead of a job.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, LiteralString, TypeVar, cast

from cachetools import LRUCache
from nightjar_formats import zstd

from bot.core.events import Delivery, Payload
from bot.engine.jobs.definitions import DELIVERY_PRIORITY, URGENT_PRIORITY
from bot.engine.jobs.once import ONCE, NewJob
from bot.engine.sql.errors import DuplicateKey
from bot.engine.sql.portable import Row, Value, dumps, stored
from bot.engine.sql.transactions import Connector

SMALL = 2048
"""Bytes up to which a body is stored uncompressed: its row then fits on one page of the database."""

COMPRESSION: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.hash_log: 12,
}
"""zstd's fastest positive level; every level compresses a payload to about a sixth. With this level's own table of
128 kB, a body between other work takes twice as long as with one of 16 kB, which stays in the processor's cache."""


class _PerThread(threading.local):
    """The compressor of a thread: threads must not share one, and creating one costs as much as its use."""

    def __init__(self) -> None:
        self.compressor = zstd.ZstdCompressor(options=COMPRESSION)


_PER_THREAD = _PerThread()


def packed(body: bytes | bytearray) -> bytes:
    """Return a body, which is a JSON object, in its stored form."""
    if len(body) <= SMALL:
        return bytes(body)
    return _PER_THREAD.compressor.compress(body, mode=zstd.ZstdCompressor.FLUSH_FRAME)


def unpacked(stored: bytes) -> dict[str, Any]:
    """Return the JSON object of a stored body."""
    # No JSON text begins with the bytes of a frame.
    if stored.startswith(zstd.FRAME_MAGIC):
        stored = zstd.decompress(stored)
    return cast("dict[str, Any]", json.loads(stored))  # noqa: TID251  # verified before it was stored


Item = TypeVar("Item")

# All deliveries under an urgent delivery's lock move up, so that earlier deliveries stay before it: its job relies on
# what they record.
GO_FIRST: LiteralString = """
UPDATE procrastinate_jobs SET priority = %(urgent)s
 WHERE lock = ANY(%(first)s::text[]) AND status = 'todo' AND priority = %(plain)s
"""
# The ID comes from the sequence of jobs, so a delivery and its job have the same one. Only the bodies are parameters of
# their own, because psycopg takes as long for a list of each other column as for all of them in one text.
STORE: LiteralString = (
    "WITH first AS ("  # noqa: S608  # a constant
    + GO_FIRST
    + """), given AS (
    SELECT * FROM ROWS FROM (
        json_to_recordset(%(rows)s::json) AS (
            guid text, event text, lock text, received_at double precision, note text, queue text, task text,
            priority integer, key text, args jsonb, scheduled_at timestamptz
        ),
        unnest(%(bodies)b::bytea[])
    ) WITH ORDINALITY AS given (
        guid, event, lock, received_at, note, queue, task, priority, key, args, scheduled_at, body, place
    ) ORDER BY place
), delivery AS (
    INSERT INTO nightjar_inbox (id, guid, event, lock, received_at, note, body)
    SELECT nextval('procrastinate_jobs_id_seq'), guid, event, lock, received_at, note, body FROM given
    ON CONFLICT (guid) DO NOTHING RETURNING id, guid
), job AS (
    INSERT INTO procrastinate_jobs (id, queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
    SELECT delivery.id, queue, task, priority, lock, key, args, scheduled_at
      FROM delivery JOIN given ON given.guid = delivery.guid WHERE note IS NULL
)
SELECT id, guid FROM delivery
"""
)
"""Stores a batch of deliveries on PostgreSQL. SQLite has no statement that inserts into two tables:
`store_on_sqlite`."""

# Most deliveries have no job, and these statements take the server two thirds and half of the time of `STORE`.
STORE_IGNORED: LiteralString = """
INSERT INTO nightjar_inbox (id, guid, event, lock, received_at, note, body)
SELECT nextval('procrastinate_jobs_id_seq'), guid, event, lock, received_at, note, body
  FROM ROWS FROM (
      json_to_recordset(%(rows)s::json) AS (guid text, event text, lock text, received_at double precision, note text),
      unnest(%(bodies)b::bytea[])
  ) WITH ORDINALITY AS given (guid, event, lock, received_at, note, body, place) ORDER BY place
ON CONFLICT (guid) DO NOTHING RETURNING id, guid
"""
"""Stores a batch of deliveries without jobs on PostgreSQL."""
STORE_ONE_IGNORED: LiteralString = """
INSERT INTO nightjar_inbox (id, guid, event, lock, received_at, note, body)
VALUES (
    nextval('procrastinate_jobs_id_seq'), %(guid)s, %(event)s, %(lock)s, %(received_at)s, %(note)s, %(body)b
) ON CONFLICT (guid) DO NOTHING RETURNING id, guid
"""
"""Stores a delivery without a job on PostgreSQL."""

MOVE_BODY: LiteralString = """
INSERT INTO nightjar_inbox (id, guid, event, lock, received_at, body)
VALUES (%(id)s, %(guid)s, %(event)s, %(lock)s, %(received_at)s, %(body)s) ON CONFLICT DO NOTHING
"""
FORGET_BODY: LiteralString = "UPDATE procrastinate_jobs SET args = %(args)s WHERE id = %(id)s"
READ: LiteralString = "SELECT guid, event, received_at, body FROM nightjar_inbox WHERE id = %(id)s"

BODIES_AT_ONCE = 500
"""How many bodies of an old database are moved in one transaction."""

MOST_RECENT, LARGEST_RECENT = 16, 8_192
"""Deliveries that a process remembers, and the bytes of a stored body up to which it does. Most take 3 kB, and five to
ten times that in memory."""

MOST_ROWS = 32
"""The most rows of one statement; a power of two, for `_batches`."""

# One lock at a time: with a list of them, SQLite would read all waiting jobs of this priority.
GO_FIRST_ON_SQLITE = "UPDATE procrastinate_jobs SET priority = ? WHERE lock = ? AND status = 'todo' AND priority = ?"
KNOWN_TO_SQLITE = "SELECT guid FROM nightjar_inbox WHERE guid IN {marks}"
# `sqlite_sequence` has no row for a table that never had one itself (https://sqlite.org/autoinc.html).
NEXT_IDS = "UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'procrastinate_jobs' RETURNING seq"
FIRST_IDS = "INSERT INTO sqlite_sequence (name, seq) VALUES ('procrastinate_jobs', ?) RETURNING seq"
JOBS_ON_SQLITE = """
INSERT INTO procrastinate_jobs (id, queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
VALUES {marks}
"""
JOB_VALUES = ("queue", "task", "priority", "lock", "key", "args", "scheduled_at")
DELIVERIES_ON_SQLITE = "INSERT INTO nightjar_inbox (id, guid, event, lock, received_at, note, body) VALUES {marks}"
DELIVERY_VALUES = ("guid", "event", "lock", "received_at", "note", "body")

Values = dict[str, object]
"""The values of a delivery; those of its job are missing if it is ignored."""


async def store_delivery(
    connector: Connector, job: NewJob, body: bytes | bytearray, ignored: Mapping[str, Any] | None = None
) -> int | None:
    """Store a delivery and, unless it is `ignored`, its job; return its ID, None if its GUID is not new.

    The job of an urgent delivery goes first, with all jobs that wait under its lock. `ignored` is the note that a
    delivery gets instead of a job: `text` says why no handler accepts it, `about` names its subject. Raises
    DatabaseFailure if nothing could be stored.
    """
    try:
        rows = await connector.execute_query_all_async(STORE, **delivery_values(job, body, ignored))
    except DuplicateKey:
        # A replica of an older release, which lacks this table, has stored it.
        return None
    return cast("int", rows[0]["id"]) if rows else None


def delivery_values(job: NewJob, body: bytes | bytearray, ignored: Mapping[str, Any] | None = None) -> Values:
    """Return the values of `STORE` for a delivery, its job, and its note if it is ignored."""
    values: Values = {
        **{name: job.args[name] for name in ("guid", "event", "received_at")},
        "lock": job.lock,
        "note": None if ignored is None else dumps(dict(ignored)),
        "body": packed(body),
    }
    if ignored is None:
        values |= {
            "queue": job.queue,
            "task": job.task,
            "priority": job.priority,
            "key": ONCE + job.key,
            "args": job.args,
            "scheduled_at": job.scheduled_at,
        }
    return values


def unique_deliveries(deliveries: Sequence[Mapping[str, object]]) -> tuple[list[Values], list[object]]:
    """Return the deliveries without repeated GUIDs, in their order, and the locks of the urgent ones.

    Deliveries that precede an urgent one under its lock become urgent, as `GO_FIRST` does with stored jobs.
    """
    rows: dict[object, Values] = {}
    for values in deliveries:
        rows.setdefault(values["guid"], dict(values))
    urgent_locks: set[object] = set()
    for row in reversed(rows.values()):
        if row.get("priority") == URGENT_PRIORITY:
            urgent_locks.add(row["lock"])
        elif row["lock"] in urgent_locks and row["note"] is None:
            row["priority"] = URGENT_PRIORITY
    return list(rows.values()), list(urgent_locks)


def store_on_sqlite(connection: sqlite3.Connection, deliveries: Sequence[Mapping[str, object]]) -> list[list[Row]]:
    """Do on SQLite what `STORE` does on PostgreSQL.

    It runs few statements: at each one, the thread releases the interpreter's lock and has to wait to get it back.
    """
    cursor = connection.cursor()
    cursor.row_factory = None
    unique, urgent_locks = unique_deliveries(deliveries)
    # SQLite has one writer at a time, and this runs in its transaction, so no delivery is stored in between.
    guids = [stored(row["guid"]) for row in unique]
    known_guids = {guid for batch in _batches(guids) for (guid,) in _run(cursor, KNOWN_TO_SQLITE, [batch])}
    new = [row for row, guid in zip(unique, guids, strict=True) if guid not in known_guids]
    if not new:
        return [[] for _ in deliveries]
    for lock in urgent_locks:
        cursor.execute(GO_FIRST_ON_SQLITE, (URGENT_PRIORITY, stored(lock), DELIVERY_PRIORITY))
    count = (len(new),)
    ((last_id,),) = cursor.execute(NEXT_IDS, count).fetchall() or cursor.execute(FIRST_IDS, count).fetchall()
    numbered = list(enumerate(new, last_id - len(new) + 1))
    for batch in _batches([_ordered(number, row, JOB_VALUES) for number, row in numbered if row["note"] is None]):
        _run(cursor, JOBS_ON_SQLITE, batch)
    for batch in _batches([_ordered(number, row, DELIVERY_VALUES) for number, row in numbered]):
        _run(cursor, DELIVERIES_ON_SQLITE, batch)
    return ids_of(deliveries, {row["guid"]: number for number, row in numbered})


def _ordered(delivery_id: int, row: Values, names: Sequence[str]) -> list[Value]:
    """Return the values of a delivery for a statement on SQLite, its ID first."""
    return [delivery_id, *(stored(row[name]) for name in names)]


def ids_of(deliveries: Sequence[Mapping[str, object]], ids: Mapping[object, object]) -> list[list[Row]]:
    """Return a row with its ID for each delivery, or no row if its GUID is not new; `ids`: the new IDs by GUID."""
    remaining = dict(ids)
    return [[{"id": remaining.pop(values["guid"])}] if values["guid"] in remaining else [] for values in deliveries]


def _run(cursor: sqlite3.Cursor, statement: str, rows: Sequence[Sequence[Value]]) -> sqlite3.Cursor:
    return cursor.execute(_with_marks(statement, len(rows), len(rows[0])), [value for row in rows for value in row])


@cache
def _with_marks(statement: str, rows: int, columns: int) -> str:
    marks = f"({', '.join('?' * columns)})"
    return statement.format(marks=", ".join([marks] * rows))


def _batches(rows: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield rows in batches of 32, 16, 8 and so on: SQLite caches statements, so there must be few different ones."""
    begin, size = 0, MOST_ROWS
    while begin < len(rows):
        while size > len(rows) - begin:
            size //= 2
        yield rows[begin : begin + size]
        begin += size


class RecentDeliveries:
    """Reads deliveries, and remembers the small ones that this process has accepted or read last.

    Each stage of a delivery's work needs it, and its row never changes.
    """

    def __init__(self) -> None:
        self._recent: LRUCache[int, Delivery] = LRUCache(MOST_RECENT)
        # A cache of their own: many deliveries that wait must not displace those at work.
        self._accepted: LRUCache[int, Delivery] = LRUCache(MOST_RECENT)

    def remember(self, delivery_id: int, delivery: Delivery) -> None:
        """Remember a small delivery that was just stored, until its job reads it."""
        self._accepted[delivery_id] = delivery

    async def read(self, connector: Connector, delivery_id: int, guid: str) -> Delivery | None:
        """Return the delivery with a GUID; None if it was removed, and is not remembered.

        Its ID may have been that of another delivery, which the database lost when a replica took over.
        """
        if (recent := self._recent.get(delivery_id)) is not None and recent.guid == guid:
            return recent
        if (accepted := self._accepted.pop(delivery_id, None)) is not None and accepted.guid == guid:
            self._recent[delivery_id] = accepted
            return accepted
        rows: Sequence[dict[str, Any]] = await connector.execute_query_all_async(READ, id=delivery_id)
        if not rows or rows[0]["guid"] != guid:
            return None
        row = rows[0]
        delivery = Delivery(row["guid"], row["event"], Payload(unpacked(row["body"])), row["received_at"])
        if len(row["body"]) <= LARGEST_RECENT:
            self._recent[delivery_id] = delivery
        return delivery


def moved_values(job_id: int, lock: str | None, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of `MOVE_BODY` for a delivery whose body is still in its job, as earlier releases stored it."""
    body = packed(str(args["body"]).encode(errors="surrogatepass"))
    return {"id": job_id, "lock": lock, **{name: args[name] for name in ("guid", "event", "received_at")}, "body": body}
