"""A lab whose devices are GitHub Actions runners: the bot starts its workflow for each job, which claims the job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from handlers.labs.webhooks import LAB_WEBHOOKS
from sandbox import Repository
from tests.bucket import World
from tests.conversations.device_lab import DeviceLab, device_lab

FILE = "nightjar.yml"
WORKFLOW = "on: {workflow_dispatch: {inputs: {job: {}, target: {}, repository: {}, sha: {}}}}"
EXTRA = "workflow: {repository: example-lab/devices, file: nightjar.yml}"


@asynccontextmanager
async def town_with_workflow(
    tmp_path: Path, bucket: World, workflow: str | None = WORKFLOW, *, installed: bool = True, repository_id: int = 123
) -> AsyncIterator[tuple[DeviceLab, Repository]]:
    """Start a town, and a lab with a repository of its own."""
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", bucket, extra=EXTRA) as lab:
        files: Mapping[str, str] = {"README.md": ""} if workflow is None else {f".github/workflows/{FILE}": workflow}
        devices = lab.town.github.create_repository("example-lab/devices", files=files)
        devices.id = repository_id
        if installed:
            lab.town.app.install(devices)
        await lab.town.quiet()
        yield lab, devices


async def ticked(lab: DeviceLab) -> None:
    await lab.town.bot.services.part(LAB_WEBHOOKS).tick()
    await lab.town.quiet()


async def test_the_workflow_starts_once_for_each_attempt_and_claims_the_job(tmp_path: Path, aws_world: World) -> None:
    async with town_with_workflow(tmp_path, aws_world) as (lab, devices):
        await lab.asked_for("hidden", sha="b" * 40, approval_needed=True)
        job = await lab.asked_for()
        for _ in range(3):
            await ticked(lab)
        (run,) = devices.workflow_runs
        assert (run.event, run.head_branch, run.path) == ("workflow_dispatch", "main", f".github/workflows/{FILE}")
        assert run.inputs == {
            "job": job.id, "target": job.target, "repository": "octocat/compiler", "sha": job.sha,
        }  # fmt: skip
        claimed_job = await lab.claim(token=lab.issuer.token(event_name="workflow_dispatch"))
        assert claimed_job["job"] == job.id
        await lab.call("jobs/job/failed", {"lease": claimed_job["lease"], "reason": "x"})
        await ticked(lab)
        assert len(devices.workflow_runs) == 2
        assert 'nightjar_lab_calls_total{call="workflow",lab="example-lab",outcome="sent"} 2.0' in lab.metrics()


async def test_a_job_that_was_claimed_meanwhile_starts_no_workflow(tmp_path: Path, aws_world: World) -> None:
    async with town_with_workflow(tmp_path, aws_world, None) as (lab, devices):
        await lab.asked_for()
        await ticked(lab)
        assert len(await lab.town.failures()) == 1
        await lab.claim()
        (record,) = await lab.town.bot.engine.journal.recent(failed=True)
        devices.push("main", {f".github/workflows/{FILE}": WORKFLOW}, by=devices.owner)
        await lab.town.bot.engine.replay(record.guid)
        await lab.town.quiet()
        assert devices.workflow_runs == []


@pytest.mark.parametrize(
    ("workflow", "cause"),
    [
        (None, "GitHub finds no workflow nightjar.yml on the default branch of example-lab/devices"),
        ("on: push", "Workflow does not have 'workflow_dispatch' trigger"),
        ("on: {workflow_dispatch: {inputs: {job: {}}}}", 'Unexpected inputs provided: ["target", "repository", "sha"]'),
    ],
)
async def test_a_workflow_that_github_cannot_start_is_reported_with_the_remedy(
    tmp_path: Path, aws_world: World, workflow: str | None, cause: str
) -> None:
    async with town_with_workflow(tmp_path, aws_world, workflow) as (lab, devices):
        await lab.asked_for()
        await ticked(lab)
        (failure,) = await lab.town.failures()
        assert cause in failure
        assert devices.workflow_runs == []
        calls = 'nightjar_lab_calls_total{call="workflow",lab="example-lab",outcome="refused"} 1.0'
        assert calls in lab.metrics()


async def test_a_failure_names_the_labs_repository_if_the_app_is_not_installed_there(
    tmp_path: Path, aws_world: World
) -> None:
    async with town_with_workflow(tmp_path, aws_world, installed=False) as (lab, devices):
        await lab.asked_for()
        await ticked(lab)
        (failure,) = await lab.town.failures()
        assert "example-lab/devices: the App is not installed on it" in failure
        assert devices.workflow_runs == []


async def test_a_suspended_installation_of_the_lab_does_not_hold_up_the_repository(
    tmp_path: Path, aws_world: World
) -> None:
    async with town_with_workflow(tmp_path, aws_world) as (lab, devices):
        installation = lab.town.app.installation_of(devices.owner)
        assert installation is not None
        installation.suspend()
        await lab.asked_for()
        await ticked(lab)
        (failure,) = await lab.town.failures()
        assert f"the App's installation {installation.id} is suspended on GitHub" in failure
        assert devices.workflow_runs == []


async def test_a_new_repository_under_the_labs_old_name_is_not_used(tmp_path: Path, aws_world: World) -> None:
    async with town_with_workflow(tmp_path, aws_world, repository_id=124) as (lab, devices):
        await lab.asked_for()
        await ticked(lab)
        (failure,) = await lab.town.failures()
        assert "example-lab/devices has the ID 124, but labs.example-lab.identity.github_oidc.repository_id" in failure
        assert devices.workflow_runs == []
