"""What systemd learns from the server: when it serves, that it lives, and that it stops."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from sandbox import GitHubSandbox
from sandbox.bot_process import BotProcess
from tests.fork_server import launch as forked
from tests.tables import with_tables
from tests.waiting import DEADLINE


async def test_the_server_reports_to_systemd(tmp_path: Path, sqlite_url: str) -> None:
    github = GitHubSandbox()
    config = tmp_path / "app.yaml"
    config.write_text("repositories:\n  octocat/compiler:\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)

        async def next_state() -> bytes:
            async with asyncio.timeout(DEADLINE):
                return await asyncio.get_running_loop().sock_recv(systemd, 100)

        async with github.serve() as url:
            app = github.create_app("nightjar", webhook_secret="only-the-tests-know-this-secret")
            app.install(github.create_repository("octocat/compiler"))
            env = {
                "GITHUB_APP_ID": str(app.id),
                "GITHUB_PRIVATE_KEY": app.private_key,
                "GITHUB_WEBHOOK_SECRET": "only-the-tests-know-this-secret",
                "GITHUB_API_URL": url,
                "DATABASE_URL": with_tables(sqlite_url),
                "NOTIFY_SOCKET": str(tmp_path / "notify"),
                "WATCHDOG_USEC": "20000",
            }
            bot = BotProcess(env, config=config, launch=forked)
            await bot.start()
            states = [await next_state()]
            while b"READY=1" not in states or states[-3:] != [b"WATCHDOG=1"] * 3:
                states.append(await next_state())
            assert states.count(b"READY=1") == 1
            stopping = asyncio.create_task(bot.stop())
            while await next_state() != b"STOPPING=1":
                pass
            assert await stopping == 0
