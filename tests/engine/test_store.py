"""The store's answers after another process removed the subject."""

from __future__ import annotations

from bot.engine.database import Database
from bot.engine.jobs.store import restart_conclusion


async def test_a_conclusion_that_was_removed_meanwhile_is_not_restarted(database: Database) -> None:
    await database.connector.transact(lambda: restart_conclusion(7, "basis"))
    assert await database.connector.execute_query_all_async("SELECT id FROM procrastinate_jobs") == []
