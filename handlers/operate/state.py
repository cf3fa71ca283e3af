"""`/operate/state`: timers, queues, GitHub's quota, and the workers of all replicas."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from bot.timers.timers import timer_states
from bot.web.page_routes import Page, PageRequest

if TYPE_CHECKING:
    from handlers.operate.wiring import OperateParts

LONGEST_REASON = 500


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
    resource: str
    remaining: int
    limit: int
    reset_at: datetime


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


def state_page(parts: OperateParts) -> Page:
    """Return the page with the state of the bot."""

    async def load(_: PageRequest) -> OperateState:
        backlog = await parts.engine.backlog()
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
                OperateQuota(
                    installation=installation,
                    resource=resource,
                    remaining=quota.remaining,
                    limit=quota.limit,
                    reset_at=datetime.fromtimestamp(quota.reset, UTC),
                )
                for (installation, resource), quota in sorted(parts.metrics.quotas.items())
            ],
            timers=await _timers(parts),
        )

    return Page(
        path="/operate/state",
        api_path="/api/v1/operate/state",
        summary="Timers, queues, quota and workers, for operators",
        template="operate_state.html",
        model=OperateState,
        load=load,
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
