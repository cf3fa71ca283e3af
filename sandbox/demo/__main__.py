"""Play the conversation: `python -m sandbox.demo [--once] [--logs]`."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import click

from bot.registration import EVENTS, PERMISSIONS
from sandbox.bot_process import BotProcess
from sandbox.demo.narrator import Narrator
from sandbox.github import GitHubSandbox
from sandbox.jenkins import JenkinsSandbox
from sandbox.pulls import PullRequest
from sandbox.repository import Repository

SECRET = "a-webhook-secret-for-the-demo-alone"
BOT = "nightjar[bot]"
REPOSITORY = "octocat/compiler"
CONFIG = """\
mentions: ["@ci"]
repositories:
  octocat/compiler:
    rerun:
      jenkins: [{{url: "{jenkins}"}}]
"""
TITLE = "[TIR] Vectorize the inner loop of matmul"
BODY = """\
Loads of the innermost loop become vector loads, on targets that have them.

cc @octocat and @octo-friend
"""
BRANCH = "vectorize-matmul"
FILES = {"src/transform/vectorize_loop.cc": "// The innermost loop of a matmul is vectorized.\n"}
PATIENCE = 20.0
INTRODUCTION = """\
A GitHub at {github}, a Jenkins at {jenkins}, and the bot at {bot}.
@hubot has write access to octocat/compiler; @octo-friend is a stranger there.
"""

BROKEN, INTERRUPTED = 1, 128 + signal.SIGINT


@dataclass
class Stage:
    """Everything that the demo has running."""

    github: GitHubSandbox
    jenkins: JenkinsSandbox
    repo: Repository
    bot: BotProcess
    http: aiohttp.ClientSession
    kept: list[str] = field(default_factory=list)

    async def decision(self, pull: PullRequest) -> dict[str, object]:
        """Ask the bot what CI should do, as a CI step would."""
        url = f"{self.bot.url}/api/v1/repos/{REPOSITORY}/pulls/{pull.number}/decision"
        async with self.http.get(url) as answer:
            body: dict[str, object] = await answer.json()
            return body


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    """Start GitHub, Jenkins and the bot; stop them in the end."""
    github, jenkins = GitHubSandbox(), JenkinsSandbox()
    with tempfile.TemporaryDirectory(prefix="nightjar-demo-") as folder:
        async with github.serve() as api_url, jenkins.serve() as jenkins_url, aiohttp.ClientSession() as http:
            app = github.create_app("nightjar", webhook_secret=SECRET, permissions=PERMISSIONS, events=EVENTS)
            repo = github.create_repository(REPOSITORY, people={"hubot": "write"})
            app.install(repo)
            config = Path(folder) / "app.yaml"
            config.write_text(CONFIG.format(jenkins=jenkins_url), encoding="utf-8")
            environment = {
                "GITHUB_APP_ID": str(app.id),
                "GITHUB_PRIVATE_KEY": app.private_key,
                "GITHUB_WEBHOOK_SECRET": SECRET,
                "GITHUB_API_URL": api_url,
                "DATABASE_URL": f"sqlite:///{folder}/nightjar.db",
                "JENKINS_USER": jenkins.user,
                "JENKINS_TOKEN": jenkins.token,
            }
            bot = BotProcess(environment, config=config)
            try:
                await bot.start()
                app.webhook_url = f"{bot.url}/webhook"
                yield Stage(github, jenkins, repo, bot, http)
            finally:
                await bot.stop()


class Play:
    """The scripted contributor, and what the bot promises to do."""

    def __init__(self, on: Stage) -> None:
        self.on = on
        self.pull = on.repo.open_pull_request("hubot", TITLE, BODY, branch=BRANCH, files=FILES)
        self.narrator = Narrator(on.github, self.pull)

    async def promise(self, what: str, condition: Callable[[], object]) -> None:
        """Wait until the bot has done something, telling what happens meanwhile."""

        def look() -> object:
            self.narrator.look()
            return condition()

        await self.on.github.until(look, timeout=PATIENCE, what=what)
        self.on.kept.append(what)

    async def act(self) -> None:
        """Play it from the first push to green."""
        await self._opening()
        await self._slow_tests()
        await self._typo()
        await self._rerun()
        await self.on.github.delivered()
        self.narrator.look()

    async def _opening(self) -> None:
        pull, repo = self.pull, self.on.repo
        await self.promise("octocat is asked for a review", lambda: _asked(pull) == ["octocat"])
        await self.promise("it says who could not be asked", lambda: _answers(pull, "octo-friend"))
        await self.promise("slow tests are off at first", lambda: _status(repo, pull).startswith("Off"))

    async def _slow_tests(self) -> None:
        pull, repo = self.pull, self.on.repo
        comment = pull.comment("hubot", "@ci run slow tests")
        await self.promise("the command is taken up and done", lambda: _reactions(pull, comment) == ["eyes", "+1"])
        await self.promise("slow tests are on", lambda: _status(repo, pull).startswith("On: asked for by hubot"))
        decision = await self.on.decision(pull)
        self.narrator.aside(f"CI asks what to do, and is told\n{decision}")
        answer = decision["run_slow_tests"]
        on = isinstance(answer, dict) and answer["value"] is True
        await self.promise("CI is told to run slow tests", lambda: on)

    async def _typo(self) -> None:
        pull = self.pull
        comment = pull.comment("hubot", "@ci rerunn failed")
        await self.promise("a typo is answered", lambda: _reactions(pull, comment) == ["eyes", "confused"])
        await self.promise("with what was perhaps meant", lambda: _answers(pull, "`@ci rerun failed`"))

    async def _rerun(self) -> None:
        pull, repo = self.pull, self.on.repo
        run = repo.add_workflow_run(pull.head_sha, "CI", jobs={"lint": None, "unit tests (hexagon)": None})
        job = self.on.jenkins.add_job("compiler-gpu/PR-1", pull=pull, context="gpu/pr-head")
        job.trigger()
        run.finish("failure", {"lint": "success", "unit tests (hexagon)": "failure"})
        job.builds[-1].finish("FAILURE")
        comment = pull.comment("hubot", "@ci rerun")
        await self.promise("what failed on Actions runs again", lambda: run.attempt == 2)
        await self.promise("what failed on Jenkins runs again", lambda: len(job.builds) == 2)
        await self.promise("the rerun is answered", lambda: _reactions(pull, comment) == ["eyes", "+1"])
        again = [each.name for each in run.jobs if each.attempt == 2]
        await self.promise("what was green is left alone", lambda: again == ["unit tests (hexagon)"])
        run.start()
        run.finish("success")
        job.builds[-1].finish("SUCCESS")


def _asked(pull: PullRequest) -> list[str]:
    return [user.login for user in pull.requested_reviewers]


def _answers(pull: PullRequest, text: str) -> bool:
    return any(text in comment.body for comment in pull.comments_by(BOT))


def _status(repo: Repository, pull: PullRequest) -> str:
    status = repo.status(pull.head_sha, "ci/slow-tests")
    return status.description or "" if status else ""


def _reactions(pull: PullRequest, comment: object) -> list[str]:
    return pull.reactions(comment, by=BOT)  # type: ignore[arg-type]


async def play(*, once: bool, logs: bool) -> int:
    """Play the demo until it ends or is interrupted; returns the exit code."""
    playing = asyncio.current_task()
    assert playing is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
    try:
        return await _played(once=once, logs=logs)
    except asyncio.CancelledError:
        return INTERRUPTED


async def _played(*, once: bool, logs: bool) -> int:
    async with stage() as on:
        click.echo(INTRODUCTION.format(github=on.github.url, jenkins=on.jenkins.url, bot=on.bot.url))
        code = await _acted(on)
        if logs or code:
            click.echo("\n".join(on.bot.output), err=True)
        if code == 0:
            click.echo(f"\n{len(on.kept)} promises kept:")
            click.echo("\n".join(f"  ✔ {promise}" for promise in on.kept))
        if not once and code == 0:
            click.echo(_addresses(on))
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
    return code


async def _acted(on: Stage) -> int:
    try:
        await Play(on).act()
        assert not on.github.violations, f"the bot broke GitHub's rules: {on.github.violations}"
    except AssertionError as broken:
        click.echo(f"\n✘ {broken}", err=True)
        return BROKEN
    return 0


def _addresses(on: Stage) -> str:
    pages = {
        "the pull request": f"{on.github.url}/{REPOSITORY}/pull/1",
        "what CI should do": f"{on.bot.url}/api/v1/repos/{REPOSITORY}/pulls/1/decision",
        "the commands": f"{on.bot.url}/help",
        "the bot's health": f"{on.bot.url}/readyz",
        "the bot's metrics": f"{on.bot.url}/metrics",
    }
    lines = [f"  {name + ':':20} {address}" for name, address in pages.items()]
    return "\n".join(["\nLook around:", *lines, "\nCtrl-C ends it."])


@click.command()
@click.option("--once", is_flag=True, help="End when the conversation has ended; exit 0 if every promise was kept.")
@click.option("--logs", is_flag=True, help="Print the bot's log lines too.")
def main(once: bool, logs: bool) -> None:
    """Play a contributor's conversation with the bot."""
    sys.exit(asyncio.run(play(once=once, logs=logs)))


if __name__ == "__main__":
    main()
