"""The tasks that a delivery goes through: deliver (or replay), handle, effect.

A task may crash at any point and then runs again. So one transaction stores all that follows from a job, its new jobs,
records and internal events, and ends the job with its note: after a crash either all of it is stored or nothing.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import structlog
from procrastinate import JobContext
from procrastinate.jobs import Job

from bot.core.errors import PayloadError, UserError
from bot.core.events import Delivery, Repository, intent_key
from bot.engine.changes import Changes
from bot.engine.jobs import notes
from bot.engine.jobs.definitions import (
    CONCLUSION_RETRY_PRIORITY,
    EFFECT_RETRY_PRIORITY,
    HANDLE_RETRY_PRIORITY,
    Origin,
    conclusion_jobs,
    effect_jobs,
    plan_job,
    repository_of,
)
from bot.engine.jobs.inbox import RecentDeliveries
from bot.engine.jobs.journal import Journal
from bot.engine.jobs.notes import WRITING, Note, StoredPart, read_note, write_note
from bot.engine.jobs.once import Deferred
from bot.engine.jobs.store import Store, Unfinished, become_plan, subject_of
from bot.engine.processor import (
    AppliedEffect,
    ConclusionJob,
    EffectJob,
    ErrorKind,
    JobObserver,
    PlannedEffect,
    PlannedEffects,
    Processor,
)
from bot.engine.retry import FIRST_WAIT, RunAgain, is_final
from bot.engine.sql.transactions import Connector
from bot.engine.worker.attempt import Attempt, FollowUp, JobOutcome, id_of
from bot.engine.worker.guard import Guard
from bot.engine.worker.repeat import resume
from bot.engine.writes import CHECK_AFTER, CheckAgain, Writes

FOR_HANDLERS = "for {handlers}"
ALREADY_HANDLED = "another delivery reported this first, and was handled: {intent}"
RESUMED, NOT_RESUMED = "job {job} runs again", "job {job} was tried again meanwhile"
PLANNED_BEFORE = "planned before its worker was lost"
NOT_CONCLUDED = "I started this, but I can't tell how it ended. {message}"
NO_BODY = "The body of this delivery is no longer stored, so it cannot be handled again."

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Tasks:
    """The tasks of one engine, to be registered with Procrastinate."""

    def __init__(
        self,
        store: Store,
        processor: Processor,
        observer: JobObserver,
        guard: Guard,
        new_changes: Callable[[], Changes],
        check_after: float = CHECK_AFTER,
        first_wait: float = FIRST_WAIT,
    ) -> None:
        self._store = store
        self._guard = guard
        self._new_changes = new_changes
        self._deliveries = RecentDeliveries()
        self._check_after = check_after
        self._first_wait = first_wait
        self.processor = processor
        self._observer = observer

    async def deliver(
        self, context: JobContext, *, guid: str, event: str, received_at: float, body: str | None = None
    ) -> None:
        """Find the handlers that accept a delivery, and create a job for each."""

        async def work() -> JobOutcome | FollowUp:
            delivery_job = id_of(context.job)
            if body is not None:
                # A replica of an older release, which has no inbox, has accepted it.
                await self._store.move_body(delivery_job, context.job.lock, context.job.task_kwargs)
            return await self._route(context.job, await self.delivery(delivery_job), delivery_job, 0, failed)

        failed = list[Origin]()
        await self._deliver(context.job, work, guid, event, received_at, id_of(context.job), failed)

    async def replay(
        self, context: JobContext, *, guid: str, replay: int, delivery_job: int, received_at: float
    ) -> None:
        """Route a delivery again that was handled before; applied effects are not repeated."""

        async def work() -> JobOutcome | FollowUp:
            return await self._route(context.job, await self.delivery(delivery_job), delivery_job, replay, [])

        await self._deliver(context.job, work, guid, "replay", received_at, delivery_job, [])

    async def handle(self, context: JobContext, **args: Any) -> None:
        """Let one handler plan, and store the whole plan."""
        job, origin = context.job, Origin.read(args, context.job.lock)

        async def work() -> JobOutcome | FollowUp:
            return await self._plan_and_store(job, origin)

        async def answer(message: str, interim: bool) -> None:
            await self._answer([origin], message, interim=interim)

        def watch(outcome: str, seconds: float) -> None:
            if origin.message is None:
                self._observer.handler(origin.handler, outcome, seconds)

        await Attempt(
            job=job,
            work=work,
            guard=self._guard,
            first_wait=self._first_wait,
            watch=watch,
            message=lambda error: self.processor.message(error, origin.guid),
            kind_of=self.processor.kind_of,
            labels={"delivery": origin.guid, "handler": origin.handler},
            retry_priority=HANDLE_RETRY_PRIORITY,
            answer=answer,
        ).run(self._store.connector)

    async def effect(self, context: JobContext, **args: Any) -> None:
        """Apply one effect."""
        job, origin = context.job, Origin.read(args, context.job.lock)
        kind = str(args["effect"].get("kind", ""))
        # `Attempt` has not begun yet, so an outage of the database must be counted here.
        with self._guard.outliving(id_of(job)):
            writes = await writes_of(self._store.connector, job, self._check_after)

        async def work() -> JobOutcome:
            return await apply_and_heal(writes, lambda: self._apply(origin, args, writes), self.processor.kind_of)

        await Attempt(
            job=job,
            work=work,
            guard=self._guard,
            first_wait=self._first_wait,
            writes=writes,
            watch=lambda outcome, seconds: self._observer.effect(kind, outcome, seconds),
            message=lambda error: self.processor.message(error, origin.guid),
            kind_of=self.processor.kind_of,
            labels={"delivery": origin.guid, "handler": origin.handler, "target": args["target"]},
            retry_priority=EFFECT_RETRY_PRIORITY,
        ).run(self._store.connector)

    async def conclude(self, context: JobContext, **args: Any) -> None:
        """Let the handler of a plan decide what follows, once all effects of the plan have ended."""
        job, origin = context.job, Origin.read(args, context.job.lock)

        async def work() -> JobOutcome | FollowUp:
            return await self._conclude(job, origin, args)

        async def answer(message: str, interim: bool) -> None:
            await self._answer([origin], NOT_CONCLUDED.format(message=message), interim=interim)

        await Attempt(
            job=job,
            work=work,
            guard=self._guard,
            first_wait=self._first_wait,
            watch=lambda outcome, seconds: self._observer.handler(origin.handler, outcome, seconds),
            message=lambda error: self.processor.message(error, origin.guid),
            kind_of=self.processor.kind_of,
            labels={"delivery": origin.guid, "handler": origin.handler},
            retry_priority=CONCLUSION_RETRY_PRIORITY,
            answer=answer,
        ).run(self._store.connector)

    async def resume(
        self, context: JobContext, *, guid: str, delivery_job: int, job_id: int, attempts: int, received_at: float
    ) -> None:
        """Run a job again that failed an hour ago."""

        async def work() -> JobOutcome:
            resumed = await resume(self._store, Journal(self._store.connector), guid, job_id, attempts)
            return JobOutcome(notes.REPLAYED, (RESUMED if resumed else NOT_RESUMED).format(job=job_id))

        await Attempt(
            job=context.job,
            work=work,
            guard=self._guard,
            watch=lambda *_: None,  # it waited on purpose, which says nothing about how fast deliveries are handled
            message=str,
            kind_of=self.processor.kind_of,
            labels={"delivery": guid},
        ).run(self._store.connector)

    async def delivery(self, job_id: int) -> Delivery:
        """Read the delivery with the ID of its job; raises `UserError` if it is no longer stored."""
        delivery = await self._deliveries.read(self._store.connector, job_id)
        if delivery is None:
            raise UserError(NO_BODY)
        return delivery

    async def _answer(self, origins: Sequence[Origin], message: str, *, interim: bool) -> None:
        """Let handlers tell people that their work has failed for good, unless that work is such an answer itself."""
        await self._store.defer_again(
            [plan_job(origin.answer(message, interim=interim)) for origin in origins if origin.message is None]
        )

    async def _deliver(
        self,
        job: Job,
        work: Callable[[], Awaitable[JobOutcome | FollowUp]],
        guid: str,
        event: str,
        received_at: float,
        delivery_job: int,
        failed: Sequence[Origin],
    ) -> None:
        async def answer(message: str, interim: bool) -> None:
            if failed:
                await self._answer(failed, message, interim=interim)
                return
            delivery = await self._deliveries.read(self._store.connector, delivery_job)
            if delivery is not None:
                handlers = self.processor.answering(delivery)
                await self._answer(_origins(delivery, handlers, delivery_job, 0, job.lock), message, interim=interim)

        def watch(outcome: str, seconds: float) -> None:
            for origin in failed:
                self._observer.handler(origin.handler, outcome, seconds)
            is_routed = bool(failed) or outcome == notes.PLANNED
            self._observer.delivery(event, notes.ROUTED if is_routed else outcome, time.time() - received_at)

        await Attempt(
            job=job,
            work=work,
            guard=self._guard,
            first_wait=self._first_wait,
            watch=watch,
            message=lambda error: self.processor.message(error, guid),
            kind_of=self.processor.kind_of,
            labels={"delivery": guid, "event_name": event},
            answer=answer,
        ).run(self._store.connector)

    async def _route(
        self, job: Job, delivery: Delivery, delivery_job: int, replay: int, failed: list[Origin]
    ) -> JobOutcome | FollowUp:
        """Route a delivery; a plan that is made at once, and fails, is added to `failed`."""
        subject = subject_of(delivery)
        # Before routing, and also for deliveries that no handler accepts: commands rely on these records, such as that
        # of the newest head.
        try:
            await self.processor.note(delivery)
        except PayloadError as error:
            # A handler that needs the missing field will raise its own error, with the field's name.
            log.warning("could not note anything from the payload", path=error.path, error=str(error))
        routing = await self.processor.handlers_for(delivery)
        if not routing.handlers:
            return JobOutcome(notes.IGNORED, routing.reason, subject)
        intent = intent_key(delivery)
        origins = _origins(delivery, routing.handlers, delivery_job, replay, job.lock)
        if len(origins) == 1 and not replay and not job.attempts:
            try:
                return await self._plan_at_once(job, delivery, origins[0], subject)
            except Exception:
                # The job becomes that of the plan, to be tried again or to tell people.
                if not await self._become_plan(job, origins[0]):
                    return _handled_before(origins[0], subject)
                failed[:] = origins
                raise

        def outcome(deferred: Sequence[Deferred]) -> JobOutcome:
            # On a second try, existing jobs may be those of a first try by an earlier release.
            handlers = [
                origin.handler for origin, plan in zip(origins, deferred, strict=True) if plan.new or job.attempts
            ]
            texts = [FOR_HANDLERS.format(handlers=", ".join(handlers))] if handlers else []
            if len(handlers) < len(origins):
                texts.append(ALREADY_HANDLED.format(intent=intent))
            return JobOutcome(notes.ROUTED if handlers else notes.IGNORED, "; ".join(texts), subject)

        return FollowUp(outcome, [plan_job(origin) for origin in origins])

    async def _plan_at_once(self, job: Job, delivery: Delivery, origin: Origin, subject: Mapping[str, Any]) -> FollowUp:
        began = time.monotonic()
        follow_up = await self._follow_up(job, origin, delivery, await self._plan(delivery, origin), subject)
        self._observer.handler(origin.handler, notes.PLANNED, time.monotonic() - began)
        return replace(follow_up, plan=(plan_job(origin), _handled_before(origin, subject)))

    async def _become_plan(self, job: Job, origin: Origin) -> bool:
        statement, values = become_plan(id_of(job), plan_job(origin))
        return bool(await self._store.connector.execute_query_all_async(statement, **values))

    async def _plan_and_store(self, job: Job, origin: Origin) -> JobOutcome | FollowUp:
        if job.attempts and await self._store.is_planned(origin.guid, id_of(job)):
            # An earlier release has stored the plan and did not end the job. A second plan would see the changes that
            # the first plan's effects may have made already.
            return JobOutcome(notes.PLANNED, PLANNED_BEFORE)
        delivery = await self.delivery(origin.delivery_job)
        return await self._follow_up(job, origin, delivery, await self._plan(delivery, origin), {})

    async def _follow_up(
        self, job: Job, origin: Origin, delivery: Delivery, planned: PlannedEffects, subject: Mapping[str, Any]
    ) -> FollowUp:
        planned, stored, changes = await self._with_changes(origin, planned)
        jobs = effect_jobs(origin, id_of(job), Repository.of(delivery.payload), planned) if planned.has_jobs else []
        outcome = JobOutcome(notes.PLANNED, planned.why, subject, stored=stored)
        is_again = bool(origin.replay) or origin.message is not None
        return FollowUp(lambda _: outcome, jobs, changes, again=is_again)

    async def _with_changes(
        self, origin: Origin, planned: PlannedEffects
    ) -> tuple[PlannedEffects, tuple[StoredPart, ...], Changes]:
        """Return the plan without the effects that are stored together with it, these effects, and their changes."""
        changes, stored, with_job = self._new_changes(), list[StoredPart](), list[PlannedEffect]()
        stored_before, with_job_before = await self._store.applied_before(origin) if origin.replay else (set(), set())
        for place, effect in enumerate(planned.effects):
            if effect.store is None or effect.target in with_job_before:
                with_job.append(effect)
            elif effect.target not in stored_before:
                applied = await effect.store(changes)
                outcome = notes.APPLIED if applied.changed else notes.UNCHANGED
                stored.append(StoredPart(place, effect.target, effect.effect, outcome, applied.text))
                changes.after_commit.append(partial(self._observer.effect, effect.kind, outcome, 0.0))
        return replace(planned, effects=tuple(with_job)), tuple(stored), changes

    async def _conclude(self, job: Job, origin: Origin, args: dict[str, Any]) -> JobOutcome | FollowUp:
        number = int(args["conclusion"])
        if job.attempts and await self._store.is_planned(origin.guid, id_of(job), number):
            return JobOutcome(notes.CONCLUDED, PLANNED_BEFORE)
        ended = await self._store.ended(origin)
        if isinstance(ended, Unfinished):
            # From now on the conclusion waits behind the effects' retries.
            raise RunAgain(0, min(CONCLUSION_RETRY_PRIORITY, ended.priority - 1))
        effects, is_answered = ended
        delivery = await self.delivery(origin.delivery_job)
        conclusion = ConclusionJob(
            origin.handler, origin.intent, args["conclusion_basis"], effects, again=is_answered or number > 1
        )
        planned = await self.processor.conclude(delivery, conclusion)
        planned, stored, changes = await self._with_changes(replace(origin, replay=0), planned)
        jobs = conclusion_jobs(origin, id_of(job), number, Repository.of(delivery.payload), planned)
        outcome = JobOutcome(notes.CONCLUDED, planned.why, stored=stored)
        return FollowUp(lambda _: outcome, jobs, changes)

    async def _plan(self, delivery: Delivery, origin: Origin) -> PlannedEffects:
        if origin.message is not None:
            return await self.processor.plan_failure(delivery, origin.handler, origin.intent, origin.message)
        return await self.processor.plan(delivery, origin.handler, origin.intent)

    async def _apply(self, origin: Origin, args: dict[str, Any], writes: Writes) -> JobOutcome:
        applied = await self.processor.apply(
            EffectJob(
                guid=origin.guid,
                handler=origin.handler,
                intent=origin.intent,
                repository=repository_of(args),
                target=args["target"],
                effect=args["effect"],
                writes=writes,
                received_at=origin.received_at,
            )
        )
        return _outcome(applied)


def _origins(
    delivery: Delivery, handlers: Sequence[str], delivery_job: int, replay: int, lock: str | None
) -> list[Origin]:
    intent = intent_key(delivery)
    return [
        Origin(delivery.guid, handler, intent, delivery_job, delivery.received_at, replay, lock) for handler in handlers
    ]


def _handled_before(origin: Origin, subject: Mapping[str, Any]) -> JobOutcome:
    return JobOutcome(notes.IGNORED, ALREADY_HANDLED.format(intent=origin.intent), subject)


def _outcome(applied: AppliedEffect) -> JobOutcome:
    outcome = notes.APPLIED if applied.changed else notes.UNCHANGED
    return JobOutcome(outcome, applied.text, {"page": applied.page} if applied.page else {}, applied.value)


async def writes_of(connector: Connector, job: Job, check_after: float) -> Writes:
    """Return the writes that earlier tries of an effect's job have sent; a new write is stored there before it is sent.

    They are stored with the note of the job, so that every worker knows them.
    """
    job_id = id_of(job)
    note = await read_note(connector, job_id) if job.attempts else Note()

    async def save(state: Mapping[str, Any]) -> None:
        # Read the note again, because this try may have noted that it runs alone. A first try has no such note.
        latest = await read_note(connector, job_id) if job.attempts else note
        await write_note(connector, job_id, replace(latest, outcome=WRITING, writes=state))

    return Writes(note.writes, save, check_after)


async def apply_and_heal(
    writes: Writes, apply: Callable[[], Awaitable[JobOutcome]], kind_of: Callable[[BaseException], ErrorKind]
) -> JobOutcome:
    """Apply an effect; if a write had to be sent again, check for its twin in later tries.

    Raises `CheckAgain` until the checks are done, and the errors of `apply`.
    """
    outcome = JobOutcome(**writes.outcome) if writes.outcome else None
    try:
        applied = await apply()
    except CheckAgain:
        # The effect was applied before. It wanted to write now, which is forbidden during these checks: no failure.
        if outcome is None:
            raise
    except Exception as error:
        # The effect was applied before, so a failure to apply it once more does not count.
        if outcome is None or not is_final(error, kind_of(error)):
            raise
    else:
        outcome = outcome or applied
    if outcome is None:
        raise AssertionError("an effect that was not applied raises")
    if check_again := writes.check_for_twins(asdict(outcome)):
        raise check_again
    return outcome
