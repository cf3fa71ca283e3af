"""Read the state of a commit: its statuses, and for each check name the check run that counts.

Two workflows may have jobs of the same name, and a pull request may add one: its green job must not hide a red one of
CI. So for GitHub Actions, the latest run in each workflow counts, and the worst of these.

A job that `needs:` others has a check run only when these have ended. So the check runs alone don't show that a
workflow run goes on: before the job begins, it has none, or the one of an earlier attempt, which was skipped if a job
that it needs had failed. So until a workflow run has completed, it is pending, and its earlier attempts don't count.
Only another list names the workflow run of a check run: docs/decisions/workflow-runs-in-progress.md
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from bot.core.events import Payload
from bot.github.commits.ours import app_of
from bot.github.commits.required import Signal, State
from bot.github.errors import is_forbidden, is_not_found

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.github.commits.ours import Ours

STATUSES = "/repos/{+repo}/commits/{sha}/status"
CHECK_RUNS = "/repos/{+repo}/commits/{sha}/check-runs?filter=latest"
WORKFLOW_RUNS = "/repos/{+repo}/actions/runs?head_sha={sha}"
ACTIONS = "github-actions"

OF_STATUS = {"success": State.GREEN, "pending": State.PENDING}
GREEN_CONCLUSIONS = frozenset({"success", "neutral", "skipped"})
"""Conclusions that satisfy GitHub's own required checks."""


async def signals_of(github: GitHub, repository: str, sha: str, own_reports: Ours) -> list[Signal]:
    """Return all statuses and checks of a commit, over all pages. Raises GitHub's errors.

    The bot's own reports are marked. Jobs that its pushes to its own branches started are left out.
    """
    url_vars = {"repo": repository, "sha": sha}
    statuses = []
    # The combined status has only the latest status of each context.
    async for item in github.getiter(STATUSES, url_vars=url_vars, iterable_key="statuses"):
        statuses.append(_status_signal(Payload(item, "status"), own_reports))
    return statuses + await _check_signals(github, url_vars, own_reports)


@dataclass(frozen=True, slots=True)
class _CheckRun:
    """A check run, with the fields that decide whether it counts."""

    id: int
    suite: int
    of_actions: bool
    signal: Signal


@dataclass(frozen=True, slots=True)
class _WorkflowRun:
    """The workflow run that a check suite belongs to.

    `workflow` identifies the workflow: its ID, the event, and whether one of our own pushes began the run. `started_at`
    is the start of the current attempt, in seconds since 1970; None if GitHub names no time.
    """

    workflow: tuple[int, str, bool]
    is_ours: bool
    completed: bool
    attempt: int
    started_at: float | None
    signal: Signal

    def signal_of(self, run: _CheckRun) -> Signal:
        """Return the signal of one of its check runs: pending if the check run may be of an earlier attempt."""
        signal = run.signal
        if self.completed or self.attempt == 1 or signal.state is State.PENDING:
            return signal
        # GitHub's times are in full seconds, so a job of this attempt may seem to have ended when the attempt began.
        if signal.at is not None and self.started_at is not None and signal.at > self.started_at:
            return signal
        return replace(signal, state=State.PENDING, result="")


async def _check_signals(github: GitHub, url_vars: Mapping[str, str], own_reports: Ours) -> list[Signal]:
    # Read the workflow runs first: one that has completed begins no job between the two requests.
    workflow_runs, refusal = await _workflow_runs(github, url_vars, own_reports)
    runs_by_name: defaultdict[tuple[int, str], list[_CheckRun]] = defaultdict(list)
    pending_suites = set[int]()
    async for item in github.getiter(CHECK_RUNS, url_vars=url_vars, iterable_key="check_runs"):
        run = _check_run(Payload(item, "check run"), own_reports)
        if run.of_actions and refusal is not None:
            raise refusal
        if run.of_actions and (workflow_run := workflow_runs.get(run.suite)) is not None:
            if workflow_run.is_ours:
                continue
            run = replace(run, signal=workflow_run.signal_of(run))
        runs_by_name[run.signal.app, run.signal.name].append(run)
        if run.signal.state is State.PENDING:
            pending_suites.add(run.suite)
    return [_counted_signal(runs, workflow_runs) for runs in runs_by_name.values()] + [
        workflow_run.signal
        for suite, workflow_run in workflow_runs.items()
        if not (workflow_run.completed or workflow_run.is_ours or suite in pending_suites)
    ]


async def _workflow_runs(
    github: GitHub, url_vars: Mapping[str, str], own_reports: Ours
) -> tuple[dict[int, _WorkflowRun], Exception | None]:
    """Return the workflow run of each check suite, and GitHub's refusal to list them.

    A server may have no GitHub Actions, and an App may lack the permission where nobody uses them.
    """
    workflow_runs: dict[int, _WorkflowRun] = {}
    try:
        async for item in github.getiter(WORKFLOW_RUNS, url_vars=url_vars, iterable_key="workflow_runs"):
            run = Payload(item, "workflow run")
            if run.has("check_suite_id"):
                workflow_runs[run.integer("check_suite_id")] = _workflow_run(run, own_reports)
    except Exception as error:
        if not (is_not_found(error) or is_forbidden(error)):
            raise
        return {}, error
    return workflow_runs, None


def name_of_run(run: Payload) -> str:
    """Return the name of a workflow run: its workflow's, else that of the workflow's file."""
    return run.text("name") or run.text("path").rpartition("/")[2] or f"run {run.integer('id')}"


def _counted_signal(runs: Iterable[_CheckRun], workflow_runs: Mapping[int, _WorkflowRun]) -> Signal:
    """Return the signal of the check run that counts among those of one App and name.

    GitHub Actions creates a suite for each run of a workflow, so the latest run of each workflow counts, and the worst
    of these; a suite without a known workflow counts as a workflow of its own. Any other App reuses its suite, so its
    latest run counts.
    """
    latest: dict[object, _CheckRun] = {}
    # GitHub's IDs increase, so the run with the highest ID is the latest.
    for run in sorted(runs, key=lambda run: run.id):
        workflow_run = workflow_runs.get(run.suite)
        workflow = workflow_run.workflow if workflow_run is not None else run.suite
        latest[workflow if run.of_actions else None] = run
    order = list(State)
    return min(latest.values(), key=lambda run: (order.index(run.signal.state), -run.id)).signal


def _status_signal(status: Payload, own_reports: Ours) -> Signal:
    result = status.string("state")
    # `error` and `failure` are both red: https://docs.github.com/en/rest/commits/statuses#create-a-commit-status
    state = OF_STATUS.get(result, State.RED)
    return Signal(
        status.string("context"),
        state,
        result,
        status.text("description"),
        status.text("target_url"),
        app_of(status),
        _moment(status, "updated_at"),
        own_reports.has_status(status),
    )


def _check_run(run: Payload, own_reports: Ours) -> _CheckRun:
    app = run.integer("app", "id") if run.has("app", "id") else 0
    suite = run.integer("check_suite", "id") if run.has("check_suite", "id") else 0
    signal = replace(_signal(run, app), ours=own_reports.has_check(app))
    return _CheckRun(run.integer("id"), suite, run.text("app", "slug") == ACTIONS, signal)


def _workflow_run(run: Payload, own_reports: Ours) -> _WorkflowRun:
    is_ours = own_reports.has_run(run)
    return _WorkflowRun(
        workflow=(run.integer("workflow_id"), run.text("event"), is_ours),
        is_ours=is_ours,
        completed=run.text("status") == "completed",
        attempt=run.integer("run_attempt") if run.has("run_attempt") else 0,
        started_at=_moment(run, "run_started_at"),
        signal=Signal(name_of_run(run), State.PENDING, url=run.text("html_url"), is_workflow_run=True),
    )


def _signal(run: Payload, app: int) -> Signal:
    name, title = run.string("name"), run.text("output", "title")
    url = run.text("details_url") or run.text("html_url")
    if run.string("status") != "completed":
        return Signal(name, State.PENDING, "", title, url, app, _moment(run, "started_at"))
    result = run.text("conclusion")
    state = State.GREEN if result in GREEN_CONCLUSIONS else State.RED
    return Signal(name, state, result, title, url, app, _moment(run, "completed_at"))


def _moment(reported: Payload, key: str) -> float | None:
    """Return a moment in seconds since 1970, None if GitHub names none."""
    text = reported.text(key)
    return datetime.fromisoformat(text).timestamp() if text else None
