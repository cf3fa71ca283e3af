"""The processes of compose.yaml, the systemd units and the chart; only ports, paths and the database's place differ."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psycopg
import pytest

from sandbox import App, GitHubSandbox
from sandbox.processes import Program
from tests.deploy.commands import Deployed, of_chart, of_compose, of_systemd
from tests.deploy.tools import UNIT
from tests.postgres import PostgresServer
from tests.running import environment, start
from tests.waiting import DEADLINE, until

SECRET = "only-the-tests-know-this-secret"
PORTS = {"8080": "0", "8081": "0"}
IN_IMAGE = "/etc/nightjar/app.yaml"


@dataclass
class GitHub:
    """The address of GitHub, and the variables in nightjar.env or the Secret."""

    app: App
    variables: dict[str, str]


@pytest.fixture
async def github() -> AsyncIterator[GitHub]:
    sandbox = GitHubSandbox()
    async with sandbox.serve() as url:
        app = sandbox.create_app("nightjar", webhook_secret=SECRET)
        app.install(sandbox.create_repository("octocat/compiler"))
        yield GitHub(app, {"GITHUB_APP_ID": str(app.id), "GITHUB_WEBHOOK_SECRET": SECRET, "GITHUB_API_URL": url})


@pytest.fixture
def postgres_here(postgres_server: PostgresServer) -> Iterator[dict[str, str]]:
    """Create the database that compose.yaml names; libpq uses this address for the host `db`."""
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE nightjar TEMPLATE template0")
    yield {"PGHOSTADDR": "127.0.0.1", "PGPORT": str(postgres_server.port)}
    postgres_server.drop_database(postgres_server.url("nightjar"))


@asynccontextmanager
async def serving(
    deployed: Deployed, env: dict[str, str], folder: Path
) -> AsyncIterator[tuple[Program, dict[str, int]]]:
    """Start the server as given and yield its ports, by the log line that names them."""
    config = folder / "app.yaml"
    config.write_text("repositories:\n  octocat/compiler:\n")
    replaced = PORTS | {IN_IMAGE: str(config)}
    arguments = [replaced.get(argument, argument) for argument in deployed.arguments]
    assert {*PORTS, IN_IMAGE} <= set(deployed.arguments)
    process = await start(*arguments, env={**env, **deployed.environment}, cwd=folder)
    ports: dict[str, int] = {}
    lines: list[str] = []
    try:
        assert process.stderr is not None
        async with asyncio.timeout(DEADLINE):
            while "serving" not in ports:
                line = (await process.stderr.readline()).decode()
                assert line, "".join(lines)
                lines.append(line)
                entry = json.loads(line)
                if entry["event"].startswith("serving"):
                    ports[entry["event"]] = entry["port"]
        yield process, ports
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def check(deployed: Deployed, env: dict[str, str], folder: Path) -> None:
    """Check that probes, Prometheus and a stop get what they expect."""
    async with serving(deployed, env, folder) as (process, ports), aiohttp.ClientSession() as client:
        main, metrics = (f"http://127.0.0.1:{ports[name]}" for name in ("serving", "serving metrics"))

        async def status(url: str) -> int:
            async with client.get(url) as answer:
                await answer.read()
                return answer.status

        async def ready() -> bool:
            return await status(f"{main}/readyz") == 200

        await until(ready)
        assert await status(f"{main}/healthz") == 200
        assert await status(f"{main}/metrics") == 404
        assert await status(f"{metrics}/metrics") == 200
        process.terminate()
        assert process.stderr is not None
        await asyncio.wait_for(asyncio.gather(process.wait(), process.stderr.read()), DEADLINE)
        assert process.returncode == 0


async def test_the_compose_processes_work(github: GitHub, postgres_here: dict[str, str], tmp_path: Path) -> None:
    key = {"GITHUB_PRIVATE_KEY": github.app.private_key.replace("\n", "\\n")}
    await check(of_compose(), github.variables | key | postgres_here, tmp_path)


async def test_the_charts_processes_work(github: GitHub, postgres_url: str, tmp_path: Path) -> None:
    key = {"GITHUB_PRIVATE_KEY": github.app.private_key}
    await check(of_chart(postgres_url), github.variables | key, tmp_path)


async def test_the_systemd_services_and_their_backup_work(github: GitHub, tmp_path: Path) -> None:
    state, credentials = tmp_path / "state", tmp_path / "credentials"
    (state / "nightjar/backups").mkdir(parents=True)
    credentials.mkdir()
    (credentials / "app.pem").write_text(github.app.private_key)
    await check(of_systemd(state, credentials), github.variables, tmp_path)
    backup = of_systemd(state, credentials, UNIT.with_name("nightjar-backup.service"))
    shell, script = backup.arguments
    script = script.replace("/opt/nightjar/bin/nightjar", shlex.join([sys.executable, "-m", "bot"]))
    done = await asyncio.to_thread(
        subprocess.run,
        ["/bin/sh", shell, script],
        env=environment(backup.environment),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    [made] = (state / "nightjar/backups").glob("*day.db")
    assert made.read_bytes().startswith(b"SQLite format 3")
