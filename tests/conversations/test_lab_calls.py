"""A lab claims jobs for its devices, reports progress, and gives jobs back, over real HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.engine.tokens import LAB as LAB_SCOPE
from bot.engine.tokens import TokenStore
from bot.web.connections import raise_descriptor_limit
from handlers.device_tests.model import DeviceJobState, JobEnd
from handlers.labs import texts
from handlers.labs.calls import CALLS_PER_MINUTE
from handlers.labs.routes import MOST_WAITING
from tests.bucket import World
from tests.conversations.device_lab import CONFIG, LAB, PUBLIC_URL, TARGET, DeviceLab, device_lab
from tests.handlers.device_tests.cases import OCTOCAT
from tests.waiting import DEADLINE, until


@pytest.fixture
async def lab(tmp_path: Path, aws_world: World) -> AsyncIterator[DeviceLab]:
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as lab:
        yield lab


async def test_a_job_is_claimed_extended_given_back_and_claimed_again(lab: DeviceLab) -> None:
    assert await lab.claim() is None
    job = await lab.asked_for(suites=("operators",), approval_needed=True)
    assert await lab.claim() is None, "it is not approved"
    await lab.store.approve(job, job.sha, OCTOCAT)
    claimed_job = await lab.claim()
    folder = f"results/octocat/compiler/{LAB}/{TARGET}/{lab.pull.head_sha}/job-1/"
    lease, expires, deadline = (
        claimed_job.pop("lease"),
        claimed_job.pop("lease_expires_at"),
        claimed_job.pop("deadline"),
    )
    assert claimed_job == {
        "job": "job",
        "repository": "octocat/compiler",
        "sha": lab.pull.head_sha,
        "pull_request": lab.pull.number,
        "target": TARGET,
        "suites": ["operators"],
        "attempt": 1,
        "run_id": "job-1",
        "prefix": folder,
        "clone_url": f"{lab.town.bot.settings.github_url}/octocat/compiler.git",
        "requested_by": "hubot",
        "approved_by": "octocat",
        "upload": None,
    }
    assert expires < deadline
    assert await lab.claim() is None
    lab.time.ahead += 60
    beat = {"lease": lease, "log_url": "https://lab.example.org/log/1", "note": "12 of 80"}
    for _ in range(2):
        status, headers, extended = await lab.call("jobs/job/heartbeat", beat)
        assert (status, headers["Cache-Control"]) == (200, "no-store")
        assert extended["lease_expires_at"] > expires
    stored = await lab.store.find(LAB, "job")
    assert (stored.note, stored.log_url) == ("12 of 80", "https://lab.example.org/log/1")
    for _ in range(2):
        failed = await lab.call("jobs/job/failed", {"lease": lease, "reason": "the device does not answer"})
        assert (failed[0], failed[2]) == (200, {"state": "queued"})
    assert (await lab.claim())["run_id"] == "job-2"
    status, _, lost = await lab.call("jobs/job/heartbeat", beat)
    assert (status, lost["detail"]) == (409, texts.LEASE_LOST)
    assert (await lab.call("jobs/job/failed", {"lease": "x" * 43, "reason": ""}))[0] == 409


@pytest.mark.parametrize(
    ("progress", "page"),
    [
        ({"log_url": "https://lab.example.org/log/1"}, "https://lab.example.org/log/1"),
        ({"note": "1 of 3"}, f"{PUBLIC_URL}/r/octocat/compiler/pulls/1"),
    ],
)
async def test_the_check_run_of_a_test_links_the_labs_log_or_the_dashboard(
    lab: DeviceLab, progress: dict[str, str], page: str
) -> None:
    await lab.asked_for()
    claimed_job = await lab.claim()
    await lab.call("jobs/job/heartbeat", {"lease": claimed_job["lease"], **progress})
    await lab.town.quiet()
    (check,) = [run for suite in lab.town.repo.suites for run in suite.runs if run.name == f"hardware/{LAB}/{TARGET}"]
    assert (check.status, check.details_url) == ("in_progress", page)


async def test_a_claim_waits_until_there_is_a_job(lab: DeviceLab) -> None:
    waiting = asyncio.create_task(lab.claim(wait=60))
    await until(lambda: lab.store.bell.waiting(LAB) == 1)
    async with asyncio.timeout(DEADLINE):
        await lab.asked_for()
        assert (await waiting)["job"] == "job"


async def test_a_claim_waits_until_a_device_is_free_and_sees_jobs_from_other_replicas(
    postgres_with_tables: str, aws_world: World
) -> None:
    async with device_lab(postgres_with_tables, aws_world) as lab:
        await lab.asked_for("first")
        first = await lab.claim()
        await lab.asked_for("second", sha="b" * 40)
        waiting = asyncio.create_task(lab.claim(wait=60))
        await until(lambda: lab.store.bell.waiting(LAB) == 1)
        other_store = type(lab.store)(lab.town.bot.engine.database.connector, lab.time)
        async with asyncio.timeout(DEADLINE):
            await other_store.cancel(await other_store.find(LAB, first["job"]), JobEnd.BY_PERSON, also_running=True)
            assert (await waiting)["job"] == "second"


async def test_a_client_that_disconnected_gets_no_job(lab: DeviceLab) -> None:
    async with aiohttp.ClientSession() as client:
        leaving = DeviceLab(lab.town, lab.issuer, lab.time, lab.token, lab.other_token, lab.pull, client)
        waiting = asyncio.create_task(leaving.claim(wait=60))
        await until(lambda: lab.store.bell.waiting(LAB) == 1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await until(lambda: lab.store.bell.waiting(LAB) == 0)
    await lab.asked_for()
    assert (await lab.store.find(LAB, "job")).state is DeviceJobState.QUEUED


async def test_a_server_that_stops_answers_waiting_claims(tmp_path: Path, aws_world: World) -> None:
    async with asyncio.timeout(DEADLINE):
        async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as lab:
            waiting = asyncio.create_task(lab.claim(wait=60))
            await until(lambda: lab.store.bell.waiting(LAB) == 1)
        # The lab's session is closed by now, but the answer came before.
        assert await waiting is None


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        ("claims", b"{", "Invalid JSON"),
        ("claims", {"targets": []}, "targets: "),
        ("claims", {"targets": [TARGET], "wait": 61}, "wait: "),
        ("claims", {"targets": ["../x"]}, "targets.0: "),
        ("claims", {"targets": [TARGET], "more": 1}, "more: "),
        (
            "claims",
            {"targets": ["mali"]},
            "The lab example-lab has no target mali in app.yaml. Available: adreno, hexagon-v73.",
        ),
        ("jobs/job/heartbeat", {}, "lease: "),
        ("jobs/job/failed", {"lease": "x", "reason": 7}, "reason: "),
    ],
)
async def test_an_invalid_body_is_answered_with_the_fault(lab: DeviceLab, path: str, body: Any, detail: str) -> None:
    await lab.asked_for()
    status, headers, problem = await lab.call(path, body)
    assert (status, headers["Content-Type"]) == (400, "application/problem+json")
    assert detail in problem["detail"]


async def test_a_flood_of_calls_is_limited(lab: DeviceLab) -> None:
    allowed = 0
    while (answer := await lab.call("claims", {"targets": [TARGET]}))[0] == 204:
        allowed += 1
    status, headers, problem = answer
    assert allowed == CALLS_PER_MINUTE
    assert (status, int(headers["Retry-After"]) >= 1) == (429, True)
    assert "The lab example-lab sends too many requests." in problem["detail"]
    assert await lab.claim(lab="other-lab", token=lab.other_token, target="adreno") is None
    assert 'nightjar_lab_calls_total{call="claims",lab="example-lab",outcome="too many"} 1.0' in lab.metrics()


async def test_the_number_of_waiting_claims_per_lab_is_limited(lab: DeviceLab) -> None:
    waiting = [asyncio.create_task(lab.call("claims", {"targets": [TARGET], "wait": 60})) for _ in range(MOST_WAITING)]
    await until(lambda: lab.store.bell.waiting(LAB) == MOST_WAITING)
    status, headers, problem = await lab.call("claims", {"targets": [TARGET], "wait": 60})
    assert (status, "Retry-After" in headers) == (429, True)
    assert problem["detail"] == texts.TOO_MANY_WAIT.format(count=MOST_WAITING, lab=LAB)
    assert await lab.claim() is None, "a claim that does not wait is answered"
    for claim in waiting:
        claim.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_five_hundred_agents_wait_with_the_default_settings_and_a_job_wakes_one(
    tmp_path: Path, aws_world: World
) -> None:
    names = [f"lab-{number}" for number in range(5)]
    labs = "".join(f"        {name}: {{{{targets: {{{{{TARGET}: {{{{tier: 2}}}}}}}}}}}}\n" for name in names)
    config = CONFIG.replace("        other-lab:", labs + "        other-lab:", 1)
    raise_descriptor_limit()  # as `nightjar serve` does
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world, config=config) as lab:
        tokens = TokenStore(lab.town.bot.engine.database.connector, LAB_SCOPE)
        waiting = [
            asyncio.create_task(lab.claim(wait=60, token=token, lab=name))
            for name in names
            for token in [(await tokens.create(name, seconds=3600.0))[0]]
            for _ in range(100)
        ]
        await until(lambda: lab.store.bell.waiting() == len(waiting))
        await lab.asked_for(lab=names[2])
        done, idle = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [(await claim)["job"] for claim in done] == ["job"]
        assert lab.store.bell.waiting() == len(idle)
        for claim in idle:
            claim.cancel()
        await asyncio.gather(*idle, return_exceptions=True)


async def test_the_permission_to_upload_is_limited_to_this_run(tmp_path: Path, aws_world: World) -> None:
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world, presigned=True) as lab:
        await lab.asked_for()
        claimed_job = await lab.claim()
        upload = claimed_job["upload"]
        policy = json.loads(base64.b64decode(upload["fields"]["policy"]))
        assert ["starts-with", "$key", claimed_job["prefix"]] in policy["conditions"]
        assert ["content-length-range", 1, upload["max_bytes"]] in policy["conditions"]
        assert {"bucket": aws_world.name} in policy["conditions"]
        assert upload["fields"]["x-amz-algorithm"] == "AWS4-HMAC-SHA256"
        assert claimed_job["deadline"] < upload["expires_at"]
        form = aiohttp.FormData({**upload["fields"], "key": f"{claimed_job['prefix']}te.xml"})
        form.add_field("file", b"<testsuites/>", filename="te.xml")
        async with lab.client.post(upload["url"], data=form) as answer:
            assert answer.status in (200, 204), await answer.text()
        assert aws_world.keys("results/") == [f"{claimed_job['prefix']}te.xml"]
