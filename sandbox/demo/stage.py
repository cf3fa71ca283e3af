"""Everything that the demo has running on this machine: GitHub, Jenkins, S3, the bot, and a lab."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from bot.app.registration import EVENTS, PERMISSIONS
from sandbox.bot_process import BotProcess, free_port
from sandbox.bucket import BucketServer
from sandbox.demo.lab import LAB, LOST, NEW_LAB, NEW_TARGET, OTHER, TARGET, DemoLab
from sandbox.demo.narrator import Narrator
from sandbox.demo.reports import test_files
from sandbox.github import GitHubSandbox
from sandbox.jenkins import JenkinsSandbox
from sandbox.model.repository import Repository

SECRET = "a-webhook-secret-for-the-demo-alone"
REPOSITORY = "octocat/compiler"
BUCKET = "device-results"
NIGHTLY_FILE = f"results/{REPOSITORY}/nightly.json"
CI = "cpu/branch"
"""The commit status that a commit of main needs before labs test it."""
CONFIG = """\
mentions: ["@ci"]
public_url: {url}
repositories:
  octocat/compiler:
    rerun:
      jenkins: [{{url: "{jenkins}"}}]
    merge: {{required: [gpu/pr-head]}}
    nightly: {{at: "{at}", timezone: UTC, require: [{ci}]}}
    results:
      bucket: {bucket}
      queue: {queue}
      settle: 3s
      labs:
        {lab}:
          targets: {{{target}: {{{on_request}}}, {other}: {{{on_request}}}, {lost}: {{{on_request}}}}}
          presigned_uploads: true
          contacts: ["@example-lab-ci"]
          reproduce: pytest {{test}}
        {new_lab}: {{targets: [{new_target}]}}
"""
ON_REQUEST = "tier: 2, suites: [te], timeout: 5m"
PATIENCE = 60.0
"""The most seconds for a check, on a slow machine too."""


@dataclass
class DemoStage:
    """Everything that the demo uses, and the checks that have passed."""

    github: GitHubSandbox
    jenkins: JenkinsSandbox
    repo: Repository
    bot: BotProcess
    lab: DemoLab
    http: aiohttp.ClientSession
    narrator: Narrator
    passed: list[str] = field(default_factory=list)
    lab_commands: list[str] = field(default_factory=list)
    """The commands of the first run of a new lab."""

    async def check(self, expectation: str, condition: Callable[[], object]) -> None:
        """Wait until the bot has done something, and print what happens meanwhile."""

        def met() -> object:
            self.narrator.update()
            return condition()

        await self.github.until(met, timeout=PATIENCE, what=expectation)
        self.passed.append(expectation)


@asynccontextmanager
async def stage(settings: str = CONFIG) -> AsyncIterator[DemoStage]:
    """Start everything, with settings as a template of app.yaml; stop it at the end."""
    github, jenkins = GitHubSandbox(), JenkinsSandbox()
    with tempfile.TemporaryDirectory(prefix="nightjar-demo-") as name:
        folder = Path(name)
        async with (
            github.serve() as api_url,
            jenkins.serve() as jenkins_url,
            _bucket() as bucket,
            aiohttp.ClientSession() as http,
        ):
            app = github.create_app("nightjar", webhook_secret=SECRET, permissions=PERMISSIONS, events=EVENTS)
            repo = github.create_repository(REPOSITORY, people={"hubot": "write"}, files=test_files("night-1"))
            app.install(repo)
            queue = await asyncio.to_thread(_arrivals, bucket)
            config = folder / "app.yaml"
            port = free_port()
            config.write_text(_config(settings, f"http://127.0.0.1:{port}", jenkins_url, queue), encoding="utf-8")
            environment = {
                "GITHUB_APP_ID": str(app.id),
                "GITHUB_PRIVATE_KEY": app.private_key,
                "GITHUB_WEBHOOK_SECRET": SECRET,
                "GITHUB_API_URL": api_url,
                "DATABASE_URL": f"sqlite:///{folder}/nightjar.db",
                "JENKINS_USER": jenkins.user,
                "JENKINS_TOKEN": jenkins.token,
                **bucket.environment,
            }
            bot = BotProcess(environment, config=config, module="sandbox.demo.bot", port=port)
            lab = DemoLab(bucket, REPOSITORY, BUCKET)
            try:
                await bot.start()
                app.webhook_url = f"{bot.url}/webhook"
                yield DemoStage(github, jenkins, repo, bot, lab, http, Narrator(github, repo))
            finally:
                await bot.stop()


@asynccontextmanager
async def _bucket() -> AsyncIterator[BucketServer]:
    server = BucketServer()
    starting = asyncio.create_task(asyncio.to_thread(server.start))
    try:
        await asyncio.shield(starting)
        yield server
    finally:
        await asyncio.wait({starting})
        server.stop()


def _config(settings: str, url: str, jenkins: str, queue: str) -> str:
    # Half a day from now, so that only the demo runs the timer.
    time_of_day = f"{(time.gmtime().tm_hour + 12) % 24:02}:00"
    targets = {"target": TARGET, "other": OTHER, "lost": LOST, "on_request": ON_REQUEST}
    targets |= {"new_lab": NEW_LAB, "new_target": NEW_TARGET}
    return settings.format(
        url=url, jenkins=jenkins, at=time_of_day, ci=CI, bucket=BUCKET, queue=queue, lab=LAB, **targets
    )


def _arrivals(server: BucketServer) -> str:
    """Create the bucket, and return the address of the queue that receives every run."""
    server.create_bucket(BUCKET)
    return server.create_queue(BUCKET, "arrivals")
