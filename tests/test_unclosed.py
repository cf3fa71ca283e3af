"""The guard against open connections names the line and the test, and reports each connection once."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy

from tests.unclosed import all_closed
from tests.waiting import until


def leave_open() -> None:
    with all_closed():
        sqlite3.connect(":memory:")


def collect() -> None:
    with all_closed():
        connection = sqlite3.connect(":memory:")
        del connection


def leave_open_elsewhere() -> None:
    with all_closed(), ThreadPoolExecutor() as threads:
        threads.submit(lambda: sqlite3.connect(":memory:")).result()


def leave_in_a_pool() -> None:
    with all_closed():
        sqlalchemy.create_engine("sqlite://").connect().close()


@pytest.mark.parametrize("leave", [leave_open, collect, leave_open_elsewhere, leave_in_a_pool])
def test_an_unclosed_connection_is_reported_once_with_its_line_and_its_test(leave: Callable[[], None]) -> None:
    with pytest.raises(AssertionError, match=r"opened at tests/test_unclosed\.py:\d+ in .*reported_once_with_its_line"):
        leave()
    with all_closed():
        pass


def test_closed_connections_and_those_opened_before_are_not_reported() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")), all_closed():
        sqlite3.connect(":memory:").close()


async def test_a_wait_that_times_out_names_the_open_transactions() -> None:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        with pytest.raises(AssertionError, match=r"in a transaction: - opened at tests/test_unclosed\.py:\d+ in "):
            await until(lambda: False, deadline=0.0)
        connection.execute("ROLLBACK")
        with pytest.raises(AssertionError) as raised:
            await until(lambda: False, deadline=0.0)
        assert "in a transaction" not in str(raised.value)
