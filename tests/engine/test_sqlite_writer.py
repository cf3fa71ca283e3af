"""A writer that ends for whatever reason leaves nobody waiting."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest
from procrastinate.exceptions import ConnectorException

from bot.engine.sqlite_writer import Notices, Writer


def connect(notices: Notices) -> sqlite3.Connection:
    del notices
    return sqlite3.connect(":memory:", isolation_level=None)


def one(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT 1").fetchone()[0])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_thread_that_dies_answers_those_who_wait_and_those_who_come_later() -> None:
    writer = Writer(connect, lambda notices: None)
    await writer.start()
    gate = threading.Event()

    def die(connection: sqlite3.Connection) -> None:
        del connection
        gate.wait(20)
        raise SystemExit

    dying = asyncio.ensure_future(writer.run(die))
    await asyncio.sleep(0)
    waiting = [asyncio.ensure_future(writer.run(one)) for _ in range(5)]
    await asyncio.sleep(0)
    gate.set()
    answers = await asyncio.wait_for(asyncio.gather(dying, *waiting, return_exceptions=True), 20)
    assert {type(answer) for answer in answers} == {ConnectorException}
    with pytest.raises(ConnectorException, match="no longer be written"):
        await writer.run(one)
    await writer.stop()


async def test_notices_are_published_after_the_commit_and_not_after_a_failure() -> None:
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
