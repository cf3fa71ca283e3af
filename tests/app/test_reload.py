"""SIGHUP and `--watch`: a running server takes over a changed app.yaml, or keeps the last good one and says why."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import pty
import signal
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from sandbox import App, GitHubSandbox, Repository
from sandbox.bot_process import BotProcess
from tests.fork_server import launch as forked
from tests.running import environment
from tests.tables import with_tables
from tests.waiting import DEADLINE, until

SECRET = "only-the-tests-know-this-secret"
OFF = "repositories:\n  octocat/compiler: {slow_tests: false}\n"
ON = "repositories:\n  octocat/compiler:\n"
INVALID = "repositories:\n  octocat/compiler: {slow_test: true}\n"


@dataclass
class Place:
    """A GitHub, and a server whose app.yaml the test changes."""

    github: GitHubSandbox
    app: App
    repository: Repository
    bot: BotProcess
    client: aiohttp.ClientSession

    def write(self, text: str) -> None:
        """Replace app.yaml in one step, as editors and configuration management do."""
        new = self.bot.config.with_suffix(".new")
        new.write_text(text)
        new.replace(self.bot.config)

    async def logged(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Return the lines of an event, once there are as many."""

        def lines() -> list[dict[str, Any]]:
            return [entry for entry in self.bot.logs if entry["event"] == event]

        await until(lambda: len(lines()) >= count)
        return lines()

    async def json(self, path: str) -> dict[str, Any]:
        """Return what a route answers."""
        async with self.client.get(self.bot.url + path) as answer:
            body: dict[str, Any] = await answer.json()
            return body

    async def ready(self) -> dict[str, Any]:
        """Return the answer of /readyz once the worker runs."""

        async def is_ready() -> bool:
            return bool((await self.json("/readyz"))["status"] == "ok")

        await until(is_ready)
        return await self.json("/readyz")

    async def status(self) -> object:
        """Open a pull request, and return the status of slow tests once the bot has written it."""
        pull = self.repository.open_pull_request("octocat")
        return await until(lambda: self.repository.status(pull.head_sha, "ci/slow-tests"))


@asynccontextmanager
async def opened(folder: Path, database_url: str, *options: str) -> AsyncIterator[Place]:
    """Start the server."""
    github = GitHubSandbox()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(github.serve())
        app = github.create_app("nightjar", webhook_secret=SECRET)
        repository = github.create_repository("octocat/compiler")
        app.install(repository)
        config = folder / "app.yaml"
        config.write_text(OFF)
        env = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": url,
            "DATABASE_URL": with_tables(database_url),
        }
        bot = BotProcess(env, config=config, options=options, launch=forked)
        stack.push_async_callback(bot.kill)
        await bot.start()
        app.webhook_url = f"{bot.url}/webhook"
        yield Place(github, app, repository, bot, await stack.enter_async_context(aiohttp.ClientSession()))
        assert await bot.stop() == 0


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_after_sighup_the_changed_file_is_in_use_on_the_same_port(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("sqlite_url" if kind == "sqlite" else "postgres_url")
    async with opened(tmp_path, url) as place:
        port, pid = place.bot.port, place.bot.pid
        place.write(ON)
        place.bot.send(signal.SIGHUP)
        await place.logged("serving", 2)
        assert (place.bot.port, place.bot.pid) == (port, pid)
        await place.logged("app.yaml is in use")
        assert await place.status()
        assert "config" not in (await place.ready())["warnings"]


async def test_an_invalid_file_leaves_the_last_good_one_in_use_and_everybody_reads_why(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with opened(tmp_path, sqlite_url) as place:
        place.write(INVALID)
        place.bot.send(signal.SIGHUP)
        [line] = await place.logged("app.yaml is not in use")
        assert "slow_test" in line["reason"]
        assert "slow_tests" in line["reason"]
        warning = (await place.ready())["warnings"]["config"]
        # Strangers may read /readyz: it has the place alone.
        assert "app.yaml:2:" in warning
        assert "octocat" not in warning
        assert len(await place.logged("serving")) == 1
        place.write(ON)
        place.bot.send(signal.SIGHUP)
        await place.logged("serving", 2)
        assert "config" not in (await place.ready())["warnings"]


async def test_a_file_that_needs_a_missing_variable_is_refused(tmp_path: Path, sqlite_url: str) -> None:
    async with opened(tmp_path, sqlite_url) as place:
        place.write(f"{ON}    main_failures: {{to: [discord]}}\n")
        place.bot.send(signal.SIGHUP)
        [line] = await place.logged("app.yaml is not in use")
        assert "DISCORD_WEBHOOK_URL" in line["reason"]
        assert "octocat" not in (await place.ready())["warnings"]["config"]


async def test_an_unchanged_file_changes_nothing(tmp_path: Path, sqlite_url: str) -> None:
    async with opened(tmp_path, sqlite_url) as place:
        place.write(f"# a comment\n{OFF}")
        place.bot.send(signal.SIGHUP)
        await place.logged("app.yaml has no changes")
        assert len(await place.logged("serving")) == 1


async def test_a_watched_file_is_in_use_without_a_signal(tmp_path: Path, sqlite_url: str) -> None:
    async with opened(tmp_path, sqlite_url, "--watch") as place:
        place.write(INVALID)
        await place.logged("app.yaml is not in use")
        (tmp_path / "app.yaml").unlink()
        await place.logged("app.yaml is not in use", 2)
        place.write(OFF)
        await place.logged("app.yaml has no changes")
        (tmp_path / "app.d").mkdir()
        (tmp_path / "app.d/more.yaml").write_text("repositories: {octocat/runtime: {}}\n")
        await place.logged("app.yaml is in use")


async def test_no_delivery_is_refused_while_the_file_changes(tmp_path: Path, sqlite_url: str) -> None:
    async with opened(tmp_path, sqlite_url) as place:
        signature = hmac.new(SECRET.encode(), b"{}", hashlib.sha256).hexdigest()
        headers = {"X-GitHub-Event": "ping", "X-Hub-Signature-256": f"sha256={signature}"}
        statuses: Counter[int] = Counter()
        # A connection for each: a client that keeps one open has to expect that it is closed (RFC 9112, 9.3.1).
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as client:

            async def deliver() -> None:
                while True:
                    guid = {"X-GitHub-Delivery": str(uuid.uuid4())}
                    async with client.post(f"{place.bot.url}/webhook", data=b"{}", headers=guid) as answer:
                        statuses[answer.status] += 1

            senders = [asyncio.create_task(deliver()) for _ in range(4)]
            for count, text in enumerate((ON, OFF, ON), 2):
                place.write(text)
                place.bot.send(signal.SIGHUP)
                await place.logged("serving", count)
                sent = statuses[202]
                await until(lambda sent=sent: statuses[202] > sent + 10)  # type: ignore[misc]
            assert not any(sender.done() for sender in senders)
            for sender in senders:
                sender.cancel()
            await asyncio.gather(*senders, return_exceptions=True)
        assert set(statuses) == {202}


async def test_a_stop_during_a_change_stops(tmp_path: Path, sqlite_url: str) -> None:
    async with opened(tmp_path, sqlite_url) as place:
        place.write(ON)
        place.bot.send(signal.SIGHUP)
        place.bot.send(signal.SIGTERM)
        assert await place.bot.ended() == 0


async def test_a_worker_reads_its_file_again(tmp_path: Path, postgres_url: str) -> None:
    async with opened(tmp_path, postgres_url) as place:
        worker = BotProcess(place.bot.environment, config=place.bot.config, command="worker", launch=forked)
        await worker.spawn()
        await until(lambda: any(entry["event"] == "working" for entry in worker.logs))
        place.write(ON)
        worker.send(signal.SIGHUP)
        await until(lambda: sum(entry["event"] == "working" for entry in worker.logs) == 2)
        assert await worker.stop() == 0


async def test_a_server_in_a_terminal_ends_with_the_terminal(tmp_path: Path, sqlite_url: str) -> None:
    async with opened(tmp_path, sqlite_url) as place:
        await place.bot.stop()
        terminal, end = pty.openpty()
        # Not `launch`: it has pipes in place of a terminal.
        command = [sys.executable, "-m", "bot", "serve", "--config", str(place.bot.config), "--port", "0"]
        log = os.fdopen(terminal, "rb", buffering=0)
        process = await asyncio.create_subprocess_exec(
            *command, env=environment(place.bot.environment), stdin=end, stdout=end, stderr=end
        )
        os.close(end)
        text = b""
        while b"serving" not in text:
            text += await asyncio.to_thread(log.read, 4096)
        log.close()
        process.send_signal(signal.SIGHUP)
        assert await asyncio.wait_for(process.wait(), DEADLINE) == 0
