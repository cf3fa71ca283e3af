"""Statuses, check runs, check suites and Actions runs as JSON."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sandbox.clock import iso, iso_or_none
from sandbox.model.checks import CheckRun, CheckSuite
from sandbox.model.home import Home
from sandbox.model.statuses import CommitStatus
from sandbox.model.workflows import Artifact, Job, WorkflowRun

from . import issues, repositories, users

Json = dict[str, Any]


def status(repository: Home, commit_status: CommitStatus) -> Json:
    """Return a `status`."""
    return {
        **simple_status(repository, commit_status),
        "creator": users.user(commit_status.creator),
    }


def simple_status(repository: Home, commit_status: CommitStatus) -> Json:
    """Return a `simple-commit-status`, as in the combined status."""
    return {
        "id": commit_status.id,
        "node_id": commit_status.node_id,
        "url": f"{repositories.url(repository)}/statuses/{commit_status.sha}",
        "avatar_url": users.picture(commit_status.creator),
        "state": commit_status.state,
        "context": commit_status.context,
        "description": commit_status.description,
        "target_url": commit_status.target_url,
        "created_at": iso(commit_status.created_at),
        "updated_at": iso(commit_status.created_at),
    }


def combined_status(repository: Home, sha: str, statuses: list[CommitStatus]) -> Json:
    """Return a `combined-commit-status` with one page of its statuses."""
    present = repository.statuses(sha)
    states = {commit_status.state for commit_status in present}
    worst = (
        "failure" if states & {"failure", "error"} else "pending" if "pending" in states or not states else "success"
    )
    base = repositories.url(repository)
    return {
        "state": worst,
        "statuses": [simple_status(repository, commit_status) for commit_status in statuses],
        "sha": sha,
        "total_count": len(present),
        "repository": repositories.repository(repository),
        "commit_url": f"{base}/commits/{sha}",
        "url": f"{base}/commits/{sha}/status",
    }


def check_run(run: CheckRun, *, webhook: bool = False) -> Json:
    """Return a `check-run`, or the form of webhooks, which contains the suite."""
    repository = run.suite.repository
    base, html = repositories.url(repository), repositories.page(repository)
    url = f"{base}/check-runs/{run.id}"
    return {
        "id": run.id,
        "node_id": run.node_id,
        "name": run.name,
        "head_sha": run.head_sha,
        "external_id": run.external_id,
        "url": url,
        "html_url": f"{html}/runs/{run.id}",
        "details_url": run.details_url or f"{html}/runs/{run.id}",
        "status": run.status,
        "conclusion": run.conclusion,
        "started_at": iso_or_none(run.started_at),
        "completed_at": iso_or_none(run.completed_at),
        "output": {
            "title": run.title,
            "summary": run.summary,
            "text": run.text,
            "annotations_count": len(run.annotations),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": simple_check_suite(run.suite) if webhook else {"id": run.suite.id},
        "app": users.app(run.app),
        "pull_requests": _pulls(repository, run.head_sha),
    }


def annotation(run: CheckRun, sent: Json) -> Json:
    """Return a `check-annotation`."""
    missing = dict.fromkeys(("start_column", "end_column", "title", "raw_details"))
    page = repositories.page(run.suite.repository)
    return {**missing, **sent, "blob_href": f"{page}/blob/{run.head_sha}/{sent['path']}"}


def simple_check_suite(suite: CheckSuite) -> Json:
    """Return a `simple-check-suite`."""
    repository = suite.repository
    commit = repository.git.commits[suite.head_sha]
    return {
        "id": suite.id,
        "node_id": suite.node_id,
        "head_branch": suite.head_branch,
        "head_sha": suite.head_sha,
        "status": suite.status,
        "conclusion": suite.conclusion,
        "url": f"{repositories.url(repository)}/check-suites/{suite.id}",
        "before": commit.parents[0] if commit.parents else None,
        "after": suite.head_sha,
        "pull_requests": _pulls(repository, suite.head_sha),
        "app": users.app(suite.app),
        "created_at": iso(suite.created_at),
        "updated_at": iso(suite.updated_at),
    }


def check_suite(suite: CheckSuite) -> Json:
    """Return a `check-suite`."""
    simple = simple_check_suite(suite)
    commit = suite.repository.git.commits[suite.head_sha]
    return {
        **simple,
        "repository": repositories.repository(suite.repository),
        "head_commit": repositories.simple_commit(suite.repository, commit),
        "latest_check_runs_count": len(suite.latest),
        "check_runs_url": f"{simple['url']}/check-runs",
        "rerequestable": True,
        "runs_rerequestable": True,
    }


def _pulls(repository: Home, sha: str) -> list[Json]:
    """Return the open pull requests of a commit; those from forks are not shown here, as on GitHub.

    https://docs.github.com/webhooks/webhook-events-and-payloads#check_run
    """
    return [
        issues.pull_minimal(pull)
        for pull in repository.pulls
        if pull.head_sha == sha and pull.state == "open" and pull.head_repository is repository
    ]


def workflow_run(run: WorkflowRun) -> Json:
    """Return a `workflow-run`."""
    repository = run.repository
    base, html = repositories.url(repository), repositories.page(repository)
    url = f"{base}/actions/runs/{run.id}"
    commit = repository.git.commits[run.head_sha]
    ends = ("jobs", "logs", "artifacts", "cancel", "rerun")
    previous_attempt = f"{url}/attempts/{run.attempt - 1}" if run.attempt > 1 else None
    return {
        "id": run.id,
        "node_id": run.node_id,
        "name": run.name,
        "path": run.path,
        "display_title": commit.message,
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "run_number": run.run_number,
        "run_attempt": run.attempt,
        "event": run.event,
        "status": run.status,
        "conclusion": run.conclusion,
        "workflow_id": run.workflow_id,
        "workflow_url": f"{base}/actions/workflows/{run.workflow_id}",
        "check_suite_id": run.suite_id,
        "check_suite_node_id": f"CS_{run.suite_id}",
        "check_suite_url": f"{base}/check-suites/{run.suite_id}",
        "url": url,
        "html_url": f"{html}/actions/runs/{run.id}",
        **{f"{end}_url": f"{url}/{end}" for end in ends},
        "previous_attempt_url": previous_attempt,
        "pull_requests": _pulls(repository, run.head_sha),
        "created_at": iso(run.created_at),
        "updated_at": iso(run.updated_at),
        "run_started_at": iso(run.attempt_began_at or run.created_at),
        "actor": users.user(run.actor),
        "triggering_actor": users.user(run.triggering_actor or run.actor),
        "referenced_workflows": [],
        "head_commit": repositories.simple_commit(repository, commit),
        "repository": repositories.repository(repository),
        "head_repository": repositories.repository(run.head_repository or repository),
    }


def workflow(run: WorkflowRun) -> Json:
    """Return a `workflow`, which webhooks contain next to the run."""
    base, moment = repositories.url(run.repository), iso(run.created_at)
    return {
        "id": run.workflow_id,
        "node_id": f"W_{run.workflow_id}",
        "name": run.name,
        "path": run.path,
        "state": "active",
        "url": f"{base}/actions/workflows/{run.workflow_id}",
        "html_url": f"{repositories.page(run.repository)}/blob/main/{run.path}",
        "badge_url": f"{repositories.page(run.repository)}/workflows/{quote(run.name)}/badge.svg",
        "created_at": moment,
        "updated_at": moment,
    }


def artifact(artifact: Artifact) -> Json:
    """Return an `artifact`."""
    run = artifact.run
    base = repositories.url(run.repository)
    return {
        "id": artifact.id,
        "node_id": artifact.node_id,
        "name": artifact.name,
        "size_in_bytes": len(artifact.content),
        "url": f"{base}/actions/artifacts/{artifact.id}",
        "archive_download_url": f"{base}/actions/artifacts/{artifact.id}/zip",
        "expired": artifact.expired,
        "created_at": iso(artifact.created_at),
        "expires_at": iso(artifact.expires_at),
        "updated_at": iso(artifact.created_at),
        "digest": artifact.digest,
        "workflow_run": {
            "id": run.id,
            "repository_id": run.repository.id,
            "head_repository_id": run.repository.id,
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
        },
    }


def job(job: Job) -> Json:
    """Return a `job`."""
    base, run = repositories.url(job.run.repository), job.run
    runner = dict.fromkeys(("runner_id", "runner_name", "runner_group_id", "runner_group_name"))
    return {
        "id": job.id,
        "node_id": job.node_id,
        "run_id": run.id,
        "run_url": f"{base}/actions/runs/{run.id}",
        "run_attempt": job.attempt,
        "head_sha": run.head_sha,
        "head_branch": run.head_branch,
        "workflow_name": run.name,
        "url": f"{base}/actions/jobs/{job.id}",
        "html_url": f"{repositories.page(run.repository)}/actions/runs/{run.id}/job/{job.id}",
        "check_run_url": f"{base}/check-runs/{job.check_run.id}",
        "name": job.name,
        "status": job.status,
        "conclusion": job.conclusion,
        "created_at": iso(job.created_at),
        "started_at": iso(job.created_at),
        "completed_at": iso_or_none(job.completed_at),
        "labels": ["ubuntu-latest"],
        "steps": [],
        **runner,
    }
