"""Faults around `nightjar-lab agent`: hostile output, a bot that misbehaves, and a disk that fails."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from nightjar_lab.agent import LONGEST_PAUSE, pause_after
from nightjar_lab.api import BotUnavailable, token_of_command
from nightjar_lab.command import clean_environment
from nightjar_lab.worktree import check_out

from sandbox.processes import Program
from tests.bucket import World
from tests.conversations.device_lab import LAB, TARGET
from tests.lab.agent_rack import Rack, ended, git, lab_rack
from tests.serving import served
from tests.waiting import DEADLINE

PASSES = 'cp answer.txt "$NIGHTJAR_RESULTS/te.xml"'
Answer = Callable[[str, dict[str, Any]], "web.Response | None"]


@pytest.fixture
async def rack(tmp_path: Path, aws_world: World) -> AsyncIterator[Rack]:
    async with lab_rack(tmp_path, aws_world) as opened_rack:
        yield opened_rack


@asynccontextmanager
async def other_bot(answer: Answer) -> AsyncIterator[str]:
    """Serve the lab API with a function of the last path segment and the body; None means 204."""

    async def call(request: web.Request) -> web.Response:
        return answer(request.path.rpartition("/")[2], await request.json()) or web.Response(status=204)

    app = web.Application()
    app.router.add_post("/{path:.*}", call)
    async with served(app) as url:
        yield url


def moved() -> web.Response:
    """Redirect to a maintenance page."""
    return web.Response(status=302, headers={"Location": "https://status.example.org/"})


def job_for(rack: Rack) -> dict[str, Any]:
    """Return a job as the bot hands it out."""
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    return {
        "job": "one",
        "lease": "a",
        "lease_expires_at": later,
        "deadline": later,
        "repository": "octocat/compiler",
        "sha": rack.sha,
        "pull_request": 1,
        "target": TARGET,
        "suites": [],
        "attempt": 1,
        "run_id": "one-1",
        "prefix": f"results/octocat/compiler/{LAB}/{TARGET}/{rack.sha}/one-1/",
        "clone_url": "https://github.com/octocat/compiler",
        "requested_by": "octocat",
        "upload": {"max_bytes": 1000},
    }


async def test_a_temporary_redirect_ends_neither_the_test_nor_the_report(rack: Rack) -> None:
    """A proxy may show a maintenance page for some seconds."""
    beats: list[str] = []
    reports: list[str] = []

    def answer(call: str, body: dict[str, Any]) -> web.Response | None:
        if call == "claims":
            return web.json_response(job_for(rack))
        if call == "heartbeat":
            beats.append(call)
            if len(beats) > 1:
                (rack.folder / "beaten").touch()
            return moved()
        reports.append(body["reason"])
        return moved() if len(reports) == 1 else None

    script = f"until [ -e {rack.folder}/beaten ]; do sleep 0.1; done; exit 4"
    async with other_bot(answer) as url:
        status, output = await ended(await rack.agent(script, url=url, once=True))
    assert reports == ["the command left no result files (exit status 4)"] * 2, output
    assert (status, "redirects to https://status.example.org/ (302)" in output) == (1, True), output
    assert "could not report" not in output


async def test_a_redirect_is_final_for_an_agent_that_does_one_job(rack: Rack) -> None:
    async with other_bot(lambda *_: moved()) as url:
        status, output = await ended(await rack.agent("true", url=url, once=True))
    assert (status, output.count("\n")) == (1, 1), output
    assert "redirects to https://status.example.org/ (302)" in output


@pytest.mark.parametrize("actions", ["", "true"])
async def test_output_of_a_test_gives_no_commands_to_github_actions(rack: Rack, actions: str) -> None:
    """GitHub Actions obeys `::name::` at the beginning of a line, even an indented one, and `##[name]` anywhere."""
    await rack.job()
    script = "printf ' ::error::x\\n a ##[error]y\\n\\r::warning::z\\n'; exit 4"
    status, output = await ended(await rack.agent(script, once=True, variables={"GITHUB_ACTIONS": actions}))
    assert status == 1, output
    assert "##[" not in output
    lines = output.splitlines()
    first = next(number for number, line in enumerate(lines) if line.endswith("last lines of the command's output:"))
    shown_lines = ["|  ::error::x", "|  a ## [error]y", "| ", "| ::warning::z"]
    if actions:
        token = lines[first + 1].removeprefix("::stop-commands::")
        assert (len(token), token in "".join(shown_lines)) == (32, False)
        shown_lines = [f"::stop-commands::{token}", *shown_lines, f"::{token}::"]
    assert lines[first + 1 : first + 1 + len(shown_lines)] == shown_lines
    obeyed = [line for line in lines if line.strip().startswith("::")]
    assert obeyed == [line for line in shown_lines if line.startswith("::")]


@pytest.mark.parametrize("trap", ["mkfifo {log}", "ln -s /dev/zero {log}", "ln -s {secret} {log}", "ln {secret} {log}"])
async def test_the_shown_output_is_the_commands_own_whatever_the_command_does_to_its_log(rack: Rack, trap: str) -> None:
    await rack.job()
    secret = rack.folder / "secret"
    secret.write_text("of the lab")
    made = trap.format(log="$log", secret=secret)
    script = f'for log in ../log-0.txt ../z.txt; do rm -f "$log"; {made}; touch -h "$log"; done; echo mine; exit 4'
    agent = await rack.agent(script, once=True)
    status, output = await ended(agent)
    assert (status, "output:\n| mine\n" in output, "of the lab" in output) == (1, True, False), output


async def test_the_agent_creates_its_log_as_a_new_file(rack: Rack) -> None:
    """The test of the first suite may prepare the path of the second's log."""
    await rack.job(suites=("first", "second"))
    secret = rack.folder / "secret"
    secret.write_text("of the lab")
    script = f"{PASSES}; ln -s {secret} ../log-1.txt; echo mine"
    status, output = await ended(await rack.agent(script, once=True))
    assert (status, secret.read_text()) == (0, "of the lab"), output


async def test_the_output_of_the_upload_command_is_not_shown(rack: Rack) -> None:
    await rack.job()
    upload = "bash -c 'echo credentials; exit 5'"
    status, output = await ended(await rack.agent(f"echo mine; {PASSES}", "--upload-command", upload, once=True))
    assert (status, "status 5" in output, "credentials" in output) == (1, True, False), output


async def line_after_the_first(agent: Program) -> str:
    assert agent.stderr is not None
    await asyncio.wait_for(agent.stderr.readline(), DEADLINE)
    return (await asyncio.wait_for(agent.stderr.readline(), DEADLINE)).decode()


async def test_a_cache_linked_to_another_disk_is_emptied_too(rack: Rack) -> None:
    (rack.folder / "agent").mkdir()
    (rack.folder / "elsewhere/0123456789abcdef.git").mkdir(parents=True)
    (rack.folder / "agent/cache").symlink_to(rack.folder / "elsewhere")
    agent = await rack.agent("true", "--least-free", str(1 << 40))
    line = await line_after_the_first(agent)
    assert "of --least-free; no job is claimed; trying again in 60 s" in line
    assert [*(rack.folder / "agent/cache").iterdir()] == []
    agent.terminate()
    assert await ended(agent) == (0, "")


@pytest.mark.parametrize(
    ("option", "command", "message"),
    [
        ("--token-command", " ", "--token-command names no command"),
        ("--upload-command", "", "--upload-command names no command"),
        ("--token-command", "print 'it", "the command of --token-command cannot be split into words: no closing quota"),
        ("--upload-command", "./put '", "the command of --upload-command cannot be split into words: no closing quota"),
    ],
)
async def test_an_unusable_command_is_refused_at_the_start(rack: Rack, option: str, command: str, message: str) -> None:
    status, printed = await ended(await rack.agent("true", option, command))
    assert (status, message in printed, "Traceback" in printed) == (2, True, False), printed


def test_a_strangers_code_gets_no_file_through_which_a_step_changes_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_STEP_SUMMARY", "BUILDKITE_ENV_FILE")
    for name in (*files, "GITHUB_SHA"):
        monkeypatch.setenv(name, "a")
    environment = clean_environment({"NIGHTJAR_SUITE": "operators"})
    assert not {*files} & environment.keys()
    assert {"GITHUB_SHA", "NIGHTJAR_SUITE"} <= environment.keys()


async def test_a_disk_that_fails_between_two_jobs_does_not_end_the_agent(rack: Rack) -> None:
    def answer(*_: object) -> web.Response:
        shutil.rmtree(rack.folder / "agent")
        return web.Response(status=503, headers={"Retry-After": "0"})

    async with other_bot(answer) as url:
        agent = await rack.agent("true", url=url)
        assert "503" in await line_after_the_first(agent)
        assert agent.stderr is not None
        line = (await asyncio.wait_for(agent.stderr.readline(), DEADLINE)).decode()
        assert "the lab's disk failed: No such file or directory; trying again in 60 s" in line
        agent.terminate()
        assert await ended(agent) == (0, "")


def test_a_fetch_works_after_the_first_init_was_killed(tmp_path: Path) -> None:
    mirror, cache = tmp_path / "mirror", tmp_path / "cache"
    mirror.mkdir()
    cache.mkdir()
    git(mirror, "init", "--quiet")
    git(mirror, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(mirror, "commit", "--quiet", "--allow-empty", "-m", "one")
    sha = git(mirror, "rev-parse", "HEAD")
    check_out(f"file://{mirror}", sha, cache, tmp_path / "one")
    (bare,) = cache.iterdir()
    for number, left_files in enumerate((("HEAD.lock", "config.lock"), ("HEAD",))):
        # git writes config and HEAD before it creates the folder of objects.
        shutil.rmtree(bare)
        bare.mkdir()
        for name in left_files:
            (bare / name).write_text("ref: refs/heads/master\n" if name == "HEAD" else "")
        check_out(f"file://{mirror}", sha, cache, tmp_path / f"again-{number}")


def test_the_pause_after_failures_is_limited_however_many_there_are() -> None:
    assert [pause_after(failures) for failures in (1, 2, 3)] == [2.0, 4.0, 8.0]
    assert {pause_after(failures) for failures in (10, 1023, 1024, 10**6)} == {LONGEST_PAUSE}


@pytest.mark.parametrize("lease", [{"lease": "a"}, {}])
async def test_a_job_that_the_agent_cannot_read_counts_as_a_failed_job(rack: Rack, lease: dict[str, str]) -> None:
    """An old agent must not claim job after job in a loop."""
    reports: list[dict[str, Any]] = []

    def answer(call: str, body: dict[str, Any]) -> web.Response | None:
        if call == "claims":
            return web.json_response({"job": "one", **lease})
        reports.append(body)
        return None

    async with other_bot(answer) as url:
        status, output = await ended(await rack.agent("true", url=url, once=True))
        assert (status, "the agent refused the job: KeyError" in output) == (1, True), output
        assert [report["lease"] for report in reports] == list(lease.values())
        assert all("the agent refused the job" in report["reason"] for report in reports)
        agent = await rack.agent("true", url=url)
        assert agent.stderr is not None
        lines: list[str] = []
        while "the agent claims the next job in 2 s" not in "".join(lines):
            lines.append((await asyncio.wait_for(agent.stderr.readline(), DEADLINE)).decode())
        assert len(lines) == 3, lines
        agent.terminate()
        assert (await ended(agent))[0] == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("./nothing", "a-secret"), "(No such file or directory): ./nothing"),
        (("sleep", "98765"), "(no answer within 0.1 s): sleep"),
    ],
)
def test_arguments_of_the_token_command_stay_out_of_the_log(command: tuple[str, ...], message: str) -> None:
    with pytest.raises(BotUnavailable) as raised:
        token_of_command(command, 0.1)()
    assert str(raised.value) == f"could not run the command of --token-command {message}"
