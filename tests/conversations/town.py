"""A town is the setting of a conversation: a GitHub, a repository, and the real bot in this process, over real HTTP."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, LiteralString

import aiohttp

from bot.app.address import Address
from bot.app.load import parse_config
from bot.app.registration import EVENTS, PERMISSIONS
from bot.app.serve import Bot, running
from bot.config.environment import Settings
from bot.engine.service import WorkerPace
from bot.engine.sql.errors import DatabaseFailure
from bot.github.limits.ledger import Allowance
from sandbox import App, GitHubSandbox, PullRequest, Repository
from sandbox.jenkins import JenkinsJob, JenkinsSandbox
from sandbox.users import Role
from tests.conversations.linked_effects import unlinked_effects
from tests.processes import lent_pool
from tests.tables import with_tables
from tests.waiting import until

SECRET = "only-the-tests-know-this-secret"
REPOSITORY = "octocat/compiler"
PEOPLE: dict[str, Role] = {"hubot": "write", "triager": "triage", "reader": "read"}
CONFIG = """
repositories:
  octocat/compiler:
"""
BOT = "nightjar[bot]"
LAST_SCANS: LiteralString = (
    "SELECT id FROM procrastinate_jobs WHERE lock = 'timer:repository-files' AND status = 'succeeded'"
)
"""Finds a finished run of the timer that reads the repositories' own settings."""
UNSETTLED: LiteralString = "SELECT id FROM procrastinate_jobs WHERE status IN ('todo', 'doing') LIMIT 1"
"""Finds a job that the bot has not finished. It runs hundreds of times per test, so it does not read deliveries."""
UNHURRIED = Allowance(
    writes_per_minute=10_000, writes_per_hour=100_000, rest_points_per_minute=1_000_000, write_spacing=0
)
"""github.com requires a second between two writes; these conversations do not."""
SOON = WorkerPace(check_after=0.3)
"""The time after which the bot checks whether a write without an answer took effect, instead of 12 seconds."""

SELDOM = 0.03
"""Seconds between two checks whether the bot is idle; each costs as much as a request."""


@dataclass(frozen=True)
class Town:
    """A GitHub with the real bot. People are `octocat` (admin), `hubot`, `triager`, `reader`, and strangers."""

    github: GitHubSandbox
    app: App
    repo: Repository
    bot: Bot
    url: str

    async def quiet(self) -> None:
        """Wait until every webhook was answered and the bot has no work left."""
        while True:
            await self.github.delivered()
            seen = len(self.github.webhooks.deliveries)
            await until(self._settled, pause=SELDOM)
            if len(self.github.webhooks.deliveries) == seen and self.github.webhooks.idle:
                return

    async def started(self) -> None:
        """Wait until the bot has finished its startup, in which timers send requests to GitHub."""

        async def scanned() -> bool:
            return bool(await self.bot.engine.database.connector.execute_query_all_async(LAST_SCANS))

        await until(scanned)
        await self.bot.watch.checked.wait()

    async def _settled(self) -> bool:
        try:
            return not await self.bot.engine.database.connector.execute_query_all_async(UNSETTLED)
        except DatabaseFailure:
            return False  # a test keeps the database away, or locked, for longer than the bot waits for it

    async def ask(self, path: str, token: str = "") -> tuple[int, str, Any]:
        """GET a path of the bot's own, with a token if given; returns status, content type and JSON."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with aiohttp.ClientSession(headers=headers) as session, session.get(f"{self.url}{path}") as response:
            return response.status, response.content_type, await response.json(content_type=None)

    async def failures(self) -> list[str]:
        """Return the texts of all jobs that failed for good, from the audit record."""
        records = await self.bot.engine.journal.recent(limit=500, failed=True)
        return [job.text for record in records for job in record.jobs if job.state == "failed"]

    def answers(self, pull: PullRequest) -> list[str]:
        """Return what the bot wrote on a pull request, oldest first."""
        return [comment.body for comment in pull.comments_by(BOT)]


class DayClock:
    """A clock of a town for tests that name days: it starts at noon of `day`, so no test runs across midnight."""

    def __init__(self) -> None:
        noon = datetime.now(UTC).replace(hour=12)
        self.day = noon.date()
        self._ahead = noon.timestamp() - time.time()

    def now(self) -> float:
        """Return the seconds since 1970."""
        return time.time() + self._ahead


@asynccontextmanager
async def town(
    database_url: str,
    *,
    config: str = CONFIG,
    environment: Mapping[str, str] | None = None,
    permissions: Mapping[str, str] = PERMISSIONS,
    teams: Mapping[str, Sequence[str]] | None = None,
    files: Mapping[str, str] | None = None,
    now: Callable[[], float] = time.time,
    pace: WorkerPace = SOON,
    allowance: Allowance = UNHURRIED,
) -> AsyncIterator[Town]:
    """Start everything; at the end, check that the bot broke none of GitHub's rules and links what each effect did.

    `now` is the clock of timers and results, and `allowance` holds the bot's limits at GitHub. `permissions` are the
    App's. With `teams`, the repository's owner is an organization with these teams. `files` are in the repository when
    the bot starts.
    """
    github = GitHubSandbox()
    async with github.serve() as api_url, lent_pool() as pool:
        app = github.create_app("nightjar", webhook_secret=SECRET, permissions=permissions, events=EVENTS)
        repo = github.create_repository(REPOSITORY, people=PEOPLE, teams=teams, files=files)
        app.install(repo)
        settings = Settings.from_environment(
            {
                "GITHUB_APP_ID": str(app.id),
                "GITHUB_PRIVATE_KEY": app.private_key,
                "GITHUB_WEBHOOK_SECRET": SECRET,
                "GITHUB_API_URL": api_url,
                "DATABASE_URL": with_tables(database_url),
                **(environment or {}),
            }
        )
        address = Address("127.0.0.1", 0)
        async with running(
            parse_config(config.encode(), "app.yaml"), settings, address, allowance, now, pace, pool=pool
        ) as at_work:
            url = f"http://127.0.0.1:{at_work.port}"
            app.webhook_url = f"{url}/webhook"
            yield Town(github, app, repo, at_work.bot, url)
            lost = await _unlinked(at_work.bot, github)
        assert not lost, lost
        assert not github.violations, github.violations
        assert not (broad := {token.too_broad for token in github.tokens.all} - {None}), broad


async def _unlinked(bot: Bot, github: GitHubSandbox) -> list[str]:
    try:
        return await unlinked_effects(bot.engine.database.connector, github)
    except DatabaseFailure:
        return []  # the test has removed the database


JENKINS_CONFIG = """
repositories:
  octocat/compiler:
    rerun: {jenkins: [{url: "%s"}]}
"""


@dataclass(frozen=True)
class Works:
    """A town with a Jenkins, whose jobs post statuses on pull requests."""

    town: Town
    jenkins: JenkinsSandbox

    def job(self, pull: PullRequest, name: str, result: str | None) -> JenkinsJob:
        """Add a job of a pull request with one build, which is still running if it has no result."""
        job = self.jenkins.add_job(f"{name}/PR-{pull.number}", pull=pull, context=f"{name}/pr-head")
        job.trigger()
        if result is not None:
            job.builds[-1].finish(result)
        return job


@asynccontextmanager
async def works(database_url: str) -> AsyncIterator[Works]:
    """Start a town with a Jenkins."""
    jenkins = JenkinsSandbox()
    async with jenkins.serve() as url:
        environment = {"JENKINS_USER": jenkins.user, "JENKINS_TOKEN": jenkins.token}
        async with town(database_url, config=JENKINS_CONFIG % url, environment=environment) as place:
            yield Works(place, jenkins)


@asynccontextmanager
async def replica_of(town: Town, config: str, clock: Callable[[], float]) -> AsyncIterator[Bot]:
    """Run a second bot on the database of a town."""
    parsed, settings = parse_config(config.encode(), "app.yaml"), town.bot.settings
    async with lent_pool() as pool, running(parsed, settings, None, UNHURRIED, clock, pool=pool) as replica:
        yield replica.bot
