"""Everything that the demo has running on this machine: GitHub, Jenkins, S3, the bot, and a lab."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp

from bot.app.registration import EVENTS, PERMISSIONS
from sandbox.bot_process import BotProcess, free_port
from sandbox.bucket import BucketServer
from sandbox.demo import two_weeks as story
from sandbox.demo.lab import NEW_LAB, NEW_TARGET, ROOT, DemoLab
from sandbox.demo.narrator import Narrator
from sandbox.demo.past import CI, GPU_CI, TwoWeeks, bot_after_two_weeks, nightly_hour
from sandbox.github import GitHubSandbox
from sandbox.jenkins import JenkinsSandbox
from sandbox.model.apps import App
from sandbox.model.repository import Repository

SECRET = "a-webhook-secret-for-the-demo-alone"
REPOSITORY = "octocat/compiler"
BUCKET = "device-results"
OPERATOR = "octocat"
SIGN_IN = {
    "GITHUB_CLIENT_ID": "Iv23liNightjarDemo",
    "GITHUB_CLIENT_SECRET": "a secret of the demo alone",
    "SESSION_SECRET": "0123456789abcdef0123456789abcdef",
}
CONFIG = """\
mentions: ["@ci"]
public_url: {url}
operators: ["@octocat"]
repositories:
  octocat/compiler:
    rerun:
      jenkins: [{{url: "{jenkins}"}}]
    merge: {{required: [{gpu_ci}]}}
    nightly: {{at: "{at}", timezone: UTC, require: [{ci}]}}
    regressions: {{wait: 1s, find: true, comment: true}}
    mute: true
    slow_tests: {{budget: 1m}}
    owners: [{{test: "tests/python/operators/*", owners: ["@monalisa"]}}]
    renames:
      - {{from: "{old_name}", to: "{new_name}"}}
    quarantine:
      - test: "{quarantined}"
        owner: octocat
        reason: The kernel of this board has no performance counters
        issue: https://github.com/octocat/compiler/issues/1
        until: "{until}"
    results:
      bucket: {bucket}
      {source}
      settle: 3s
      labs:
        example-lab:
          targets:
            hexagon-v73: {{{on_request}}}
            adreno: {{{on_request}}}
            {simulator}: {{simulates: {lab}/hexagon-v73}}
          presigned_uploads: true
          contacts: ["@example-lab-ci"]
          reproduce: pytest {{test}}
        hubot-lab:
          targets: {{rpi-5: {{tier: 2, suites: [runtime], timeout: 5m}}, mali: {{}}}}
          contacts: ["@hubot"]
          reproduce: pytest {{test}}
        {new_lab}: {{targets: [{new_target}]}}
"""
ON_REQUEST = "tier: 2, suites: [operators], timeout: 5m"
PATIENCE = 60.0
"""The most seconds for a check, on a slow machine too."""
LOG = ROOT / "build" / "demo.log"


@dataclass
class Machine:
    """What runs on this machine beside the bot, and where the bot will be; `settings` is a template of app.yaml."""

    github: GitHubSandbox
    jenkins: JenkinsSandbox
    app: App
    repo: Repository
    bucket: BucketServer
    folder: Path
    settings: str
    api_url: str
    jenkins_url: str
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        """Return the address of the bot."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the bot's variables."""
        return {
            "GITHUB_APP_ID": str(self.app.id),
            "GITHUB_PRIVATE_KEY": self.app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": self.api_url,
            "DATABASE_URL": f"sqlite:///{self.folder}/nightjar.db",
            "JENKINS_USER": self.jenkins.user,
            "JENKINS_TOKEN": self.jenkins.token,
            **SIGN_IN,
            **self.bucket.environment,
        }

    def config(self, source: str) -> str:
        """Return app.yaml; `source` is the line that says how the bot finds new runs."""
        old, new = story.RENAMED
        return self.settings.format(
            url=self.url,
            jenkins=self.jenkins_url,
            at=f"{nightly_hour(time.time()):02}:00",
            ci=CI,
            gpu_ci=GPU_CI,
            bucket=BUCKET,
            source=source,
            old_name="::".join(old),
            new_name="::".join(new),
            quarantined="::".join(story.QUARANTINED),
            until=(datetime.now(UTC) + timedelta(days=story.NIGHTS)).date().isoformat(),
            on_request=ON_REQUEST,
            lab=story.LAB,
            simulator=story.SIMULATOR,
            new_lab=NEW_LAB,
            new_target=NEW_TARGET,
        )

    @asynccontextmanager
    async def after_two_weeks(self) -> AsyncIterator[TwoWeeks]:
        """Play the two weeks with a bot in this process, which serves its pages while the block runs."""
        weeks = TwoWeeks(self.github, self.repo, self.bucket, BUCKET)
        async with bot_after_two_weeks(weeks, self.app, self.config("poll: 55s"), self.environment, self.port):
            yield weeks


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
        self.expect(expectation, holds=True)

    def expect(self, expectation: str, *, holds: bool) -> None:
        """Check what is so already. Raises AssertionError otherwise."""
        assert holds, f"{expectation}: it is not so"
        self.passed.append(expectation)
        self.narrator.note(f"✔ {expectation}")

    async def page(self, url: str) -> str:
        """Return a page, as a browser requests it."""
        async with self.http.get(url, headers={"Accept": "text/html"}) as answer:
            return await answer.text()


@asynccontextmanager
async def machine(settings: str = CONFIG) -> AsyncIterator[Machine]:
    """Start everything but the bot, with settings as a template of app.yaml; stop it at the end."""
    github, jenkins = GitHubSandbox(), JenkinsSandbox()
    with tempfile.TemporaryDirectory(prefix="nightjar-demo-") as name:
        async with github.serve() as api_url, jenkins.serve() as jenkins_url, _bucket() as bucket:
            app = github.create_app("nightjar", webhook_secret=SECRET, permissions=PERMISSIONS, events=EVENTS)
            app.client_id, app.client_secret = SIGN_IN["GITHUB_CLIENT_ID"], SIGN_IN["GITHUB_CLIENT_SECRET"]
            with github.clock.stopped(github.clock.now() - timedelta(days=story.EARLIER_NIGHTS + story.NIGHTS + 2)):
                repo = github.create_repository(
                    REPOSITORY, people={"hubot": "write", "monalisa": "triage"}, files=story.test_files()
                )
            github.user("octo-friend")
            app.install(repo)
            await asyncio.to_thread(bucket.create_bucket, BUCKET)
            place = Machine(github, jenkins, app, repo, bucket, Path(name), settings, api_url, jenkins_url)
            app.callback_urls = (f"{place.url}/login/callback",)
            yield place


@asynccontextmanager
async def stage(settings: str = CONFIG, *, has_past: bool = True, verbose: bool = True) -> AsyncIterator[DemoStage]:
    """Start everything, and play the two weeks unless `has_past` is false; stop it at the end.

    All that happens is written to `LOG`, and with `verbose` printed.
    """
    async with machine(settings) as place, aiohttp.ClientSession() as http:
        LOG.parent.mkdir(exist_ok=True)
        with LOG.open("w", encoding="utf-8") as log:
            narrator = Narrator(place.github, place.repo, log, verbose=verbose)
            if has_past:
                async with place.after_two_weeks():
                    pass
                narrator.skip()
            queue = await asyncio.to_thread(place.bucket.create_queue, BUCKET, "arrivals")
            config = place.folder / "app.yaml"
            config.write_text(place.config(f"queue: {queue}"), encoding="utf-8")
            bot = BotProcess(
                place.environment, config=config, module="sandbox.demo.bot", port=place.port, report=narrator.note
            )
            try:
                await bot.start()
                place.app.webhook_url = f"{bot.url}/webhook"
                lab = DemoLab(place.bucket, REPOSITORY, BUCKET)
                yield DemoStage(place.github, place.jenkins, place.repo, bot, lab, http, narrator)
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
