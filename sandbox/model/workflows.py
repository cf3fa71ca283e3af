"""GitHub Actions: workflow runs with attempts and jobs. Each job is also a check run of the App `github-actions`."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandbox.errors import ApiError
from sandbox.model.checks import CheckRun
from sandbox.model.home import Home
from sandbox.users import User, node_id

if TYPE_CHECKING:
    from sandbox.users import By

ALREADY_RUNNING = "This workflow is already running"
NOTHING_FAILED = "This workflow run has no failed jobs to rerun"
TOO_OLD = "Unable to re-run this workflow run because it was created over a month ago"
NOT_WAITING = "This run is not waiting for approval"
RERUN_WINDOW_DAYS = 30
ARTIFACTS_LAST = timedelta(days=90)
LINK_LASTS = timedelta(minutes=1)
STORE = "/artifact-store/{artifact}/{ticket}"
"""The path of the store outside the API from which artifacts are downloaded."""
FAILED = {"failure", "cancelled", "timed_out", "action_required", "startup_failure", "stale"}


@dataclass(eq=False)
class Job:
    """One job of one attempt."""

    id: int
    run: WorkflowRun
    name: str
    attempt: int
    check_run: CheckRun
    created_at: datetime
    completed_at: datetime | None = None

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("CR", self.id)

    @property
    def status(self) -> str:
        """Return `queued`, `in_progress` or `completed`."""
        return self.check_run.status

    @property
    def conclusion(self) -> str | None:
        """Return how the job ended, or None."""
        return self.check_run.conclusion


@dataclass(eq=False)
class Artifact:
    """A zip archive that a run has uploaded. An expired one is still listed, but removed."""

    id: int
    run: WorkflowRun
    name: str
    content: bytes
    created_at: datetime
    expired: bool = False
    tickets: dict[str, datetime] = field(default_factory=dict)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("A", self.id)

    @property
    def expires_at(self) -> datetime:
        """Return when it expires."""
        return self.created_at + ARTIFACTS_LAST

    @property
    def digest(self) -> str:
        """Return GitHub's digest of its content."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    def link(self) -> str:
        """Return an address from which the content can be downloaded for a minute, without credentials."""
        github = self.run.repository.github
        ticket = f"ticket-{len(self.tickets) + 1}"
        self.tickets[ticket] = github.clock.now() + LINK_LASTS
        return github.url + STORE.format(artifact=self.id, ticket=ticket)


@dataclass(eq=False)
class WorkflowRun:
    """A run of a workflow; `attempts` counts from 1 and each rerun adds one."""

    id: int
    repository: Home
    name: str
    path: str
    workflow_id: int
    head_sha: str
    head_branch: str | None
    event: str
    actor: User
    run_number: int
    suite_id: int
    created_at: datetime
    updated_at: datetime
    status: str = "queued"
    conclusion: str | None = None
    attempt: int = 1
    triggering_actor: User | None = None
    head_repository: Home | None = None
    """The fork from which the commit comes, if any."""
    jobs: list[Job] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    """The inputs of the request that started it, if a request did."""
    attempt_began_at: datetime | None = None
    """When the newest attempt began; None: when the run was created."""

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("WFR", self.id)

    @property
    def latest_jobs(self) -> list[Job]:
        """Return the jobs of the newest attempt, including those that were not rerun."""
        return list({job.name: job for job in self.jobs}.values())

    def start(self) -> None:
        """Start a queued run."""
        self.status = "in_progress"
        github = self.repository.github
        for job in self.latest_jobs:
            if job.status == "queued":
                job.check_run.change(self.actor, status="in_progress", started_at=github.clock.now())
        github.events.workflow_run("in_progress", self.actor, self)

    def finish(self, conclusion: str, jobs: Mapping[str, str] | None = None) -> None:
        """Complete the run. Running jobs that are not named get the conclusion of the run."""
        github = self.repository.github
        for job in self.latest_jobs:
            if job.status != "completed":
                self.finish_job(job.name, (jobs or {}).get(job.name, conclusion))
        self.status, self.conclusion = "completed", conclusion
        self.updated_at = github.clock.now()
        github.events.workflow_run("completed", self.actor, self)

    def finish_job(self, name: str, conclusion: str) -> None:
        """Complete a job, while the run goes on: jobs that need this one have no check run yet."""
        github = self.repository.github
        job = next(job for job in self.latest_jobs if job.name == name)
        job.completed_at = github.clock.now()
        job.check_run.change(self.actor, conclusion=conclusion)
        github.events.workflow_job("completed", self.actor, job)

    def rerun(self, actor: User, *, only_failed: bool = False, job: Job | None = None) -> None:
        """Begin a new attempt; raises GitHub's 403 `ApiError` if the run still runs or is too old.

        Skipped jobs need a failed one: until that has ended, their check runs are those of the attempt before.
        """
        github = self.repository.github
        if self.status != "completed":
            raise ApiError(403, ALREADY_RUNNING)
        if (github.clock.now() - self.created_at).days >= RERUN_WINDOW_DAYS:
            raise ApiError(403, TOO_OLD)
        rerun_jobs = [j for j in self.latest_jobs if not only_failed or j.conclusion in FAILED]
        if job is not None:
            rerun_jobs = [job]
        if only_failed and not rerun_jobs and self.conclusion not in FAILED:
            raise ApiError(403, NOTHING_FAILED)
        self.attempt += 1
        self.status, self.conclusion = "queued", None
        self.triggering_actor, self.updated_at = actor, github.clock.now()
        self.attempt_began_at = self.updated_at
        for old in rerun_jobs:
            self.add_job(old.name)
        github.events.workflow_run("requested", actor, self)

    def approve(self, actor: User) -> None:
        """Start a run that waits for a maintainer; raises GitHub's 403 `ApiError` if it does not wait."""
        github = self.repository.github
        if self.conclusion != "action_required":
            raise ApiError(403, NOT_WAITING)
        self.status, self.conclusion, self.updated_at = "queued", None, github.clock.now()
        self.attempt_began_at = self.updated_at
        for old in self.latest_jobs:
            self.add_job(old.name)
        github.events.workflow_run("requested", actor, self)

    def upload(self, name: str, files: Mapping[str, bytes | str], *, content: bytes | None = None) -> Artifact:
        """Upload an artifact: a zip archive of these files, or of any `content`."""
        github = self.repository.github
        archive = zipped(files) if content is None else content
        made = Artifact(github.new_id(), self, name, archive, github.clock.now())
        self.artifacts.append(made)
        return made

    def add_job(self, name: str) -> Job:
        """Add a queued job to the current attempt."""
        github = self.repository.github
        suite = next(suite for suite in self.repository.suites if suite.id == self.suite_id)
        run = self.repository.add_check_run(
            github.actions_app, self.head_sha, name, by=self.actor, suite=suite, started_at=github.clock.now()
        )
        job = Job(run.id, self, name, self.attempt, run, github.clock.now())
        self.jobs.append(job)
        github.events.workflow_job("queued", self.actor, job)
        return job


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    """Return a zip archive of files by their names."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def begin_run(
    repo: Home,
    head_sha: str,
    name: str,
    conclusion: str | None,
    jobs: Mapping[str, str | None],
    event: str,
    started_by: By | None,
    branch: str | None,
) -> WorkflowRun:
    """Add a run to a repository, as `Repository.add_workflow_run` says."""
    workflow_id = next((run.workflow_id for run in repo.workflow_runs if run.name == name), None)
    moment, pulls = repo.github.clock.now(), [p for p in repo.pulls if p.head_sha == head_sha and branch is None]
    actor = repo.github.user(started_by) if started_by else pulls[0].user if pulls else repo.owner
    suite = repo.new_check_suite(repo.github.actions_app, head_sha)
    made = WorkflowRun(
        repo.github.new_id(), repo, name, f".github/workflows/{_file_name(name)}.yml",
        workflow_id or repo.github.new_id(), head_sha, pulls[0].head_ref if pulls else branch or suite.head_branch,
        event, actor, len(repo.workflow_runs) + 1, suite.id, moment, moment,
        head_repository=pulls[0].head_repository if pulls else None,
    )  # fmt: skip
    repo.workflow_runs.append(made)
    repo.github.events.workflow_run("requested", actor, made)
    for job in jobs or {"build": conclusion}:
        made.add_job(job)
    made.start()
    if conclusion:
        made.finish(conclusion, {n: c for n, c in jobs.items() if c})
    return made


def _file_name(workflow: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", workflow.lower()).strip("-") or "workflow"
