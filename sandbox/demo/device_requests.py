"""Tests on request: a contributor asks, a maintainer approves, agents test; and one is killed."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from sandbox.demo import two_weeks as story
from sandbox.demo.agents import HANGS, DemoAgent, device
from sandbox.demo.lab import save_run
from sandbox.demo.mirror import AUTHOR, Mirror, push_to_fork
from sandbox.demo.stage import DemoStage
from sandbox.demo.two_weeks import GPU, LAB, LOG_NAME, TARGET
from sandbox.model.checks import CheckRun
from sandbox.model.pulls import PullRequest

BOT = "nightjar[bot]"
TITLE = "[TIR] Lower loops as in 0.25"
BODY = "This runs on devices, so somebody should test it there."
BRANCH = "lowering-of-0.25"
TARGETS = (TARGET, GPU)
TOKEN = ("lab", "token", "create", LAB, "--expires", "1d")


class DeviceRequests:
    """The scripted contributor, maintainer and agents, and what the bot must do with them."""

    def __init__(self, demo: DemoStage) -> None:
        self.on = demo

    async def act(self) -> None:
        """Play it from the request to the last check run."""
        async with AsyncExitStack() as ending:
            folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="nightjar-demo-lab-")))
            creating = asyncio.create_task(self._token())
            ending.push_async_callback(_ended, creating)
            mirror, pull = await self._pull_request(folder)
            await self._asked_and_approved(pull)
            token = await creating
            report, log = await asyncio.to_thread(save_run, folder, story.report_of_pull_request(TARGET))
            agents = [
                DemoAgent("agent-1", [TARGET, GPU], device(report, log), folder, mirror, self._report),
                DemoAgent("agent-2", [GPU], HANGS, folder, mirror, self._report),
            ]
            for agent in agents:
                ending.push_async_callback(agent.end)
            await self._tested(pull, agents, token)
            await self.on.github.delivered()
            self.on.narrator.update()

    async def _token(self) -> str:
        """Make the lab's token, as the operator does."""
        bot = self.on.bot
        code, stdout, err = await bot.run(*TOKEN, "--config", str(bot.config))
        assert code == 0, f"nightjar {' '.join(TOKEN)} ended with {code}:\n{stdout}{err}"
        return stdout.split()[0]

    async def _pull_request(self, folder: Path) -> tuple[Path, PullRequest]:
        demo = self.on
        demo.github.clock.advance(seconds=1)
        files = {"src/tir/lower.cc": "// As in 0.25.\n"}
        path = folder / "mirror"
        path.mkdir()
        mirror = await asyncio.to_thread(Mirror, path)
        await asyncio.to_thread(push_to_fork, demo.repo, mirror, BRANCH, files, TITLE)
        return path, demo.repo.open_pull_request(AUTHOR, TITLE, BODY, branch=BRANCH, fork=True)

    async def _asked_and_approved(self, pull: PullRequest) -> None:
        demo = self.on
        pull.comment(AUTHOR, f"@ci test on {TARGET} {GPU}")
        await demo.check("a contributor's request waits for approval", lambda: _answers(pull, "waiting for approval"))
        await demo.check("and has no check run yet", lambda: not any(self._checks(pull, target) for target in TARGETS))
        pull.comment("octocat", "@ci approve tests")
        await demo.check("a maintainer approves exactly this commit", lambda: _answers(pull, "Approved on"))
        await demo.check("then every test is queued", lambda: all(self._checks(pull, target) for target in TARGETS))

    async def _tested(self, pull: PullRequest, agents: list[DemoAgent], token: str) -> None:
        demo, (first, second) = self.on, agents
        await second.start(demo.bot.url, token)
        await demo.check("an agent claims a job", lambda: second.claimed(1))
        await first.start(demo.bot.url, token)
        await demo.check("another agent claims another one", lambda: first.claimed(1))
        await demo.check(
            "the check run shows them that a test runs", lambda: self._newest(pull, GPU).status != "queued"
        )
        await second.end()
        demo.narrator.say(f"{second.name} is killed in the middle of its test (SIGKILL)")
        await demo.check("an agent's results have the comparison of a nightly run", self._says(pull, TARGET, "1 new"))
        await demo.check("the killed agent's job is handed out again", lambda: first.claimed(2))
        await demo.check("and its results arrive", self._says(pull, GPU, "1 new"))
        ends = [self._newest(pull, target).conclusion for target in TARGETS]
        await demo.check("no check run is left pending", lambda: ends == ["neutral"] * 2)
        for target in TARGETS:
            await self._linked(pull, target)

    async def _linked(self, pull: PullRequest, target: str) -> None:
        url = self._newest(pull, target).details_url or ""
        assert url.startswith(self.on.bot.url), f"the Details of {target} lead to {url}"
        async with self.on.http.get(url, headers={"Accept": "text/html"}) as answer:
            page = await answer.text()
        await self.on.check(f"the Details of {target} lead to the dashboard", lambda: f"files/{LOG_NAME}" in page)

    def _checks(self, pull: PullRequest, target: str) -> list[CheckRun]:
        """Return every check run of a target on the head, oldest first."""
        suites = [suite for suite in self.on.repo.suites if suite.head_sha == pull.head_sha]
        return [run for suite in suites for run in suite.runs if run.name == f"hardware/{LAB}/{target}"]

    def _newest(self, pull: PullRequest, target: str) -> CheckRun:
        return self._checks(pull, target)[-1]

    def _says(self, pull: PullRequest, target: str, words: str) -> Callable[[], bool]:
        return lambda: words in (self._newest(pull, target).title or "")

    def _report(self, line: str) -> None:
        self.on.narrator.update()
        self.on.narrator.say(line)


async def _ended(task: asyncio.Task[object]) -> None:
    """Cancel a task, unless it has ended, and wait for it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _answers(pull: PullRequest, text: str) -> bool:
    return any(text in comment.body for comment in pull.comments_by(BOT))
