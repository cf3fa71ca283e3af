"""GitHub Actions: workflow runs, their jobs, and reruns.

https://docs.github.com/rest/actions/workflow-runs
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.errors import ApiError, not_found
from sandbox.model.workflows import Job, WorkflowRun
from sandbox.routing import ApiResponse, Call, route
from sandbox.views import checks

from .issues import REPO

RUN = f"{REPO}/actions/runs/{{run_id}}"


@route("GET", f"{REPO}/actions/runs", "actions")
def list_runs(call: Call) -> ApiResponse:
    """List workflow runs, newest first."""
    return call.page(_asked_for(call, call.repository.workflow_runs), checks.workflow_run, "workflow_runs")


def _asked_for(call: Call, runs: Sequence[WorkflowRun]) -> list[WorkflowRun]:
    """Return the runs that match the query, newest first."""
    query, selected = call.query, list(reversed(runs))
    for name, attribute in (("head_sha", "head_sha"), ("event", "event"), ("branch", "head_branch")):
        if name in query:
            selected = [run for run in selected if getattr(run, attribute) == query[name]]
    if "check_suite_id" in query:
        selected = [run for run in selected if run.suite_id == query["check_suite_id"]]
    if "status" in query:
        selected = [run for run in selected if query["status"] in {run.status, run.conclusion}]
    return selected


@route("GET", f"{REPO}/actions/workflows/{{workflow_id}}/runs", "actions")
def list_runs_of_workflow(call: Call) -> ApiResponse:
    """List the runs of one workflow, named by its number or its file, newest first."""
    named = str(call.path["workflow_id"])
    runs = [
        run for run in call.repository.workflow_runs if named in (str(run.workflow_id), run.path.rpartition("/")[2])
    ]
    if not runs:
        raise not_found()
    return call.page(_asked_for(call, runs), checks.workflow_run, "workflow_runs")


@route("GET", f"{RUN}/artifacts", "actions")
def list_artifacts(call: Call) -> ApiResponse:
    """List the artifacts of a run, from all its attempts."""
    artifacts = [artifact for artifact in _run(call).artifacts if call.query.get("name") in (None, artifact.name)]
    return call.page(list(reversed(artifacts)), checks.artifact, "artifacts")


@route("GET", f"{REPO}/actions/artifacts/{{artifact_id}}/{{archive_format}}", "actions")
def download_artifact(call: Call) -> ApiResponse:
    """Redirect to the address of the archive."""
    artifact = next(
        (artifact for artifact in call.repository.artifacts if artifact.id == call.path["artifact_id"]), None
    )
    if artifact is None or call.path["archive_format"] != "zip":
        raise not_found()
    if artifact.expired:
        raise ApiError(410, "Artifact has expired")
    return ApiResponse("", 302, headers={"Location": artifact.link()})


@route("GET", RUN, "actions")
def get_run(call: Call) -> ApiResponse:
    """Return one workflow run."""
    return ApiResponse(checks.workflow_run(_run(call)))


@route("GET", f"{RUN}/jobs", "actions")
def list_jobs(call: Call) -> ApiResponse:
    """List a run's jobs: only those of the latest attempt, unless the query has `filter=all`."""
    run = _run(call)
    jobs = run.jobs if call.query.get("filter") == "all" else run.latest_jobs
    return call.page(jobs, checks.job, "jobs")


@route("GET", f"{REPO}/actions/jobs/{{job_id}}", "actions")
def get_job(call: Call) -> ApiResponse:
    """Return one job."""
    return ApiResponse(checks.job(_job(call)))


@route("POST", f"{RUN}/approve", "actions")
def approve(call: Call) -> ApiResponse:
    """Start a run that waits for a maintainer's approval."""
    _run(call).approve(call.actor)
    return ApiResponse({}, 201)


@route("POST", f"{RUN}/rerun", "actions")
def rerun(call: Call) -> ApiResponse:
    """Rerun all jobs."""
    _run(call).rerun(call.actor)
    return ApiResponse({}, 201)


@route("POST", f"{RUN}/rerun-failed-jobs", "actions")
def rerun_failed_jobs(call: Call) -> ApiResponse:
    """Rerun the failed jobs."""
    _run(call).rerun(call.actor, only_failed=True)
    return ApiResponse({}, 201)


@route("POST", f"{REPO}/actions/jobs/{{job_id}}/rerun", "actions")
def rerun_job(call: Call) -> ApiResponse:
    """Rerun one job."""
    job = _job(call)
    job.run.rerun(call.actor, job=job)
    return ApiResponse({}, 201)


def _run(call: Call) -> WorkflowRun:
    run = next((run for run in call.repository.workflow_runs if run.id == call.path["run_id"]), None)
    if run is None:
        raise not_found()
    return run


def _job(call: Call) -> Job:
    jobs = (job for run in call.repository.workflow_runs for job in run.jobs)
    job = next((job for job in jobs if job.id == call.path["job_id"]), None)
    if job is None:
        raise not_found()
    return job
