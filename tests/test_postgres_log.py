"""The log of the tests' PostgreSQL server arrives entry by entry, even if several connections log at once."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import psycopg

from tests.postgres import PostgresServer, running_server

LONG = 20_000
"""Characters of an entry: more than a pipe accepts in one piece (`PIPE_BUF` in pipe(7))."""


def log_often(server: PostgresServer, letter: str) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        for _ in range(50):
            connection.execute(f"DO $$ BEGIN RAISE LOG '{letter * LONG}'; END $$".encode())


def test_long_entries_of_several_connections_are_not_mixed() -> None:
    with running_server() as server:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda letter: log_often(server, letter), "XYZW"))
        entries = re.findall("X{2,}|Y{2,}|Z{2,}|W{2,}", server.log())
    assert {len(entry) for entry in entries} == {LONG}
