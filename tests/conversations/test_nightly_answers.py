"""`GET /api/v1/repos/{owner}/{repo}/nightly` for labs that poll it."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from tests.conversations.branches import API
from tests.conversations.nightly_runs import nightly_town


async def test_a_caller_with_the_newest_answer_gets_an_empty_one(tmp_path: Path) -> None:
    async with nightly_town(f"sqlite:///{tmp_path}/nightjar.db") as place, aiohttp.ClientSession() as session:
        place.push("The first")
        await place.nightly_run()
        address = f"{place.town.url}{API}/nightly"
        async with session.get(address) as answer:
            tag = answer.headers["ETag"]
        async with session.get(address, headers={"If-None-Match": tag}) as answer:
            assert (answer.status, await answer.read()) == (304, b"")
        place.push("The second")
        await place.nightly_run()
        async with session.get(address, headers={"If-None-Match": tag}) as answer:
            assert (answer.status, (await answer.json())["commits"]) == (200, 1)
