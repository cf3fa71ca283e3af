"""Pending merges whose refresh fails for good: the people who wait are notified."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conversations.merges import merge_town, report
from tests.conversations.test_merge_when_green import last_message, waiting, waiting_numbers
from tests.conversations.town import Town


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


async def test_a_merge_that_can_no_longer_be_checked_ends_with_a_comment(town: Town) -> None:
    pull = await waiting(town)
    reason = "Although you appear to have the correct authorization credentials, access is blocked"
    town.github.faults.add("GET", "/repos/{owner}/{repo}/commits/{ref}/status", status=403, message=reason, times=None)
    report(town, pull)
    await town.quiet()
    assert last_message(town, pull).endswith(f" GitHub refused this: `{reason}`.")
    assert "I won't merge" in last_message(town, pull)
    assert await waiting_numbers(town) == []
    assert pull.state == "open"


async def test_a_merge_whose_check_fails_after_it_was_closed_needs_no_message(town: Town) -> None:
    pull = await waiting(town)
    town.github.webhooks.hold()
    report(town, pull)
    pull.close("hubot")
    town.github.faults.add("GET", "/repos/{owner}/{repo}/commits/{ref}/status", status=403, message="No", times=None)
    town.github.webhooks.release()
    await town.quiet()
    assert last_message(town, pull) == ""
    assert await waiting_numbers(town) == []
