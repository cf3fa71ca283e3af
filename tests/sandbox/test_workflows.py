"""GitHub Actions: running again, and what may not be run again."""

from __future__ import annotations

from sandbox import GitHubSandbox, PullRequest, Repository

from .conftest import Client


async def test_only_what_failed_is_run_again(client: Client, repo: Repository, pull: PullRequest) -> None:
    run = repo.add_workflow_run(pull.head_sha, "CI", "failure", {"build": "success", "test": "failure"})
    repo.add_workflow_run(pull.base_sha, "Nightly", "success")
    found = (await client.get(f"actions/runs?head_sha={pull.head_sha}")).json["workflow_runs"]
    assert [(r["id"], r["conclusion"], r["run_attempt"]) for r in found] == [(run.id, "failure", 1)]
    assert (await client.post(f"actions/runs/{run.id}/rerun-failed-jobs", {})).status == 201
    jobs = (await client.get(f"actions/runs/{run.id}/jobs")).json["jobs"]
    assert {job["name"]: (job["status"], job["run_attempt"]) for job in jobs} == {
        "build": ("completed", 1),
        "test": ("queued", 2),
    }
    assert (run.attempt, run.status, run.conclusion) == (2, "queued", None)
    run.start()
    run.finish("success")
    assert [job.conclusion for job in run.latest_jobs] == ["success", "success"]


async def test_a_running_or_old_run_is_refused(client: Client, github: GitHubSandbox, repo: Repository) -> None:
    run = repo.add_workflow_run(repo.branch("main"))
    answer = await client.post(f"actions/runs/{run.id}/rerun")
    assert (answer.status, answer.json["message"]) == (403, "This workflow is already running")
    run.finish("cancelled")
    assert (await client.post(f"actions/runs/{run.id}/rerun")).status == 201
    run.finish("failure")
    github.clock.advance(days=31)
    token = github.tokens.issue(next(iter(next(iter(github.apps.values())).installations.values())))
    answer = await Client(client.session, token.value).post(f"actions/runs/{run.id}/rerun")
    assert (answer.status, "over a month ago" in answer.json["message"]) == (403, True)


async def test_one_job_can_be_run_again(client: Client, repo: Repository) -> None:
    run = repo.add_workflow_run(repo.branch("main"), "CI", "failure", {"build": "success", "test": "failure"})
    build = run.latest_jobs[0]
    assert (await client.post(f"actions/jobs/{build.id}/rerun")).status == 201
    assert {job.name: job.attempt for job in run.latest_jobs} == {"build": 2, "test": 1}


async def test_jobs_are_check_runs_of_github_actions(client: Client, repo: Repository) -> None:
    repo.add_workflow_run(repo.branch("main"), "CI", "failure", {"build": "success", "test": "failure"})
    runs = (await client.get("commits/main/check-runs")).json["check_runs"]
    assert {(run["name"], run["conclusion"], run["app"]["slug"]) for run in runs} == {
        ("build", "success", "github-actions"),
        ("test", "failure", "github-actions"),
    }
