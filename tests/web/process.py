"""The real server as a separate process, for what can only be measured from outside: memory, descriptors, its log."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from sandbox import GitHubSandbox
from sandbox.bot_process import BotProcess
from sandbox.processes import Launch
from tests.fork_server import launch as forked
from tests.tables import with_tables

SECRET = "only-the-tests-know-this-secret"
CONFIG = "repositories:\n  octocat/compiler:\n"


@asynccontextmanager
async def serving(
    folder: Path,
    config: str = CONFIG,
    options: Sequence[str] = (),
    launch: Launch = forked,
    variables: Mapping[str, str] | None = None,
) -> AsyncIterator[BotProcess]:
    """Run `nightjar serve` in front of a GitHub in this process, on SQLite in `folder`, with `variables` variables."""
    github = GitHubSandbox()
    path = folder / "app.yaml"
    path.write_text(config)
    async with github.serve() as url:
        app = github.create_app("nightjar", webhook_secret=SECRET)
        app.install(github.create_repository("octocat/compiler"))
        environment = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": url,
            "DATABASE_URL": with_tables(f"sqlite:///{folder / 'nightjar.db'}"),
            "PYTHONWARNINGS": "error",
            **(variables or {}),
        }
        bot = BotProcess(environment, config=path, options=options, launch=launch)
        await bot.start()
        try:
            yield bot
        finally:
            await bot.kill()


def webhook_head(length: int, signature: str, *more_lines: str) -> bytes:
    """Return the head of a webhook with well-formed headers."""
    lines = [
        "POST /webhook HTTP/1.1",
        "Host: bot.example.org",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        "X-GitHub-Event: issue_comment",
        "X-GitHub-Delivery: 72d3162e-cc78-11e3-81ab-4c9367dc0958",
        f"X-Hub-Signature-256: {signature}",
        *more_lines,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def signature(body: bytes) -> str:
    """Return GitHub's signature for a body."""
    return "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()


def memory(pid: int, key: str = "VmRSS") -> int:
    """Return how many MiB a process holds: VmRSS now, VmHWM at its peak (proc(5))."""
    match = re.search(rf"^{key}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert match is not None
    return int(match[1]) // 1024


async def answer_to(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read one answer; return its status and body, or 0 without an answer."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)\r\n", head.lower())
        body = await reader.readexactly(int(length[1])) if length else b""
    except (ConnectionError, asyncio.IncompleteReadError):
        return 0, b""
    return int(head.split(b" ", 2)[1]), body
