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


def status(repository: Home, found: CommitStatus) -> Json:
    """Return a `status`."""
    return {
        **simple_status(repository, found),
        "creator": users.user(found.creator),
    }


def simple_status(repository: Home, found: CommitStatus) -> Json:
    """Return a `simple-commit-status`, as in the combined status."""
    return {
        "id": found.id,
        "node_id": found.node_id,
        "url": f"{repositories.url(repository)}/statuses/{found.sha}",
        "avatar_url": users.picture(found.creator),
        "state": found.state,
        "context": found.context,
        "description": found.description,
        "target_url": found.target_url,
        "created_at": iso(found.created_at),
        "updated_at": iso(found.created_at),
    }


def combined_status(repository: Home, sha: str, statuses: list[CommitStatus]) -> Json:
    """Return a `combined-commit-status` with one page of its statuses."""
    present = repository.statuses(sha)
    states = {found.state for found in present}
    worst = (
        "failure" if states & {"failure", "error"} else "pending" if "pending" in states or not states else "success"
    )
    base = repositories.url(repository)
    return {
        "state": worst,
        "statuses": [simple_status(repository, found) for found in statuses],
        "sha": sha,
        "total_count": len(present),
        "repository": repositories.repository(repository),
        "commit_url": f"{base}/commits/{sha}",
        "url": f"{base}/commits/{sha}/status",
    }


def check_run(found: CheckRun, *, webhook: bool = False) -> Json:
    """Return a `check-run`, or the form of webhooks, which contains the suite."""
    repository = found.suite.repository
    base, html = repositories.url(repository), repositories.page(repository)
    url = f"{base}/check-runs/{found.id}"
    return {
        "id": found.id,
        "node_id": found.node_id,
        "name": found.name,
        "head_sha": found.head_sha,
        "external_id": found.external_id,
        "url": url,
        "html_url": f"{html}/runs/{found.id}",
        "details_url": found.details_url or f"{html}/runs/{found.id}",
        "status": found.status,
        "conclusion": found.conclusion,
        "started_at": iso_or_none(found.started_at),
        "completed_at": iso_or_none(found.completed_at),
        "output": {
            "title": found.title,
            "summary": found.summary,
            "text": found.text,
            "annotations_count": len(found.annotations),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": simple_check_suite(found.suite) if webhook else {"id": found.suite.id},
        "app": users.app(found.app),
        "pull_requests": _pulls(repository, found.head_sha),
    }


def annotation(found: CheckRun, sent: Json) -> Json:
    """Return a `check-annotation`."""
    missing = dict.fromkeys(("start_column", "end_column", "title", "raw_details"))
    page = repositories.page(found.suite.repository)
    return {**missing, **sent, "blob_href": f"{page}/blob/{found.head_sha}/{sent['path']}"}


def simple_check_suite(found: CheckSuite) -> Json:
    """Return a `simple-check-suite`."""
    repository = found.repository
    commit = repository.git.commits[found.head_sha]
    return {
        "id": found.id,
        "node_id": found.node_id,
        "head_branch": found.head_branch,
        "head_sha": found.head_sha,
        "status": found.status,
        "conclusion": found.conclusion,
        "url": f"{repositories.url(repository)}/check-suites/{found.id}",
        "before": commit.parents[0] if commit.parents else None,
        "after": found.head_sha,
        "pull_requests": _pulls(repository, found.head_sha),
        "app": users.app(found.app),
        "created_at": iso(found.created_at),
        "updated_at": iso(found.updated_at),
    }


def check_suite(found: CheckSuite) -> Json:
    """Return a `check-suite`."""
    simple = simple_check_suite(found)
    commit = found.repository.git.commits[found.head_sha]
    return {
        **simple,
        "repository": repositories.repository(found.repository),
        "head_commit": repositories.simple_commit(found.repository, commit),
        "latest_check_runs_count": len(found.latest),
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


def workflow_run(found: WorkflowRun) -> Json:
    """Return a `workflow-run`."""
    repository = found.repository
    base, html = repositories.url(repository), repositories.page(repository)
    url = f"{base}/actions/runs/{found.id}"
    commit = repository.git.commits[found.head_sha]
    ends = ("jobs", "logs", "artifacts", "cancel", "rerun")
    before = f"{url}/attempts/{found.attempt - 1}" if found.attempt > 1 else None
    return {
        "id": found.id,
        "node_id": found.node_id,
        "name": found.name,
        "path": found.path,
        "display_title": commit.message,
        "head_branch": found.head_branch,
        "head_sha": found.head_sha,
        "run_number": found.run_number,
        "run_attempt": found.attempt,
        "event": found.event,
        "status": found.status,
        "conclusion": found.conclusion,
        "workflow_id": found.workflow_id,
        "workflow_url": f"{base}/actions/workflows/{found.workflow_id}",
        "check_suite_id": found.suite_id,
        "check_suite_node_id": f"CS_{found.suite_id}",
        "check_suite_url": f"{base}/check-suites/{found.suite_id}",
        "url": url,
        "html_url": f"{html}/actions/runs/{found.id}",
        **{f"{end}_url": f"{url}/{end}" for end in ends},
        "previous_attempt_url": before,
        "pull_requests": _pulls(repository, found.head_sha),
        "created_at": iso(found.created_at),
        "updated_at": iso(found.updated_at),
        "run_started_at": iso(found.attempt_began_at or found.created_at),
        "actor": users.user(found.actor),
        "triggering_actor": users.user(found.triggering_actor or found.actor),
        "referenced_workflows": [],
        "head_commit": repositories.simple_commit(repository, commit),
        "repository": repositories.repository(repository),
        "head_repository": repositories.repository(found.head_repository or repository),
    }


def workflow(found: WorkflowRun) -> Json:
    """Return a `workflow`, which webhooks contain next to the run."""
    base, moment = repositories.url(found.repository), iso(found.created_at)
    return {
        "id": found.workflow_id,
        "node_id": f"W_{found.workflow_id}",
        "name": found.name,
        "path": found.path,
        "state": "active",
        "url": f"{base}/actions/workflows/{found.workflow_id}",
        "html_url": f"{repositories.page(found.repository)}/blob/main/{found.path}",
        "badge_url": f"{repositories.page(found.repository)}/workflows/{quote(found.name)}/badge.svg",
        "created_at": moment,
        "updated_at": moment,
    }


def artifact(found: Artifact) -> Json:
    """Return an `artifact`."""
    run = found.run
    base = repositories.url(run.repository)
    return {
        "id": found.id,
        "node_id": found.node_id,
        "name": found.name,
        "size_in_bytes": len(found.content),
        "url": f"{base}/actions/artifacts/{found.id}",
        "archive_download_url": f"{base}/actions/artifacts/{found.id}/zip",
        "expired": found.expired,
        "created_at": iso(found.created_at),
        "expires_at": iso(found.expires_at),
        "updated_at": iso(found.created_at),
        "digest": found.digest,
        "workflow_run": {
            "id": run.id,
            "repository_id": run.repository.id,
            "head_repository_id": run.repository.id,
            "head_branch": run.head_branch,
            "head_sha": run.head_sha,
        },
    }


def job(found: Job) -> Json:
    """Return a `job`."""
    base, run = repositories.url(found.run.repository), found.run
    runner = dict.fromkeys(("runner_id", "runner_name", "runner_group_id", "runner_group_name"))
    return {
        "id": found.id,
        "node_id": found.node_id,
        "run_id": run.id,
        "run_url": f"{base}/actions/runs/{run.id}",
        "run_attempt": found.attempt,
        "head_sha": run.head_sha,
        "head_branch": run.head_branch,
        "workflow_name": run.name,
        "url": f"{base}/actions/jobs/{found.id}",
        "html_url": f"{repositories.page(run.repository)}/actions/runs/{run.id}/job/{found.id}",
        "check_run_url": f"{base}/check-runs/{found.check_run.id}",
        "name": found.name,
        "status": found.status,
        "conclusion": found.conclusion,
        "created_at": iso(found.created_at),
        "started_at": iso(found.created_at),
        "completed_at": iso_or_none(found.completed_at),
        "labels": ["ubuntu-latest"],
        "steps": [],
        **runner,
    }
