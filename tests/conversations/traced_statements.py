"""The statements that a bot in this process runs."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
import pytest

from tests.conversations.town import UNSETTLED

FRAMES = ("BEGIN", "SAVEPOINT", "RELEASE", "COMMIT", "ROLLBACK", "PRAGMA", "SELECT nightjar_wake")
OF_THE_TOWN = " ".join(UNSETTLED.split())
"""`Town.quiet` asks whether jobs are left."""


def traced_statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which both drivers add the statements that they run, in their order."""
    texts = list[str]()
    connect, execute = sqlite3.connect, psycopg.AsyncCursor.execute

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(texts.append)
        return connection

    async def noted(cursor: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        texts.append(str(query))
        return await execute(cursor, query, *arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", traced)
    monkeypatch.setattr(psycopg.AsyncCursor, "execute", noted)
    return texts


def in_lines(texts: Iterable[str], url: str) -> list[str]:
    """Return the statements on the database of a URL, in a line each."""
    lines = [" ".join(text.split()) for text in texts]
    # SQLite repeats a statement whenever it runs a trigger for it.
    return [line for line, _ in itertools.groupby(lines)] if url.startswith("sqlite") else lines


def without_frames(texts: Sequence[str]) -> list[str]:
    """Return statements without the begin and end of transactions, wake-ups, and what the town itself asks."""
    return [text for text in texts if text != OF_THE_TOWN and not text.startswith(FRAMES)]
