"""What people see when they ask for a rerun: over HTTP, with GitHub Actions and a Jenkins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.core.errors import TryAgain
from sandbox.jenkins import JenkinsJob
from sandbox.model.apps import DEFAULT_PERMISSIONS
from sandbox.model.pulls import PullRequest
from tests.handlers.driver import World, a_world


def jenkins_job(world: World, pull: PullRequest, name: str, result: str | None, **values: object) -> JenkinsJob:
    """Add the job of a pull request, with one build that has a result or is still running."""
    job = world.jenkins.add_job(f"{name}/PR-{pull.number}", pull=pull, context=f"{name}/pr-head", **values)
    job.trigger()
    if result:
        job.builds[-1].finish(result)
    return job


async def test_failed_ci_runs_again_on_all_systems_and_nothing_else_does(world: World) -> None:
    pull = world.open()
    failed = world.repository.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure", "docs": "success"})
    green = world.repository.add_workflow_run(pull.head_sha, "Lint", "success", {"ruff": "success"})
    gpu, cpu = jenkins_job(world, pull, "gpu", "FAILURE"), jenkins_job(world, pull, "cpu", "SUCCESS")
    answer = await world.say(pull, "@ci rerun")
    assert (failed.attempt, green.attempt) == (2, 1)
    assert [job.name for job in failed.jobs if job.attempt == 2] == ["unit"]
    assert (len(gpu.builds), len(cpu.builds)) == (2, 1)
    assert answer.startswith("eyes +1\n")
    assert f"Restarting on `{pull.head_sha[:7]}`:" in answer
    assert "- failed jobs of [`CI`]" in answer
    assert f"- [`gpu/pr-head`]({world.jenkins.url}/job/gpu/job/PR-{pull.number}/1/display/redirect)" in answer
    assert "Lint" not in answer
    assert "cpu" not in answer


@pytest.mark.parametrize("conclusion", ["cancelled", "timed_out", "startup_failure"])
async def test_every_kind_of_failure_runs_again(world: World, conclusion: str) -> None:
    """TVM's bot only reran what had the conclusion FAILURE."""
    pull = world.open()
    run = world.repository.add_workflow_run(pull.head_sha, "CI", conclusion, {"unit": "failure"})
    answer = await world.say(pull, "@ci rerun")
    assert run.attempt == 2
    assert f": `{conclusion}`)" in answer


async def test_without_failed_jobs_the_whole_workflow_runs_again(world: World) -> None:
    """A run that never started has no failed jobs, and GitHub refuses to rerun those."""
    pull = world.open()
    run = world.repository.add_workflow_run(pull.head_sha, "CI", "startup_failure", {"unit": "success"})
    world.github.faults.add("POST", "/repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs", status=403)
    await world.say(pull, "@ci rerun")
    assert run.attempt == 2


async def test_somebody_elses_rerun_just_before_counts_as_done(world: World) -> None:
    pull = world.open()
    run = world.repository.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure"})
    await world.happen()
    comment = pull.comment("octocat", "@ci rerun")
    (delivery,) = [d for d in world.github.webhooks.held if d.event == "issue_comment"]
    effects = await world.planned(delivery, "commands")
    run.rerun(world.github.user("hubot"))
    for effect in effects:
        await world.apply(delivery, "commands", effect)
    assert "CI was already restarted: attempt 2" in world.applied
    assert run.attempt == 2
    assert pull.reactions(comment) == ["eyes"]


async def test_one_removed_job_does_not_stop_the_others(world: World) -> None:
    """apache/tvm#18780: a removed job answered 404, and all jobs after it were not rerun."""
    pull = world.open()
    jobs = [jenkins_job(world, pull, name, "FAILURE") for name in ("arm", "cpu", "gpu", "wasm")]
    jobs[0].status = 404
    jobs[2].buildable = False
    answer = await world.say(pull, "@ci rerun")
    assert [len(job.builds) for job in jobs] == [1, 2, 1, 2]
    assert answer.startswith("confused eyes") or answer.startswith("eyes confused")
    assert "Jenkins has no job for `arm/pr-head` (404)" in answer
    assert "I didn't start `gpu/pr-head`: the job is disabled in Jenkins." in answer


async def test_the_commit_says_what_ran_and_no_list_does(world: World) -> None:
    """apache/tvm#13571, #13817, #16502: lists of jobs became outdated."""
    pull = world.open()
    job = jenkins_job(world, pull, "made-this-morning", "FAILURE")
    await world.say(pull, "@ci rerun")
    assert len(job.builds) == 2


@pytest.mark.no_cover
async def test_a_failure_on_the_last_page_of_a_long_list_is_found(world: World) -> None:
    pull = world.open()
    job = jenkins_job(world, pull, "gpu", "FAILURE")
    run = world.repository.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure"})
    for number in range(101):
        world.repository.set_status("jenkins", pull.head_sha, f"lab/{number}", "success")
        world.repository.add_workflow_run(pull.head_sha, f"Workflow {number}", "success")
    await world.say(pull, "@ci rerun unit gpu/pr-head")
    assert (run.attempt, len(job.builds)) == (2, 2)
    assert [part.name for part in run.jobs if part.attempt == 2] == ["unit"]


async def test_running_workflows_are_left_alone_and_listed(world: World) -> None:
    pull = world.open()
    running = world.repository.add_workflow_run(pull.head_sha, "CI")
    building = jenkins_job(world, pull, "gpu", None)
    answer = await world.say(pull, "@ci rerun all")
    assert (running.attempt, len(building.builds)) == (1, 1)
    assert "Still running, so left alone: `CI`, `gpu/pr-head`." in answer


@pytest.mark.parametrize(("result", "says"), [("ABORTED", "aborted"), ("NOT_BUILT", "`not_built`")])
async def test_a_build_that_jenkins_reports_as_finished_has_failed_whatever_its_status_says(
    world: World, result: str, says: str
) -> None:
    """A build that was aborted, or crashed with its machine, may leave its status pending for ever."""
    pull = world.open()
    finished, building = jenkins_job(world, pull, "gpu", None), jenkins_job(world, pull, "cpu", None)
    finished.builds[-1].finish_silently(result)
    answer = await world.say(pull, "@ci rerun")
    assert (len(finished.builds), len(building.builds)) == (2, 1)
    assert (
        f"- [`gpu/pr-head`]({finished.builds[0].url}) (Jenkins: {says}, but its commit status is still pending)"
        in answer
    )
    assert "Still running, so left alone: `cpu/pr-head`." in answer


async def test_a_build_that_jenkins_reports_as_successful_is_not_called_running(world: World) -> None:
    pull = world.open()
    job = jenkins_job(world, pull, "gpu", None)
    job.builds[-1].finish_silently("SUCCESS")
    answer = await world.say(pull, "@ci rerun")
    assert len(job.builds) == 1
    assert "Nothing failed on" in answer
    assert "Still running" not in answer
    await world.say(pull, "@ci rerun gpu/pr-head")
    assert len(job.builds) == 2


@pytest.mark.parametrize("status", [401, 404, 500, 302])
async def test_a_build_that_jenkins_does_not_know_is_still_running(world: World, status: int) -> None:
    pull = world.open()
    job = jenkins_job(world, pull, "gpu", None)
    job.builds[-1].finish_silently("ABORTED")
    job.status = status
    answer = await world.say(pull, "@ci rerun")
    assert "Still running, so left alone: `gpu/pr-head`." in answer
    assert answer.startswith("eyes +1")


async def test_no_build_of_another_pull_request_or_server_is_read(world: World) -> None:
    pull = world.open()
    other_job = world.jenkins.add_job("gpu/PR-999")
    elsewhere = world.jenkins.url.replace("127.0.0.1", "localhost")
    links = [
        f"{other_job.url}/1/",
        f"{elsewhere}/job/gpu/job/PR-{pull.number}/1/",
        f"{world.jenkins.url}/job/deploy/1/",
    ]
    for index, link in enumerate(links):
        world.repository.set_status("octocat", pull.head_sha, f"ci/{index}", "pending", target_url=link)
    await world.say(pull, "@ci rerun")
    assert world.jenkins.requests == []


async def test_a_name_runs_one_job_again_in_any_case(world: World) -> None:
    pull = world.open()
    run = world.repository.add_workflow_run(pull.head_sha, "CI", "failure", {"Unit": "failure", "docs": "failure"})
    world.repository.add_workflow_run(pull.head_sha, "Nightly", "failure", {"hexagon": "failure"})
    answer = await world.say(pull, "@ci rerun unit")
    assert [job.name for job in run.jobs if job.attempt == 2] == ["Unit"]
    assert "- `Unit` of [`CI`]" in answer


async def test_a_pattern_reruns_its_matches(world: World) -> None:
    pull = world.open()
    gpu, cpu = jenkins_job(world, pull, "gpu", "SUCCESS"), jenkins_job(world, pull, "cpu", "SUCCESS")
    await world.say(pull, "@ci rerun gpu/*")
    assert (len(gpu.builds), len(cpu.builds)) == (2, 1)


async def test_an_unknown_name_is_answered_with_the_nearest(world: World) -> None:
    pull = world.open()
    world.repository.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure"})
    answer = await world.say(pull, "@ci rerun uniit")
    assert "confused" in answer
    assert f"Nothing on `{pull.head_sha[:7]}` is named `uniit`. Did you mean `unit`?" in answer


async def test_the_answer_says_whether_nothing_failed_or_nothing_ran(world: World) -> None:
    pull = world.open()
    assert f"CI hasn't started on `{pull.head_sha[:7]}` yet" in await world.say(pull, "@ci rerun")
    world.repository.add_workflow_run(pull.head_sha, "CI", "success")
    answer = await world.say(pull, "@ci rerun")
    assert f"Nothing failed on `{pull.head_sha[:7]}`. Finished: `CI`." in answer
    assert "+1" in answer


async def test_a_moved_head_is_refused(world: World) -> None:
    pull = world.open()
    await world.happen()
    seen = pull.head_sha
    pull.comment("octocat", "@ci rerun")
    pull.push()
    run = world.repository.add_workflow_run(pull.head_sha, "CI", "failure")
    await world.happen(event="issue_comment")
    (answer,) = pull.comments_by("nightjar[bot]")
    assert run.attempt == 1
    assert f"The head moved from `{seen[:7]}` to `{pull.head_sha[:7]}`, so nothing" in answer.body


async def test_a_closed_pull_request_runs_nothing(world: World) -> None:
    pull = world.open()
    run = world.repository.add_workflow_run(pull.head_sha, "CI", "failure")
    pull.close("octocat")
    assert "This pull request is closed" in await world.say(pull, "@ci rerun")
    assert run.attempt == 1


async def test_another_apps_check_is_named_with_where_to_rerun_it(world: World) -> None:
    pull = world.open()
    other_app = world.github.create_app("coverage")
    other_app.install(world.repository)
    world.repository.add_check_run(other_app, pull.head_sha, "patch", conclusion="failure")
    answer = await world.say(pull, "@ci rerun")
    assert "I can't restart `patch`: it belongs to another app. *Re-run*" in answer
    assert "confused" in answer


async def test_a_status_that_links_another_pull_requests_job_starts_nothing(world: World) -> None:
    pull = world.open()
    deploy = world.jenkins.add_job("deploy")
    link = f"{world.jenkins.url}/job/deploy/3/"
    world.repository.set_status("octocat", pull.head_sha, "gpu/pr-head", "failure", target_url=link)
    answer = await world.say(pull, "@ci rerun")
    assert "it links to a Jenkins job that doesn't belong to this pull request" in answer
    assert (deploy.builds, world.jenkins.requests) == ([], [])


async def test_the_job_of_the_source_branch_is_not_the_pull_requests_own(world: World) -> None:
    """The branch may be main, whose job deploys; anybody can open a pull request from main into another branch."""
    own_pull = world.open(branch="feature/fast")
    fork = world.repository.open_pull_request("hubot", branch="feature/fast", fork=True)
    job = world.jenkins.add_job("gpu/feature%2Ffast", context="gpu")
    for pull in (own_pull, fork):
        link = f"{job.url}/1/"
        world.repository.set_status("jenkins", pull.head_sha, "gpu", "failure", target_url=link)
    await world.say(fork, "@ci rerun")
    assert len(job.builds) == 0
    answer = await world.say(own_pull, "@ci rerun")
    assert len(job.builds) == 0
    assert "I can't restart `gpu`: it links to a Jenkins job that doesn't belong to this pull request." in answer


async def test_a_missing_permission_is_named(tmp_path: Path) -> None:
    """apache/tvm#11937: a bare 403 did not say which permission was missing."""
    granted = {key: level for key, level in DEFAULT_PERMISSIONS.items() if key != "actions"}
    async with a_world(tmp_path, permissions=granted) as world:
        pull = world.open()
        job = jenkins_job(world, pull, "gpu", "FAILURE")
        answer = await world.say(pull, "@ci rerun")
        assert "the App needs *Actions: read*" in answer
        assert "confused" in answer
        assert len(job.builds) == 2


async def test_a_permission_to_read_but_not_to_rerun_is_named_too(tmp_path: Path) -> None:
    async with a_world(tmp_path, permissions={**DEFAULT_PERMISSIONS, "actions": "read"}) as world:
        pull = world.open()
        world.repository.add_workflow_run(pull.head_sha, "CI", "failure")
        answer = await world.say(pull, "@ci rerun")
        assert "GitHub didn't restart `CI`. GitHub denied this: the App needs *Actions: write*." in answer


@pytest.mark.parametrize("status", [403, 404, 409, 422])
@pytest.mark.parametrize(
    ("command", "conclusion"), [("rerun", "failure"), ("rerun all", "success"), ("rerun test", "failure")]
)
async def test_the_reason_for_which_github_refuses_a_rerun_is_quoted(
    world: World, status: int, command: str, conclusion: str
) -> None:
    pull = world.open()
    world.repository.add_workflow_run(pull.head_sha, "CI", conclusion, {"test": conclusion})
    reason = "Unable to retry this workflow run because a run of it is disabled"
    world.github.faults.add(
        "POST", re.compile(r".*/(rerun|rerun-failed-jobs)$"), status=status, message=reason, times=None
    )
    answer = await world.say(pull, f"@ci {command}")
    assert f"GitHub refused this: `{reason}`." in answer
    assert "The App needs" not in answer
    assert "the App needs" not in answer


async def test_missing_credentials_of_jenkins_are_reported_with_what_to_set(tmp_path: Path) -> None:
    async with a_world(tmp_path, credentials=False) as world:
        pull = world.open()
        job = jenkins_job(world, pull, "gpu", "FAILURE")
        answer = await world.say(pull, "@ci rerun")
        assert "I can't start `gpu/pr-head`: `JENKINS_USER` and `JENKINS_TOKEN` aren't set." in answer
        assert len(job.builds) == 1


async def test_the_answer_about_an_expired_run_says_what_to_do(world: World) -> None:
    pull = world.open()
    world.repository.add_workflow_run(pull.head_sha, "CI", "failure").created_at = world.github.clock.now().replace(
        year=2020
    )
    assert "GitHub restarts a run only within 30 days" in await world.say(pull, "@ci rerun")


@pytest.mark.parametrize("fault", ["before", "after"])
async def test_a_connection_lost_around_the_rerun_runs_it_once(world: World, fault: str) -> None:
    pull = world.open()
    run = world.repository.add_workflow_run(pull.head_sha, "CI", "failure")
    await world.happen()
    pull.comment("octocat", "@ci rerun")
    route = "/repos/{owner}/{repo}/actions/runs/{run_id}/rerun-failed-jobs"
    world.github.faults.add("POST", route, drop="before" if fault == "before" else "after")
    deliveries = [d for d in world.github.webhooks.held if d.event == "issue_comment"]
    with pytest.raises(TryAgain):
        await world.happen()
    assert run.attempt == (1 if fault == "before" else 2)
    world.github.webhooks.held[:0] = deliveries
    await world.happen()
    assert run.attempt == 2
    (answer,) = pull.comments_by("nightjar[bot]")
    assert "Restarting" in answer.body or "left alone: `CI`" in answer.body


async def test_a_rerun_costs_three_reads_and_two_requests_for_each_run(world: World) -> None:
    pull = world.open()
    for name in ("CI", "Lint", "Docs"):
        world.repository.add_workflow_run(pull.head_sha, name, "failure", {f"{name} {n}": "failure" for n in range(9)})
    await world.say(pull, "@ci help")
    world.github.requests.clear()
    await world.say(pull, "@ci rerun")
    repo = "/repos/{owner}/{repo}"
    counts = {
        key: count for key, count in world.github.requests.counts().items() if "/actions/" in key or "/commits/" in key
    }
    assert counts == {
        f"GET {repo}/actions/runs": 1,
        f"GET {repo}/commits/{{ref}}/check-runs": 1,
        f"GET {repo}/commits/{{ref}}/status": 1,
        f"GET {repo}/actions/runs/{{run_id}}": 3,
        f"POST {repo}/actions/runs/{{run_id}}/rerun-failed-jobs": 3,
    }
