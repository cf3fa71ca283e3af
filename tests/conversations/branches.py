"""A town with a tracking branch of main, and a clock that a test advances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from bot.core.schedule import Schedule
from bot.engine.jobs.journal import DeliveryRecord
from bot.timers.timers import TIMER_EVENT
from sandbox.model.issues import Issue
from tests.conversations.lab import Moments
from tests.conversations.town import BOT, REPOSITORY, Town

API = f"/api/v1/repos/{REPOSITORY}"


@dataclass
class BranchTown:
    """A town whose branch moves when a test advances the clock."""

    PATH: ClassVar[str]
    """The name of the branch in the API."""

    town: Town
    time: Moments
    branch: str
    config: str

    async def advance_to(self, schedule: Schedule) -> None:
        """Advance the time to the next scheduled moment, and let the bot notice."""
        self.time.advance_to(schedule.next_time(self.time()) + 1)
        await self.town.bot.timers.tick()

    def push(self, message: str = "Improve it") -> str:
        """Push a commit to main; returns its SHA."""
        return self.town.repo.push("main", by="hubot", message=message).sha

    @property
    def head(self) -> str | None:
        """Return the head of the branch."""
        return self.town.repo.refs.get(f"refs/heads/{self.branch}")

    async def branch_state(self) -> dict[str, Any]:
        """Return the API's answer about the branch."""
        status, _, answer = await self.town.ask(f"{API}/{self.PATH}")
        assert status == 200, answer
        return dict(answer)

    async def verdicts(self) -> list[tuple[str, str, list[str]]]:
        """Return the API's answer about the scanned commits: title, verdict and blockers."""
        listed = (await self.branch_state())["why_not_newer"]
        return [
            (commit["title"], commit["verdict"], [f"{b['name']} {b['state']}" for b in commit["blockers"]])
            for commit in listed
        ]

    @property
    def issues(self) -> list[Issue]:
        """Return the issues opened by the bot."""
        return [issue for issue in self.town.repo.issues.values() if issue.user.login == BOT]

    async def runs(self) -> list[DeliveryRecord]:
        """Return the timer's runs, newest first."""
        return [
            record
            for record in await self.town.bot.engine.journal.recent(limit=500)
            if record.event == TIMER_EVENT.name
        ]

    def writes(self) -> list[str]:
        """Return the bot's writes to the branch, in order."""
        return [f"{r.method} {r.status}" for r in self.town.github.requests.writes if "/git/refs" in r.path]
