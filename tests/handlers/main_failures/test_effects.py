"""A branch is scanned once while a scan is pending, whoever requests it and however often."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from handlers.main_failures.effects import SCAN_EVENT, RequestScan
from handlers.main_failures.records import NEXT_SCAN, NextScan
from tests.handlers.driver import FULL_NAME, StoredEvent, World, a_world

AT, WAIT = 1_772_859_600.0, 180.0
FIRST = RequestScan("release/1.0", "first", AT, WAIT)
SOON = ("a scan of release/1.0 is already pending", False)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def ask(world: World, effect: RequestScan) -> tuple[str, bool]:
    """Apply an effect; return its text in the audit record, and whether anything changed."""
    applied = await world.apply_alone(effect)
    return applied.text, applied.changed


async def test_a_scan_is_an_internal_event_that_waits_and_runs_alone(world: World) -> None:
    assert await ask(world, FIRST) == ("requested a scan of release/1.0", True)
    number = world.repository.id
    body = {
        "action": "",
        "repository": {"id": number, "full_name": FULL_NAME},
        "scan": {"branch": "release/1.0", "at": int(AT + WAIT), "asked": "first"},
    }
    lock = f"alarms:{number}:release/1.0"
    assert await world.stored_events() == [
        StoredEvent(f"scan:{number}:release/1.0:first", SCAN_EVENT.name, body, lock, AT + WAIT)
    ]


async def test_requests_during_a_pending_scan_share_it(world: World) -> None:
    await ask(world, FIRST)
    assert await ask(world, FIRST) == SOON
    assert await ask(world, replace(FIRST, asked="second", at=AT + WAIT)) == SOON
    assert await ask(world, replace(FIRST, asked="third", at=AT + WAIT + 1)) == (
        "requested a scan of release/1.0",
        True,
    )
    assert await ask(world, replace(FIRST, branch="main")) == ("requested a scan of main", True)
    assert len(await world.stored_events()) == 3


async def test_a_request_of_an_earlier_release_that_stored_no_record_is_not_announced_twice(world: World) -> None:
    await ask(world, FIRST)
    await world.records.put(NEXT_SCAN.of(world.repository.id, "release/1.0"), NextScan(0.0))
    assert await ask(world, FIRST) == ("requested a scan of release/1.0", False)
    assert len(await world.stored_events()) == 1
    assert await ask(world, replace(FIRST, asked="second")) == SOON


async def test_the_sweep_requests_a_scan_at_once_even_if_one_is_pending(world: World) -> None:
    await ask(world, FIRST)
    assert await ask(world, RequestScan("release/1.0", "sweep", AT)) == ("requested a scan of release/1.0", True)
    assert (await world.stored_events())[-1].not_before is None
    assert await ask(world, replace(FIRST, asked="second")) == SOON
