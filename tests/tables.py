"""A SQLite database with all tables, copied from one that was made once: to make them costs more than most tests."""

from __future__ import annotations

import asyncio
import functools
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.engine.database import Database
from bot.engine.sqlite import create_privately
from bot.results.store.store import ResultsStore

SQLITE = "sqlite:///"


def with_tables(url: str) -> str:
    """Make the file of a SQLite database with all tables in it, where there is none; return the URL."""
    path = Path(url.removeprefix(SQLITE))
    if url.startswith(SQLITE) and not path.exists():
        create_privately(path)
        path.write_bytes(_with_tables())
    return url


@functools.cache
def _with_tables() -> bytes:
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as beside:
        path = Path(folder) / "nightjar.db"
        url = f"{SQLITE}{path}"
        # In a thread, for the event loop of a test may run in this one.
        beside.submit(asyncio.run, _engine_tables(url)).result()
        with closing(ResultsStore(url)) as store:
            store.open()
        return path.read_bytes()


async def _engine_tables(url: str) -> None:
    database = Database(url)
    await database.open()
    await database.close()
