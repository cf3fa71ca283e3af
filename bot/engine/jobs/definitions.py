"""Define the stored jobs: their names, keys, priorities and arguments. docs/architecture.md has the table."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from bot.core.events import Repository
from bot.engine.jobs.once import NewJob
from bot.engine.processor import PlannedEffect, PlannedEffects
from bot.engine.sql.portable import JSONDict

DELIVER, REPLAY, HANDLE, EFFECT, CONCLUDE = "deliver", "replay", "handle", "effect", "conclude"
TICK, TIMER = "tick", "timer"
RESUME = "resume"

OWN_EVENT = "."
"""Names of our own events contain this, as in `nightjar.timer`; GitHub's don't."""

# Under one lock the highest number goes first. So all jobs of a delivery are done before the next delivery is read, and
# a second try waits behind jobs that were not tried yet.
DELIVERY_PRIORITY, URGENT_PRIORITY = 0, 1
"""Requests of people, timers and internal events go before other deliveries. Both go behind the remaining jobs of an
earlier delivery under the same lock. The other deliveries do not starve: `bot.engine.upkeep.raise_oldest`."""
HANDLE_PRIORITY, HANDLE_RETRY_PRIORITY = 8, 2
EFFECT_PRIORITY, EFFECT_RETRY_PRIORITY = 10, 6
CONCLUSION_PRIORITY, CONCLUSION_RETRY_PRIORITY = 7, 4
GIVE_WAY_PRIORITY = -2
"""An effect that gives way to all others (`bot.core.errors.GiveWay`). Its conclusion waits behind it."""

LONGEST_KEY = 500
"""Characters; an entry of PostgreSQL's index holds 2704 bytes at most."""


def key_of(*parts: str | int) -> str:
    """Join parts to a key. At most one job has a key, as long as the row of that job is stored."""
    key = ":".join(str(part) for part in parts)
    if len(key) <= LONGEST_KEY:
        return key
    return f"{key[:LONGEST_KEY]}#{hashlib.sha256(key.encode(errors='surrogatepass')).hexdigest()}"


def delivery_job(
    guid: str, event: str, received_at: float, lock: str, not_before: float | None = None, *, urgent: bool = False
) -> NewJob:
    """Describe the job of a delivery, whose body is in the inbox. Moments are in seconds since 1970."""
    return NewJob(
        key=key_of("delivery", guid),
        task=DELIVER,
        args={"guid": guid, "event": event, "received_at": received_at},
        lock=lock,
        priority=URGENT_PRIORITY if urgent else DELIVERY_PRIORITY,
        scheduled_at=datetime.fromtimestamp(not_before, UTC) if not_before is not None else None,
    )


def replay_job(guid: str, number: int, delivery_job: int, received_at: float, lock: str | None) -> NewJob:
    """Describe the `number`-th replay of a delivery, which is read again from `delivery_job`."""
    return NewJob(
        key=key_of("replay", number, guid),
        task=REPLAY,
        args={"guid": guid, "replay": number, "delivery_job": delivery_job, "received_at": received_at},
        lock=lock,
        priority=DELIVERY_PRIORITY,
    )


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a plan and its effects: the fields that their jobs share."""

    guid: str
    handler: str
    intent: str
    delivery_job: int
    received_at: float
    replay: int
    lock: str | None
    message: str | None = None
    """The failure text for people, if this plan answers for a plan that failed."""
    interim: bool = False
    """The failed job runs again by itself, so the answer to its last failure is another one."""

    @classmethod
    def read(cls, args: Mapping[str, Any], lock: str | None) -> Origin:
        """Read the origin out of a job's arguments."""
        names = ("guid", "handler", "intent", "delivery_job", "received_at", "replay", "message")
        return cls(**{name: args[name] for name in names}, lock=lock, interim=bool(args.get("interim")))

    def answer(self, message: str, *, interim: bool) -> Origin:
        """Return the origin of the answer to this plan's failure."""
        return replace(self, message=message, interim=interim)

    @property
    def args(self) -> JSONDict:
        """The arguments that name the origin."""
        return {
            "guid": self.guid,
            "handler": self.handler,
            "intent": self.intent,
            "delivery_job": self.delivery_job,
            "received_at": self.received_at,
            "replay": self.replay,
            "message": self.message,
            **({"interim": True} if self.interim else {}),
        }

    @property
    def key_suffix(self) -> str:
        """Key suffix of a failure reply, so that a later success does not collide."""
        if self.message is None:
            return ""
        return "-of-interim-failure" if self.interim else "-of-failure"


def plan_job(origin: Origin) -> NewJob:
    """Describe the job that lets one handler plan, or plan how its failure is reported."""
    # Each replay plans again, in a separate job; people are informed of the failure once.
    replay = (origin.replay,) if origin.replay and origin.message is None else ()
    return NewJob(
        key=key_of(f"plan{origin.key_suffix}", origin.handler, origin.intent, *replay),
        task=HANDLE,
        args=origin.args,
        lock=origin.lock,
        priority=HANDLE_PRIORITY,
    )


def effect_jobs(origin: Origin, plan: int, repository: Repository, planned: PlannedEffects) -> list[NewJob]:
    """Describe the jobs of the effects that the job `plan` decided, and of its conclusion."""
    jobs = [_effect_job(origin, plan, repository, effect) for effect in planned.effects]
    if planned.conclusion_basis is not None:
        jobs.append(_conclusion_job(origin, plan, planned.conclusion_basis))
    return jobs


def conclusion_jobs(
    origin: Origin, conclusion: int, number: int, repository: Repository, planned: PlannedEffects
) -> list[NewJob]:
    """Describe the jobs of the effects that the job `conclusion` planned when it ran for the `number`-th time.

    A replay concludes again: its effects are other jobs than those of the earlier conclusion.
    """
    if planned.conclusion_basis is not None:
        raise ValueError(f"{origin.handler}: a conclusion has no conclude stage of its own")
    prefix = ("effect-of-conclusion", number)
    return [_effect_job(origin, conclusion, repository, effect, prefix, number) for effect in planned.effects]


def _conclusion_job(origin: Origin, plan: int, conclusion_basis: Mapping[str, Any]) -> NewJob:
    return NewJob(
        key=key_of(f"conclude{origin.key_suffix}", origin.handler, origin.intent),
        task=CONCLUDE,
        args={**origin.args, "plan_job": plan, "conclusion_basis": dict(conclusion_basis), "conclusion": 1},
        lock=origin.lock,
        priority=CONCLUSION_PRIORITY,
    )


def _effect_job(
    origin: Origin,
    plan: int,
    repository: Repository,
    effect: PlannedEffect,
    prefix: tuple[str | int, ...] = (),
    conclusion: int = 0,
) -> NewJob:
    repository_args: JSONDict = {
        "id": repository.id,
        "full_name": repository.full_name,
        "installation_id": repository.installation_id,
    }
    return NewJob(
        key=key_of(*(prefix or (f"effect{origin.key_suffix}",)), origin.intent, origin.handler, effect.target),
        task=EFFECT,
        args={
            **origin.args,
            "plan_job": plan,
            "repository": repository_args,
            "target": effect.target,
            "effect": dict(effect.effect),
            "conclusion": conclusion,
        },
        lock=origin.lock,
        priority=EFFECT_PRIORITY,
    )


def timer_job(name: str, moment: str | int) -> NewJob:
    """Describe one run of a timer. Replicas that tick for the same moment get the same key, so the run happens once."""
    key = key_of("timer", name, moment)
    return NewJob(key=key, task=TIMER, args={"name": name}, lock=f"timer:{name}", priority=URGENT_PRIORITY)


def resume_job(guid: str, delivery_job: int, job_id: int, attempts: int, moment: float, wait: float) -> NewJob:
    """Describe the job that requeues the job `job_id`, failed after `attempts` tries, `wait` seconds after `moment`."""
    return NewJob(
        key=key_of("resume", job_id, attempts),
        task=RESUME,
        args={
            "guid": guid,
            "delivery_job": delivery_job,
            "job_id": job_id,
            "attempts": attempts,
            "received_at": moment,
        },
        priority=URGENT_PRIORITY,
        scheduled_at=datetime.fromtimestamp(moment + wait, UTC),
    )


def repository_of(args: Mapping[str, Any]) -> Repository:
    """Read the repository that an effect's job names."""
    return Repository(**args["repository"])
