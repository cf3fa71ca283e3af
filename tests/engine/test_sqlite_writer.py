"""A writer that ends for whatever reason leaves nobody waiting."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sqlite.writer import Notices, Writer
from tests.waiting import DEADLINE


def connect(notices: Notices) -> sqlite3.Connection:
    del notices
    return sqlite3.connect(":memory:", isolation_level=None)


def one(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT 1").fetchone()[0])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_thread_that_dies_answers_waiting_callers_and_later_ones() -> None:
    writer = Writer(connect, lambda notices: None)
    await writer.start()
    gate = threading.Event()

    def die(connection: sqlite3.Connection) -> None:
        del connection
        gate.wait(DEADLINE)
        raise SystemExit

    dying = asyncio.ensure_future(writer.run(die))
    await asyncio.sleep(0)
    waiting = [asyncio.ensure_future(writer.run(one)) for _ in range(5)]
    await asyncio.sleep(0)
    gate.set()
    answers = await asyncio.wait_for(asyncio.gather(dying, *waiting, return_exceptions=True), DEADLINE)
    assert {type(answer) for answer in answers} == {DatabaseFailure}
    with pytest.raises(DatabaseFailure, match="no longer be written"):
        await writer.run(one)
    await writer.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_thread_that_dies_answers_operations_that_a_loop_has_not_handed_over_yet() -> None:
    gate, old_threads = threading.Event(), set(threading.enumerate())
    writer = Writer(connect, lambda notices: None)
    await writer.start()
    (thread,) = set(threading.enumerate()) - old_threads

    def die(connection: sqlite3.Connection) -> None:
        del connection
        gate.wait(DEADLINE)
        raise SystemExit

    def end_of_the_thread() -> None:
        gate.set()
        thread.join(DEADLINE)

    dying = asyncio.ensure_future(writer.run(die))
    await asyncio.sleep(0)
    pending = asyncio.ensure_future(writer.run_batched(lambda _, numbers: numbers, 1))
    # In the same turn of the loop, after the request and before it is handed over.
    asyncio.get_running_loop().call_soon(end_of_the_thread)
    answers = await asyncio.wait_for(asyncio.gather(dying, pending, return_exceptions=True), DEADLINE)
    assert {type(answer) for answer in answers} == {DatabaseFailure}
    await writer.stop()


async def test_notifications_are_published_after_the_commit_and_not_after_a_failure() -> None:
    published: list[tuple[str, str]] = []
    received: list[Notices] = []

    def connect_and_hold(notices: Notices) -> sqlite3.Connection:
        received.append(notices)
        return connect(notices)

    writer = Writer(connect_and_hold, published.extend)
    await writer.start()

    def say(word: str, *, fail: bool) -> None:
        received[0].append(("q", word))
        if fail:
            raise ValueError(word)

    await writer.run(lambda _: say("first", fail=False))
    with pytest.raises(ValueError, match="second"):
        await writer.run(lambda _: say("second", fail=True))
    await writer.run(lambda _: say("third", fail=False))
    await writer.stop()
    assert published == [("q", "first"), ("q", "third")]


async def test_queued_operations_run_together_and_after_a_failure_one_by_one() -> None:
    begun, gate = threading.Event(), threading.Event()
    batches: list[list[int]] = []

    def hold(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE numbers (number INTEGER UNIQUE)")
        begun.set()
        gate.wait(DEADLINE)

    def add(connection: sqlite3.Connection, numbers: Sequence[int]) -> list[str]:
        batches.append(list(numbers))
        for number in numbers:
            connection.execute("INSERT INTO numbers VALUES (?)", (number,))
        return [f"added {number}" for number in numbers]

    writer = Writer(connect, lambda notices: None)
    await writer.start()
    calls: list[asyncio.Future[Any]] = [asyncio.ensure_future(writer.run(hold))]
    await asyncio.to_thread(begun.wait, 20)
    calls += [asyncio.ensure_future(writer.run_batched(add, number)) for number in (1, 2)]
    calls += [asyncio.ensure_future(writer.run(one))]
    calls += [asyncio.ensure_future(writer.run_batched(add, number)) for number in (3, 2, 4)]
    await asyncio.sleep(0)
    gate.set()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    stored = await writer.run(lambda connection: connection.execute("SELECT number FROM numbers").fetchall())
    await writer.stop()
    assert batches == [[1, 2], [3, 2, 4], [3], [2], [4]]
    assert answers[:5] == [None, "added 1", "added 2", 1, "added 3"]
    assert isinstance(answers[5], sqlite3.IntegrityError)
    assert answers[6] == "added 4"
    assert stored == [(1,), (2,), (3,), (4,)]


async def test_the_only_batch_of_a_commit_is_undone_before_its_operations_run_one_by_one() -> None:
    statements: list[str] = []

    def connect_and_trace(notices: Notices) -> sqlite3.Connection:
        connection = connect(notices)
        connection.execute("CREATE TABLE numbers (number INTEGER)")
        connection.set_trace_callback(statements.append)
        return connection

    def add(connection: sqlite3.Connection, numbers: Sequence[int]) -> Sequence[int]:
        for number in numbers:
            connection.execute("INSERT INTO numbers VALUES (?)", (number,))
            if number == 0:
                raise ValueError(number)
        return numbers

    writer = Writer(connect_and_trace, lambda notices: None)
    await writer.start()
    assert await writer.run_batched(add, 1) == 1
    assert statements == ["BEGIN IMMEDIATE", "INSERT INTO numbers VALUES (1)", "COMMIT"], "it needs no savepoint"
    answers = await asyncio.gather(*(writer.run_batched(add, number) for number in (2, 0, 3)), return_exceptions=True)
    with pytest.raises(ValueError, match="0"):
        await writer.run_batched(add, 0)
    stored = await writer.run(lambda connection: connection.execute("SELECT number FROM numbers").fetchall())
    await writer.stop()
    assert (answers[::2], type(answers[1]), stored) == ([2, 3], ValueError, [(1,), (2,), (3,)])


async def test_operations_of_one_turn_of_the_loop_run_together_and_in_order() -> None:
    batches: list[list[int]] = []

    def note(connection: sqlite3.Connection, numbers: Sequence[int]) -> Sequence[int]:
        del connection
        batches.append(list(numbers))
        return numbers

    def alone(connection: sqlite3.Connection) -> None:
        del connection
        batches.append([])

    writer = Writer(connect, lambda notices: None)
    await writer.start()
    answers = await asyncio.gather(*(writer.run_batched(note, number) for number in range(100)))
    assert (answers, batches) == (list(range(100)), [list(range(100))])
    batches.clear()
    first, second = writer.run_batched(note, 1), writer.run(alone)
    await asyncio.gather(first, second, writer.run_batched(note, 2))
    assert [number for numbers in batches for number in numbers or [0]] == [1, 0, 2]
    await writer.stop()


async def test_operations_requested_just_before_the_end_are_run() -> None:
    writer = Writer(connect, lambda notices: None)
    await writer.start()
    call = asyncio.ensure_future(writer.run_batched(lambda _, numbers: numbers, 1))
    stopping = asyncio.ensure_future(writer.stop())
    assert await call == 1
    await stopping
