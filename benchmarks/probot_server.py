"""Probot servers to compare with: one that stores nothing, those that store in a queue, and one that answers from it.

They run on Node.js. npm installs them from the lock file on first use.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from benchmarks import processes
from benchmarks.traffic import SECRET
from sandbox import App

FOLDER = Path(__file__).with_name("probot")
PG_BOSS, GRAPHILE, BULLMQ = "pg-boss", "graphile-worker", "bullmq"
"""The queues in which a probot server can store deliveries: two in PostgreSQL, and one in Redis."""
MISSING = "probot: install Node.js 20 or newer, with npm (on Debian and Ubuntu: `apt-get install nodejs npm`)"
NOT_INSTALLED = f"probot: `npm ci` in {FOLDER} failed; its error is above"


async def missing() -> str:
    """Install probot if it is missing; if that is not possible, return what to do first, otherwise an empty text."""
    if not (shutil.which("node") and shutil.which("npm")):
        return MISSING
    if (FOLDER / "node_modules" / ".package-lock.json").exists():
        return ""
    command = ("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    process = await asyncio.create_subprocess_exec(*command, cwd=FOLDER, stdout=asyncio.subprocess.DEVNULL)
    return NOT_INSTALLED if await process.wait() else ""


def serving() -> AbstractAsyncContextManager[int]:
    """Run the server that stores nothing in its own process, without its log; yields the port."""
    return processes.serving("node", FOLDER / "server.js", env=_environment())


def serving_with(queue: str, address: str) -> AbstractAsyncContextManager[int]:
    """Run the server that stores deliveries in a queue at an address; yields the port."""
    return processes.serving("node", FOLDER / "queued.js", queue, address, env=_environment())


def answering_commands(address: str, app: App, api_url: str) -> AbstractAsyncContextManager[processes.ServerProcess]:
    """Run the server that answers the commands of an App from pg-boss at an address; yields its port and process."""
    host = {"GHE_PROTOCOL": "http", "GHE_HOST": api_url.removeprefix("http://")}
    environment = _environment(app.id, app.private_key) | host
    return processes.running("node", FOLDER / "commands.js", address, env=environment)


def _environment(app_id: int = 1, private_key: str = "") -> dict[str, str]:
    app_variables = {
        "APP_ID": str(app_id),
        "PRIVATE_KEY": private_key or _new_key(),
        "WEBHOOK_SECRET": SECRET,
        "LOG_LEVEL": "fatal",
        "NODE_ENV": "production",
    }
    return os.environ | app_variables


def _new_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
