"""The stored jobs of a delivery, for the tasks: read, insert, and return them to the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, cast

from bot.core.events import Delivery, subject_of
from bot.engine.jobs.definitions import (
    CONCLUDE,
    CONCLUSION_PRIORITY,
    DELIVERY_PRIORITY,
    EFFECT,
    EFFECT_PRIORITY,
    HANDLE_PRIORITY,
    Origin,
)
from bot.engine.jobs.inbox import MOVE_BODY, moved_values
from bot.engine.jobs.notes import FORGET, REFUSED, UNCHANGED, UNKNOWN_END, Note, StoredPart
from bot.engine.jobs.once import FIND, ONCE, Deferred, NewJob, defer_once, insert_once
from bot.engine.processor import EffectState, EndedEffect
from bot.engine.sql.transactions import Connector, Steps

NO_JOB = 0
"""No job has this ID."""
ENDED = ("succeeded", "failed", "cancelled", "aborted")
ENDED_BADLY = ("failed", "cancelled", "aborted")

ARGS: LiteralString = "SELECT args FROM procrastinate_jobs WHERE id = %(id)s"

SET_ARGS: LiteralString = "UPDATE procrastinate_jobs SET args = %(args)s WHERE id = %(id)s"

TRIED_ONCE: LiteralString = """
UPDATE procrastinate_jobs
   SET status = %(status)s::procrastinate_job_status, attempts = 1, priority = %(priority)s,
       scheduled_at = to_timestamp(date_part('epoch', now()) + %(wait)s::double precision)
 WHERE id = %(id)s
"""
"""Turns a new job into one whose first try has failed."""

# `task_name <> 'deliver'` is the condition of the index `nightjar_guid`.
PLANNED: LiteralString = """
SELECT id FROM procrastinate_jobs
 WHERE task_name <> 'deliver' AND (args ->> 'guid') = %(guid)s
   AND CAST(args ->> 'plan_job' AS bigint) = %(plan)s
   AND (task_name = 'conclude' OR CAST(args ->> 'conclusion' AS bigint) = %(conclusion)s)
 LIMIT 1
"""
# The jobs of one handler for a delivery: the effects of its plan, and the answer to a failed plan.
OF_HANDLER: LiteralString = """
SELECT job.task_name, job.status, job.priority, job.args, note.outcome, note.text AS note
  FROM procrastinate_jobs AS job LEFT JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.task_name <> 'deliver' AND (job.args ->> 'guid') = %(guid)s
   AND job.task_name IN ('handle', 'effect') AND job.args ->> 'handler' = %(handler)s
 ORDER BY job.id
"""
# The priorities are those that the jobs begin with.
# Not `status IN …`: for that, SQLite would read every job with one of these states.
BEGIN_ANEW: LiteralString = """
UPDATE procrastinate_jobs
   SET status = 'todo', attempts = CASE WHEN id = %(resumed)s THEN attempts ELSE 0 END, scheduled_at = NULL,
       priority = CASE
           WHEN task_name = 'effect' THEN %(effect)s
           WHEN task_name = 'conclude' THEN %(conclude)s
           WHEN task_name = 'handle' THEN %(handle)s
           ELSE %(delivery)s END
 WHERE id = ANY(%(ids)s) AND status NOT IN ('todo', 'doing', 'aborting')
"""
PRIORITIES = {
    "effect": EFFECT_PRIORITY,
    "conclude": CONCLUSION_PRIORITY,
    "handle": HANDLE_PRIORITY,
    "delivery": DELIVERY_PRIORITY,
}


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Some effects of a plan have not ended; `priority` is the lowest among them."""

    priority: int


class Store:
    """The jobs of one database."""

    def __init__(self, connector: Connector) -> None:
        self.connector = connector

    async def move_body(self, job_id: int, lock: str | None, args: Mapping[str, Any]) -> None:
        """Move the body of a delivery from its job's arguments to the inbox. Safe to repeat."""
        await self.connector.execute_query_async(MOVE_BODY, **moved_values(job_id, lock, args))

    async def is_stored(self, job: NewJob) -> bool:
        """Return whether a job with the key of this one is stored."""
        return bool(await self.connector.execute_query_all_async(FIND, keys=[ONCE + job.key]))

    async def is_planned(self, guid: str, plan: int, conclusion: int = 0) -> bool:
        """Return whether the plan of job `plan` is already stored; plans are stored as a whole.

        `conclusion` is the number of the job's conclusion; 0 for the job of a plan.
        """
        values = {"guid": guid, "plan": plan, "conclusion": conclusion}
        return bool(await self.connector.execute_query_all_async(PLANNED, **values))

    async def ended(
        self, origin: Origin, read: Sequence[Mapping[str, Any]] | None
    ) -> tuple[list[EndedEffect], bool] | Unfinished:
        """Return the ended effects of a plan, in their order, or `Unfinished` if some have not ended.

        The second value says whether the handler has answered a failure of the plan before. `read` has the rows of
        `OF_HANDLER` if they are read already.
        """
        rows = await self._of_handler(origin) if read is None else read
        of_plan = [row for row in rows if row["task_name"] == EFFECT and _is_of_plan(row["args"])]
        if unfinished := [row["priority"] for row in of_plan if row["status"] not in ENDED]:
            return Unfinished(min(unfinished))
        ended = [_ended(row) for row in of_plan]
        for part in _stored_parts(rows):
            state = EffectState.UNCHANGED if part.outcome == UNCHANGED else EffectState.APPLIED
            ended.insert(part.place, EndedEffect(part.target, part.effect, state, part.text))
        return ended, any(row["args"].get("message") is not None for row in rows)

    async def applied_before(self, origin: Origin) -> tuple[set[str], set[str]]:
        """Return the targets of effects of earlier plans of a handler: those stored with a plan, and those with a job.

        Earlier releases gave each effect a job.
        """
        rows = await self._of_handler(origin)
        with_job = {row["args"]["target"] for row in rows if row["task_name"] == EFFECT and _is_of_plan(row["args"])}
        return {part.target for part in _stored_parts(rows)}, with_job

    async def _of_handler(self, origin: Origin) -> list[dict[str, Any]]:
        values = {"guid": origin.guid, "handler": origin.handler}
        return await self.connector.execute_query_all_async(OF_HANDLER, **values)

    async def defer(self, jobs: Sequence[NewJob]) -> list[Deferred]:
        """Insert the jobs that do not exist yet, in one statement."""
        return await defer_once(self.connector, jobs) if jobs else []

    async def defer_again(self, jobs: Sequence[NewJob]) -> list[Deferred]:
        """Insert jobs like `defer`, and requeue existing jobs that have failed: see `insert_again`."""
        return await self.connector.transact(lambda: insert_again(jobs)) if jobs else []


def insert_again(jobs: Sequence[NewJob]) -> Steps[list[Deferred]]:
    """Insert jobs like `insert_once`, and requeue existing jobs that have failed.

    If any of the effects runs again, the conclude job does too, with the current plan's basis.
    """
    rows = yield FIND, {"keys": [ONCE + job.key for job in jobs]}
    existing = {cast("str", row["queueing_lock"]): row for row in rows}
    failed = [cast("int", row["id"]) for row in existing.values() if row["status"] in ENDED_BADLY]
    if failed or len(existing) < len(jobs):
        for job in jobs:
            if job.task == CONCLUDE and (stored := existing.get(ONCE + job.key)):
                conclusion_id = cast("int", stored["id"])
                yield from restart_conclusion(conclusion_id, job.args["conclusion_basis"])
                if stored["status"] == "succeeded":
                    failed.append(conclusion_id)
    yield from begin_anew(failed)
    return (yield from insert_once(jobs))


def restart_conclusion(job_id: int, conclusion_basis: object = None) -> Steps[None]:
    """Prepare a conclude job to run again: its effects get new keys. With None it keeps its earlier basis.

    Does nothing if the job was removed meanwhile.
    """
    rows = yield ARGS, {"id": job_id}
    if rows:
        args = cast("dict[str, Any]", rows[0]["args"])
        new_basis = {"conclusion_basis": conclusion_basis} if conclusion_basis is not None else {}
        yield SET_ARGS, {"id": job_id, "args": {**args, **new_basis, "conclusion": args["conclusion"] + 1}}


def begin_anew(job_ids: Sequence[int], resumed: int | None = None) -> Steps[None]:
    """Return ended jobs to the queue. None of their tries are used up, except those of the job `resumed`."""
    if job_ids:
        yield FORGET, {"ids": [job for job in job_ids if job != resumed]}
        yield BEGIN_ANEW, {"ids": list(job_ids), "resumed": NO_JOB if resumed is None else resumed, **PRIORITIES}


def note_of_ignored(delivery: Delivery, reason: str) -> dict[str, Any]:
    """Return the note of a delivery that gets no job because no handler accepts it."""
    return {"text": reason, "about": subject_of(delivery)}


def _is_of_plan(args: dict[str, Any]) -> bool:
    return args.get("message") is None and not args.get("conclusion")


def _stored_parts(rows: Sequence[Mapping[str, Any]]) -> list[StoredPart]:
    """Return the effects that were stored together with the plans of a handler, each once, in their order."""
    plans = [row for row in rows if row["task_name"] != EFFECT and row["args"].get("message") is None]
    parts = {part.target: part for row in plans for part in Note.shown(row["outcome"], row["note"]).stored}
    return sorted(parts.values(), key=lambda part: part.place)


def _ended(row: Mapping[str, Any]) -> EndedEffect:
    note, args = Note.shown(row["outcome"], row["note"]), row["args"]
    state = _state(row["status"], note)
    text = (note.message or UNKNOWN_END) if state.is_failure else note.text
    return EndedEffect(args["target"], args["effect"], state, text, note.value)


def _state(status: str, note: Note) -> EffectState:
    if note.outcome == REFUSED:
        return EffectState.REFUSED
    if status in ENDED_BADLY:
        return EffectState.STOPPED if note.is_user_error else EffectState.FAILED
    return EffectState.UNCHANGED if note.outcome == UNCHANGED else EffectState.APPLIED
