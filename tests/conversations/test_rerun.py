"""`@ci rerun`, with the whole bot, a GitHub and a Jenkins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox import PullRequest
from sandbox.jenkins import JenkinsJob, JenkinsSandbox
from tests.conversations.town import Town
from tests.conversations.town import town as start_town

CONFIG = """
repositories:
  octocat/compiler:
    rerun: {jenkins: [{url: "%s"}]}
"""


@dataclass(frozen=True)
class Place:
    town: Town
    jenkins: JenkinsSandbox

    def job(self, pull: PullRequest, name: str, result: str) -> JenkinsJob:
        job = self.jenkins.add_job(f"{name}/PR-{pull.number}", pull=pull, context=f"{name}/pr-head")
        job.trigger()
        job.builds[-1].finish(result)
        return job


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    jenkins = JenkinsSandbox()
    async with jenkins.serve() as url:
        environment = {"JENKINS_USER": jenkins.user, "JENKINS_TOKEN": jenkins.token}
        database = f"sqlite:///{tmp_path}/nightjar.db"
        async with start_town(database, config=CONFIG % url, environment=environment) as town:
            yield Place(town, jenkins)


async def test_failed_ci_runs_again_on_actions_and_on_jenkins(place: Place) -> None:
    town = place.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure", "docs": "success"})
    gpu, cpu = place.job(pull, "gpu", "FAILURE"), place.job(pull, "cpu", "SUCCESS")
    comment = pull.comment("hubot", "@ci rerun")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert [job.name for job in run.jobs if job.attempt == 2] == ["unit"]
    assert (len(gpu.builds), len(cpu.builds)) == (2, 1)
    (answer,) = town.answers(pull)
    assert f"Restarting on `{pull.head_sha[:7]}`:" in answer
    assert "[`gpu/pr-head`]" in answer


async def test_a_removed_job_is_named_and_the_others_run(place: Place) -> None:
    """apache/tvm#18780: all jobs after a removed one did not run."""
    town = place.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    arm, gpu = place.job(pull, "arm", "FAILURE"), place.job(pull, "gpu", "FAILURE")
    arm.status = 404
    comment = pull.comment("hubot", "@ci rerun")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert (len(arm.builds), len(gpu.builds)) == (1, 2)
    (answer,) = town.answers(pull)
    assert "Jenkins has no job for `arm/pr-head` (404)" in answer


async def test_a_connection_lost_after_the_rerun_does_not_cause_a_second_one(place: Place) -> None:
    town = place.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure"})
    route = "/repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs"
    town.github.faults.add("POST", route, drop="after")
    comment = pull.comment("hubot", "@ci rerun")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert run.attempt == 2
    assert town.github.requests.count("POST", route) == 1
    assert len(town.answers(pull)) == 1


UNSCANNED = """
repositories:
  octocat/compiler:
    rerun: {jenkins: [{url: "%s", jobs: [cpu, gpu]}]}
"""


@pytest.fixture
async def unscanned(tmp_path: Path) -> AsyncIterator[Place]:
    """Return a town whose Jenkins has jobs for every pull request but misses pushes."""
    jenkins = JenkinsSandbox()
    async with jenkins.serve() as url:
        environment = {"JENKINS_USER": jenkins.user, "JENKINS_TOKEN": jenkins.token}
        database = f"sqlite:///{tmp_path}/nightjar.db"
        async with start_town(database, config=UNSCANNED % url, environment=environment) as town:
            yield Place(town, jenkins)


def waiting_job(place: Place, pull: PullRequest, name: str) -> JenkinsJob:
    return place.jenkins.add_job(f"{name}/PR-{pull.number}", pull=pull, context=f"{name}/pr-head")


async def test_if_jenkins_missed_the_push_the_jobs_of_app_yaml_are_started(unscanned: Place) -> None:
    town = unscanned.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    cpu, gpu = waiting_job(unscanned, pull, "cpu"), waiting_job(unscanned, pull, "gpu")
    town.repo.set_status("octocat", pull.head_sha, "cla", "success")
    comment = pull.comment("hubot", "@ci rerun")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert (len(cpu.builds), len(gpu.builds)) == (1, 1)
    (answer,) = town.answers(pull)
    assert f"- [`cpu`]({cpu.url}) (Jenkins: not started on this commit)" in answer


async def test_a_job_without_a_status_runs_only_if_named(unscanned: Place) -> None:
    town = unscanned.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    cpu, gpu = unscanned.job(pull, "cpu", "SUCCESS"), waiting_job(unscanned, pull, "gpu")
    pull.comment("hubot", "@ci rerun")
    pull.comment("hubot", "@ci run slow tests")
    await town.quiet()
    assert (len(cpu.builds), len(gpu.builds)) == (2, 0)
    cpu.builds[-1].finish("SUCCESS")
    pull.comment("hubot", "@ci rerun gpu")
    await town.quiet()
    assert (len(cpu.builds), len(gpu.builds)) == (2, 1)


@pytest.mark.parametrize("name", ["gpu/pr-head", "gpu/*", "GPU/PR-Head", "gpu/pr-merge"])
async def test_a_job_without_a_status_is_started_by_the_name_of_the_check_that_is_missing(
    unscanned: Place, name: str
) -> None:
    """TVM requires `tvm-gpu/pr-head`, and `@ci merge` says that it has not started."""
    town = unscanned.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    cpu, gpu = unscanned.job(pull, "cpu", "SUCCESS"), waiting_job(unscanned, pull, "gpu")
    comment = pull.comment("hubot", f"@ci rerun {name}")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert (len(cpu.builds), len(gpu.builds)) == (1, 1)


async def test_the_answer_about_a_check_that_never_reported_says_what_could_start_it(unscanned: Place) -> None:
    town = unscanned.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    unscanned.job(pull, "cpu", "SUCCESS")
    comment = pull.comment("hubot", "@ci rerun npu/pr-head")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    (answer,) = town.answers(pull)
    assert f"Nothing on `{pull.head_sha[:7]}` is named `npu/pr-head`. I can start a check" in answer
    assert "only if its Jenkins job is in `rerun: jenkins: jobs:` in `app.yaml`" in answer


async def test_slow_tests_start_no_job_that_has_not_begun_yet(unscanned: Place) -> None:
    town = unscanned.town
    pull = town.repo.open_pull_request("hubot", "Faster", "@ci run slow tests")
    cpu = waiting_job(unscanned, pull, "cpu")
    await town.quiet()
    assert len(cpu.builds) == 0
    assert town.answers(pull) == []


async def test_a_job_of_app_yaml_without_a_status_is_listed_and_rerun_all_starts_it(unscanned: Place) -> None:
    town = unscanned.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    cpu, gpu = unscanned.job(pull, "cpu", "SUCCESS"), waiting_job(unscanned, pull, "gpu")
    pull.comment("hubot", "@ci rerun")
    await town.quiet()
    sha = pull.head_sha[:7]
    assert town.answers(pull)[0].endswith(
        f"No status on `{sha}` yet, so left alone: `gpu`. If CI missed the push, start one by name: `@ci rerun NAME`."
    )
    pull.comment("hubot", "@ci rerun all")
    await town.quiet()
    assert (len(cpu.builds), len(gpu.builds)) == (2, 1)
    gpu.builds[-1].finish("SUCCESS")
    pull.comment("hubot", "@ci rerun gpu")
    await town.quiet()
    assert (len(cpu.builds), len(gpu.builds)) == (2, 2)


async def test_a_push_is_built_even_if_a_build_of_an_older_head_still_runs(unscanned: Place) -> None:
    town = unscanned.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    cpu, gpu = waiting_job(unscanned, pull, "cpu"), waiting_job(unscanned, pull, "gpu")
    for job in (cpu, gpu):
        job.trigger()
        job.builds[-1].timestamp -= 3600
    pull.push()
    comment = pull.comment("hubot", "@ci rerun")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert (len(cpu.builds), len(gpu.builds)) == (2, 2)


async def test_the_answer_says_what_to_do_if_jenkins_never_scanned_the_pull_request(unscanned: Place) -> None:
    town = unscanned.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    unscanned.jenkins.add_job(f"gpu/PR-{pull.number}-merge", pull=pull, context="gpu/pr-merge")
    comment = pull.comment("hubot", "@ci rerun")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    (answer,) = town.answers(pull)
    assert "Jenkins has no job for this pull request in `cpu` (404), so nothing was started." in answer
    assert "Push a commit, or ask someone to start *Scan Repository Now* for `cpu` in Jenkins." in answer
    assert "no job for this pull request in `gpu`" not in answer


async def test_an_aborted_build_whose_status_is_pending_runs_again(unscanned: Place) -> None:
    town = unscanned.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    cpu, gpu = waiting_job(unscanned, pull, "cpu"), unscanned.job(pull, "gpu", "SUCCESS")
    cpu.trigger()
    cpu.builds[-1].finish_silently("ABORTED")
    pull.comment("hubot", "@ci rerun")
    await town.quiet()
    assert (len(cpu.builds), len(gpu.builds)) == (2, 1)
    (answer,) = town.answers(pull)
    link = cpu.builds[0].url
    assert f"- [`cpu/pr-head`]({link}) (Jenkins: aborted, but its commit status is still pending)" in answer
