"""A GitHub, a Jenkins and the real bot in its own process, for parallel conversations in many repositories.

Each repository has its own owner, and with it its own installation: the limits on how fast the bot may write apply to
each installation, so conversations that run side by side do not slow each other down.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.core import events
from bot.engine.internal import announce
from bot.engine.service import Engine
from bot.github.pull_heads import note_id
from bot.timers.timers import TIMER_EVENT, TimerEvent
from handlers.repository_file.records import LAST_SCANS, LastScans
from sandbox import App, GitHubSandbox, Repository
from sandbox.bot_process import BotProcess
from sandbox.jenkins import JenkinsSandbox
from tests.bucket import World
from tests.fork_server import launch as forked
from tests.robustness.gate import Gate, gate
from tests.tables import with_tables
from tests.waiting import DEADLINE, until

SECRET = "only-the-tests-know-this-secret"
BOT = "nightjar[bot]"
PEOPLE = {"hubot": "write", "triager": "triage", "reader": "read"}
LAB, TARGET = "example-lab", "hexagon-v73"
RESULTS = {
    "settle": "5s",
    "labs": {LAB: {"targets": [TARGET, "adreno"], "reproduce": "pytest {test}"}},
}
UNTIL_REPORTED_AGAIN = 3
"""Seconds after which a queue delivers an unacknowledged message again."""
HURRIED = "tests.robustness.hurried"
"""The bot with two waits shortened: after a write with an unknown outcome, and for the App's points."""
POLL_INTERVAL = 0.05
"""Seconds between two reads of all deliveries."""


@dataclass(frozen=True)
class Place:
    """Everything that a test can check, start or kill."""

    folder: Path
    github: GitHubSandbox
    jenkins: JenkinsSandbox
    app: App
    bot: BotProcess
    gate: Gate | None = None
    bucket: World | None = None
    results: Mapping[str, Any] | None = None
    """What app.yaml says about the results of each repository, where labs upload to a bucket."""

    def add_repository(self, owner: str, name: str = "compiler") -> Repository:
        """Create a repository on which the App is installed; `config` must name it before the bot starts."""
        repository = self.github.create_repository(f"{owner}/{name}", people=PEOPLE)  # type: ignore[arg-type]
        self.app.install(repository)
        return repository

    def configure(
        self, names: Iterable[str], own: Mapping[str, Mapping[str, Any]] | None = None, /, **keys: Any
    ) -> None:
        """Write app.yaml for these repositories.

        `keys` are the keys of each besides its Jenkins server, `own` those of single repositories by their names.
        """
        results = {"results": self.results} if self.results else {}
        # Scheduled half a day from now, so it never runs by itself: conversations that need the timer run it.
        nightly = {"at": f"{(time.gmtime().tm_hour + 12) % 24:02}:00", "timezone": "UTC"}
        timers = {"nightly": nightly, "last_good": {"every": "10000d", "require": ["cpu"]}}
        repository_settings: Mapping[str, Any] = {
            "rerun": {"jenkins": [{"url": self.jenkins.url}]},
            **timers,
            **results,
            **keys,
        }
        text = json.dumps(
            {"repositories": {name: {**repository_settings, **(own or {}).get(name, {})} for name in names}}
        )
        (self.folder / "app.yaml").write_text(text)

    async def run_timer(self, repository: Repository, name: str, moment: str) -> None:
        """Run a timer, once for each `moment`."""
        async with self.beside() as engine:
            await note_id(engine.records, repository.full_name, repository.id)
            event_repository = events.Repository(repository.id, repository.full_name, None)
            timer_event = TimerEvent(name, moment, int(time.time()))
            await announce(engine.accept, TIMER_EVENT, event_repository, timer_event)

    async def start(self) -> None:
        """Start the bot, and let GitHub send webhooks to it."""
        names = json.loads((self.folder / "app.yaml").read_text())["repositories"]
        async with self.beside() as engine:
            # Mark the files as scanned just now, so that the bot's clock causes no request that a test would count.
            await engine.records.put(LAST_SCANS.of(), LastScans({name.lower(): time.time() for name in names}))
        await self.bot.start()
        self.app.webhook_url = f"{self.bot.url}/webhook"

    async def deliveries(self, *, failed: bool = False) -> list[dict[str, Any]]:
        """Return what `nightjar deliveries --json` prints, newest first."""
        async with self.beside() as engine:
            return [record.as_json() for record in await engine.journal.recent(limit=10_000, failed=failed)]

    def beside(self) -> Engine:
        """Return a second engine on the bot's database that only reads."""
        url = self.bot.environment["DATABASE_URL"]
        if url.startswith("postgresql:"):
            # Psycopg counts the seconds of a connection's start by the clock of the machine, and this process is busy.
            url += f"{'&' if '?' in url else '?'}connect_timeout={DEADLINE:.0f}"
        return Engine(url)

    async def quiet(self, *, deadline: float = DEADLINE) -> list[dict[str, Any]]:
        """Wait until every webhook was answered and processed, then return the deliveries."""
        async with self.beside() as engine:

            async def settled() -> bool:
                await self.github.delivered(timeout=deadline)
                delivery_count = len(self.github.webhooks.deliveries)
                if any((await engine.backlog()).waiting.values()):
                    return False
                records = await engine.journal.recent(limit=10_000)
                is_idle = delivery_count == len(self.github.webhooks.deliveries) and self.github.webhooks.idle
                return is_idle and all(record.settled for record in records)

            await until(settled, deadline=deadline, pause=POLL_INTERVAL)
        return await self.deliveries()

    def replica(self, command: str = "serve") -> BotProcess:
        """Return another process on the same database, not started yet."""
        return BotProcess(self.bot.environment, config=self.bot.config, command=command, module=HURRIED, launch=forked)


def failures(deliveries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the reason of every failed job, with its delivery's event."""
    return [
        f"{delivery['event']}: {job['text']}"
        for delivery in deliveries
        for job in jobs(delivery)
        if job["state"] == "failed"
    ]


def jobs(delivery: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the jobs of a delivery as `nightjar deliveries --json` lists them."""
    listed_jobs = [delivery["job"], *delivery["replays"]]
    for plan in delivery["plans"]:
        listed_jobs += [plan["job"], *(effect["job"] for effect in plan["effects"])]
    return listed_jobs


def tracebacks(bot: BotProcess) -> list[str]:
    """Return the tracebacks of our own faults in a log."""
    exceptions = [str(entry["exception"]) for entry in bot.logs if "exception" in entry]
    return exceptions + [line for line in bot.output if line.startswith(("Traceback", "  File"))]


@asynccontextmanager
async def open_place(
    folder: Path,
    database_url: str,
    *,
    environment: Mapping[str, str] | None = None,
    bucket: World | None = None,
) -> AsyncIterator[Place]:
    """Start GitHub and Jenkins, and prepare the bot; at the end, check that it broke none of GitHub's rules.

    Labs upload to the `bucket`, if there is one; a queue announces new objects in it.
    """
    github, jenkins = GitHubSandbox(), JenkinsSandbox()
    async with AsyncExitStack() as stack:
        api_url = await stack.enter_async_context(github.serve())
        await stack.enter_async_context(jenkins.serve())
        app = github.create_app("nightjar", webhook_secret=SECRET)
        variables = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": api_url,
            "DATABASE_URL": with_tables(database_url),
            "JENKINS_USER": jenkins.user,
            "JENKINS_TOKEN": jenkins.token,
        }
        opened_gate, results = None, None
        if bucket is not None:
            opened_gate = await stack.enter_async_context(gate(bucket.server))
            variables |= opened_gate.environment
            results = {**RESULTS, "bucket": bucket.name, "queue": bucket.queue(visibility=UNTIL_REPORTED_AGAIN)}
        bot = BotProcess(
            {**variables, **(environment or {})}, config=folder / "app.yaml", module=HURRIED, launch=forked
        )
        stack.push_async_callback(bot.kill)
        yield Place(folder, github, jenkins, app, bot, opened_gate, bucket, results)
        await bot.stop()
        assert not github.violations, github.violations


def plain(text: str, repository: Repository) -> str:
    """Return a text without what differs between repositories or runs: names, SHAs, numbers, times."""
    text = text.replace(repository.full_name, "REPOSITORY").replace(repository.owner.login, "OWNER")
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST", text)
    text = re.sub(r"answer:[0-9a-f]+", "answer:INTENT", text)
    text = re.sub(r"\b[0-9a-f]{40}\b|`[0-9a-f]{7}`", "SHA", text)
    return re.sub(r"\b\d{7,}\b", "ID", text)
