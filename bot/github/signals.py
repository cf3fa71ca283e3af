"""How a commit stands: its statuses and the check runs of all Apps, the latest of each name."""

from __future__ import annotations

import re
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

_APP_PICTURE = re.compile(r"/in/([0-9]{1,18})(?:\?|$)")
"""As in `https://avatars.githubusercontent.com/in/15368`; people's pictures are below `/u/`."""


async def signals_of(github: GitHub, repository: str, sha: str) -> list[Signal]:
    """Return all statuses and checks of a commit, over all pages. Raises what asking GitHub raises."""
    where = {"repo": repository, "sha": sha}
    found = []
    # The combined status has the latest of each context.
    async for item in github.getiter(STATUSES, url_vars=where, iterable_key="statuses"):
        found.append(_of_status(Payload(item, "status")))
    latest: dict[tuple[int, str], tuple[int, Signal]] = {}
    async for item in github.getiter(CHECK_RUNS, url_vars=where, iterable_key="check_runs"):
        run = Payload(item, "check run")
        # Of each suite GitHub returns the latest run of a name; a workflow that runs again has a new suite.
        signal, run_id = _of_run(run), run.integer("id")
        key = (signal.app, signal.name)
        if key not in latest or run_id > latest[key][0]:
            latest[key] = (run_id, signal)
    return found + [signal for _, signal in latest.values()]


def _of_status(status: Payload) -> Signal:
    result = status.string("state")
    state = OF_STATUS.get(result, State.RED)
    app = _app_of(status.text("avatar_url"))
    return Signal(status.string("context"), state, result, status.text("description"), status.text("target_url"), app)


def _of_run(run: Payload) -> Signal:
    name, title = run.string("name"), run.text("output", "title")
    url = run.text("details_url") or run.text("html_url")
    app = run.integer("app", "id") if run.has("app", "id") else 0
    if run.string("status") != "completed":
        return Signal(name, State.PENDING, "", title, url, app)
    result = run.text("conclusion")
    return Signal(name, State.GREEN if result in GREEN_CONCLUSIONS else State.RED, result, title, url, app)


def _app_of(avatar_url: str) -> int:
    """Return the number of the App that set a status, 0 for a person: its picture is all that is told of it."""
    found = _APP_PICTURE.search(avatar_url)
    return int(found[1]) if found else 0
