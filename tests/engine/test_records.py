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


async def test_what_changed_since_it_was_read_is_not_replaced(database: Database) -> None:
    records = Records(database.connector)
    assert await records.exchange("merge:1#7", None, {"by": "hubot 🌙 \x00"})
    assert not await records.exchange("merge:1#7", None, {"by": "octocat"})
    assert not await records.exchange("merge:1#7", {"by": "octocat"}, {})
    assert await records.get("merge:1#7") == {"by": "hubot 🌙 \x00"}
    assert await records.exchange("merge:1#7", {"by": "hubot 🌙 \x00"}, {})
    assert await records.get("merge:1#7") == {}


async def test_records_are_found_by_how_their_keys_begin(database: Database) -> None:
    records = Records(database.connector)
    for key in ("merge:1#7", "merge:1#70", "merge:10#7", "MERGE:1#7", "merge:1%7", "head:merge:1#7"):
        await records.put(key, {"key": key})
    assert await records.starting_with("merge:1#") == {key: {"key": key} for key in ("merge:1#7", "merge:1#70")}
