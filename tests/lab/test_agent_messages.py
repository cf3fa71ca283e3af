"""The messages of `nightjar-lab agent`: each names what is wrong, and what to do."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from handlers.device_tests.model import DeviceJobState
from tests.bucket import World
from tests.conversations.device_lab import LAB, TARGET
from tests.fork_server import launch as forked
from tests.lab.agent_rack import ROOT, Rack, ended, lab_rack
from tests.serving import served
from tests.waiting import DEADLINE, until

NOWHERE = "http://127.0.0.1:1"
FAILS = "printf 'one\\ntwo\\033[2J\\n'; exit 4"


@pytest.fixture
async def rack(tmp_path: Path, aws_world: World) -> AsyncIterator[Rack]:
    async with lab_rack(tmp_path, aws_world) as opened_rack:
        yield opened_rack


async def said_by(*options: str, **environment: str) -> tuple[int | None, str]:
    """Run an agent that does one job for a bot that is down; return its status and its output."""
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "lab"), "NIGHTJAR_LAB": LAB, **environment}
    words = ("agent", "--once", "--target", TARGET, *options, "--", "true")
    return await ended(await forked("nightjar_lab", *words, env=variables))


@pytest.mark.parametrize(
    ("options", "environment", "status", "message"),
    [
        ((), {"NIGHTJAR_URL": "ci.example.org"}, 2, "NIGHTJAR_URL must start with https://"),
        ((), {"NIGHTJAR_URL": ""}, 2, "--url (NIGHTJAR_URL) is not set; give the bot's address"),
        ((), {"NIGHTJAR_LAB_TOKEN": ""}, 2, "NIGHTJAR_LAB_TOKEN is not set; give the lab's token, or use"),
        (("--environment", "Pixel 9"), {}, 2, "Invalid value for '--environment'"),
        (("--folder", "/proc/agent"), {}, 1, "cannot use the folder /proc/agent (No such file or directory); name"),
        ((), {"PATH": "/nowhere"}, 1, "git is not on PATH"),
    ],
)
async def test_an_unusable_setting_is_named_at_the_start(
    options: tuple[str, ...], environment: dict[str, str], status: int, message: str
) -> None:
    ended_agent = await said_by(*options, **{"NIGHTJAR_URL": NOWHERE, "NIGHTJAR_LAB_TOKEN": "x", **environment})
    assert (ended_agent[0], message in ended_agent[1]) == (status, True), ended_agent[1]
    assert "Traceback" not in ended_agent[1]


async def first_line(rack: Rack, *options: str, url: str = "", token: str | None = None) -> str:
    """Return the first line of an agent that keeps asking."""
    agent = await rack.agent("true", *options, url=url, token=token)
    assert agent.stderr is not None
    await asyncio.wait_for(agent.stderr.readline(), DEADLINE)
    line = (await asyncio.wait_for(agent.stderr.readline(), DEADLINE)).decode()
    agent.terminate()
    assert (await ended(agent))[0] == 0
    return line


async def test_the_agent_says_where_it_asks_and_why_it_gets_no_answer(rack: Rack) -> None:
    agent = await rack.agent("true")
    assert agent.stderr is not None
    line = (await asyncio.wait_for(agent.stderr.readline(), DEADLINE)).decode()
    assert f"waiting for jobs for {TARGET}, asking the bot at {rack.lab.town.url}" in line
    agent.terminate()
    assert await ended(agent) == (0, "")
    for options, url, token, message in (
        ((), NOWHERE, None, f"could not ask the bot at {NOWHERE} for a job: Connection refused; trying again in "),
        ((), "", "nightjar_a_b", f"the bot at {rack.lab.town.url} refuses: The token is unknown, revoked or expired"),
        (
            ("--token-command", "./nothing -x"),
            "",
            None,
            "could not run the command of --token-command (No such file or directory): ./nothing; ",
        ),
        (("--token-command", "true"), "", None, "the command of --token-command printed no token"),
    ):
        line = await first_line(rack, *options, url=url, token=token)
        assert message in line, line
        assert "trying again in" in line
    line = await first_line(rack, "--least-free", str(1 << 40))
    assert "of --least-free" in line
    assert "could not ask" not in line


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"text": "<html>", "content_type": "text/html"}, "the answer is not JSON; is this the address of the bot?"),
        ({"status": 301, "headers": {"Location": "https://ci.example.org/"}}, "redirects to https://ci.example.org/"),
        ({"status": 501}, "for a job: 501: Not Implemented; trying again in"),
    ],
)
async def test_an_address_other_than_the_bots_is_named(rack: Rack, answer: dict[str, Any], message: str) -> None:
    async def other(_: web.Request) -> web.Response:
        return web.Response(**answer)

    app = web.Application()
    app.router.add_post("/{path:.*}", other)
    async with served(app) as url:
        line = await first_line(rack, url=url)
    assert message in line, line
    assert url in line


async def test_with_once_a_refusal_ends_the_agent_with_the_reason(rack: Rack) -> None:
    status, output = await ended(await rack.agent("true", token="nightjar_a_b", once=True))
    assert (status, output.startswith(f"the bot at {rack.lab.town.url} refuses: The token is unknown")) == (1, True)


async def test_a_failed_job_shows_the_end_of_its_output_and_delays_the_next_one(rack: Rack) -> None:
    """An agent on a broken machine must not empty the queue: each job is handed out only three times."""
    await rack.job()
    agent = await rack.agent(FAILS)
    lines: list[str] = []
    assert agent.stderr is not None
    while not any("the agent claims the next job in" in line for line in lines):
        lines.append((await asyncio.wait_for(agent.stderr.readline(), DEADLINE)).decode())
    output = "".join(lines)
    assert "the last lines of the command's output:\n| one\n| two\\x1b[2J\n" in output
    assert "the command left no result files (exit status 4)" in output
    job = await rack.lab.store.find(LAB, "job")
    assert (job.state, job.attempt, job.note) == (
        DeviceJobState.QUEUED,
        1,
        "the command left no result files (exit status 4)",
    ), "what a stranger's code prints does not reach the check run"
    agent.terminate()
    assert (await ended(agent))[0] == 0
    # Pauses grow from one failure to the next, until a job works.
    assert "no results were uploaded; the agent claims the next job in 2 s" in output


async def test_an_agent_stopped_during_the_pause_after_a_failure_ends_at_once(rack: Rack) -> None:
    await rack.job()
    agent = await rack.agent("exit 4")

    async def failed_twice() -> bool:
        return (await rack.lab.store.find(LAB, "job")).attempt == 2 and await rack.state() is DeviceJobState.QUEUED

    await until(failed_twice)
    agent.terminate()
    assert (await ended(agent))[0] == 0
