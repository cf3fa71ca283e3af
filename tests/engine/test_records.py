"""The bot's records, which last from one delivery to the next."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import LiteralString

import pytest

from bot.engine.database import Database
from bot.engine.records import BAD_PREFIX, Key, NewerRecord, Record, Records, StoredValue, UnreadableRecord
from bot.engine.upkeep import BATCH, remove_old_records

DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Note:
    """The contents of these tests' records."""

    text: str
    numbers: tuple[float | None, ...] = ()


NOTE = Record("note", 2, Note, "what a test stores", days=3)
FOREVER = Record("for-ever", 1, Note, "what stays", days=None)

WRITE: LiteralString = """
INSERT INTO nightjar_records (key, value, version, at) VALUES (%(key)s, %(value)s, %(version)s, 0)
"""


async def test_a_record_can_be_stored_read_replaced_and_removed(database: Database) -> None:
    records, key = Records(database.connector), NOTE.of(1, 7)
    assert await records.get(key) is None
    await records.put(key, Note("first", (None, 1, 2.5)))
    assert await records.get(key) == Note("first", (None, 1, 2.5))
    await records.put(key, Note("second"))
    assert await records.get(key) == Note("second")
    assert await records.get(NOTE.of(1, 70)) is None
    await records.remove(key)
    assert await records.get(key) is None


async def test_text_that_databases_reject_comes_back_unchanged(database: Database) -> None:
    records = Records(database.connector)
    note = Note("nul \x00, half a pair \ud83d, quote ' \" \\ and 🌙")
    await records.put(NOTE.of("odd \x00 key"), note)
    assert await records.get(NOTE.of("odd \x00 key")) == note
    assert await records.change(NOTE.of("odd \x00 key"), lambda _: Note("other"))
    assert await records.get(NOTE.of("odd \x00 key")) == Note("other")


async def test_a_plan_stores_a_value_as_put_does(database: Database) -> None:
    records = Records(database.connector)
    await records.write("note:1", StoredValue.of(NOTE.of(1), Note("planned")))
    assert await records.get(NOTE.of(1)) == Note("planned")
    assert await records.stored("note:1") == {"text": "planned", "numbers": []}


def elsewhere(database_url: str, *keys: Key[Note], value: Note | None) -> None:
    """Store a value under each key, as another process does over its own connection; None removes it."""

    async def write() -> None:
        database = Database(database_url)
        await database.open()
        for key in keys:
            await (Records(database.connector).put(key, value) if value else Records(database.connector).remove(key))
        await database.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, write()).result()


async def test_a_record_that_changed_since_it_was_read_is_not_replaced(
    database: Database, url_with_tables: str
) -> None:
    records, key = Records(database.connector), NOTE.of(1, 7)
    assert await records.change(key, lambda stored: Note("first") if stored is None else None)
    assert await records.change(key, lambda stored: Note("second") if stored is None else None)
    assert await records.get(key) == Note("first")

    def change(stored: Note | None) -> Note:
        elsewhere(url_with_tables, key, value=Note("elsewhere"))
        return Note("third")

    assert not await records.change(key, change)
    assert await records.get(key) == Note("elsewhere")
    await records.remove(key)
    assert not await records.change(key, change)
    assert await records.get(key) == Note("elsewhere")


async def test_a_record_that_was_removed_since_it_was_read_stays_removed(
    database: Database, url_with_tables: str
) -> None:
    records, key = Records(database.connector), NOTE.of(1, 7)
    await records.put(key, Note("first"))

    def change(stored: Note | None) -> Note:
        elsewhere(url_with_tables, key, value=None)
        return Note("second")

    assert not await records.change(key, change)
    assert await records.get(key) is None


async def test_an_update_starts_over_with_what_another_process_has_written(
    database: Database, url_with_tables: str
) -> None:
    records, key = Records(database.connector), NOTE.of(1, 7)
    meanwhile: list[Note | None] = [Note("removed next"), None, Note("", (1,))]

    def add(stored: Note | None) -> Note:
        if meanwhile:
            elsewhere(url_with_tables, key, value=meanwhile.pop(0))
        return Note("", (*(stored.numbers if stored else ()), 2))

    await records.update(key, add)
    assert await records.get(key) == Note("", (1, 2))


async def test_records_are_found_by_the_beginning_of_their_keys(database: Database) -> None:
    records = Records(database.connector)
    for key in (
        "note:1:7",
        "note:1:70",
        "note:10:7",
        "NOTE:1:7",
        "note:1;7",
        "note-1:7",
        "head:note:1:7",
        "note:1:é:z",
    ):
        await database.connector.execute_query_async(WRITE, key=key, value=f'{{"text":"{key}"}}', version=2)
    under = {"7": Note("note:1:7"), "70": Note("note:1:70"), "é:z": Note("note:1:é:z")}
    assert await records.under(NOTE, 1) == under
    assert len(await records.under(NOTE)) == 5


async def test_several_records_are_read_at_once(database: Database) -> None:
    records = Records(database.connector)
    keys = [NOTE.of(1, 7), FOREVER.of("odd \x00 key"), NOTE.of(2)]
    for key in keys[:2]:
        await records.put(key, Note(key.name))
    assert await records.get_some(keys) == {key.name: Note(key.name) for key in keys[:2]}
    assert await records.get_some([]) == {}


async def test_a_record_of_a_newer_version_raises_a_named_error(database: Database) -> None:
    await database.connector.execute_query_async(WRITE, key="note:1", value="{}", version=3)
    with pytest.raises(NewerRecord, match="the record note:1 has version 3 of note, but this release supports 2"):
        await Records(database.connector).get(NOTE.of(1))


async def test_a_record_of_another_shape_raises_a_named_error(database: Database) -> None:
    await database.connector.execute_query_async(WRITE, key="note:1", value='{"numbers":["secret"]}', version=2)
    with pytest.raises(UnreadableRecord, match="the record note:1 is not a valid note: text: missing") as caught:
        await Records(database.connector).get(NOTE.of(1))
    assert "secret" not in str(caught.value)


async def test_records_expire_after_their_lifetime(database: Database) -> None:
    records = Records(database.connector)
    await records.put(FOREVER.of(1), Note("stays"))
    for number in range(BATCH + 1):
        await records.put(NOTE.of(number), Note("ends"))
    (row,) = await database.connector.execute_query_all_async(
        "SELECT at FROM nightjar_records WHERE key = %(key)s", key=NOTE.of(BATCH).name
    )
    written_at = float(str(row["at"]))
    assert await remove_old_records(database.connector, written_at + 2.9 * DAY) == 0
    assert await remove_old_records(database.connector, written_at + 3.1 * DAY) == BATCH + 1
    assert await records.get(FOREVER.of(1)) == Note("stays")
    assert await remove_old_records(database.connector, written_at + 3650 * DAY) == 0


def test_a_prefix_has_no_colon() -> None:
    with pytest.raises(ValueError, match=r"prefix 'a:b'") as caught:
        Record("a:b", 1, Note, "", None)
    assert str(caught.value) == BAD_PREFIX.format(prefix="a:b")
