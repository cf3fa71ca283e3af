"""Read the state of a commit: its statuses, and for each check name the check run that counts.

Two workflows may have jobs of the same name, and a pull request may add one: its green job must not hide a red one of
CI. So for GitHub Actions, the latest run in each workflow counts, and the worst of these. Only another list names the
workflow of a check run; the bot requests it if runs of the same name differ in state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from bot.core.payload import Payload
from bot.github.ours import app_of
from bot.github.required import Signal, State

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.github.ours import Ours

STATUSES = "/repos/{+repo}/commits/{sha}/status"
CHECK_RUNS = "/repos/{+repo}/commits/{sha}/check-runs?filter=latest"
WORKFLOW_RUNS = "/repos/{+repo}/actions/runs?head_sha={sha}"
ACTIONS = "github-actions"

OF_STATUS = {"success": State.GREEN, "pending": State.PENDING}
GREEN_CONCLUSIONS = frozenset({"success", "neutral", "skipped"})
"""Conclusions that satisfy GitHub's own required checks."""


async def signals_of(github: GitHub, repository: str, sha: str, ours: Ours) -> list[Signal]:
    """Return all statuses and checks of a commit, over all pages. Raises GitHub's errors.

    The bot's own reports are marked. Jobs that its pushes to its own branches started are left out.
    """
    where = {"repo": repository, "sha": sha}
    found = []
    # The combined status has only the latest status of each context.
    async for item in github.getiter(STATUSES, url_vars=where, iterable_key="statuses"):
        found.append(_of_status(Payload(item, "status"), ours))
    return found + await _of_checks(github, where, ours)


@dataclass(frozen=True, slots=True)
class _Run:
    """A check run, and what decides whether it counts."""

    id: int
    suite: int
    of_actions: bool
    signal: Signal


@dataclass(frozen=True, slots=True)
class _Workflow:
    """The workflow that ran in a check suite, its event, and whether one of our own pushes started it."""

    id: int
    event: str
    ours: bool


async def _of_checks(github: GitHub, where: Mapping[str, str], ours: Ours) -> list[Signal]:
    same: defaultdict[tuple[int, str], list[_Run]] = defaultdict(list)
    async for item in github.getiter(CHECK_RUNS, url_vars=where, iterable_key="check_runs"):
        run = _of_run(Payload(item, "check run"), ours)
        same[run.signal.app, run.signal.name].append(run)
    of_actions = [runs for runs in same.values() if runs[0].of_actions]
    # The workflows cost a request, and only matter if runs of the same name differ, or if we push branches here.
    differ = any(len({run.signal.state for run in runs}) > 1 for runs in of_actions)
    workflows = await _workflows(github, where, ours) if differ or (of_actions and ours.branches) else {}
    begun_by_us = {suite for suite, workflow in workflows.items() if workflow.ours}
    theirs = [[run for run in runs if run.suite not in begun_by_us] for runs in same.values()]
    return [_counting(runs, workflows) for runs in theirs if runs]


async def _workflows(github: GitHub, where: Mapping[str, str], ours: Ours) -> dict[int, _Workflow]:
    """Return the workflow of each check suite."""
    runs = github.getiter(WORKFLOW_RUNS, url_vars=where, iterable_key="workflow_runs")
    found = [Payload(item, "workflow run") async for item in runs]
    return {
        run.integer("check_suite_id"): _Workflow(run.integer("workflow_id"), run.text("event"), ours.has_run(run))
        for run in found
        if run.has("check_suite_id")
    }


def _counting(runs: Iterable[_Run], workflows: Mapping[int, _Workflow]) -> Signal:
    """Return the check run that counts among those of one App and name.

    GitHub Actions creates a suite for each run of a workflow, so the latest run of each workflow counts, and the worst
    of these; a suite without a known workflow counts as a workflow of its own. Any other App reuses its suite, so its
    latest run counts.
    """
    latest: dict[object, _Run] = {}
    # GitHub's IDs increase, so the run with the highest ID is the latest.
    for run in sorted(runs, key=lambda run: run.id):
        latest[workflows.get(run.suite, run.suite) if run.of_actions else None] = run
    order = list(State)
    return min(latest.values(), key=lambda run: (order.index(run.signal.state), -run.id)).signal


def _of_status(status: Payload, ours: Ours) -> Signal:
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
        ours.has_status(status),
    )


def _of_run(run: Payload, ours: Ours) -> _Run:
    app = run.integer("app", "id") if run.has("app", "id") else 0
    suite = run.integer("check_suite", "id") if run.has("check_suite", "id") else 0
    signal = replace(_signal(run, app), ours=ours.has_check(app))
    return _Run(run.integer("id"), suite, run.text("app", "slug") == ACTIONS, signal)


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
