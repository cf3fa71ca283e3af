"""Fixtures of whole databases, of both kinds, as a version wrote them: later versions open them and go on.

`write` makes the current version's, and `make fixtures` calls it when a migration is new.
"""

from __future__ import annotations

import asyncio
import contextlib
import lzma
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, LiteralString

import psycopg

from bot.app.features import RECORDS
from bot.core.events import Delivery, Payload
from bot.engine.jobs.notes import RETRYING
from bot.engine.jobs.store import note_of_ignored
from bot.engine.postgres import schema as postgres_schema
from bot.engine.service import Engine
from bot.engine.sqlite import schema as sqlite_schema
from bot.engine.sqlite.connector import create_privately
from bot.engine.tokens import TokenStore
from bot.results.state import RunState
from bot.results.store.store import ResultsStore
from bot.results.store.tables.database import HEAD
from tests.durable import FOLDER, example
from tests.engine.running import LOCK, running, settled
from tests.engine.toy import World, body, writes
from tests.postgres import program, running_server
from tests.results.uploads import Upload
from tests.waiting import until

DATABASES = FOLDER / "databases"
SQLITE, POSTGRES = "sqlite", "postgresql"
EVENT = "issue_comment"
LATER = {"errors": ["again:3600"]}
DONE = {"a": writes("x", conclude={}), "b": writes("y")}
WAITING = {
    "waiting-plan": {"a": {**writes("x"), **LATER}},
    "waiting-effect": {"a": {"effects": [{"target": "x", **LATER}], "conclude": {}}},
    "waiting-conclusion": {"a": {**writes("x"), "conclude": LATER}},
}
"""Deliveries by GUID. A job of each waits for an hour, whatever the point below is called."""
FAILED = {
    "failed-plan": {"a": {**writes("x"), "errors": ["user"], "answer": {}}},
    "failed-effect": {"a": {"effects": [{"target": "x", "errors": ["user"]}], "conclude": {}}},
}
POINTS = (
    "plan waiting-plan a",
    "effect waiting-effect a x",
    "conclude waiting-conclusion a",
    "plan failed-plan a",
    "effect failed-effect a x",
)
"""Where the world that writes a fixture has an error, and none is left for the world of a test."""
UPLOADS = (
    Upload(1, {"te/a.py::test_add": "passed", "te/a.py::test_mul": "failed", "te/a.py::test_div": "skipped"}),
    Upload(2, {"te/a.py::test_add": "failed", "te/a.py::test_mul": "xfailed"}, pull_request=42),
    *Upload(3, {"te/a.py::test_add": "passed", "te/a.py::test_mul": "passed"}).in_shards(2),
)
WAITING_RUN = Upload(4, {}).without_results(RunState.WAITING)
HELD: LiteralString = (
    "SELECT job.id FROM procrastinate_jobs AS job JOIN nightjar_notes AS note ON note.job_id = job.id"
    f" WHERE job.status = 'todo' AND note.outcome = '{RETRYING}'"
)
CRASH: LiteralString = (
    "UPDATE procrastinate_jobs SET status = 'doing' WHERE queueing_lock = 'once:delivery:in-progress'"
)
TOKENS: LiteralString = "api"


def name_of_schema() -> str:
    """Return the name of the schema that this version writes."""
    assert len(sqlite_schema.VERSIONS) == len(postgres_schema.VERSIONS)
    return f"engine-{len(sqlite_schema.VERSIONS)}-results-{HEAD}"


def stored_databases() -> list[Path]:
    """Return the fixtures: one of each kind for each version of the schema."""
    return sorted(DATABASES.glob("*.xz"))


async def fill(url: str, folder: Path) -> None:
    """Leave what a server leaves: deliveries in every state, records, a token, and results of a lab."""
    with contextlib.closing(World(folder / "world.db")) as world:
        async with running(url, world) as engine:
            await _accept(engine, {"done": DONE, **FAILED, **WAITING})
            delivery = Delivery("ignored", EVENT, Payload({"action": "created"}), 0.0)
            ignored = note_of_ignored(delivery, "nobody wants it")
            await engine.accept("ignored", EVENT, body({}), LOCK, ignored=ignored)
            await settled(engine, "done", *FAILED)
            await engine.replay("done")
            await until(lambda: _held(engine))
            for record in RECORDS.kinds.values():
                await engine.records.put(record.of("1"), record.load("fixture", example(record.codec), record.version))
            await TokenStore(engine.database.connector, TOKENS).create("octocat", seconds=None, note="fixture")
    async with Engine(url) as engine:
        await _accept(engine, {"queued": DONE, "in-progress": DONE})
        await engine.database.connector.execute_query_async(CRASH)
    with opened_results(url) as store:
        for upload in UPLOADS:
            assert store.put(upload.run, upload.columns)
        assert store.put_state(WAITING_RUN)


async def _accept(engine: Engine, deliveries: Mapping[str, Mapping[str, Any]]) -> None:
    for guid, script in deliveries.items():
        await engine.accept(guid, EVENT, body(script), f"{LOCK}-{guid}")


async def _held(engine: Engine) -> bool:
    return len(await engine.database.connector.execute_query_all_async(HELD)) == len(WAITING)


@contextlib.contextmanager
def opened_results(url: str) -> Iterator[ResultsStore]:
    """Open the tables of results."""
    store = ResultsStore(url)
    store.open()
    try:
        yield store
    finally:
        store.close()


def restore(fixture: Path, url: str) -> None:
    """Make the database of a URL from a fixture."""
    content = lzma.decompress(fixture.read_bytes())
    if SQLITE in fixture.name:
        path = Path(url.removeprefix("sqlite:///"))
        create_privately(path)
        path.write_bytes(content)
        return
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(content)


def write(postgres_url: str, folder: Path) -> None:
    """Write the fixtures of this version's schema into a folder."""
    target = folder / name_of_schema()
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        file = here / "nightjar.db"
        asyncio.run(fill(f"sqlite:///{file}", here))
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("VACUUM INTO ?", (str(here / "whole.db"),))
        _pack(target, SQLITE, (here / "whole.db").read_bytes())
        (here / "world.db").unlink()
        asyncio.run(fill(postgres_url, here))
    options = ("--no-owner", "--no-privileges", "--no-comments", "--inserts", f"--dbname={postgres_url}")
    dump = subprocess.run((program("pg_dump"), *options), check=True, capture_output=True).stdout
    # Lines with a backslash are for psql alone.
    lines = [line for line in dump.splitlines() if not line.startswith(b"\\")]
    _pack(target, POSTGRES, b"\n".join(lines))


def _pack(target: Path, kind: str, content: bytes) -> None:
    Path(f"{target}.{kind}.xz").write_bytes(lzma.compress(content))


def add(folder: Path = DATABASES) -> None:
    """Write fixtures of this version's schema if there are none."""
    if (folder / f"{name_of_schema()}.{SQLITE}.xz").exists():
        return
    folder.mkdir(exist_ok=True)
    with running_server() as server:
        write(server.create_database(), folder)
