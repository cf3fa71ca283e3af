"""What a bot asks GitHub for while nothing happens: its requests do not grow with its repositories."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from croniter import croniter  # type: ignore[import-untyped]

from bot.app.doctor.doctor import EVERY
from bot.app.load import parse_config
from bot.app.registration import EVENTS, PERMISSIONS
from bot.app.serve import Bot, open_bot
from bot.config.environment import Settings
from bot.github.limits.ranks import Rank, ranked
from handlers.repository_file.sweep import LISTED_FROM, PAUSE
from sandbox import GitHubSandbox
from tests.github.virtual import JumpingTime
from tests.processes import lent_pool
from tests.tables import with_tables

MINUTE = 60
DELIVERIES = "GET /app/hook/deliveries"
LIST, TOKEN = "GET /installation/repositories", "POST /app/installations/{installation_id}/access_tokens"
CONTENTS = "GET /repos/{owner}/{repo}/contents/{path}"
ALWAYS = {DELIVERIES: 60 + 6, "GET /app": 6, "GET /app/hook/config": 6, "GET /app/installations": 1}
"""The requests of an hour, whatever the number of repositories: redelivery each minute, the doctor every ten."""


@dataclass
class Night:
    """A bot of which nobody wants anything, and the clocks of all its parts."""

    github: GitHubSandbox
    bot: Bot
    time: JumpingTime

    async def pass_minutes(self, minutes: int) -> Counter[str]:
        """Run everything that the bot does by itself; return the requests of this time."""
        self.github.requests.clear()
        engine = self.bot.engine
        tasks = {task.periodic_id: task for task in engine._app.periodic_registry.periodic_tasks.values()}
        midnight = datetime(2026, 11, 20, tzinfo=UTC)
        for minute in range(minutes):
            if minute * MINUTE % EVERY == 0:
                with ranked(Rank.SWEEP):
                    await self.bot.watch.doctor.examine(idle=True)
            for name, work in engine._timers._work.items():
                if croniter.match(tasks[name].cron, midnight + timedelta(minutes=minute)):
                    await work()
            self.time.now += MINUTE
            self.github.clock.advance(seconds=MINUTE)
        return self.github.requests.counts()


@asynccontextmanager
async def night(folder: Path, repositories: int, owners: int) -> AsyncIterator[Night]:
    """Open a bot with as many repositories of as many owners."""
    names = [f"octo-org-{number % owners}/compiler-{number}" for number in range(repositories)]
    github, jumping = GitHubSandbox(), JumpingTime(time.time())
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(github.serve())
        app = github.create_app("nightjar", webhook_secret="0123456789abcdef", permissions=PERMISSIONS, events=EVENTS)
        for name in names:
            app.install(github.create_repository(name))
        settings = Settings.from_environment(
            {
                "GITHUB_APP_ID": str(app.id),
                "GITHUB_PRIVATE_KEY": app.private_key,
                "GITHUB_WEBHOOK_SECRET": "0123456789abcdef",
                "GITHUB_API_URL": url,
                "DATABASE_URL": with_tables(f"sqlite:///{folder}/nightjar.db"),
            }
        )
        config = parse_config(("repositories:\n" + "".join(f"  {name}:\n" for name in names)).encode(), "app.yaml")
        pool = await stack.enter_async_context(lent_pool())
        bot = open_bot(config, settings, clock=jumping.wall, pool=pool, timing=jumping.timing())
        yield Night(github, await stack.enter_async_context(bot), jumping)
        assert not github.violations, github.violations


@pytest.mark.exhaustive("1-1", "10-1")
@pytest.mark.parametrize(("repositories", "owners"), [(1, 1), (10, 1), (100, 1), (100, 10)])
async def test_the_requests_of_an_idle_hour_do_not_grow_with_repositories(
    tmp_path: Path, repositories: int, owners: int
) -> None:
    """The bot made 18 requests an hour for each repository."""
    async with night(tmp_path, repositories, owners) as idle:
        first = await idle.pass_minutes(60)
        # At the start, each installation is listed and each file is read, with a token of each kind.
        assert first[LIST] <= 2 * owners + 1
        assert first[TOKEN] <= 2 * owners
        assert first[CONTENTS] == repositories
        assert await idle.pass_minutes(60) == ALWAYS
        idle.time.now += PAUSE
        idle.github.clock.advance(seconds=PAUSE)
        later = await idle.pass_minutes(60)
        # The sweep of files lists the owners' repositories, and reads the files of owners with few.
        is_listed = repositories // owners >= LISTED_FROM
        # A full page may have grown, so GitHub is asked for the next one.
        assert later[LIST] in ((owners, owners + repositories // 100) if is_listed else (0,))
        assert later[CONTENTS] == (0 if is_listed else repositories)
        # Each may need tokens, as the former ones have ended.
        assert later.total() <= sum(ALWAYS.values()) + 3 * owners + repositories // 100
