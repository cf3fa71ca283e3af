"""What handlers remember."""

from __future__ import annotations

import asyncio

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


async def test_an_older_version_never_replaces_a_newer_one(database: Database) -> None:
    records = Records(database.connector)
    assert await records.put_newer("head", {"sha": "new"}, "2026-11-20T05:10:00Z")
    assert not await records.put_newer("head", {"sha": "old"}, "2026-11-20T05:09:59Z")
    assert await records.get("head") == {"sha": "new"}
    assert await records.put_newer("head", {"sha": "newest"}, "2026-11-20T05:10:01Z")
    assert await records.get("head") == {"sha": "newest"}


async def test_the_newest_of_many_that_come_at_once_stays(database: Database) -> None:
    records = Records(database.connector)
    await asyncio.gather(*(records.put_newer("n", {"n": n}, f"{n:03}") for n in (5, 1, 19, 0, 7, 18, 12)))
    assert await records.get("n") == {"n": 19}
