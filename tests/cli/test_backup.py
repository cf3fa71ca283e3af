"""`nightjar backup` and `nightjar restore` as operators run them."""

from __future__ import annotations

from pathlib import Path

from bot.engine.database import Database
from tests.running import run


async def made(path: Path) -> None:
    database = Database(f"sqlite:///{path}")
    await database.open()
    await database.close()


async def test_a_backup_is_written_and_restored(tmp_path: Path) -> None:
    await made(tmp_path / "nightjar.db")
    env = {"DATABASE_URL": "sqlite:///nightjar.db"}
    written = await run("backup", "saved.db", env=env, cwd=tmp_path)
    size = (tmp_path / "saved.db").stat().st_size
    assert (written.status, written.out, written.err) == (0, f"saved.db: {size} bytes, checked\n", "")
    restored = await run("restore", "saved.db", env=env, cwd=tmp_path)
    message = f"replaced {tmp_path}/nightjar.db with saved.db; start the server\n"
    assert (restored.status, restored.out, restored.err) == (0, message, "")


async def test_a_failure_is_one_line(tmp_path: Path) -> None:
    refused = await run("restore", "nothing.db", env={"DATABASE_URL": "sqlite:///nightjar.db"}, cwd=tmp_path)
    assert (refused.status, refused.out) == (1, "")
    assert refused.err == "nothing.db does not exist; name a file that `nightjar backup` has written\n"
    refused = await run("backup", "b.db", env={"DATABASE_URL": "postgresql://n:secret@127.0.0.1:1/n"}, cwd=tmp_path)
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith("nightjar backup is for the SQLite file; DATABASE_URL names PostgreSQL at 127.0.0.1")
    assert "secret" not in refused.err
