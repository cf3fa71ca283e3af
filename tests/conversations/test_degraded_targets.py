"""A target without good nightly runs is degraded by one tier, and two good runs restore it, with the whole bot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.app.load import parse_config
from bot.results.service import RESULTS
from handlers.device_tests.degraded.reporting import TARGET_CHANGED
from handlers.device_tests.degraded.sweep import DEGRADED_SWEEP
from handlers.device_tests.degraded.targets import judge_targets
from handlers.device_tests.degraded.texts import issue_of_target
from handlers.device_tests.store import JOBS
from handlers.results.watch import WATCH
from sandbox import PullRequest
from sandbox.model.issues import Issue
from tests.bucket import World
from tests.conversations.lab import LAB, LabTown, junit, lab_town
from tests.conversations.town import BOT, REPOSITORY

HEXAGON, MALI, ADRENO = "hexagon-v73", "mali", "adreno"
TARGETS = "{hexagon-v73: {tier: 2, sticky: true}, mali: {tier: 1}, adreno: nightly}"
GOOD = junit(test_add="passed", test_mul="passed")
INFRA = junit(**{f"test_{n}": "ConnectionError: no device" for n in range(20)})
HOUR = 3600.0


@dataclass
class Targets:
    """A lab in a town; its target adreno is always healthy."""

    place: LabTown

    async def nightly_run(self, hexagon: bytes | None = GOOD, mali: bytes | None = GOOD) -> str:
        """Let the lab test a nightly commit on all targets; a target whose file is None uploads nothing."""
        sha = self.place.nightly_run()
        for target, content in ((HEXAGON, hexagon), (MALI, mali), (ADRENO, GOOD)):
            if content is not None:
                self.place.upload(sha, {"a.xml": content}, target=target)
        await self.place.settle()
        return sha

    async def later(self, hours: float) -> None:
        """Let time pass, with the bot at work."""
        await self.check()
        self.place.time.ahead += hours * HOUR
        await self.check()
        self.place.time.ahead += HOUR
        await self.check()

    async def check(self, times: int = 1) -> None:
        """Let the bot read the bucket, and let replicas evaluate the targets at the same moment."""
        services = self.place.town.bot.services
        await services.part(WATCH).tick()
        await self.place.town.quiet()
        await asyncio.gather(*(services.part(DEGRADED_SWEEP).tick() for _ in range(times)))
        await self.place.town.quiet()

    @property
    def issues(self) -> list[Issue]:
        return [issue for issue in self.place.town.repo.issues.values() if issue.user.login == BOT]

    @property
    def issue(self) -> Issue:
        (issue,) = self.issues
        return issue

    async def ask(self, *names: str) -> tuple[PullRequest, str]:
        """Open a pull request and ask for tests; return it with the bot's answer."""
        pull = self.place.town.repo.open_pull_request("hubot", "Faster")
        await self.place.town.quiet()
        if names:
            pull.comment("hubot", f"@ci test on {' '.join(names)}")
            await self.place.town.quiet()
        answers = self.place.town.answers(pull)
        return pull, answers[-1] if answers else ""

    async def requested(self, pull: PullRequest) -> list[str]:
        jobs = await self.place.town.bot.services.part(JOBS).of_pull(self.place.town.repo.id, pull.number)
        return [job.target for job in jobs]

    async def page(self) -> dict[str, Any]:
        """Return the API's answer about the lab's targets."""
        address = f"{self.place.town.url}/api/v1/repos/{REPOSITORY}/labs/{LAB}"
        async with aiohttp.ClientSession() as session, session.get(address) as answer:
            return {row["target"]: row for row in (await answer.json())["targets"]}


@pytest.fixture
async def targets(tmp_path: Path, aws_world: World) -> AsyncIterator[Targets]:
    async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world, targets=TARGETS) as place:
        yield Targets(place)


async def test_a_target_without_nightly_runs_accepts_no_requests_until_two_are_good(targets: Targets) -> None:
    await targets.nightly_run()
    missing = await targets.nightly_run(hexagon=None)
    await targets.later(22)
    assert targets.issues == []
    await targets.later(2)
    issue = targets.issue
    assert (issue.title, issue.state) == (f"Target {LAB}/{HEXAGON} is degraded", "open")
    issue_text = str(issue.body)
    assert f"No nightly run of target `{HEXAGON}` of lab `{LAB}` has had usable results since 20" in issue_text
    assert "Until then the target accepts no requests." in issue_text
    assert "I'll close this issue after 2 good nightly runs in a row." in issue_text
    assert "`@example-lab-ci`" in issue_text
    pull, answer = await targets.ask(HEXAGON, MALI)
    assert f"`{LAB}/{HEXAGON}` accepts no requests now: no nightly run has had usable results since 20" in answer
    assert ("UTC (1 is missing). It will accept requests again after 2 good nightly runs in a row.") in answer
    assert await targets.requested(pull) == [MALI]
    pull.comment("hubot", "@ci help")
    await targets.place.town.quiet()
    assert "Targets: `mali`." in targets.place.town.answers(pull)[-1]
    pull.label("hubot", f"test: {HEXAGON}")
    await targets.place.town.quiet()
    (check,) = targets.place.checks(pull.head_sha, f"hardware/{LAB}/{HEXAGON}")
    assert (check.conclusion, check.title) == ("neutral", "Not requested: the target is degraded")
    assert "This target is degraded: no nightly run has had usable results since 20" in str(check.summary)
    row = (await targets.page())[HEXAGON]
    assert (row["tier"], row["degraded"]["sha"]) == (3, missing)
    assert (row["degraded"]["infra"], row["degraded"]["missing"]) == (0, 1)
    assert {name: row["degraded"] for name, row in (await targets.page()).items() if name != HEXAGON} == {
        MALI: None,
        ADRENO: None,
    }

    first = await targets.nightly_run()
    (check,) = targets.place.checks(first)
    assert "This target is degraded: no nightly run has had usable results since 20" in str(check.summary)
    await targets.check()
    assert (issue.state, issue.comments) == ("open", [])
    second = await targets.nightly_run()
    await targets.check()
    assert issue.state == "closed"
    (comment,) = issue.comments
    assert f"Target `{LAB}/{HEXAGON}` is restored: 2 nightly runs in a row were good." in comment.body
    pull, answer = await targets.ask(HEXAGON)
    assert (await targets.requested(pull), answer) == ([MALI, HEXAGON], "")
    assert (await targets.page())[HEXAGON]["degraded"] is None
    targets.place.check(second).rerequest("hubot")
    await targets.place.town.quiet()
    assert "degraded" not in str(targets.place.checks(second)[-1].summary)
    assert await targets.place.town.failures() == []


@pytest.mark.exhaustive
async def test_a_degraded_target_of_tier_1_tests_no_pushes_but_accepts_requests(targets: Targets) -> None:
    await targets.nightly_run()
    for _ in range(2):
        await targets.nightly_run(mali=INFRA)
    await targets.later(24)
    assert "2 nightly runs were infrastructure failures." in str(targets.issue.body)
    assert "Until then pushes are not tested here." in str(targets.issue.body)
    pull, _ = await targets.ask()
    assert await targets.requested(pull) == []
    pull, answer = await targets.ask(MALI)
    assert (await targets.requested(pull), answer) == ([MALI], "")
    check = targets.place.checks(pull.head_sha, f"hardware/{LAB}/{MALI}")[-1]
    assert "People can still request a test with a command or a label." in str(check.summary)


async def test_many_replicas_and_repeated_deliveries_open_one_issue(targets: Targets) -> None:
    await targets.nightly_run()
    await targets.nightly_run(hexagon=None)
    await targets.later(23)
    targets.place.time.ahead += HOUR
    await targets.check(times=4)
    engine = targets.place.town.bot.engine
    for record in await engine.journal.recent(limit=500):
        if record.event == TARGET_CHANGED.name:
            await engine.replay(record.guid)
    await targets.place.town.quiet()
    await targets.later(3)
    assert (targets.issue.state, targets.issue.comments) == ("open", [])


async def test_an_outage_of_the_bot_degrades_no_target(targets: Targets) -> None:
    await targets.nightly_run()
    await targets.check()
    sha = targets.place.nightly_run()
    targets.place.upload(sha, {"a.xml": GOOD}, target=ADRENO)
    targets.place.time.ahead += 26 * HOUR
    await targets.check()
    targets.place.upload(sha, {"a.xml": GOOD})
    targets.place.upload(sha, {"a.xml": GOOD}, target=MALI)
    targets.place.time.ahead += 2 * HOUR - 60
    await targets.check()
    assert targets.issues == []


@pytest.mark.parametrize("new_targets", ["{hexagon-v73: nightly, mali: {tier: 1}}", "[mali, adreno]"])
async def test_a_target_that_loses_its_requests_is_no_longer_degraded(targets: Targets, new_targets: str) -> None:
    await targets.nightly_run()
    await targets.nightly_run(hexagon=None)
    await targets.later(24)
    place, services = targets.place, targets.place.town.bot.services
    settings = f"{{bucket: {place.bucket.name}, labs: {{{LAB}: {{targets: {new_targets}}}}}}}"
    config = parse_config(f"repositories: {{{REPOSITORY}: {{results: {settings}}}}}".encode(), "app.yaml")
    store, repository = services.part(RESULTS).store, (REPOSITORY, place.town.repo.id)
    judgements = await judge_targets(config, services.records, store, *repository, place.time())
    (judgement,) = [judgement for judgement in judgements if judgement.must_report]
    assert judgement.new_state is not None
    issue = issue_of_target(judgement.target, judgement.new_state, None, ())
    assert (issue.body, issue.key) == ("", f"degraded:{LAB}/{HEXAGON}")
    assert issue.news == f"Target `{LAB}/{HEXAGON}` is restored: app.yaml no longer enables requests for it."
