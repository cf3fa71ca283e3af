"""How a commit stands: its statuses and the check runs of all Apps, of each name the one that counts.

Two workflows may have a job of the same name, and whoever opens a pull request may add one: a green job of theirs must
not hide a red one of ours. So of GitHub Actions the latest run of a name counts in each workflow, and of several
workflows the worst. Which workflow a check run is of GitHub tells in another list, which is asked for only where runs
of one name stand differently.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.payload import Payload
from bot.required import Signal, State

if TYPE_CHECKING:
    from bot.github.client import GitHub

STATUSES = "/repos/{+repo}/commits/{sha}/status"
CHECK_RUNS = "/repos/{+repo}/commits/{sha}/check-runs?filter=latest"
WORKFLOW_RUNS = "/repos/{+repo}/actions/runs?head_sha={sha}"
ACTIONS = "github-actions"

OF_STATUS = {"success": State.GREEN, "pending": State.PENDING}
GREEN_CONCLUSIONS = frozenset({"success", "neutral", "skipped"})
"""Those that satisfy GitHub's own required checks."""

_APP_PICTURE = re.compile(r"/in/([0-9]{1,18})(?:\?|$)")
"""As in `https://avatars.githubusercontent.com/in/15368`; people's pictures are below `/u/`."""


async def signals_of(github: GitHub, repository: str, sha: str) -> list[Signal]:
    """Return all statuses and checks of a commit, over all pages. Raises what asking GitHub raises."""
    where = {"repo": repository, "sha": sha}
    found = []
    # The combined status has the latest of each context.
    async for item in github.getiter(STATUSES, url_vars=where, iterable_key="statuses"):
        found.append(_of_status(Payload(item, "status")))
    return found + await _of_checks(github, where)


@dataclass(frozen=True, slots=True)
class _Run:
    """A check run, with what tells which one counts."""

    id: int
    suite: int
    of_actions: bool
    signal: Signal


async def _of_checks(github: GitHub, where: Mapping[str, str]) -> list[Signal]:
    same: defaultdict[tuple[int, str], list[_Run]] = defaultdict(list)
    async for item in github.getiter(CHECK_RUNS, url_vars=where, iterable_key="check_runs"):
        run = _of_run(Payload(item, "check run"))
        same[run.signal.app, run.signal.name].append(run)
    differ = (runs[0].of_actions and len({run.signal.state for run in runs}) > 1 for runs in same.values())
    workflows = await _workflows(github, where) if any(differ) else {}
    return [_counting(runs, workflows) for runs in same.values()]


async def _workflows(github: GitHub, where: Mapping[str, str]) -> dict[int, tuple[int, str]]:
    """Return by check suite the workflow that ran, and upon which event."""
    runs = github.getiter(WORKFLOW_RUNS, url_vars=where, iterable_key="workflow_runs")
    found = [Payload(item, "workflow run") async for item in runs]
    return {
        run.integer("check_suite_id"): (run.integer("workflow_id"), run.text("event"))
        for run in found
        if run.has("check_suite_id")
    }


def _counting(runs: Iterable[_Run], workflows: Mapping[int, tuple[int, str]]) -> Signal:
    """Return of the check runs of one App and name the one that counts.

    Another App runs again in the suite that it has. A workflow that runs again has a new suite; one of which GitHub
    does not say what ran in it stands for itself.
    """
    latest: dict[object, _Run] = {}
    for run in sorted(runs, key=lambda run: run.id):
        latest[workflows.get(run.suite, run.suite) if run.of_actions else None] = run
    order = list(State)
    return min(latest.values(), key=lambda run: (order.index(run.signal.state), -run.id)).signal


def _of_status(status: Payload) -> Signal:
    result = status.string("state")
    state = OF_STATUS.get(result, State.RED)
    app = _app_of(status.text("avatar_url"))
    return Signal(status.string("context"), state, result, status.text("description"), status.text("target_url"), app)


def _of_run(run: Payload) -> _Run:
    app = run.integer("app", "id") if run.has("app", "id") else 0
    suite = run.integer("check_suite", "id") if run.has("check_suite", "id") else 0
    return _Run(run.integer("id"), suite, run.text("app", "slug") == ACTIONS, _signal(run, app))


def _signal(run: Payload, app: int) -> Signal:
    name, title = run.string("name"), run.text("output", "title")
    url = run.text("details_url") or run.text("html_url")
    if run.string("status") != "completed":
        return Signal(name, State.PENDING, "", title, url, app)
    result = run.text("conclusion")
    return Signal(name, State.GREEN if result in GREEN_CONCLUSIONS else State.RED, result, title, url, app)


def _app_of(avatar_url: str) -> int:
    """Return the number of the App that set a status, 0 for a person: its picture is all that is told of it."""
    found = _APP_PICTURE.search(avatar_url)
    return int(found[1]) if found else 0
