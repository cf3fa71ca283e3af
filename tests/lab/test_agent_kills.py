"""SIGKILL of the agent at each step of a job:

the next agent repeats it, and uploads are complete or have no manifest.
"""

from __future__ import annotations

import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest

from handlers.device_tests.model import LEASE_SECONDS, DeviceJobState
from sandbox.processes import Program
from tests.bucket import World, point_to
from tests.conversations.device_lab import LAB, TARGET
from tests.lab.agent_rack import Rack, ended, lab_rack
from tests.robustness.gate import Gate, gate
from tests.waiting import until

PASSES = 'cp answer.txt "$NIGHTJAR_RESULTS/te.xml"'
UPLOAD = re.compile("^/[^?]+$")
"""The address of a form: of the bucket alone, the key is in the body."""


@pytest.fixture
async def opened(aws_world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    """A gate between everybody and the bucket."""
    async with gate(aws_world.server) as opened_gate:
        point_to(opened_gate.url, monkeypatch)
        yield opened_gate


@pytest.fixture
async def rack(tmp_path: Path, aws_world: World, opened: Gate) -> AsyncIterator[Rack]:
    async with lab_rack(tmp_path, aws_world) as opened_rack:
        yield opened_rack


async def kill(agent: Program) -> None:
    agent.send_signal(signal.SIGKILL)
    await agent.wait()


async def next_attempt(rack: Rack, attempt: int = 2) -> None:
    """Let the lease expire; another agent in the same folder repeats the job."""
    assert await rack.state() is DeviceJobState.LEASED
    rack.lab.time.ahead += LEASE_SECONDS + 1
    await rack.lab.store.expire()
    status, output = await ended(await rack.agent(PASSES, once=True))
    assert (status, f"attempt {attempt}" in output, "are uploaded" in output) == (0, True, True), output
    assert keys(rack, attempt) == ["manifest.json", "te.xml"]


def keys(rack: Rack, attempt: int = 1) -> list[str]:
    """Return the files that an attempt has uploaded."""
    folder = f"results/octocat/compiler/{LAB}/{TARGET}/{rack.sha}/job-{attempt}/"
    return sorted(key.removeprefix(folder) for key in rack.bucket.keys(folder))


async def test_a_kill_after_the_claim_repeats_the_job(rack: Rack) -> None:
    await rack.job()
    agent = await rack.agent("sleep 600")
    await rack.leased()
    await kill(agent)
    assert keys(rack) == []
    await next_attempt(rack)


async def test_a_kill_during_the_fetch_which_leaves_gits_locks_repeats_the_job(rack: Rack) -> None:
    await rack.job()
    status, output = await ended(await rack.agent("exit 4", once=True))
    assert (status, "exit status 4" in output) == (1, True), output
    (cache,) = (rack.folder / "agent/cache").iterdir()
    for lock in ("shallow.lock", "FETCH_HEAD.lock", "config.lock", "refs/heads/x.lock"):
        # As left by a git that was killed with the agent, or by a power failure.
        (cache / lock).touch()
    status, output = await ended(await rack.agent(PASSES, once=True))
    assert (status, "are uploaded" in output) == (0, True), output
    assert keys(rack, 2) == ["manifest.json", "te.xml"]


async def test_a_kill_while_the_command_runs_repeats_the_job(rack: Rack) -> None:
    await rack.job()
    agent = await rack.agent(f"{PASSES}; echo $$ > {rack.folder}/pid; touch {rack.folder}/started; sleep 600")
    await until(lambda: (rack.folder / "started").exists())
    await kill(agent)
    await rack.has_ended("pid")
    assert keys(rack) == []
    await next_attempt(rack)


@pytest.mark.parametrize(
    ("number", "moment", "uploaded_files"),
    [
        (0, "before", []),
        (0, "after", ["te.xml"]),
        (1, "before", ["te.xml"]),
        (1, "after", ["manifest.json", "te.xml"]),
    ],
)
async def test_a_kill_around_an_upload_repeats_the_job_as_a_run_of_its_own(
    rack: Rack, opened: Gate, number: int, moment: Literal["before", "after"], uploaded_files: list[str]
) -> None:
    await rack.job()
    upload = opened.faults.pause("POST", UPLOAD, when=moment, skip=number)
    agent = await rack.agent(PASSES)
    await upload.reached.wait()
    await kill(agent)
    upload.abandon()
    assert keys(rack) == uploaded_files
    await next_attempt(rack)
    assert keys(rack) == uploaded_files, "the next attempt is a separate run"
