"""Only the bot's own user can read its database, because payloads of private repositories are in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.engine.database import Database
from bot.results.store.tables.database import ResultsDatabase


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """Make new files readable by everybody by default."""
    old_mask = os.umask(0)
    yield
    os.umask(old_mask)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


async def test_only_the_owner_can_read_the_file_and_those_next_to_it(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/nightjar.db")
    with database.sole():
        await database.open()
        try:
            assert modes(tmp_path) == dict.fromkeys(
                ("nightjar.db", "nightjar.db-wal", "nightjar.db-shm", "nightjar.db.lock"), 0o600
            )
        finally:
            await database.close()


def test_only_the_owner_can_read_the_file_of_results_ingested_by_hand(tmp_path: Path) -> None:
    database = ResultsDatabase(f"sqlite:///{tmp_path}/nightjar.db")
    database.open()
    try:
        assert set(modes(tmp_path)) >= {"nightjar.db", "nightjar.db-wal"}
        assert set(modes(tmp_path).values()) == {0o600}
    finally:
        database.close()


async def test_a_file_that_others_can_read_is_left_as_it_is_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nightjar.db"
    path.touch(mode=0o640)
    database = Database(f"sqlite:///{path}")
    await database.open()
    await database.close()
    assert modes(tmp_path)["nightjar.db"] == 0o640
    output = caplog.text + capsys.readouterr().out
    assert "other users of this machine can read the database" in output
    assert f"chmod 600 {path}" in output
