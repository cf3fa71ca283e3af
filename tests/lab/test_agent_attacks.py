"""A stranger's commit attacks the agent that tests it, with the real bot, real git and the real S3 protocol."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from handlers.device_tests.model import DeviceJobState
from tests.bucket import World
from tests.lab.agent_rack import Rack, ended, git, lab_rack
from tests.lab.test_agent_faults import job_for, other_bot
from tests.serving import served

PASSES = 'cp answer.txt "$NIGHTJAR_RESULTS/te.xml"'
SOCKET = "the socket of the lab"


@pytest.fixture
async def rack(tmp_path: Path, aws_world: World) -> AsyncIterator[Rack]:
    async with lab_rack(tmp_path, aws_world) as opened_rack:
        yield opened_rack


def commit(rack: Rack, **files: str) -> None:
    """Make a commit with more files the one that the job is about."""
    mirror = rack.folder / "mirror"
    for name, text in files.items():
        (mirror / name).write_text(text)
    git(mirror, "add", ".")
    git(mirror, "commit", "--quiet", "-m", "two")
    rack.sha = git(mirror, "rev-parse", "HEAD")


async def test_git_gets_no_secret_and_is_never_started_after_the_test(rack: Rack) -> None:
    """A git on PATH writes down with which variables it is started, and starts the real one."""
    await rack.job(suites=("first", "second"))
    programs, log = rack.folder / "programs", rack.folder / "log"
    programs.mkdir()
    real = shutil.which("git")
    (programs / "git").write_text(f'#!/bin/sh\n{{ echo "git $*"; env; }} >> {log}\nexec {real} "$@"\n')
    (programs / "git").chmod(0o755)
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "SSH_AUTH_SOCK": SOCKET, "CIRCLE_TOKEN": "circle's"}
    rewrites = f"echo tested >> {log}; echo 'gitdir: /nowhere' > .git; {PASSES}"
    status, output = await ended(await rack.agent(rewrites, once=True, variables=variables))
    assert (status, "are uploaded" in output) == (0, True), output
    calls = log.read_text()
    for secret in (rack.lab.token, "the lab's own", "circle's"):
        assert secret not in calls
    parts = calls.split("\ngit ")
    # Only the fetch gets what it may need to log in.
    assert [part for part in parts if SOCKET in part] == [part for part in parts if " fetch " in part.splitlines()[0]]
    assert calls.endswith("tested\ntested\n")


@pytest.mark.parametrize("attributes", ["* filter=leak", "[attr]m filter=leak\n* m"])
async def test_a_filter_of_the_machine_does_not_run_for_a_commit_that_names_it(rack: Rack, attributes: str) -> None:
    leak = rack.folder / "leak"
    commit(rack, **{".gitattributes": f"{attributes}\n", ".lfsconfig": "[lfs]\nurl = http://127.0.0.1:1\n"})
    (rack.folder / ".gitconfig").write_text(f'[filter "leak"]\n    smudge = env >> {leak}; cat\n    required\n')
    await rack.job()
    status, output = await ended(await rack.agent(PASSES, once=True))
    assert (status, "are uploaded" in output) == (0, True), output
    assert not leak.exists(), leak.read_text()


async def test_the_upload_command_imports_nothing_that_the_test_left(rack: Rack) -> None:
    await rack.job()
    leak, options = (
        rack.folder / "leak",
        ("--upload-command", f"{sys.executable} -m json.tool {rack.folder}/mirror/a.json"),
    )
    (rack.folder / "mirror/a.json").write_text("{}")
    code = shlex.quote(f"import os; open({str(leak)!r}, 'w').write(str(os.environ))")
    script = f'{PASSES}; for name in argparse json; do echo {code} | tee $name.py "$NIGHTJAR_RESULTS/$name.py"; done'
    status, output = await ended(await rack.agent(script, *options, once=True))
    assert (status, "are uploaded" in output) == (0, True), output
    assert not leak.exists(), leak.read_text()


async def test_the_upload_command_gets_a_copy_of_the_result_files_without_links(rack: Rack) -> None:
    await rack.job(suites=("first", "second"))
    (rack.folder / "secret").write_text("of the lab")
    script = (
        f'{PASSES}; cd "$NIGHTJAR_RESULTS"; echo "$NIGHTJAR_SUITE" > suite.txt; touch empty.txt; mkdir sub; '
        f"ln -s {rack.folder}/secret a.xml; ln {rack.folder}/secret b.xml; ln -s {rack.folder} c.xml; mkfifo d.xml"
    )
    upload = (
        f'mkdir {rack.folder}/$NIGHTJAR_SUITE; cp -rL "$NIGHTJAR_RESULTS"/. {rack.folder}/$NIGHTJAR_SUITE/; ls -A . >&2'
    )
    options = ("--upload-command", f"bash -c {shlex.quote(upload)}")
    status, output = await ended(await rack.agent(script, *options, once=True))
    assert (status, "are uploaded" in output) == (0, True), output
    for suite in ("first", "second"):
        files = {path.name: path.read_text() for path in (rack.folder / suite).iterdir()}
        assert files == {"te.xml": "<testsuites/>", "suite.txt": f"{suite}\n"}


async def test_result_files_that_are_too_large_together_are_refused_before_they_are_read(rack: Rack) -> None:
    await rack.job()
    script = 'cd "$NIGHTJAR_RESULTS"; for number in $(seq 200); do truncate -s 64M $number.xml; done'
    # Less than the files have.
    limited = ["prlimit", "--data=2000000000"]
    status, output = await ended(await rack.agent(script, once=True, wrapper=limited))
    assert status == 1, output
    job = await rack.lab.store.find("example-lab", "job")
    assert job.note == "the result files have more than 536870912 bytes together"
    assert rack.bucket.keys("results/") == []


async def test_an_agent_whose_folder_of_jobs_is_a_link_does_not_start(rack: Rack) -> None:
    await rack.job()
    elsewhere = rack.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("of the lab")
    (rack.folder / "agent").mkdir()
    (rack.folder / "agent/jobs").symlink_to(elsewhere)
    status, output = await ended(await rack.agent(PASSES, once=True))
    assert (status, f"{rack.folder}/agent/jobs is a link" in output) == (1, True), output
    assert [path.name for path in elsewhere.iterdir()] == ["file"]
    assert await rack.state() is DeviceJobState.QUEUED


async def test_a_lock_that_is_a_link_is_not_emptied(rack: Rack) -> None:
    (rack.folder / "secret").write_text("of the lab")
    (rack.folder / "agent").mkdir()
    (rack.folder / "agent/lock").symlink_to(rack.folder / "secret")
    status, output = await ended(await rack.agent(PASSES, once=True))
    assert (status, "cannot use the folder" in output) == (1, True), output
    assert (rack.folder / "secret").read_text() == "of the lab"


@pytest.mark.parametrize("name", ["jobs", "jobs/job-1", "jobs/job-1/results-0"])
async def test_a_folder_that_the_test_replaces_by_a_link_is_neither_read_nor_written(rack: Rack, name: str) -> None:
    await rack.job()
    replaced, elsewhere = rack.folder / "agent" / name, rack.folder / "elsewhere"
    results = elsewhere / (rack.folder / "agent/jobs/job-1/results-0").relative_to(replaced)
    results.mkdir(parents=True)
    (results / "te.xml").write_text("of the lab")
    script = f"{PASSES}; cd /; mv {replaced} {rack.folder}/away; ln -s {elsewhere} {replaced}"
    status, output = await ended(await rack.agent(script, once=True))
    assert (status, "the test replaced the agent's folder" in output) == (1, True), output
    status, output = await ended(await rack.agent(PASSES, once=True))
    assert (status, "are uploaded" in output) == (0, True), output
    assert [path for path in elsewhere.rglob("*") if path.is_file()] == [results / "te.xml"]
    assert (results / "te.xml").read_text() == "of the lab"
    uploads = [key for key in rack.bucket.keys("results/") if key.endswith("te.xml")]
    bodies = [rack.bucket.s3.get_object(Bucket=rack.bucket.name, Key=key)["Body"].read() for key in uploads]
    assert bodies == [b"<testsuites/>"]


async def test_temporary_files_of_a_test_are_removed_with_the_job(rack: Rack) -> None:
    await rack.job()
    status, output = await ended(await rack.agent(f"mktemp > {rack.folder}/name; {PASSES}", once=True))
    assert status == 0, output
    assert Path((rack.folder / "name").read_text()).parent == rack.folder / "agent/jobs/tmp"
    assert not (rack.folder / "agent/jobs").exists()


async def test_a_lost_lease_ends_a_fetch_that_hangs(rack: Rack) -> None:
    fetch_started = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        fetch_started.set()
        await asyncio.Event().wait()
        raise AssertionError

    def answer(call: str, _: object) -> web.Response | None:
        if call == "claims":
            return web.json_response(job_for(rack))
        if call == "heartbeat":
            return web.Response(status=409 if fetch_started.is_set() else 503, headers={"Retry-After": "0"})
        return None

    app = web.Application()
    app.router.add_get("/{path:.*}", hang)
    async with served(app) as mirror, other_bot(answer) as url:
        status, output = await ended(await rack.agent("true", "--clone-url", f"{mirror}/x", url=url, once=True))
    assert (status, "the lease is lost" in output) == (0, True), output


async def test_the_command_gets_the_variables_that_the_lab_names_and_no_others(rack: Rack) -> None:
    await rack.job()
    variables = {"MODEL_FOLDER": "/models", "SOME_TOKEN": "s", "CUDA_HOME": "/cuda", "SSH_AUTH_SOCK": SOCKET}
    options = ("--pass-variable", "MODEL_FOLDER")
    script = f"env > {rack.folder}/env.txt; {PASSES}"
    status, output = await ended(await rack.agent(script, *options, once=True, variables=variables))
    assert status == 0, output
    seen = dict(line.partition("=")[::2] for line in (rack.folder / "env.txt").read_text().splitlines())
    assert {name: seen.get(name) for name in variables} == {
        "MODEL_FOLDER": "/models",
        "SOME_TOKEN": None,
        "CUDA_HOME": "/cuda",
        "SSH_AUTH_SOCK": None,
    }
