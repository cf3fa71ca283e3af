"""Rerunning a Jenkins job: over HTTP, once, with credentials that are sent nowhere else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.ci.rerun_jenkins import LARGEST, StartJenkinsBuild
from bot.core.errors import TryAgain, UserError
from sandbox.clock import iso
from sandbox.jenkins import JenkinsJob, JenkinsSandbox
from tests.handlers.driver import World, a_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


def again(world: World, job: JenkinsJob, *, build: int = 1) -> StartJenkinsBuild:
    """Return the effect of a request now to rerun a job whose status linked a build."""
    return StartJenkinsBuild(job_url=job.url, build=build, name=job.name, asked_at=iso(world.github.clock.now()))


def failed_job(world: World, name: str = "gpu/PR-12", **values: object) -> JenkinsJob:
    job = world.jenkins.add_job(name, **values)
    job.trigger()
    if job.builds:
        job.builds[-1].timestamp -= 3600
        job.builds[-1].finish("FAILURE")
    return job


async def message(world: World, effect: StartJenkinsBuild) -> str:
    """Return the failure text of an effect."""
    with pytest.raises(UserError) as refused:
        await world.apply_alone(effect)
    return str(refused.value)


@pytest.mark.parametrize("parameterized", [True, False])
@pytest.mark.parametrize("crumbs", [True, False])
async def test_a_job_is_built_with_and_without_parameters_and_crumbs(
    world: World, parameterized: bool, crumbs: bool
) -> None:
    world.jenkins.crumbs = crumbs
    job = failed_job(world, parameterized=parameterized)
    applied = await world.apply_alone(again(world, job))
    assert (applied.changed, len(job.builds)) == (True, 2)


async def test_a_branch_with_a_slash_reaches_its_own_job(world: World) -> None:
    job = failed_job(world, "gpu/feature%2Ffast")
    await world.apply_alone(again(world, job))
    assert len(job.builds) == 2


async def test_the_effect_applied_twice_builds_once(world: World) -> None:
    """After a crash between Jenkins' answer and the record of it, the effect is applied again."""
    job = failed_job(world)
    effect = again(world, job)
    await world.apply_alone(effect)
    assert (await world.apply_alone(effect)).text == "Jenkins is already building gpu/PR-12: build 2"
    job.builds[-1].finish("FAILURE")
    assert (await world.apply_alone(effect)).text == "Jenkins already built gpu/PR-12 again: build 2"
    assert len(job.builds) == 2


async def test_a_build_that_is_queued_already_is_not_requested_again(world: World) -> None:
    job = failed_job(world)
    job.quiet = True
    effect = again(world, job)
    await world.apply_alone(effect)
    applied = await world.apply_alone(effect)
    assert (applied.changed, applied.text) == (False, "gpu/PR-12 is already in Jenkins' queue")
    job.begin()
    assert len(job.builds) == 2


async def test_a_newer_build_from_before_the_request_does_not_count(world: World) -> None:
    """A build that was aborted before it posted a status leaves the link to the previous build."""
    job = failed_job(world)
    job.trigger()
    job.builds[-1].timestamp -= 1800
    job.builds[-1].finish("ABORTED")
    assert (await world.apply_alone(again(world, job, build=1))).changed
    assert len(job.builds) == 3


async def test_a_job_that_was_never_built_is_built(world: World) -> None:
    job = world.jenkins.add_job("gpu/PR-12")
    await world.apply_alone(again(world, job))
    assert len(job.builds) == 1


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_request_to_a_broken_jenkins_is_tried_again(world: World, status: int) -> None:
    job = failed_job(world)
    job.status = status
    with pytest.raises(TryAgain, match=f"Jenkins answered {status}"):
        await world.apply_alone(again(world, job))


async def test_a_request_to_a_jenkins_that_is_down_is_tried_again(world: World) -> None:
    job = failed_job(world)
    effect = again(world, job)
    await world.jenkins.stop()
    with pytest.raises(TryAgain, match="Jenkins didn't answer") as error:
        await world.apply_alone(effect)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None


async def test_a_removed_job_is_reported(world: World) -> None:
    job = failed_job(world)
    job.status = 404
    assert await message(world, again(world, job)) == (
        "Jenkins has no job for `gpu/PR-12` (404). The job was renamed or removed, or `JENKINS_USER` isn't allowed to "
        "see it."
    )


def first_time(world: World, name: str = "gpu", number: int = 12) -> StartJenkinsBuild:
    """Return the effect of a request now for a job of app.yaml without a status on the head."""
    job_url = f"{world.jenkins.url}/job/{name}/job/PR-{number}"
    return StartJenkinsBuild(job_url=job_url, build=0, name=name, asked_at=iso(world.github.clock.now()))


@pytest.mark.parametrize("result", [None, "FAILURE"])
async def test_a_missed_push_is_built_whatever_builds_an_older_head_has(world: World, result: str | None) -> None:
    """A build of this head would have posted a status on it."""
    job = failed_job(world)
    job.trigger()
    job.builds[-1].timestamp -= 1800
    if result:
        job.builds[-1].finish(result)
    effect = first_time(world)
    assert (await world.apply_alone(effect)).changed
    assert (await world.apply_alone(effect)).text == "Jenkins is already building gpu: build 3"
    assert len(job.builds) == 3


@pytest.mark.parametrize("branches", [["PR-12-head"], ["PR-12-merge"], ["PR-12-head", "PR-12-merge"]])
async def test_a_missed_push_is_built_if_jenkins_builds_the_head_or_the_merge(
    world: World, branches: list[str]
) -> None:
    jobs = [world.jenkins.add_job(f"gpu/{branch}") for branch in branches]
    assert (await world.apply_alone(first_time(world))).changed
    assert [len(job.builds) for job in jobs] == [1] * len(jobs)


async def test_the_error_for_a_pull_request_that_jenkins_never_scanned_says_what_to_do(world: World) -> None:
    assert await message(world, first_time(world)) == (
        "Jenkins has no job for this pull request in `gpu` (404), so nothing was started. Jenkins hasn't scanned "
        "the pull request yet, or `JENKINS_USER` isn't allowed to see the job. Push a commit, or ask someone to start "
        "*Scan Repository Now* for `gpu` in Jenkins."
    )


async def test_credentials_that_jenkins_refuses_are_named_and_never_shown(world: World) -> None:
    job = failed_job(world)
    world.jenkins.token = "another"
    text = await message(world, again(world, job))
    assert "Jenkins refused to start `gpu/PR-12` (401)" in text
    assert "`JENKINS_TOKEN` must be a valid API token" in text


@asynccontextmanager
async def stranger() -> AsyncIterator[JenkinsSandbox]:
    """Start a server that app.yaml does not name and that records its requests."""
    unknown_server = JenkinsSandbox()
    async with unknown_server.serve():
        yield unknown_server


async def test_a_server_that_app_yaml_does_not_name_is_never_called(world: World) -> None:
    async with stranger() as unknown_server:
        job = unknown_server.add_job("gpu/PR-12")
        assert "add its server to `rerun: jenkins:`" in await message(world, again(world, job))
        assert unknown_server.requests == []


async def test_a_redirect_does_not_carry_the_credentials_away(world: World) -> None:
    job = failed_job(world)
    async with stranger() as unknown_server:
        world.jenkins.redirect_to = unknown_server.url
        assert "Jenkins answered 302 when asked to start `gpu/PR-12`" in await message(world, again(world, job))
        assert unknown_server.requests == []


async def test_a_jenkins_below_a_path_is_called_there(tmp_path: Path) -> None:
    async with a_world(tmp_path, jenkins=JenkinsSandbox(path="/jenkins")) as world:
        job = failed_job(world)
        await world.apply_alone(again(world, job))
        assert len(job.builds) == 2
        assert {path.partition("/jenkins/")[0] for _, path in world.jenkins.requests} == {""}


async def test_one_build_costs_three_requests(world: World) -> None:
    await world.apply_alone(again(world, failed_job(world)))
    assert world.jenkins.requests == [
        ("GET", "/job/gpu/job/PR-12/api/json"),
        ("GET", "/crumbIssuer/api/json"),
        ("POST", "/job/gpu/job/PR-12/buildWithParameters"),
    ]


@pytest.mark.parametrize("text", ["<html>Log in</html>", "[" * 50_000, f'{{"a": "{"x" * LARGEST}"}}', "[]", "null", ""])
async def test_an_answer_that_is_not_from_jenkins_starts_nothing(world: World, text: str) -> None:
    """A login page, or a proxy's page, is no reason to send a POST with credentials."""
    effect = again(world, failed_job(world))
    world.jenkins.says = text
    assert await message(world, effect) == (
        "I didn't start `gpu/PR-12`: Jenkins didn't answer with JSON. Check that its address in `app.yaml` is the "
        "*Jenkins URL* in Jenkins' own settings."
    )
    assert [method for method, _ in world.jenkins.requests] == ["GET"]
