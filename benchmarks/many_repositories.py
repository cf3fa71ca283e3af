"""A GitHub on which the App is installed in many repositories, and the bot's settings for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.app.registration import EVENTS, PERMISSIONS
from bot.config.environment import Settings
from sandbox import App, GitHubSandbox
from tests.tables import with_tables

SECRET = "0123456789abcdef"
LATENCY = 0.15
"""Seconds that github.com takes for most requests."""
WRITER = "hubot"


@dataclass(frozen=True)
class ManyRepositories:
    """GitHub with the App, and the settings of a bot with an empty SQLite database. `hubot` may write everywhere."""

    github: GitHubSandbox
    app: App
    settings: Settings


def hourly_limit(repositories: int) -> int:
    """Return how many requests an hour GitHub allows an installation with so many repositories.

    https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#primary-rate-limit-for-github-app-installations
    """
    return min(12_500, 5_000 + 50 * max(0, repositories - 20))


@asynccontextmanager
async def many_repositories(folder: Path, names: Sequence[str]) -> AsyncIterator[ManyRepositories]:
    """Serve a GitHub with repositories of these names. There are no webhooks until the caller sets their address."""
    github = GitHubSandbox()
    github.rate_limits.limit = hourly_limit(max(Counter(name.partition("/")[0] for name in names).values()))
    async with github.serve() as url:
        app = github.create_app("nightjar", webhook_secret=SECRET, permissions=PERMISSIONS, events=EVENTS)
        for name in names:
            app.install(github.create_repository(name, people={WRITER: "write"}))
        settings = Settings.from_environment(
            {
                "GITHUB_APP_ID": str(app.id),
                "GITHUB_PRIVATE_KEY": app.private_key,
                "GITHUB_WEBHOOK_SECRET": SECRET,
                "GITHUB_API_URL": url,
                "DATABASE_URL": with_tables(f"sqlite:///{folder}/nightjar.db"),
            }
        )
        yield ManyRepositories(github, app, settings)
