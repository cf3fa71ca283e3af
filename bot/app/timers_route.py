"""`GET /api/v1/repos/{owner}/{repo}/timers`: when a repository's timers ran and will run, and how that went."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

from aiohttp import web
from pydantic import BaseModel, Field

from bot.timers.timers import TimerState
from bot.web.openapi import Operation, ResponseSchema, problem
from bot.web.repositories import PARAMETERS, answer, answer_about
from bot.web.texts import NOT_CONFIGURED

ListTimers = Callable[[str], Awaitable[Sequence[TimerState]]]
"""Returns the timers of `owner/name`; raises LookupError for a repository that app.yaml does not list."""


class ListedTimer(BaseModel, extra="forbid"):
    """A timer, its last run and its next one."""

    name: str
    schedule: str
    last_run: datetime | None = Field(description="Null if it has not run yet.")
    outcome: str = Field(description="never, waiting, working, done, ignored, refused, failed, forgotten or stopped.")
    reason: str = Field(description="The reason, as a sentence.")
    next_run: datetime


class TimerList(BaseModel, extra="forbid"):
    """The timers of a repository."""

    timers: list[ListedTimer]


def operation(list_timers: ListTimers) -> Operation:
    """Return the route."""

    async def handler(request: web.Request) -> web.Response:
        states = await answer_about(request, list_timers, NOT_CONFIGURED)
        return answer(request, TimerList(timers=[_listed(state) for state in states]))

    return Operation(
        method="GET",
        path="/api/v1/repos/{owner}/{repo}/timers",
        summary="The repository's timers: last run, outcome, next run",
        handler=handler,
        parameters=PARAMETERS,
        answers={
            200: ResponseSchema("The timers", TimerList),
            400: problem("Not the name of a repository"),
            404: problem("The repository is not in app.yaml"),
            503: problem("The database could not be read; Retry-After says when to ask again"),
        },
    )


def _listed(state: TimerState) -> ListedTimer:
    return ListedTimer(
        name=state.name,
        schedule=state.schedule,
        last_run=None if state.last_run is None else datetime.fromtimestamp(state.last_run, UTC),
        outcome=state.outcome,
        reason=state.reason,
        next_run=datetime.fromtimestamp(state.next_run, UTC),
    )
