"""A town to hold conversations in: a GitHub, a repository, and the real bot in this process, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.config import parse_config
from bot.serve import Address, Bot, running
from bot.settings import Settings
from sandbox import App, GitHubSandbox, PullRequest, Repository
from tests.waiting import until

SECRET = "only-the-tests-know-this-secret"
REPOSITORY = "octocat/compiler"
PEOPLE = {"hubot": "write", "triager": "triage", "reader": "read"}
CONFIG = """
repositories:
  octocat/compiler:
"""
BOT = "nightjar[bot]"


@dataclass(frozen=True)
class Town:
    """The places of a conversation. People are `octocat` (admin), `hubot`, `triager`, `reader`, and strangers."""

    github: GitHubSandbox
    app: App
    repo: Repository
    bot: Bot
    url: str

    async def quiet(self) -> None:
        """Wait until every webhook was answered and nothing is left that the bot would do about them."""
        while True:
            await self.github.delivered()
            seen = len(self.github.webhooks.deliveries)
            await until(self._settled)
            if len(self.github.webhooks.deliveries) == seen and self.github.webhooks.idle:
                return

    async def _settled(self) -> bool:
        return all(record.settled for record in await self.bot.engine.journal.recent(limit=500))

    def answers(self, pull: PullRequest) -> list[str]:
        """Return what the bot wrote on a pull request, oldest first."""
        return [comment.body for comment in pull.comments_by(BOT)]


@asynccontextmanager
async def town(
    database_url: str,
    *,
    config: str = CONFIG,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Town]:
    """Start everything; at the end the bot has broken none of GitHub's rules."""
    github = GitHubSandbox()
    async with github.serve() as api_url:
        app = github.create_app("nightjar", webhook_secret=SECRET)
        repo = github.create_repository(REPOSITORY, people=PEOPLE)  # type: ignore[arg-type]
        app.install(repo)
        settings = Settings.from_environment(
            {
                "GITHUB_APP_ID": str(app.id),
                "GITHUB_PRIVATE_KEY": app.private_key,
                "GITHUB_WEBHOOK_SECRET": SECRET,
                "GITHUB_API_URL": api_url,
                "DATABASE_URL": database_url,
                **(environment or {}),
            }
        )
        async with running(parse_config(config.encode(), "app.yaml"), settings, Address("127.0.0.1", 0)) as at_work:
            url = f"http://127.0.0.1:{at_work.port}"
            app.webhook_url = f"{url}/webhook"
            yield Town(github, app, repo, at_work.bot, url)
        assert not github.violations, github.violations
