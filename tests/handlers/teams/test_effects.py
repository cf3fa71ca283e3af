"""The stored list of teams."""

from __future__ import annotations

import asyncio
from pathlib import Path

from handlers.teams.effects import StoreTeamList
from handlers.teams.records import TEAM_LIST, TeamList
from tests.handlers.driver import a_world


async def test_of_two_lists_stored_at_the_same_moment_the_newer_one_stays(tmp_path: Path) -> None:
    newer, older = StoreTeamList(1, 200.0, {"gpu": ("octocat",)}), StoreTeamList(1, 100.0, {})
    async with a_world(tmp_path) as world:
        await asyncio.gather(world.apply_until_stored(newer), world.apply_until_stored(older))
        stored = await world.records.get(TEAM_LIST.of(world.repository.id))
    assert stored == TeamList(1, 200.0, {"gpu": ("octocat",)})
