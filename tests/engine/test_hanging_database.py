"""A hanging database server: GitHub gets an error in time to redeliver."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from bot.core.errors import StorageError
from bot.engine.service import ACCEPT_TIMEOUT, Engine
from tests.engine.running import LOCK
from tests.engine.toy import body
from tests.postgres import PostgresServer, running_server
from tests.waiting import until

GITHUB_WAITS = 10.0
"""https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks"""
IN_TIME = 0.3
"""Seconds. psycopg takes five to give up a statement of a server that hangs."""


def everybody(server: PostgresServer) -> list[int]:
    """Return the server's processes."""
    first = server.pid
    children = Path(f"/proc/{first}/task/{first}/children").read_text()
    return [first, *map(int, children.split())]


def test_an_answer_takes_less_time_than_github_waits() -> None:
    assert ACCEPT_TIMEOUT <= GITHUB_WAITS - 2


@pytest.mark.parametrize("used_before", [True, False], ids=["open connection", "new connections"])
async def test_a_delivery_is_refused_in_time_while_the_server_hangs_and_accepted_afterwards(used_before: bool) -> None:
    with running_server() as server:
        async with Engine(server.create_database(), accept_timeout=IN_TIME) as engine:
            if used_before:
                await until(lambda: is_accepted(engine, "before"))
            frozen = everybody(server)
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)
            try:
                async with asyncio.timeout(10 * IN_TIME):
                    answers = await asyncio.gather(
                        *(engine.accept(f"g{n}", "push", body({}), LOCK) for n in range(20)), return_exceptions=True
                    )
                assert [type(answer) for answer in answers] == [StorageError] * 20
            finally:
                for pid in frozen:
                    os.kill(pid, signal.SIGCONT)
            await until(lambda: is_accepted(engine, "after"))


async def is_accepted(engine: Engine, guid: str) -> bool:
    try:
        await engine.accept(guid, "push", body({}), LOCK)
    except StorageError:
        return False
    return True
