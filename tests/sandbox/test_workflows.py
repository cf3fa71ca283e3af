"""GitHub Actions: reruns, and which of them are refused."""

from __future__ import annotations

import io
import zipfile

from sandbox import GitHubSandbox, PullRequest, Repository

from .conftest import REPO, Client


async def test_only_failed_jobs_run_again(client: Client, repo: Repository, pull: PullRequest) -> None:
    run = repo.add_workflow_run(pull.head_sha, "CI", "failure", {"build": "success", "test": "failure"})
    repo.add_workflow_run(pull.base_sha, "Nightly", "success")
    runs = (await client.get(f"actions/runs?head_sha={pull.head_sha}")).json["workflow_runs"]
    assert [(r["id"], r["conclusion"], r["run_attempt"]) for r in runs] == [(run.id, "failure", 1)]
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


async def test_artifacts_are_listed_and_downloaded_from_a_separate_store(
    client: Client, github: GitHubSandbox, repo: Repository
) -> None:
    run = repo.add_workflow_run(repo.branch("main"), "CI")
    made = [run.upload(name, {"a.xml": f"<{name}/>"}) for name in ("cpu", "gpu")]
    run.upload("old", {}).expired = True
    run.finish("success")
    listed = (await client.get(f"actions/runs/{run.id}/artifacts")).json
    assert [(artifact["name"], artifact["expired"]) for artifact in listed["artifacts"]] == [
        ("old", True),
        ("gpu", False),
        ("cpu", False),
    ]
    assert (await client.get(f"actions/runs/{run.id}/artifacts?name=cpu")).json["total_count"] == 1
    headers_ = {"Authorization": f"Bearer {client.token}"}
    archive = f"{REPO}/actions/artifacts/{made[0].id}/zip"
    async with client.session.get(archive, headers=headers_, allow_redirects=False) as answer:
        assert answer.status == 302
    async with client.session.get(answer.headers["Location"]) as download:
        assert zipfile.ZipFile(io.BytesIO(await download.read())).read("a.xml") == b"<cpu/>"
    github.clock.advance(seconds=61)
    async with client.session.get(answer.headers["Location"]) as download:
        assert download.status == 403
    removed = (await client.get(f"actions/artifacts/{run.artifacts[2].id}/zip")).status
    assert (removed, (await client.get("actions/artifacts/1/zip")).status) == (410, 404)
    assert not github.violations


async def test_credentials_sent_to_the_store_are_detected(
    client: Client, github: GitHubSandbox, repo: Repository
) -> None:
    artifact = repo.add_workflow_run(repo.branch("main"), "CI").upload("cpu", {})
    async with client.session.get(artifact.link(), headers={"Authorization": "token x"}) as answer:
        await answer.read()
    assert [violation.problem for violation in github.violations] == ["credentials were sent to another server"]


async def test_the_runs_of_one_workflow_are_found(client: Client, repo: Repository, pull: PullRequest) -> None:
    good = repo.add_workflow_run(repo.branch("main"), "CI", "success", event="push")
    repo.add_workflow_run(repo.branch("main"), "Docs", "success", event="push")
    bad = repo.add_workflow_run(pull.head_sha, "CI", "failure")

    async def found(query: str) -> list[int]:
        answer = await client.get(f"actions/workflows/{good.workflow_id}/runs{query}")
        return [run["id"] for run in answer.json["workflow_runs"]]

    assert await found("") == [bad.id, good.id]
    assert await found("?status=success") == [good.id]
    assert await found("?branch=main") == [good.id]
    assert await found(f"?head_sha={pull.head_sha}") == [bad.id]
    assert (await client.get("actions/workflows/ci.yml/runs")).json["total_count"] == 2
    assert (await client.get("actions/workflows/other.yml/runs")).status == 404
