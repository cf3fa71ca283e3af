"""The store's answers after another process removed the subject."""

from __future__ import annotations

from bot.engine.database import Database
from bot.engine.jobs.store import Store


async def test_a_conclusion_that_was_removed_meanwhile_is_not_restarted(database: Database) -> None:
    store = Store(database.connector)
    await store.restart_conclusion(7, "basis")
    assert await store.arguments(7) is None
