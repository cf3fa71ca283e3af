"""How a commit stands: its statuses and the check runs of all Apps, the latest of each name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.payload import Payload
from bot.required import Signal, State

if TYPE_CHECKING:
    from bot.github.client import GitHub

STATUSES = "/repos/{+repo}/commits/{sha}/status"
CHECK_RUNS = "/repos/{+repo}/commits/{sha}/check-runs?filter=latest"

OF_STATUS = {"success": State.GREEN, "pending": State.PENDING}
GREEN_CONCLUSIONS = frozenset({"success", "neutral", "skipped"})
"""Those that satisfy GitHub's own required checks."""


async def signals_of(github: GitHub, repository: str, sha: str) -> list[Signal]:
    """Return all statuses and checks of a commit, over all pages. Raises what asking GitHub raises."""
    where = {"repo": repository, "sha": sha}
    found = []
    # The combined status has the latest of each context.
    async for item in github.getiter(STATUSES, url_vars=where, iterable_key="statuses"):
        status = Payload(item, "status")
        found.append(Signal(status.string("context"), OF_STATUS.get(status.string("state"), State.RED)))
    latest: dict[tuple[int, str], tuple[int, State]] = {}
    async for item in github.getiter(CHECK_RUNS, url_vars=where, iterable_key="check_runs"):
        run = Payload(item, "check run")
        # Of each suite GitHub returns the latest run of a name; a workflow that runs again has a new suite.
        key, run_id = (run.integer("app", "id") if run.has("app", "id") else 0, run.string("name")), run.integer("id")
        if run_id > latest.get(key, (0, State.RED))[0]:
            latest[key] = (run_id, _state_of(run))
    return found + [Signal(name, state) for (_, name), (_, state) in latest.items()]


def _state_of(run: Payload) -> State:
    if run.string("status") != "completed":
        return State.PENDING
    return State.GREEN if run.text("conclusion") in GREEN_CONCLUSIONS else State.RED
