"""What handlers remember."""

from __future__ import annotations

from bot.engine.database import Database
from bot.engine.records import Records


async def test_what_was_put_is_read_back_and_replaced(database: Database) -> None:
    records = Records(database.connector)
    assert await records.get("head:1#7") is None
    await records.put("head:1#7", {"sha": "a" * 40, "nothing": None, "list": [1, 2.5, True]})
    assert await records.get("head:1#7") == {"sha": "a" * 40, "nothing": None, "list": [1, 2.5, True]}
    await records.put("head:1#7", {"sha": "b" * 40})
    assert await records.get("head:1#7") == {"sha": "b" * 40}
    assert await records.get("head:1#70") is None


async def test_text_that_databases_dislike_comes_back_unharmed(database: Database) -> None:
    records = Records(database.connector)
    value = {"title": "nul \x00, half a pair \ud83d, quote ' \" \\ and 🌙"}
    await records.put("odd \x00 key", value)
    assert await records.get("odd \x00 key") == value
