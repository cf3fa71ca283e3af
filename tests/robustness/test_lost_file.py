"""The SQLite file is removed or replaced under a running bot."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from tests.robustness.place import open_place

REMOVED = "was removed or replaced while the server ran: nothing more is stored"


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("other.db"))
    path.with_name("other.db").replace(path)


def moved_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def without_its_log(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


@pytest.mark.parametrize("lose", [removed, replaced, moved_away, without_its_log])
async def test_a_bot_that_lost_its_file_acknowledges_nothing_and_says_why(
    lose: Callable[[Path], None], tmp_path: Path, sqlite_url: str
) -> None:
    """It used to answer 202, and 200 at `/readyz`, and lost 10 of 20 deliveries at the next start."""
    async with open_place(tmp_path, sqlite_url) as place:
        repository = place.add_repository("octocat")
        place.configure([repository.full_name])
        await place.start()
        pull = repository.open_pull_request("hubot", "Faster")
        await place.quiet()
        assert await ready(place.bot.url) == (200, "")
        await asyncio.to_thread(lose, tmp_path / "nightjar.db")
        status, reason = await ready(place.bot.url)
        assert status == 503
        assert REMOVED in reason
        pull.comment("hubot", "@ci help")
        await place.github.delivered()
        assert place.github.webhooks.deliveries[-1].status_code == 503


async def ready(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as response:
        return response.status, (await response.json())["reason"]
