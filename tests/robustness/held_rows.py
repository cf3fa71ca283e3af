"""Hold writes of the bot's own records on PostgreSQL, so that a kill comes just before or just after one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

import psycopg

from sandbox import Repository
from sandbox.faults import When
from tests.robustness.conversation import Conversation
from tests.robustness.place import POLL_INTERVAL, Place
from tests.waiting import DEADLINE, until

RowWrite = Literal["INSERT", "UPDATE", "DELETE"]
SET_UP = """
CREATE TABLE tests_held (number integer PRIMARY KEY, operation text, key_like text, skip integer);
CREATE FUNCTION tests_hold() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    held record;
BEGIN
    FOR held IN SELECT * FROM tests_held WHERE operation = TG_OP AND COALESCE(NEW.key, OLD.key) LIKE key_like LOOP
        -- No rollback takes a number back: a write that is tried again is not held again.
        IF nextval('tests_held_' || held.number) = held.skip + 1 THEN
            PERFORM pg_advisory_xact_lock(held.number);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER tests_hold AFTER INSERT OR UPDATE OR DELETE ON nightjar_records
FOR EACH ROW EXECUTE FUNCTION tests_hold();
"""
HOLD = "INSERT INTO tests_held (number, operation, key_like, skip) VALUES (%s, %s, %s, %s)"
WAITING = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"
TERMINATE = "SELECT pg_terminate_backend(%s, 10000)"


class HeldRows:
    """The writes that are held in one database."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._numbers = count(1)
        connection.execute(SET_UP)

    def hold(self, operation: RowWrite, key_like: str, skip: int) -> int:
        """Hold a write to records whose keys match a pattern, after `skip` such writes; return its number."""
        number = next(self._numbers)
        self._connection.execute("SELECT pg_advisory_lock(%s)", [number])
        self._connection.execute(f"CREATE SEQUENCE tests_held_{number:d}")
        self._connection.execute(HOLD, [number, operation, key_like, skip])
        return number

    def waiting(self, number: int) -> list[int]:
        """Return the server process that waits in a write, if any does."""
        return [pid for (pid,) in self._connection.execute(WAITING, [number])]

    def release(self, number: int, *, lost: bool) -> None:
        """Let a write take effect, or drop it."""
        for pid in self.waiting(number) if lost else ():
            self._connection.execute(TERMINATE, [pid])
        self._connection.execute("SELECT pg_advisory_unlock(%s)", [number])


def without_time_limit(url: str) -> str:
    """Return a database's URL with which the server ends no statement, however long a slow machine holds it."""
    return f"{url}?options=-c%20statement_timeout%3D{DEADLINE:.0f}s"


@contextmanager
def held_rows(url: str) -> Iterator[HeldRows]:
    """Install the triggers that hold writes in a PostgreSQL database with the bot's tables."""
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        yield HeldRows(connection)


class HeldRow:
    """A write that is held; `reached` is set once the bot gets there."""

    def __init__(self, rows: HeldRows, number: int, side: When) -> None:
        self.reached = asyncio.Event()
        self._rows, self._number, self._side = rows, number, side
        self._watch = asyncio.create_task(self._watched())

    async def _watched(self) -> None:
        await until(lambda: self._rows.waiting(self._number), pause=POLL_INTERVAL)
        self.reached.set()

    def resume(self) -> None:
        """Let the write take effect."""
        self._rows.release(self._number, lost=False)

    def abandon(self) -> None:
        """Let the server finish the write of a dead process; a write that is held *before* it takes effect is lost."""
        self._rows.release(self._number, lost=self._side == "before")


@dataclass(frozen=True)
class StoredPoint:
    """The `number`-th write (from 0) to records of a kind in a conversation, before or after it takes effect."""

    conversation: type[Conversation]
    rows: HeldRows
    operation: RowWrite
    prefix: str
    number: int
    side: When

    def pause(self, _place: Place, repository: Repository) -> HeldRow:
        """Hold the write when it belongs to a repository."""
        number = self.rows.hold(self.operation, f"{self.prefix}:{repository.id}:%", self.number)
        return HeldRow(self.rows, number, self.side)

    def __str__(self) -> str:
        return f"{self.conversation.__name__}: {self.side} {self.operation} {self.prefix} ({self.number + 1})"
