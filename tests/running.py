"""Run commands as operators do: in a process with its own environment, output and exit status."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.processes import Launch, Program
from tests.fork_server import launch as forked
from tests.waiting import DEADLINE

ROOT = Path(__file__).parent.parent
OURS = ("GITHUB_", "DATABASE_", "AWS_", "JENKINS_", "DISCORD_", "SLACK_")


@dataclass
class Finished:
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment without our variables, and with `more`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return {**clean, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **more}


async def start(*arguments: str, env: Mapping[str, str], cwd: Path, launch: Launch = forked) -> Program:
    """Start a command."""
    return await launch("bot", *arguments, env=environment(env), cwd=cwd)


async def run(*arguments: str, env: Mapping[str, str], cwd: Path, launch: Launch = forked) -> Finished:
    """Run a command to its end."""
    return await finished(await start(*arguments, env=env, cwd=cwd, launch=launch))


async def finished(process: Program | Process) -> Finished:
    """Wait for the end of a process."""
    try:
        out, err = await asyncio.wait_for(process.communicate(), DEADLINE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Finished(process.returncode, out.decode(), err.decode())
