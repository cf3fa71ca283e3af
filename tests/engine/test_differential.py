"""SQLite answers as PostgreSQL does, for random operations in random order.

For longer runs: `NIGHTJAR_FUZZ_SEEDS=100-120 NIGHTJAR_FUZZ_STEPS=5000 pytest tests/engine/test_differential.py`.
"""

import os
from pathlib import Path

import pytest

from bot.engine.database import Database
from bot.engine.sqlite.connector import SqliteConnector
from tests.engine.operations import WEIGHTS, Twins

FIRST, _, LAST = os.environ.get("NIGHTJAR_FUZZ_SEEDS", "1-3").partition("-")
STEPS = int(os.environ.get("NIGHTJAR_FUZZ_STEPS", "700"))


@pytest.mark.exhaustive("1")
@pytest.mark.timeout(600 + STEPS)
@pytest.mark.parametrize("seed", range(int(FIRST), int(LAST or FIRST) + 1))
async def test_both_databases_give_the_same_answers(seed: int, postgres_url: str, tmp_path: Path) -> None:
    postgres = Database(postgres_url)
    sqlite = SqliteConnector(tmp_path / "twin.db", synchronous="OFF")
    await postgres.open()
    await sqlite.open_async()
    twins = Twins(postgres.connector, sqlite, seed)
    for _ in range(STEPS):
        await twins.step()
    await twins.finish()
    assert STEPS < 700 or (twins.done.keys() == WEIGHTS.keys() and twins.successors)
    await sqlite.close_async()
    await postgres.close()
