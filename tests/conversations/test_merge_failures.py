"""Pending merges whose refresh fails for good: the people who wait are notified."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conversations.merges import merge_town, report
from tests.conversations.test_merge_when_green import last_message, waiting, waiting_numbers
from tests.conversations.town import Town


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


async def test_a_merge_that_can_no_longer_be_checked_ends_with_a_comment(here: Town) -> None:
    pull = await waiting(here)
    reason = "Although you appear to have the correct authorization credentials, access is blocked"
    here.github.faults.add("GET", "/repos/{owner}/{repo}/commits/{ref}/status", status=403, message=reason, times=None)
    report(here, pull)
    await here.quiet()
    assert last_message(here, pull).endswith(f" GitHub refused this: `{reason}`.")
    assert "I won't merge" in last_message(here, pull)
    assert await waiting_numbers(here) == []
    assert pull.state == "open"


async def test_a_merge_whose_check_fails_after_it_was_closed_needs_no_message(here: Town) -> None:
    pull = await waiting(here)
    here.github.webhooks.hold()
    report(here, pull)
    pull.close("hubot")
    here.github.faults.add("GET", "/repos/{owner}/{repo}/commits/{ref}/status", status=403, message="No", times=None)
    here.github.webhooks.release()
    await here.quiet()
    assert last_message(here, pull) == ""
    assert await waiting_numbers(here) == []
