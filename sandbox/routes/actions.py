"""GitHub Actions: workflow runs, their jobs, and running them again.

https://docs.github.com/rest/actions/workflow-runs
"""

from __future__ import annotations

from sandbox.errors import not_found
from sandbox.routing import Answer, Call, route
from sandbox.views import checks
from sandbox.workflows import Job, WorkflowRun

from .issues import REPO

RUN = f"{REPO}/actions/runs/{{run_id}}"


@route("GET", f"{REPO}/actions/runs", "actions")
def list_runs(call: Call) -> Answer:
    """List workflow runs, newest first."""
    query, found = call.query, list(reversed(call.repository.workflow_runs))
    for name, attribute in (("head_sha", "head_sha"), ("event", "event"), ("branch", "head_branch")):
        if name in query:
            found = [run for run in found if getattr(run, attribute) == query[name]]
    if "check_suite_id" in query:
        found = [run for run in found if run.suite_id == query["check_suite_id"]]
    if "status" in query:
        found = [run for run in found if query["status"] in {run.status, run.conclusion}]
    return call.page(found, checks.workflow_run, "workflow_runs")


@route("GET", RUN, "actions")
def get_run(call: Call) -> Answer:
    """Return one workflow run."""
    return Answer(checks.workflow_run(_run(call)))


@route("GET", f"{RUN}/jobs", "actions")
def list_jobs(call: Call) -> Answer:
    """List a run's jobs: those of the newest attempt, unless all are asked for."""
    run = _run(call)
    found = run.jobs if call.query.get("filter") == "all" else run.latest_jobs
    return call.page(found, checks.job, "jobs")


@route("GET", f"{REPO}/actions/jobs/{{job_id}}", "actions")
def get_job(call: Call) -> Answer:
    """Return one job."""
    return Answer(checks.job(_job(call)))


@route("POST", f"{RUN}/rerun", "actions")
def rerun(call: Call) -> Answer:
    """Run everything again."""
    _run(call).rerun(call.actor)
    return Answer({}, 201)


@route("POST", f"{RUN}/rerun-failed-jobs", "actions")
def rerun_failed_jobs(call: Call) -> Answer:
    """Run again what failed."""
    _run(call).rerun(call.actor, only_failed=True)
    return Answer({}, 201)


@route("POST", f"{REPO}/actions/jobs/{{job_id}}/rerun", "actions")
def rerun_job(call: Call) -> Answer:
    """Run one job again."""
    job = _job(call)
    job.run.rerun(call.actor, job=job)
    return Answer({}, 201)


def _run(call: Call) -> WorkflowRun:
    found = next((run for run in call.repository.workflow_runs if run.id == call.path["run_id"]), None)
    if found is None:
        raise not_found()
    return found


def _job(call: Call) -> Job:
    jobs = (job for run in call.repository.workflow_runs for job in run.jobs)
    found = next((job for job in jobs if job.id == call.path["job_id"]), None)
    if found is None:
        raise not_found()
    return found
