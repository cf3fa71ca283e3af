"""A lab's machine for tests of `nightjar-lab agent`: the real bot, a git mirror, and agents as processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handlers.device_tests.model import DeviceJobState, ShownStep
from sandbox.processes import Program
from tests.bucket import World
from tests.conversations.device_lab import CONFIG, LAB, TARGET, DeviceLab, device_lab
from tests.fork_server import launch as forked
from tests.waiting import DEADLINE, until

ROOT = Path(__file__).parents[2]


def git(folder: Path, *arguments: str) -> str:
    """Run git; return its output."""
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "uploadpack.allowAnySHA1InWant=true"]
    done = subprocess.run(["git", *author, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@dataclass
class Rack:
    """A lab's machine: a git mirror, and agents as processes."""

    lab: DeviceLab
    folder: Path
    sha: str
    bucket: World

    async def job(self, name: str = "job", **changes: Any) -> None:
        """Request a test of the commit, without a check of its check run."""
        await self.lab.asked_for(name, sha=self.sha, shown=ShownStep.ENDED, **changes)

    async def agent(
        self,
        script: str,
        *options: str,
        url: str = "",
        token: str | None = None,
        folder: str = "agent",
        target: str = TARGET,
        once: bool = False,
        wrapper: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> Program:
        """Start an agent whose command is a script, for a target; `wrapper` is a command that starts it."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "PYTHONPATH": str(ROOT / "lab"),
            "NIGHTJAR_URL": url or self.lab.town.url,
            "NIGHTJAR_LAB": LAB,
            "NIGHTJAR_LAB_TOKEN": self.lab.token if token is None else token,
            "AWS_SECRET_ACCESS_KEY": "the lab's own",
            **(variables or {}),
        }
        arguments = [
            "--target",
            target,
            "--folder",
            str(self.folder / folder),
            "--clone-url",
            f"file://{self.folder}/mirror",
        ]
        arguments += ["--least-free", "1", *(["--once"] if once else []), *options]
        words = ("nightjar_lab", "agent", *arguments, "--", "bash", "-c", script)
        if not wrapper:
            return await forked(*words, env=environment)
        return await asyncio.create_subprocess_exec(
            *wrapper, sys.executable, "-m", *words, env=environment, stderr=asyncio.subprocess.PIPE
        )

    async def state(self, name: str = "job") -> DeviceJobState:
        return (await self.lab.store.find(LAB, name)).state

    async def leased(self, name: str = "job") -> None:
        async def known() -> bool:
            return await self.state(name) is DeviceJobState.LEASED

        await until(known)

    async def has_ended(self, file: str) -> None:
        """Wait until the process whose ID is in a file has ended."""
        number = int((self.folder / file).read_text())
        await until(lambda: not is_alive(number))


def is_alive(number: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


async def ended(agent: Program) -> tuple[int | None, str]:
    _, output = await asyncio.wait_for(agent.communicate(), DEADLINE)
    return agent.returncode, output.decode()


@asynccontextmanager
async def lab_rack(tmp_path: Path, aws_world: World, *, has_bucket: bool = True) -> AsyncIterator[Rack]:
    """Start a bot with a lab, and the lab's git mirror."""
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    git(mirror, "init", "--quiet")
    git(mirror, "config", "uploadpack.allowAnySHA1InWant", "true")
    (mirror / "answer.txt").write_text("<testsuites/>")
    git(mirror, "add", ".")
    git(mirror, "commit", "--quiet", "-m", "one")
    sha = git(mirror, "rev-parse", "HEAD")
    config = CONFIG if has_bucket else CONFIG.replace("bucket: {bucket}", "prefix: results/")
    url = f"sqlite:///{tmp_path}/nightjar.db"
    async with device_lab(url, aws_world, presigned=has_bucket, config=config) as lab:
        yield Rack(lab, tmp_path, sha, aws_world)
