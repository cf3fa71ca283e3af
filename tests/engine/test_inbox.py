"""A delivery is stored once, with its body; one that no handler accepts has no job, and expires."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from bot.core.events import Delivery, Payload
from bot.engine.database import Database
from bot.engine.jobs.definitions import delivery_job
from bot.engine.jobs.inbox import (
    MOST_RECENT,
    MOST_ROWS,
    SMALL,
    RecentDeliveries,
    packed,
    store_delivery,
    unpacked,
)
from bot.engine.jobs.journal import Journal
from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.upkeep import DAY, remove_old
from bot.web.webhook import parse

IGNORED = {"text": "nobody wants it", "about": {"action": "created", "repository": "octocat/compiler", "number": 7}}
MANY = 3 * MOST_ROWS - 1
WITH_JOBS = """
SELECT delivery.guid, job.args ->> 'guid' AS of_job
  FROM nightjar_inbox AS delivery LEFT JOIN procrastinate_jobs AS job ON job.id = delivery.id ORDER BY delivery.id
"""
REMOVE = "DELETE FROM nightjar_inbox"
JOBS = "SELECT id FROM procrastinate_jobs ORDER BY id"


async def store(database: Database, guid: str, *, received_at: float = 1.0, ignored: bool = False) -> bool:
    job = delivery_job(guid, "push", received_at, "repo:1")
    body = b'{"ref": "\\ud800\\u0000"}'
    return await store_delivery(database.connector, job, body, IGNORED if ignored else None) is not None


async def guids(database: Database) -> list[str]:
    return [record.guid for record in await Journal(database.connector).recent()]


@pytest.mark.parametrize("text", ["", "x" * SMALL, '\u0000 \U0001f600 ("}'])
def test_a_body_comes_back_unchanged(text: str) -> None:
    stored = packed(json.dumps({"text": text}).encode())
    assert unpacked(stored) == {"text": text}
    assert len(stored) <= SMALL


async def test_a_delivery_and_its_job_have_the_same_number(database: Database) -> None:
    assert await store(database, "a")
    assert await store(database, "b", ignored=True)
    assert await store(database, "c")
    records = await Journal(database.connector).recent()
    assert [(record.guid, record.state) for record in records] == [("c", "waiting"), ("b", "ignored"), ("a", "waiting")]
    jobs = [row["id"] for row in await database.connector.execute_query_all_async(JOBS)]
    assert jobs == [records[2].job.job_id, records[0].job.job_id]
    delivery = await RecentDeliveries().read(database.connector, records[1].job.job_id, "b")
    assert delivery is not None
    assert (delivery.guid, delivery.payload.raw) == ("b", {"ref": "\ud800\u0000"})


@pytest.mark.parametrize(
    "body",
    [
        b'{"ref": "\\ud800\\u0000", "\\ud83d\\ude00": "\\ufdd0", "a": 1, "a": 2}',
        b'{"numbers": [123456789012345678901234567890, -0, 0.1, -0.0, 1e22, 2.2250738585072014e-308, 5e-324, 1.0]}',
        b'{"text": "' + b"x" * 20_000 + b'"}',
    ],
)
async def test_what_the_accepting_process_remembers_is_what_it_would_read(database: Database, body: bytes) -> None:
    deliveries, connector = RecentDeliveries(), database.connector
    job = delivery_job("a", "push", 1.5, "repo:1")
    delivery_id = await store_delivery(connector, job, body)
    assert delivery_id is not None
    stored = await RecentDeliveries().read(connector, delivery_id, "a")
    deliveries.remember(delivery_id, Delivery("a", "push", Payload(parse(body)), 1.5))
    await connector.execute_query_async(REMOVE)
    for _ in range(2):
        remembered = await deliveries.read(connector, delivery_id, "a")
        assert remembered is not None
        assert stored is not None
        # In JSON, because -0.0 equals 0.
        assert json.dumps(remembered.payload.raw) == json.dumps(stored.payload.raw)
        assert (remembered.guid, remembered.event, remembered.received_at) == ("a", "push", 1.5)


async def test_accepted_deliveries_take_bounded_memory_and_displace_none_at_work(database: Database) -> None:
    deliveries, delivery = RecentDeliveries(), Delivery("a", "push", Payload({}), 1.0)
    deliveries.remember(1, delivery)
    assert await deliveries.read(database.connector, 1, "a") is delivery
    for delivery_id in range(2, 3 + MOST_RECENT):
        deliveries.remember(delivery_id, delivery)
    ids = [1, 2, 3, 2 + MOST_RECENT]
    remembered = [await deliveries.read(database.connector, delivery_id, "a") is not None for delivery_id in ids]
    assert remembered == [True, False, True, True]


@pytest.mark.parametrize("was_read", [False, True])
async def test_a_delivery_that_the_database_lost_is_not_taken_for_a_later_one_with_its_number(
    database: Database, was_read: bool
) -> None:
    """A replica that takes over without the last commits gives their IDs again."""
    deliveries, connector = RecentDeliveries(), database.connector
    assert await store(database, "new")
    (number,) = [cast("int", row["id"]) for row in await connector.execute_query_all_async(JOBS)]
    deliveries.remember(number, Delivery("lost", "issue_comment", Payload({}), 1.0))
    if was_read:
        assert await deliveries.read(connector, number, "lost") is not None
    for _ in range(2):
        delivery = await deliveries.read(connector, number, "new")
        assert delivery is not None
        assert (delivery.guid, delivery.event) == ("new", "push")
    assert await RecentDeliveries().read(connector, number, "lost") is None


async def test_the_first_delivery_of_an_empty_database_may_be_ignored(database: Database) -> None:
    assert await store(database, "a", ignored=True)
    assert await store(database, "b")
    (ignored,) = [record for record in await Journal(database.connector).recent() if record.guid == "a"]
    assert (ignored.action, ignored.repository, ignored.number) == ("created", "octocat/compiler", 7)
    assert (ignored.reason, ignored.settled) == ("nobody wants it", True)


@pytest.mark.parametrize("ignored", [False, True])
async def test_of_deliveries_with_the_same_guid_one_is_stored(database: Database, ignored: bool) -> None:
    stored = await asyncio.gather(*(store(database, "a", ignored=n % 2 == ignored) for n in range(8)))
    assert sum(stored) == 1
    assert await guids(database) == ["a"]
    assert await Journal(database.connector).known_guids(["a", "b"]) == {"a"}


async def test_concurrent_deliveries_are_stored_once_each_and_in_order(database: Database) -> None:
    names = [str(n % MANY) for n in range(2 * MANY)]
    stored = await asyncio.gather(*(store(database, name, ignored=int(name) % 3 == 0) for name in names))
    assert sum(stored) == MANY
    rows = await database.connector.execute_query_all_async(WITH_JOBS)
    assert stored == [True] * MANY + [False] * MANY
    assert [row["guid"] for row in rows] == names[:MANY]
    assert {row["guid"]: row["of_job"] for row in rows} == {
        name: None if int(name) % 3 == 0 else name for name in names[:MANY]
    }


@pytest.mark.parametrize("ignored", [[True], [True, True, True], [True, False, True], [False]])
async def test_any_text_is_stored_unchanged_whatever_is_stored_with_it(database: Database, ignored: list[bool]) -> None:
    text = '\ufdd0fdd0 \x00 \ud800 \\u0000 "é"'
    note = {"text": text, "about": {"repository": text}}

    def stored(number: int, is_ignored: bool) -> Coroutine[Any, Any, int | None]:
        job = delivery_job(f"{number} {text}", "push", 1.5, text, 7.0e9)
        return store_delivery(database.connector, job, b"{}", note if is_ignored else None)

    new = await asyncio.gather(*(stored(number, is_ignored) for number, is_ignored in enumerate(ignored)))
    assert all(new)
    assert not await stored(0, ignored[0]), "its GUID is known"
    records = (await Journal(database.connector).recent())[::-1]
    assert [record.guid for record in records] == [f"{number} {text}" for number in range(len(ignored))]
    assert {(record.lock, record.event, record.received_at) for record in records} == {(text, "push", 1.5)}
    assert [(record.reason, record.repository) for record in records if record.state == "ignored"] == [
        (text, text)
    ] * sum(ignored)
    scheduled = await database.connector.execute_query_all_async(
        "SELECT scheduled_at, args ->> 'guid' AS guid FROM procrastinate_jobs"
    )
    assert [(row["scheduled_at"], row["guid"]) for row in scheduled] == [
        (datetime.fromtimestamp(7.0e9, UTC), record.guid) for record in records if record.state != "ignored"
    ]


async def test_an_ignored_delivery_is_removed_after_a_week(database: Database) -> None:
    moment = 100 * DAY
    for guid, days in (("old", 7.1), ("replayed", 7.2), ("young", 6.9)):
        await store(database, guid, received_at=moment - days * DAY, ignored=True)
    await defer_once(database.connector, [NewJob("replay:1:replayed", "replay", {"guid": "replayed"})])
    assert await remove_old(database.connector, moment=moment) == 1
    assert sorted(await guids(database)) == ["replayed", "young"]


async def test_a_body_is_removed_with_its_job(database: Database) -> None:
    await store(database, "a", received_at=100 * DAY)
    await database.connector.execute_query_async("UPDATE procrastinate_jobs SET status = 'cancelled'")
    await database.connector.execute_query_async("UPDATE procrastinate_events SET at = to_timestamp(1.0)")
    assert await remove_old(database.connector, moment=100 * DAY) == 1
    assert await guids(database) == []
