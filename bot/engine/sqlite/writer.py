"""One thread that owns a SQLite connection and commits all waiting operations together.

A commit that survives a power cut costs an fsync, milliseconds on many disks. So all operations that arrive while one
commit is under way share the next (group commit). Each operation runs in a savepoint of its own, or in a batch with
others of its kind; the only batch of a commit needs no savepoint. If a batch fails, each of its operations runs alone,
so that a failure undoes nothing else (https://www.sqlite.org/lang_savepoint.html). Callers get their results after the
commit.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from bot.engine.sql.errors import DatabaseFailure

MAX_BATCH = 200
"""The most operations of a commit, which bounds how long its first operation waits."""

BEGIN = "BEGIN IMMEDIATE"
"""IMMEDIATE, because a transaction that begins with a read cannot wait for another writer afterwards: SQLite answers
SQLITE_BUSY at once (https://sqlite.org/lang_transaction.html#deferred_immediate_and_exclusive_transactions)."""

NOT_OPEN = "the database is not open"
ENDED = "the database was closed before this was stored"
STOPPED = "the database can no longer be written: {error}"

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Notices = list[tuple[str, str]]
"""Notifications for listeners, sent after the commit: (queue name, payload)."""


@dataclass(slots=True, eq=False)
class _Call:
    operation: Callable[[sqlite3.Connection, Sequence[Any]], Sequence[object]]
    argument: object
    future: asyncio.Future[object]
    result: object = None
    error: Exception | None = None
    committed: bool = False

    def settle(self) -> None:
        """Answer the caller, unless it was cancelled meanwhile; call this on the caller's own event loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        elif self.committed:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(DatabaseFailure(ENDED))


class Writer:
    """Run operations from any event loop on one connection.

    `connect` opens the connection in the writer's thread. Operations append notifications to its `notices`; after the
    commit they go to `publish`, and after a failure nowhere. `check` is called before each commit: if it raises,
    nothing is committed. A commit has at most `most` operations.
    """

    def __init__(
        self,
        connect: Callable[[Notices], sqlite3.Connection],
        publish: Callable[[Notices], None],
        check: Callable[[], None] = lambda: None,
        most: int = MAX_BATCH,
    ) -> None:
        self._connect = connect
        self._publish = publish
        self._check = check
        self._most = most
        self._notices: Notices = []
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._gathered: dict[asyncio.AbstractEventLoop, list[_Call]] = {}
        self._gate = threading.Lock()
        self._accepting = False
        self._refusal = NOT_OPEN
        self._thread: threading.Thread | None = None

    async def start(self) -> None:
        """Open the connection. Raises the error of `connect`."""
        opened: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._thread = threading.Thread(target=self._run, args=(opened,), name="nightjar-sqlite", daemon=True)
        self._accepting = True
        self._thread.start()
        try:
            await opened
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Finish pending operations, then close the connection."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        with self._gate:
            self._accepting = False
            for loop in list(self._gathered):
                self._hand_over(loop)
            self._calls.put(None)
        await asyncio.to_thread(thread.join)

    async def run(self, operation: Callable[[sqlite3.Connection], Result]) -> Result:
        """Return the result of the operation, once it is committed.

        If the caller is cancelled before its turn, the operation does not run; later, it runs nevertheless. Raises
        DatabaseFailure when the writer is stopped, and the error of the operation or the commit.
        """
        return cast(Result, await self._submit(_run_each, operation))

    async def run_batched(
        self, operation: Callable[[sqlite3.Connection, Sequence[Argument]], Sequence[Result]], argument: Argument
    ) -> Result:
        """Return the result of an operation for an argument; consecutive waiting calls run as one batch.

        The operation gets the arguments of the batch, and returns a result for each. Calls of one turn of an event loop
        are queued together. If the operation raises, its changes are undone, and it gets each argument alone. Apart
        from that, as `run`.
        """
        return cast(Result, await self._submit(operation, argument))

    def _submit(
        self, operation: Callable[[sqlite3.Connection, Sequence[Any]], Sequence[object]], argument: object
    ) -> asyncio.Future[object]:
        loop = asyncio.get_running_loop()
        call = _Call(operation, argument, loop.create_future())
        # Under the gate, or a call could be queued after `_end` has emptied the queue, and its caller would never wake.
        with self._gate:
            if not self._accepting:
                raise DatabaseFailure(self._refusal)
            gathered = self._gathered.setdefault(loop, [])
            gathered.append(call)
            if operation is _run_each:
                self._hand_over(loop)
            elif len(gathered) == 1:
                # Only after the loop's current turn: if calls were handed over one by one, the first would wake the
                # thread while the loop is busy, and get a commit of its own.
                loop.call_soon(self._hand_over_gated, loop)
        return call.future

    def _hand_over_gated(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._gate:
            self._hand_over(loop)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        """Queue the calls that a loop has gathered, in their order; call this under the gate."""
        for call in self._gathered.pop(loop, ()):
            self._calls.put(call)

    def _run(self, opened: asyncio.Future[object]) -> None:
        first = _Call(_run_each, None, opened)
        try:
            connection = self._connect(self._notices)
        except Exception as error:  # the caller of `start` must get every error
            first.error = error
            self._end([first])
            return
        first.committed = True
        calls: list[_Call] = [first]
        is_open = True
        try:
            _settle(calls)
            while is_open:
                calls, is_open = self._next()
                self._commit_together(connection, calls)
                # Before the callers get their answers, which may say how many notifications there were.
                if self._notices:
                    published = self._notices.copy()
                    self._notices.clear()
                    self._publish(published)
                _settle(calls)
        except BaseException as error:
            self._refusal = STOPPED.format(error=error)
            raise
        finally:
            self._end(calls)
            connection.close()

    def _next(self) -> tuple[list[_Call], bool]:
        """Wait for a call; return it with the other waiting calls, and whether the writer is still open."""
        calls: list[_Call] = []
        call = self._calls.get()
        while call is not None:
            calls.append(call)
            if len(calls) == self._most:
                return calls, True
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                return calls, True
        return calls, False

    def _commit_together(self, connection: sqlite3.Connection, calls: list[_Call]) -> None:
        try:
            connection.execute(BEGIN)
            batches = _batches(calls)
            for batch in batches:
                self._attempt(connection, batch, is_alone=len(batches) == 1)
            # If the file was removed or replaced meanwhile, SQLite would commit into the lost file.
            self._check()
            connection.execute("COMMIT")
            for call in calls:
                call.committed = True
        except Exception as error:  # a full disk, a lock held too long, a lost file: nothing of the batch is stored
            # No worker may be woken for a job that was not stored.
            self._notices.clear()
            for call in calls:
                call.error = error
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _attempt(self, connection: sqlite3.Connection, calls: Sequence[_Call], *, is_alone: bool) -> None:
        """Run calls of one operation as a batch; if that fails, run each alone.

        `is_alone`: the transaction has no other batch, so it can be begun again, and needs no savepoint.
        """
        noticed = len(self._notices)
        if not is_alone:
            connection.execute("SAVEPOINT operation")
        try:
            results = calls[0].operation(connection, [call.argument for call in calls])
            for call, result in zip(calls, results, strict=True):
                call.result = result
        except Exception as error:
            # A full disk may have made SQLite give up the whole transaction (https://sqlite.org/lang_transaction.html).
            if not connection.in_transaction:
                raise
            for statement in ("ROLLBACK", BEGIN) if is_alone else ("ROLLBACK TO operation", "RELEASE operation"):
                connection.execute(statement)
            del self._notices[noticed:]
            if len(calls) == 1:
                calls[0].error = error
            else:
                for call in calls:
                    self._attempt(connection, [call], is_alone=False)
        else:
            if not is_alone:
                connection.execute("RELEASE operation")

    def _end(self, unanswered: list[_Call]) -> None:
        """Refuse new calls and answer all old ones, so that no caller waits for a thread that has ended."""
        with self._gate:
            self._accepting = False
            for loop in list(self._gathered):
                self._hand_over(loop)
        calls = list(unanswered)
        while True:
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                break
            if call is not None:
                calls.append(call)
        _settle(calls)


def _batches(calls: Sequence[_Call]) -> list[list[_Call]]:
    """Return the calls that were not cancelled, those of one operation that follow each other together."""
    batches: list[list[_Call]] = []
    for operation, group in itertools.groupby(calls, key=lambda call: call.operation):
        pending = [call for call in group if not call.future.cancelled()]
        if pending:
            batches += [[call] for call in pending] if operation is _run_each else [pending]
    return batches


def _run_each(
    connection: sqlite3.Connection, operations: Sequence[Callable[[sqlite3.Connection], object]]
) -> list[object]:
    return [operation(connection) for operation in operations]


def _settle(calls: Iterable[_Call]) -> None:
    """Answer callers, waking each event loop once; a loop that was closed waits for nothing."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Call]] = {}
    for call in calls:
        by_loop.setdefault(call.future.get_loop(), []).append(call)
    for loop, calls_of_loop in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle_each, calls_of_loop)
        except RuntimeError:
            continue


def _settle_each(calls: list[_Call]) -> None:
    for call in calls:
        call.settle()
