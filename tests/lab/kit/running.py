"""Run `nightjar-lab` as a lab does: in a process with its own environment, output and exit status."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from nightjar_lab.main import kit

from sandbox.processes import Program
from tests.bucket import World
from tests.fork_server import launch as forked
from tests.running import Finished, finished

ROOT = Path(__file__).parents[3]
LAB, TARGET, REPOSITORY = "example-lab", "hexagon-v73", "octocat/compiler"
MOUNTS = ["unshare", "--user", "--map-root-user", "--mount"]
"""Gives a process file systems of its own."""
NAMESPACES = pytest.mark.skipif(subprocess.run([*MOUNTS, "true"], check=False).returncode != 0, reason="no namespaces")


def kit_environment(home: Path, world: World | None = None, **variables: str) -> dict[str, str]:
    """Return the environment of a lab's machine: the bucket's variables, if there is one, and none of ours."""
    variables_of_machine = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(ROOT / "lab"),
        "NIGHTJAR_REPOSITORY": REPOSITORY,
        "NIGHTJAR_LAB": LAB,
        **(world.server.environment if world else {}),
        **({"NIGHTJAR_BUCKET": world.name} if world else {}),
        **variables,
    }
    return {name: value for name, value in variables_of_machine.items() if value}


async def start_kit(*words: str, env: Mapping[str, str], cwd: Path, under: Sequence[str] = ()) -> Program:
    """Start `nightjar-lab`; `under` is a program that starts it, in a Python that imports everything anew."""
    if not under:
        return await forked("nightjar_lab", *words, env=env, cwd=cwd)
    return await asyncio.create_subprocess_exec(
        *under, sys.executable, "-m", "nightjar_lab", *words, env=dict(env), cwd=cwd, stdout=PIPE, stderr=PIPE
    )


def run_here(*words: str, env: Mapping[str, str]) -> Finished:
    """Run `nightjar-lab` in this process, which is faster, for tests without a bot and signals."""
    removed = {name: None for name in os.environ if name.startswith(("NIGHTJAR_", "AWS_")) and name not in env}
    done = CliRunner().invoke(kit, words, env={**removed, **env}, prog_name="nightjar-lab")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Finished(done.exit_code, done.stdout, done.stderr)


async def run_kit(*words: str, env: Mapping[str, str], cwd: Path, under: Sequence[str] = ()) -> Finished:
    """Run `nightjar-lab` to its end."""
    return await finished(await start_kit(*words, env=env, cwd=cwd, under=under))
