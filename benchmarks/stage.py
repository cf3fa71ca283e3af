"""Set the stage of every measurement: the sandbox GitHub in this process, and the real bot in another one."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from benchmarks.processes import cpu_seconds, resident_bytes
from benchmarks.traffic import REPOSITORY, SECRET, mixed, templates, write
from sandbox import App, GitHubSandbox, Repository
from sandbox.bot_process import BotProcess
from tests.postgres import running_server

SQLITE, POSTGRESQL = "sqlite", "postgresql"
DATABASES = (SQLITE, POSTGRESQL)
DURABLE = {"fsync": "on", "full_page_writes": "on"}
"""The tests' server does not wait for the disk. This one does, as a server with real deliveries must."""

NO_BUCKET = {
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""The address of the bucket; nothing listens there."""

PULLS = 200
"""The pull requests of the mix. Each has commands of a different person, unless there are fewer people."""
CHECK_EVERY = 0.2
DRAINED_WITHIN = 600.0
SETTLED_AFTER = 0.3
"""Seconds without a request or a delivery after which nothing more is expected."""
UNLIMITED = "benchmarks.unlimited_bot"
PLENTY = 10_000_000
"""Requests an hour: high, because github.com's limit is not what is measured."""


@dataclass(frozen=True)
class BenchmarkStage:
    """Everything that runs during a measurement."""

    github: GitHubSandbox
    app: App
    repos: list[Repository]
    bot: BotProcess
    http: aiohttp.ClientSession
    folder: Path
    url: str
    """The database's."""

    @property
    def repo(self) -> Repository:
        """Return the first repository."""
        return self.repos[0]

    def cpu(self) -> float:
        """Return the processor time of the bot so far, seconds."""
        return cpu_seconds(self.bot.pid)

    def memory(self) -> int:
        """Return the bot's resident memory, bytes."""
        return resident_bytes(self.bot.pid)

    def database_bytes(self) -> int:
        """Return the size of the SQLite files."""
        return sum(path.stat().st_size for path in self.folder.glob("nightjar.db*"))

    async def waiting(self, *tasks: str) -> float:
        """Return how many jobs of some tasks, or of all, wait by the bot's own metrics."""
        async with self.http.get(f"{self.bot.url}/metrics") as answer:
            return waiting_in(await answer.text(), tasks)

    async def drained(self, *tasks: str, within: float = DRAINED_WITHIN) -> float:
        """Wait until no job of some tasks, or of any, waits; return the seconds that took."""
        began = time.perf_counter()
        async with asyncio.timeout(within):
            while await self.waiting(*tasks) > 0:  # noqa: ASYNC110  # it waits for another process
                await asyncio.sleep(CHECK_EVERY)
        return time.perf_counter() - began

    def mix(self, commands: int, people: int = PULLS) -> Path:
        """Write deliveries of the mix for the load generator, with at least `commands` different commands."""
        made = templates(self.github, self.repo, PULLS, long=True, commands=-(-commands // PULLS), people=people)
        path = self.folder / f"mix-{len(list(self.folder.glob('mix-*')))}"
        write(path, mixed(made))
        return path

    async def quiet(self) -> None:
        """Wait until every webhook is answered and all its jobs are done."""
        while True:
            await self.github.delivered()
            seen = len(self.github.webhooks.deliveries), len(self.github.requests.records)
            await self.drained()
            await asyncio.sleep(SETTLED_AFTER)
            if seen == (len(self.github.webhooks.deliveries), len(self.github.requests.records)):
                return


@asynccontextmanager
async def open_stage(
    database: str = SQLITE,
    installations: int = 1,
    *,
    config: str = "",
    database_url: str = "",
    limits: bool = True,
    bucket: Mapping[str, str] = NO_BUCKET,
    started: bool = True,
) -> AsyncIterator[BenchmarkStage]:
    """Start everything with an empty database, and stop it at the end. Each installation has one repository.

    `config` is app.yaml; the default lists the repositories. `database_url` names an existing database. Without
    `limits`, this GitHub does not limit writes, so the bot need not either. `bucket` has the variables of the S3.
    Without `started`, the bot does not run, and there are no webhooks until the caller sets their address.
    """
    github = GitHubSandbox()
    github.rate_limits.limit = PLENTY
    folder = Path(tempfile.mkdtemp(prefix="nightjar-bench-"))
    with contextlib.ExitStack() as held:
        held.callback(shutil.rmtree, folder, ignore_errors=True)
        if database_url:
            url = database_url
        elif database == POSTGRESQL:
            url = held.enter_context(running_server(DURABLE)).create_database()
        else:
            url = f"sqlite:///{folder}/nightjar.db"
        async with github.serve() as api_url, aiohttp.ClientSession() as http:
            app = github.create_app("nightjar", webhook_secret=SECRET)
            names = [REPOSITORY, *(f"example-lab-{number}/compiler" for number in range(1, installations))]
            repos = [github.create_repository(name, people={"hubot": "write"}) for name in names]
            for repo in repos:
                app.install(repo)
            bot = _bot(folder, config or _listing(names), app, api_url, url, "bot" if limits else UNLIMITED, bucket)
            forgetting = asyncio.create_task(_forget_logs(bot))
            try:
                if started:
                    await bot.start()
                    app.webhook_url = f"{bot.url}/webhook"
                yield BenchmarkStage(github, app, repos, bot, http, folder, url)
            finally:
                forgetting.cancel()
                await bot.stop()


def waiting_in(metrics: str, tasks: Sequence[str]) -> float:
    """Return how many jobs of some tasks wait, or of all tasks if none is named, from the text of /metrics."""
    counts_by_task = re.findall(r'^nightjar_waiting_jobs{task="([^"]*)"} (\S+)$', metrics, re.MULTILINE)
    return sum(float(count) for task, count in counts_by_task if not tasks or task in tasks)


def _listing(repositories: list[str]) -> str:
    return "\n".join(["repositories:", *(f"  {name}:" for name in repositories)])


def _bot(
    folder: Path, app_yaml: str, app: App, api_url: str, database_url: str, module: str, bucket: Mapping[str, str]
) -> BotProcess:
    config = folder / "app.yaml"
    config.write_text(app_yaml, encoding="utf-8")
    environment = {
        "GITHUB_APP_ID": str(app.id),
        "GITHUB_PRIVATE_KEY": app.private_key,
        "GITHUB_WEBHOOK_SECRET": SECRET,
        "GITHUB_API_URL": api_url,
        "DATABASE_URL": database_url,
        **bucket,
    }
    return BotProcess(environment, config=config, module=module)


async def _forget_logs(bot: BotProcess) -> None:
    """Discard old log lines, so that hours of the bot's log do not fill this process."""
    while True:
        await asyncio.sleep(1.0)
        del bot.logs[:-1000], bot.output[:-1000]
