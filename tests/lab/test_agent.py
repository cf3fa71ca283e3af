"""`nightjar-lab agent` as a process, with the real bot, a real git repository and the real S3 protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from nightjar_formats.model import RunKey
from nightjar_lab.agent import key_of
from nightjar_lab.job import UnusableJob

from handlers.device_tests.model import LEASE_SECONDS, DeviceJobState, JobEnd
from tests.bucket import World
from tests.conversations.device_lab import LAB, TARGET
from tests.conversations.uploads import stored_names
from tests.lab.agent_rack import ROOT, Rack, ended, lab_rack
from tests.lab.kit.running import MOUNTS, NAMESPACES
from tests.serving import served
from tests.waiting import DEADLINE, until

PASSES = 'cat answer.txt > "$NIGHTJAR_RESULTS/te.xml"; echo "$NIGHTJAR_SUITE" >> "$NIGHTJAR_RESULTS/suite.txt"; exit 3'
HANGS = "echo $$ > {here}/pid; (echo $BASHPID > {here}/child; touch {here}/started; sleep 600) & sleep 600"


@pytest.fixture
async def rack(tmp_path: Path, aws_world: World) -> AsyncIterator[Rack]:
    async with lab_rack(tmp_path, aws_world) as opened_rack:
        yield opened_rack


async def test_the_agent_tests_the_commit_and_uploads_the_results_of_each_suite(rack: Rack) -> None:
    await rack.job(suites=("operators", "models"))
    log = (
        'echo a log > "$NIGHTJAR_RESULTS/log.txt"; cd "$NIGHTJAR_FILES"; ln -s /etc/hostname a.txt; mkfifo b.log; cd -'
    )
    script = f"{log}; {PASSES}"
    status, output = await ended(await rack.agent(script, "--environment", "device=Pixel 9", once=True))
    assert (status, "results of operators, models are uploaded" in output) == (0, True), output
    folder = f"results/octocat/compiler/{LAB}/{TARGET}/{rack.sha}"
    names = [
        f"{folder}/job-1{run}/{name}"
        for run in ("", "-2")
        for name in ("log.txt", "manifest.json", "suite.txt", "te.xml")
    ]
    assert sorted(rack.bucket.keys("results/")) == sorted(names)
    body = rack.bucket.s3.get_object(Bucket=rack.bucket.name, Key=f"{folder}/job-1-2/manifest.json")["Body"].read()
    document = json.loads(body)
    assert [(file["name"], file["type"]) for file in document["artifacts"]] == [("log.txt", "text/plain")]
    assert (document["job"], document["suite"], document["exit_status"], document["environment"]) == (
        "job",
        "models",
        3,
        {"device": "Pixel 9"},
    )
    assert (await rack.lab.store.find(LAB, "job")).log_url == ""
    assert not (rack.folder / "agent/jobs").exists(), "nothing is left behind"
    assert (await ended(await rack.agent(PASSES, once=True)))[0] == 0, "nothing to do"


async def test_without_a_bucket_the_agent_uploads_through_the_bot(tmp_path: Path, aws_world: World) -> None:
    async with lab_rack(tmp_path, aws_world, has_bucket=False) as rack:
        # The bot asks GitHub about the commit, which the mirror alone has.
        commits = rack.lab.town.repo.git.commits
        commits[rack.sha] = replace(commits[rack.lab.pull.head_sha], sha=rack.sha)
        await rack.job(suites=("operators", "models"))
        status, output = await ended(await rack.agent(PASSES, once=True))
        assert (status, "results of operators, models are uploaded" in output) == (0, True), output
        assert sorted(stored_names(tmp_path)) == sorted(["manifest.json", "suite.txt", "te.xml"] * 2)
        await rack.lab.town.quiet()
        assert await rack.state() is DeviceJobState.DONE


async def test_the_command_gets_no_secret_and_links_are_not_uploaded(rack: Rack) -> None:
    await rack.job()
    (rack.folder / "secret.txt").write_text("of the lab")
    private = rack.folder / "secret.txt"
    script = (
        'cd "$NIGHTJAR_RESULTS"; env > env.txt; '
        f"ln -s {private} a.xml; ln {private} b.xml; mkfifo c.xml; mkdir d.xml; "
        "cd -; mkdir locked; touch locked/x; chmod 000 locked"
    )
    status, output = await ended(await rack.agent(script, once=True))
    assert status == 0, output
    assert "uploaded" in output, output
    (uploaded,) = [key for key in rack.bucket.keys("results/") if not key.endswith("manifest.json")]
    assert uploaded.endswith("/env.txt")
    variables = rack.bucket.s3.get_object(Bucket=rack.bucket.name, Key=uploaded)["Body"].read().decode()
    assert "NIGHTJAR_SHA=" + rack.sha in variables
    for secret in (rack.lab.token, "the lab's own"):
        assert secret not in variables


@pytest.mark.parametrize(
    ("script", "options", "reason"),
    [
        ("exit 4", (), "the command left no result files (exit status 4)"),
        ("sleep 600", ("--timeout", "0.5"), "the test took longer than 0 s"),
        (PASSES, ("--clone-url", "file:///nowhere"), "could not fetch the commit: git fetch"),
    ],
)
async def test_a_job_that_the_lab_cannot_do_is_given_back_with_the_reason(
    rack: Rack, script: str, options: tuple[str, ...], reason: str
) -> None:
    await rack.job()
    assert (await ended(await rack.agent(script, *options, once=True)))[0] == 1
    job = await rack.lab.store.find(LAB, "job")
    assert job.state is DeviceJobState.QUEUED
    assert reason in job.note


async def test_with_a_full_disk_the_agent_claims_nothing_or_gives_the_job_back(rack: Rack) -> None:
    await rack.job()
    agent = await rack.agent(PASSES, "--least-free", str(1 << 40))
    assert agent.stderr is not None
    await asyncio.wait_for(agent.stderr.readline(), DEADLINE)
    assert b"no job is claimed" in await asyncio.wait_for(agent.stderr.readline(), DEADLINE)
    assert await rack.state() is DeviceJobState.QUEUED
    agent.terminate()
    await ended(agent)
    # Like a disk that fills up at once: no file may exceed 0 bytes.
    limited = f"ulimit -f 0; exec {sys.executable} -m nightjar_lab agent --once --least-free 1 --target {TARGET}"
    limited += f" --folder {rack.folder}/agent --clone-url file://{rack.folder}/mirror -- true"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "lab"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NIGHTJAR_URL": rack.lab.town.url,
        "NIGHTJAR_LAB": LAB,
        "NIGHTJAR_LAB_TOKEN": rack.lab.token,
    }
    full = await asyncio.create_subprocess_exec("bash", "-c", limited, env=environment, stderr=asyncio.subprocess.PIPE)
    await ended(full)
    assert "could not fetch the commit" in (await rack.lab.store.find(LAB, "job")).note


@pytest.mark.exhaustive("yes > core; yes > log")
@NAMESPACES
@pytest.mark.parametrize(
    "script",
    [
        'yes > "$NIGHTJAR_RESULTS/te.xml"',
        'cp answer.txt "$NIGHTJAR_RESULTS/te.xml"; yes > core; exit 0',
        "yes > core; yes > log",
    ],
)
async def test_a_disk_that_fills_during_a_test_or_its_report_uploads_nothing_and_gives_the_job_back(
    rack: Rack, script: str
) -> None:
    await rack.job()
    (rack.folder / "agent").mkdir()
    mounted = f"mount -t tmpfs -o size=16m none {rack.folder}/agent && exec "
    agent = await rack.agent(script, once=True, wrapper=[*MOUNTS, "sh", "-c", mounted + '"$@"', "sh"])
    assert (await ended(agent))[0] == 1
    job = await rack.lab.store.find(LAB, "job")
    assert (job.state, "the lab's disk was full during the test" in job.note) == (DeviceJobState.QUEUED, True), job.note
    assert rack.bucket.keys("results/") == []


@NAMESPACES
async def test_fetched_commits_are_removed_to_make_room_for_the_next_one(rack: Rack) -> None:
    await rack.job()
    (rack.folder / "agent").mkdir()
    old = f"{rack.folder}/agent/cache/0123456789abcdef.git"
    mounted = (
        f"mount -t tmpfs -o size=16m none {rack.folder}/agent && mkdir -p {old} && "
        f"head -c 12000000 /dev/zero > {old}/pack && exec "
    )
    wrapper = [*MOUNTS, "sh", "-c", mounted + '"$@"', "sh"]
    status, output = await ended(await rack.agent(PASSES, "--least-free", "8", once=True, wrapper=wrapper))
    assert (status, "are uploaded" in output) == (0, True), output


async def test_a_killed_agent_leaves_no_process_and_its_job_is_handed_out_again(rack: Rack) -> None:
    await rack.job()
    agent = await rack.agent(HANGS.format(here=rack.folder))
    await until(lambda: (rack.folder / "started").exists())
    agent.send_signal(signal.SIGKILL)
    await agent.wait()
    for file in ("pid", "child"):
        await rack.has_ended(file)
    assert await rack.state() is DeviceJobState.LEASED
    rack.lab.time.ahead += LEASE_SECONDS + 1
    await rack.lab.store.expire()
    status, output = await ended(await rack.agent(PASSES, once=True))
    assert (status, "attempt 2" in output, "are uploaded" in output) == (0, True, True), output


async def test_the_agent_stops_when_the_job_is_cancelled_and_uploads_nothing(rack: Rack) -> None:
    await rack.job()
    agent = await rack.agent(HANGS.format(here=rack.folder))
    await until(lambda: (rack.folder / "started").exists())
    await rack.lab.store.cancel(await rack.lab.store.find(LAB, "job"), JobEnd.BY_PERSON, also_running=True)
    agent.terminate()
    status, output = await ended(agent)
    for file in ("pid", "child"):
        await rack.has_ended(file)
    assert status == 0, output
    assert await rack.state() is DeviceJobState.CANCELLED
    assert rack.bucket.keys("results/") == []


async def test_a_stopped_agent_gives_its_job_back(rack: Rack) -> None:
    await rack.job()
    agent = await rack.agent(HANGS.format(here=rack.folder))
    await until(lambda: (rack.folder / "started").exists())
    second_agent = await rack.agent("true")
    status, output = await ended(second_agent)
    assert (status, "another agent uses" in output) == (1, True)
    agent.terminate()
    status, output = await ended(agent)
    assert (status, "claims the next job" in output) == (0, False), output
    job = await rack.lab.store.find(LAB, "job")
    assert (job.state, job.note) == (DeviceJobState.QUEUED, "the agent was stopped")


async def test_a_process_that_leaves_the_group_does_not_block_the_agent(rack: Rack) -> None:
    """It inherits the pipe of the command's output, and outlives the job:

    docs/labs-security.md says how to prevent that.
    """
    await rack.job()
    file = rack.folder / "file"
    leaves = f"setsid sh -c 'echo $$ > {file}; exec sleep 600' & while [ ! -s {file} ]; do sleep 0.1; done; {PASSES}"
    status, output = await ended(await rack.agent(leaves, once=True))
    assert (status, "are uploaded" in output) == (0, True), output
    os.kill(int(file.read_text()), signal.SIGKILL)


async def test_the_agent_goes_on_testing_while_the_network_is_down(rack: Rack) -> None:
    """The bot is reached through a proxy that is down for a while; the results still arrive."""
    away, beats = asyncio.Event(), 0

    async def forward(request: web.Request) -> web.Response:
        nonlocal beats
        if "heartbeat" in request.path:
            beats += 1
            if away.is_set() and request.transport is not None:
                request.transport.abort()
        async with rack.lab.client.post(
            rack.lab.town.url + request.path_qs,
            data=await request.read(),
            headers={"Authorization": request.headers["Authorization"]},
        ) as answer:
            return web.Response(
                status=answer.status, body=await answer.read(), headers={"Date": answer.headers["Date"]}
            )

    app = web.Application()
    app.router.add_post("/{path:.*}", forward)
    async with served(app) as url:
        await rack.job()
        away.set()
        waits = f"while [ ! -e {rack.folder}/go ]; do sleep 0.1; done; {PASSES}"
        agent = await rack.agent(waits, url=url, once=True)
        await until(lambda: beats >= 2)
        away.clear()
        (rack.folder / "go").touch()
        status, output = await ended(agent)
        assert (status, "the test goes on" in output, "are uploaded" in output) == (0, True, True), output


@pytest.mark.parametrize("prefix", ["results/", "", "a/b/"])
def test_the_folder_of_a_job_contains_its_id_and_anything_else_is_refused(prefix: str) -> None:
    key = RunKey("octocat/compiler", LAB, "rpi-4@lab:1", "0" * 40, "job-1")
    assert key_of(prefix + key.folder) == (key, prefix)
    for wrong in ("results/", "", f"{prefix}{key.folder}x/", f"{prefix}{key.folder}".replace("%40", "@")):
        with pytest.raises(UnusableJob):
            key_of(wrong)


def test_the_agent_needs_neither_the_server_nor_the_buckets_packages() -> None:
    program = (
        "import sys; sys.path.insert(0, 'lab'); from nightjar_lab.main import kit; "
        "kit(['agent', '--help'], standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "nightjar_lab" in loaded
    assert loaded.isdisjoint({"bot", "handlers", "aiohttp", "boto3", "botocore", "pydantic"})
