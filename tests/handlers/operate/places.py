"""A town with an operator and a failed delivery."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conversations.town import Town, town
from tests.visitor import SIGN_IN, may_sign_in

CONFIG = """
operators: ["@hubot"]
repositories:
  octocat/compiler:
    nightly:
"""
PULL = "/repos/{owner}/{repo}/pulls/{pull_number}"


@dataclass(frozen=True)
class OperatedTown:
    """A town, and the GUID of a delivery that failed because of a fault that has been fixed."""

    town: Town
    failed: str


@asynccontextmanager
async def operated_town(folder: Path) -> AsyncIterator[OperatedTown]:
    """Start a town whose operator is hubot."""
    async with town(f"sqlite:///{folder}/nightjar.db", config=CONFIG, environment=SIGN_IN) as place:
        may_sign_in(place)
        await place.started()
        place.repo.open_pull_request("hubot", "Faster")
        await place.quiet()
        yield OperatedTown(place, await fail(place))


async def fail(place: Town, message: str = "blocked for a reason") -> str:
    """Let a command fail for good with this message from GitHub; return the GUID of its delivery."""
    place.github.faults.add("GET", PULL, status=451, message=message, times=None)
    place.repo.pulls[0].comment("hubot", "@ci help")
    await place.quiet()
    place.github.faults.clear()
    return (await place.bot.engine.journal.recent(1, failed=True))[0].guid
