"""`/operate/state`: timers, queues, GitHub's quota, and the workers of all replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from aiohttp import web
from pydantic import BaseModel, Field

from bot.core.health import CheckResult
from bot.timers.timers import STOPPED, timer_states, timers_of
from bot.web.openapi import Operation, ResponseSchema, problem
from bot.web.page_routes import Page, PageRequest
from bot.web.pages import PAGES
from handlers.operate import texts
from handlers.operate.attention import LowQuota, OperatorFacts

if TYPE_CHECKING:
    from bot.core.metrics import LeftQuota
    from bot.engine.jobs.journal import DeliveryRecord
    from handlers.operate.wiring import OperateParts

STATE_PATH = "/operate/state"
MOST_SECONDS = 20.0
"""Seconds for which a person who presses *Check now* waits for the results."""
LONGEST_REASON = 500
MOST_NAMES = 5
LOW = 0.1
"""The rest of a quota, as a part of its limit, below which it is nearly used up."""
LATE_SECONDS = 900.0
"""Seconds after its scheduled time for which a timer that has not run is not yet late."""


class OperateTimer(BaseModel, extra="forbid"):
    """A timer of a repository."""

    repository: str
    name: str
    schedule: str
    last_run: datetime | None
    guid: str = Field(description="The delivery of the last run; empty before the first.")
    outcome: str
    reason: str
    next_run: datetime


class OperateQueue(BaseModel, extra="forbid"):
    """The number of waiting jobs of one kind."""

    task: str
    waiting: int


class OperateQuota(BaseModel, extra="forbid"):
    """What is left of a quota of GitHub, according to the last answer that this process received."""

    installation: str = Field(description="The installation's ID, or `app` for the App itself.")
    account: str = Field(description="The account on which the App is installed; empty if this process does not know.")
    repositories: list[str] = Field(description="The account's repositories in app.yaml, at most five.")
    resource: str
    remaining: int
    limit: int
    reset_at: datetime


class OperateCheck(BaseModel, extra="forbid"):
    """The last result of a check of what the bot depends on, as `nightjar doctor` makes it."""

    check: str
    text: str
    remedy: str = Field(description="What to do; empty if the check passes.")


class OperateWorker(BaseModel, extra="forbid"):
    """A worker of any replica."""

    worker: int
    heartbeat_seconds: float = Field(description="Seconds since its last heartbeat.")
    silent: bool = Field(description="Whether the last heartbeat is too old, so that other workers take over its jobs.")
    jobs: int = Field(description="Jobs in progress.")


class OperateState(BaseModel, extra="forbid"):
    """The state of the bot itself."""

    problem: str = Field(description="Why this process runs no jobs; empty if it runs jobs.")
    config_problem: str = Field(description="Why the newest app.yaml is not in use; empty if it is.")
    database: str
    oldest_seconds: float = Field(description="Age of the oldest waiting delivery.")
    queues: list[OperateQueue]
    workers: list[OperateWorker]
    quotas: list[OperateQuota]
    timers: list[OperateTimer]
    checks: list[OperateCheck] = Field(
        description="The last round of checks of this process, which repeats them every ten minutes."
    )
    checked_at: datetime | None = Field(description="When that round ended; null before the first.")


def state_page(parts: OperateParts) -> Page:
    """Return the page with the state of the bot."""

    async def load(_: PageRequest) -> OperateState:
        backlog, checked_at = await parts.engine.backlog(), parts.health.checked_at
        return OperateState(
            problem=parts.engine.ready() or "",
            config_problem=parts.shown(parts.newest_config.problem, LONGEST_REASON),
            database=parts.shown(str(parts.engine.database.name), LONGEST_REASON),
            oldest_seconds=backlog.oldest_seconds,
            queues=[OperateQueue(task=task, waiting=count) for task, count in sorted(backlog.waiting.items())],
            workers=[
                OperateWorker(
                    worker=worker.worker_id,
                    heartbeat_seconds=worker.silent_seconds,
                    silent=worker.counts_as_dead,
                    jobs=worker.jobs,
                )
                for worker in await parts.engine.workers()
            ],
            quotas=[
                _quota(parts, installation, resource, quota)
                for (installation, resource), quota in sorted(parts.metrics.quotas.items())
            ],
            timers=await _timers(parts),
            checks=[
                OperateCheck(
                    check=result.check,
                    text=parts.shown(result.text, LONGEST_REASON),
                    remedy=parts.shown(result.remedy, LONGEST_REASON),
                )
                for result in parts.health.results()
            ],
            checked_at=datetime.fromtimestamp(checked_at, UTC) if checked_at is not None else None,
        )

    return Page(
        path=STATE_PATH,
        api_path="/api/v1/operate/state",
        summary="Timers, queues, quota and workers, for operators",
        template="operate_state.html",
        model=OperateState,
        load=load,
    )


def check_now_operation(parts: OperateParts) -> Operation:
    """Return the route of the button that runs all checks; `bot.web.access` admits operators only."""

    async def check_now(request: web.Request) -> web.StreamResponse:
        pages = request.app[PAGES]
        pages.admit(request)
        await pages.viewers.pressed(request)
        # The reader does not wait for a place that does not answer: the page says when the last round ended.
        with suppress(TimeoutError):
            async with asyncio.timeout(MOST_SECONDS):
                await parts.health.check_now()
        return web.Response(status=303, headers={"Location": f"{STATE_PATH}#checks", "Cache-Control": "no-store"})

    answers = {
        303: ResponseSchema("Redirects to the page with the results", media_type="text/html"),
        403: problem("The sender is not an operator, or the form was not sent from these pages"),
    }
    return Operation("POST", "/operate/checks", "Run all checks now, for operators", check_now, answers)


def _quota(parts: OperateParts, installation: str, resource: str, quota: LeftQuota) -> OperateQuota:
    account = parts.installed.accounts.get(int(installation), "") if installation.isdecimal() else ""
    names = [name for name in parts.config.repositories if account and name.lower().startswith(f"{account.lower()}/")]
    return OperateQuota(
        installation=installation,
        account=account,
        repositories=names[:MOST_NAMES],
        resource=resource,
        remaining=quota.remaining,
        limit=quota.limit,
        reset_at=datetime.fromtimestamp(quota.reset, UTC),
    )


async def read_facts(parts: OperateParts, failed: Sequence[DeliveryRecord]) -> OperatorFacts:
    """Read what may need a person, with a constant number of statements; `failed` are the newest failed deliveries."""
    moment = parts.clock()
    states = await timer_states(parts.config, parts.records, parts.journal, moment, with_reasons=False)
    scheduled = {(timer.repository, timer.name): timer.schedule.last_time(moment) for timer in timers_of(parts.config)}
    workers = await parts.engine.workers()
    quotas = [
        _quota(parts, installation, resource, quota)
        for (installation, resource), quota in sorted(parts.metrics.quotas.items())
        if quota.remaining < quota.limit * LOW and quota.reset > moment
    ]
    return OperatorFacts(
        problem=parts.engine.ready() or "",
        config_problem=parts.shown(parts.newest_config.problem, LONGEST_REASON),
        silent_workers=sum(worker.counts_as_dead for worker in workers) if workers else None,
        failures=[parts.shown(record.reason, LONGEST_REASON) for record in failed],
        timers=states,
        late=[
            state
            for state in states
            if state.outcome != STOPPED
            and state.last_run is not None
            and state.last_run < scheduled[state.repository, state.name] < moment - LATE_SECONDS
        ],
        checks=[
            CheckResult(
                result.check, parts.shown(result.text, LONGEST_REASON), parts.shown(result.remedy, LONGEST_REASON)
            )
            for result in parts.health.results()
        ],
        low_quotas=[
            LowQuota(
                quota.account or texts.APP_ITSELF,
                quota.resource,
                quota.remaining,
                quota.limit,
                f"{quota.reset_at:%H:%M} UTC",
            )
            for quota in quotas
        ],
    )


async def _timers(parts: OperateParts) -> list[OperateTimer]:
    states = await timer_states(parts.config, parts.records, parts.journal, parts.clock())
    return [
        OperateTimer(
            repository=state.repository,
            name=state.name,
            schedule=state.schedule,
            last_run=datetime.fromtimestamp(state.last_run, UTC) if state.last_run is not None else None,
            guid=state.guid,
            outcome=state.outcome,
            reason=parts.shown(state.reason, LONGEST_REASON),
            next_run=datetime.fromtimestamp(state.next_run, UTC),
        )
        for state in states
    ]
