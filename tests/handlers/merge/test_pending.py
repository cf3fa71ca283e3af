"""How a pending merge is stored, and how refreshes are numbered so that none is lost or redundant."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.core.events import Delivery, Payload, Person, Repository
from bot.engine.database import Database
from bot.engine.records import Records
from handlers.merge.pending import REFRESH_EVENT, RefreshEvent, next_refresh, note_refresh
from handlers.merge.records import PendingMerge
from tests.tables import with_tables

REPOSITORY = Repository(7, "octocat/compiler", 5)
PENDING_MERGE = PendingMerge(
    "a" * 40, "main", Person(2, "hubot", False), "https://github.example/octocat/compiler/pull/1", "2026-11-20"
)


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[Records]:
    database = Database(with_tables(f"sqlite:///{tmp_path / 'nightjar.db'}"))
    await database.open()
    yield Records(database.connector)
    await database.close()


async def begin(records: Records, *, number: int = 1) -> str:
    """Start the next refresh, and return its GUID."""
    pending = await next_refresh(records, REPOSITORY, number)
    return await note(records, pending)


async def note(records: Records, pending: RefreshEvent) -> str:
    """Record that a refresh begins, and return its GUID."""
    guid = REFRESH_EVENT.guid(REPOSITORY.id, pending)
    body = Payload(REFRESH_EVENT.body(REPOSITORY, pending))
    await note_refresh(records, Delivery(guid, REFRESH_EVENT.name, body, 0.0))
    return guid


async def next_refresh_of(records: Records, number: int = 1) -> str:
    """Return the GUID of the next refresh that has not begun."""
    return REFRESH_EVENT.guid(REPOSITORY.id, await next_refresh(records, REPOSITORY, number))


async def test_refreshes_run_in_order_with_their_pull_request_and_as_its_installation(records: Records) -> None:
    guid, event, body, lock = REFRESH_EVENT.announcement(REPOSITORY, await next_refresh(records, REPOSITORY, 1))
    assert (guid, event, lock) == ("merge:7#1:0", "nightjar.merge", "pr:7#1")
    assert Repository.of(Payload(json.loads(body))) == REPOSITORY


async def test_requests_before_a_refresh_begins_share_it_and_later_ones_get_the_next(records: Records) -> None:
    guids = [await next_refresh_of(records) for _ in range(3)]
    assert guids == ["merge:7#1:0"] * 3
    assert await begin(records) == "merge:7#1:0"
    assert await next_refresh_of(records) == "merge:7#1:1"
    assert await next_refresh_of(records, 2) == "merge:7#2:0", "each pull request has its own number"


async def test_a_replayed_refresh_does_not_reset_the_number(records: Records) -> None:
    pending = await next_refresh(records, REPOSITORY, 1)
    for _ in range(3):
        await begin(records)
    await note(records, pending)
    assert await next_refresh_of(records) == "merge:7#1:3"
