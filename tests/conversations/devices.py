"""A town whose lab accepts requests, with the actions of people, labs and the clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from handlers.device_tests.model import DeviceJob, DeviceJobState
from handlers.device_tests.store import JOBS, ClaimedJob, JobStore
from handlers.device_tests.sweep import SWEEP
from sandbox import PullRequest
from sandbox.model.checks import CheckRun
from tests.bucket import World
from tests.conversations.lab import LAB, LabTown, lab_town

HEXAGON, ADRENO, MALI = "hexagon-v73", "adreno", "mali"
TARGETS = """{
    hexagon-v73: {tier: 2, label: "test: hexagon", budget_per_person: 3/day, suites: [operators]},
    adreno: {tier: 2, sticky: true, slots: 2},
    mali: {tier: 1, paths: ["src/mali/**"]}, cortex-m: nightly}"""
GOOD = {"test_add": "passed", "test_mul": "passed"}
BAD = {"test_add": "passed", "test_mul": "AssertionError: 3 != 4"}


@dataclass
class Devices:
    """A lab in a town whose targets accept requests."""

    place: LabTown

    @property
    def store(self) -> JobStore:
        return self.place.town.bot.services.part(JOBS)

    def pull(self, author: str = "hubot") -> PullRequest:
        """Open a pull request: from the repository if its author has write access, else from a fork."""
        return self.place.town.repo.open_pull_request(author, "Faster", fork=author not in ("hubot", "octocat"))

    async def says(self, pull: PullRequest, author: str, text: str) -> tuple[list[str], str]:
        """Comment; return the bot's reactions and its last answer."""
        earlier_count = len(self.place.town.answers(pull))
        comment = pull.comment(author, text)
        await self.place.town.quiet()
        answers = self.place.town.answers(pull)[earlier_count:]
        return pull.reactions(comment), answers[-1] if answers else ""

    async def jobs(self, pull: PullRequest) -> list[DeviceJob]:
        return await self.store.of_pull(self.place.town.repo.id, pull.number)

    async def states(self, pull: PullRequest) -> dict[str, DeviceJobState]:
        """Return the state of the newest job of each target."""
        return {job.target: job.state for job in await self.jobs(pull)}

    def checks(self, sha: str, target: str = HEXAGON) -> list[CheckRun]:
        return self.place.checks(sha, f"hardware/{LAB}/{target}")

    def check(self, sha: str, target: str = HEXAGON) -> CheckRun:
        (run,) = self.checks(sha, target)
        return run

    async def claim(self, target: str = HEXAGON, *, is_able: bool = False) -> ClaimedJob:
        """Claim a job as a lab does; `is_able`: also one that the bot requested."""
        limits_of = self.place.town.bot.services.part(SWEEP).limits_of
        claimed = await self.store.claim(LAB, [target], limits_of, is_able=is_able)
        assert claimed is not None
        return claimed

    async def sweep(self, later: float = 0.0) -> None:
        """Let time pass, and run the sweep."""
        self.place.time.ahead += later
        await self.place.town.bot.services.part(SWEEP).tick()
        await self.place.town.quiet()

    def writes(self) -> int:
        """Count the writes to check runs."""
        records = self.place.town.github.requests.records
        return sum(r.method in ("POST", "PATCH") and "/check-runs" in r.route for r in records)


@asynccontextmanager
async def device_town(database_url: str, bucket: World, **options: Any) -> AsyncIterator[Devices]:
    """Start a town whose targets accept requests."""
    async with lab_town(database_url, bucket, **{"targets": TARGETS, **options}) as place:
        yield Devices(place)
