"""The tasks that a delivery goes through, deliver (or replay), handle, effect, conclude, and one try of such a job.

A task may crash at any point and then runs again. So one transaction stores all that follows from a job, its new jobs,
records and internal events, and ends the job with its note: after a crash either all of it is stored or nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import structlog
from procrastinate import JobContext
from procrastinate.jobs import Job, Status

from bot.core.errors import GiveWay, PayloadError, Refusal, UserError
from bot.core.events import OWN_INTENT, Delivery, intent_key, subject_of
from bot.engine.changes import Changes, Outdated, RecordChange
from bot.engine.jobs import definitions
from bot.engine.jobs.definitions import (
    CONCLUSION_RETRY_PRIORITY,
    EFFECT_RETRY_PRIORITY,
    GIVE_WAY_PRIORITY,
    HANDLE_PRIORITY,
    HANDLE_RETRY_PRIORITY,
    Origin,
    conclusion_jobs,
    effect_jobs,
    plan_job,
    repository_of,
)
from bot.engine.jobs.inbox import RecentDeliveries
from bot.engine.jobs.journal import Journal
from bot.engine.jobs.notes import (
    APPLIED,
    AWAY,
    CONCLUDED,
    FAILED,
    FOR_HANDLERS,
    IGNORED,
    PLANNED,
    REFUSED,
    REPLAYED,
    RETRYING,
    ROUTED,
    UNCHANGED,
    WRITE,
    WRITING,
    Note,
    StoredPart,
    UnreadableNote,
    read_note,
    write_note,
)
from bot.engine.jobs.once import Deferred, NewJob, insert_once
from bot.engine.jobs.steps import FINISH_NOTED
from bot.engine.jobs.store import TRIED_ONCE, Store, Unfinished, insert_again
from bot.engine.outage import is_outage, release_waiting
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
from bot.engine.records import FRESH, JOB_RECORDS, JobRecords
from bot.engine.retry import (
    FIRST_WAIT,
    MAX_ALONE,
    SUSPECT_AFTER,
    SUSPECT_PAUSE,
    Failed,
    LostTooOften,
    Postponed,
    RunAgain,
    Tries,
    is_away,
    is_final,
    next_try,
)
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.portable import Row
from bot.engine.sql.transactions import Connector, Steps
from bot.engine.worker.guard import Busy, Guard, Stopping
from bot.engine.worker.manager import TAKEN_OVER, begins_next, leave_ended, leave_note, records_of
from bot.engine.worker.repeat import resume, resume_later
from bot.engine.writes import CHECK_AFTER, CheckAgain, Writes

MAX_PLANS = 5
"""How often one try is stored or its work done again because another job changed the records that it has read."""

SUSPECT = "it may have crashed the worker, so it runs alone"
SUSPECT_WAITS = f"{SUSPECT}, once its process has run for a while without it"

ALREADY_HANDLED = "another delivery reported this first, and was handled: {intent}"
RESUMED, NOT_RESUMED = "job {job} runs again", "job {job} was tried again meanwhile"
PLANNED_BEFORE = "planned before its worker was lost"
NOT_CONCLUDED = "I started this, but I can't tell how it ended. {message}"
NO_BODY = "The body of this delivery is no longer stored, so it cannot be handled again."
UNREADABLE = "the stored form of a job cannot be read"
UNREADABLE_JOB = "its stored arguments cannot be read: {error}"

Task = Callable[..., Awaitable[None]]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The outcome of a job that did not fail; `text` and `about` are stored in its note."""

    outcome: str
    text: str
    about: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None
    """The value of an effect for the conclude stage, as JSON."""
    stored: tuple[StoredPart, ...] = ()
    """The effects of a plan that are stored together with it."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What follows from a job, stored in the transaction that ends the job: new `jobs`, and `changes`.

    `outcome` may depend on the job of each key. With `again`, existing jobs that have failed are requeued.
    """

    outcome: JobOutcome | Callable[[Sequence[Deferred]], JobOutcome]
    jobs: Sequence[NewJob] = ()
    changes: Changes | None = None
    again: bool = False
    plan: NewJob | None = None
    """If set, the job becomes this one, that of a plan."""
    job_steps: Callable[[Sequence[Deferred]], Steps[None]] | None = None
    """Further steps about the new jobs; gets the job of each key."""

    def has_only_lock(self, lock: str | None) -> bool:
        """Return whether all new jobs have this lock. A fetch has to find the others."""
        return all(job.lock == lock for job in self.jobs) and not (self.changes and self.changes.deliveries)


class TakenOver(Exception):
    """Another worker took the job over, so nothing that follows from this try was stored."""


async def _no_answer(_: str, __: bool) -> None:
    """Do nothing: most failures are for operators only."""


@dataclass(slots=True)
class OnlyPlan:
    """The only plan of a delivery, which the delivery's own job makes; `origin` is None until its handler is known."""

    origin: Origin | None = None
    subject: Mapping[str, Any] = field(default_factory=dict)
    began: float = 0.0
    """When the plan began, by the monotonic clock."""
    routed_after: float = 0.0
    """The seconds from the arrival of the delivery until its handler was known."""

    @property
    def labels(self) -> dict[str, str]:
        """Fields of log lines."""
        return {} if self.origin is None else {"handler": self.origin.handler}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a job.

    `work` does the job, under the `guard` of its process. `watch` gets the outcome and the seconds that the try took.
    `message` turns an error into a text for people. `answer` gets that text if the error ends the job, and whether the
    engine runs the job again by itself after a quiet hour. `retry_priority` is the priority of the job while it waits
    for its next try.
    """

    job: Job
    work: Callable[[], Awaitable[JobOutcome | FollowUp]]
    guard: Guard
    watch: Callable[[str, float], None]
    message: Callable[[Exception], str]
    kind_of: Callable[[BaseException], ErrorKind]
    labels: Mapping[str, str | int]
    retry_priority: int | None = None
    writes: Writes = field(default_factory=Writes)
    """The writes that the job has sent and must not send twice; the next try reads them."""
    answer: Callable[[str, bool], Awaitable[None]] = _no_answer
    first_wait: float = FIRST_WAIT
    plan: OnlyPlan = field(default_factory=OnlyPlan)

    async def run(self, connector: Connector) -> None:
        """Try once. Raises `RunAgain` or `Failed`, which `bot.engine.worker.queue.EngineRetry` understands.

        Leaves the note of the outcome with the job. Raises DatabaseFailure if the database fails first.
        """
        job_id = id_of(self.job)
        JOB_RECORDS.set(records_of(self.job))
        with structlog.contextvars.bound_contextvars(job=job_id, **self.labels), self.guard.outliving(job_id):
            try:
                await self._run(connector, job_id)
            except TakenOver:
                # It may also be that this process has ended the job and the answer was lost: the end of the job finds
                # that out, and returns the successor that nobody runs (`EngineJobManager.finish_job`).
                log.warning(TAKEN_OVER)

    async def _run(self, connector: Connector, job_id: int) -> None:
        began = time.monotonic()
        # The first try has no note, which saves a query for most jobs.
        try:
            earlier_note = await read_note(connector, job_id) if self.job.attempts else Note()
        except UnreadableNote as error:
            # `fail_unreadable` ends the job, and leaves the note: another version may read it.
            await self.answer(self.message(error), True)
            raise
        tries = earlier_note.tries.after_outlived(self.guard.outlived(job_id))
        try:
            result = await self._guarded(connector, tries)
        except Postponed as postponed:
            # It may wait for long, so its note says why.
            counted = tries.after(postponed, time.time())
            waiting = replace(earlier_note, outcome=RETRYING, text=SUSPECT_WAITS, tries=counted)
            leave_note(self.job, replace(waiting, writes=self.writes.state))
            raise
        except (RunAgain, asyncio.CancelledError) as ended:
            self._leave_stopped(earlier_note, tries, ended)
            raise
        except TakenOver:
            raise
        except Exception as error:
            try:
                decision = await self._settle(connector, error, tries, began)
            except asyncio.CancelledError as ended:
                self._leave_stopped(earlier_note, tries, ended)
                raise
            if decision is None:
                return
            raise decision from error
        if tries.away_since:
            await release_waiting(connector)
        leave_note(self.job, _note_of(result, tries))
        self._report(result, began)

    def _leave_stopped(self, earlier_note: Note, tries: Tries, ended: RunAgain | asyncio.CancelledError) -> None:
        """Leave the note of a try that stopped on purpose, and must not look like a crash of its process."""
        stopped = replace(earlier_note, tries=tries.after(ended, time.time()), writes=self.writes.state)
        leave_note(self.job, stopped)

    def _report(self, result: JobOutcome, began: float) -> None:
        line = f"{self.job.task_name}: {result.outcome}"
        log.info(line, text=result.text, **self.plan.labels)
        self.watch(result.outcome, time.monotonic() - began)

    async def _note(self, connector: Connector, note: Note) -> None:
        """Store a note that covers all tries so far, before this one goes on."""
        job_id = id_of(self.job)
        await write_note(connector, job_id, note)
        self.guard.forget(job_id)

    async def _guarded(self, connector: Connector, tries: Tries) -> JobOutcome:
        """Do the work beside other jobs; in isolation if it may crash the process."""
        if tries.alone >= MAX_ALONE:
            raise LostTooOften(tries.alone, runs_again=await resume_later(connector, self.job))
        lost = tries.lost(self.job.attempts)

        async def work() -> JobOutcome:
            return await self._work_and_end(connector, tries)

        if lost < SUSPECT_AFTER:
            return await self.guard.run(work)
        if seconds := self.guard.too_young(tries.alone):
            raise Postponed(seconds, self.retry_priority)

        async def alone() -> JobOutcome:
            # The work may end this process. The note, stored first, tells the next process that the job ran alone.
            log.warning(SUSPECT, ended=lost)
            begun = replace(tries, alone=tries.alone + 1)
            note = Note(outcome=RETRYING, text=SUSPECT, tries=begun, writes=self.writes.state)
            await self._note(connector, note)
            return await work()

        try:
            return await self.guard.run_alone(alone)
        # Not a failed try: other jobs caused the delay.
        except Busy:
            raise Postponed(SUSPECT_PAUSE, self.retry_priority) from None
        except Stopping:
            raise Postponed(0.0, self.retry_priority) from None

    async def _work_and_end(self, connector: Connector, tries: Tries) -> JobOutcome:
        """Do the work, and end the job together with what follows from it, if anything does."""
        result: JobOutcome | FollowUp | None = None
        for _ in range(MAX_PLANS):
            result = result or await self.work()
            if isinstance(result, JobOutcome):
                return result
            reads = (JOB_RECORDS.get() or JobRecords()).names
            try:
                steps = partial(self._steps, result, tries, reads, may_begin_next=begins_next(self.job))
                outcome, rows = await connector.transact(steps)
            except Outdated as error:
                # The work must be done again if it depends on what the changed record was.
                outdated = error
                if result.changes is None or not result.changes.read_again(error.key):
                    result = None
                continue
            leave_ended(self.job, rows)
            if result.changes is not None:
                result.changes.committed()
            return outcome
        raise outdated

    def _steps(
        self, follow_up: FollowUp, tries: Tries, reads: Sequence[str], *, may_begin_next: bool
    ) -> Steps[tuple[JobOutcome, list[Row]]]:
        outcome, jobs, changes = follow_up.outcome, follow_up.jobs, list[RecordChange]()
        if not isinstance(outcome, JobOutcome) or (jobs and follow_up.again):
            # The note depends on which jobs are new, or failed jobs run again, so the last statement cannot do it all.
            deferred = yield from (insert_again if follow_up.again else insert_once)(jobs)
            if follow_up.job_steps is not None:
                yield from follow_up.job_steps(deferred)
            outcome, jobs = outcome if isinstance(outcome, JobOutcome) else outcome(deferred), ()
        if follow_up.changes is not None:
            changes = yield from follow_up.changes.announced()
        note = _note_of(outcome, tries)
        values = {
            "id": id_of(self.job),
            "worker_id": self.job.worker_id,
            "status": Status.SUCCEEDED.value,
            "outcome": note.outcome,
            "note": note.written(),
            "plan": follow_up.plan,
            "jobs": jobs,
            "changes": changes,
            "begins_next": may_begin_next and follow_up.has_only_lock(self.job.lock),
            "reads": reads,
        }
        if not (rows := (yield FINISH_NOTED, values)):
            raise TakenOver
        return outcome, rows

    async def _settle(
        self, connector: Connector, error: Exception, tries: Tries, began: float
    ) -> RunAgain | Failed | None:
        """Leave the note of a failed try; return the error to raise, None if the job ends with a refusal."""
        moment = time.time()
        seconds = next_try(error, tries, moment, self.first_wait, self.kind_of(error))
        counted = tries.after(error, moment)
        outcome = RETRYING if seconds is not None else _final(error)
        note = Note(
            outcome=AWAY if seconds is not None and is_away(error) else outcome,
            text=describe(error),
            message=self.message(error),
            tries=counted,
            writes=self.writes.state,
            is_user_error=isinstance(error, UserError),
        )
        if is_outage(error):
            # Nothing can be stored, so the whole delivery waits.
            self.plan.origin = None
        retry_priority = HANDLE_RETRY_PRIORITY if self.plan.origin else self.retry_priority
        decision: RunAgain | Failed | None
        if seconds is not None:
            decision = RunAgain(seconds, GIVE_WAY_PRIORITY if isinstance(error, GiveWay) else retry_priority)
        else:
            # A refusal is not a failure: the job ends as succeeded, and its note says what was refused.
            decision = None if outcome == REFUSED else Failed()
        if self.plan.origin is not None:
            routed = await self._hand_over(connector, self.plan.origin, note, decision)
            if routed.outcome == IGNORED:
                self._report(routed, began)
                return None
            decision = None
        else:
            if seconds is None:
                await self.answer(note.message, isinstance(error, LostTooOften) and error.runs_again)
            # Any other error shows that the service answers again, so the jobs that wait for it may run now.
            if tries.away_since and not counted.away_since:
                await release_waiting(connector)
            leave_note(self.job, note)
        self._log(error, seconds)
        self.watch(outcome, time.monotonic() - began)
        return decision

    async def _hand_over(
        self, connector: Connector, origin: Origin, note: Note, decision: RunAgain | Failed | None
    ) -> JobOutcome:
        """End the job of a delivery whose only plan has failed, and give the plan a job that was tried once."""

        def fail_once(deferred: Sequence[Deferred]) -> Steps[None]:
            for plan in deferred:
                if plan.new:
                    yield TRIED_ONCE, {"id": plan.job_id, **_end_of_try(decision)}
                    yield WRITE, {"job_id": plan.job_id, "outcome": note.outcome, "text": note.written()}
                    if not isinstance(decision, RunAgain):
                        yield from insert_again([plan_job(origin.answer(note.message, interim=False))])

        outcome = partial(_routed, [origin], self.plan.subject)
        follow_up = FollowUp(outcome, [plan_job(origin)], job_steps=fail_once)
        routed, rows = await connector.transact(partial(self._steps, follow_up, Tries(), [], may_begin_next=False))
        leave_ended(self.job, rows)
        return routed

    def _log(self, error: Exception, seconds: float | None) -> None:
        line = f"{self.job.task_name}: {_final(error) if seconds is None else RETRYING}"
        fields: dict[str, Any] = {"error": describe(error), **self.plan.labels}
        if seconds is not None:
            log.warning(line, retry_in=round(seconds, 1), **fields)
        elif isinstance(error, Refusal | UserError):
            log.info(line, **fields)
        elif isinstance(error, PayloadError):
            log.error(line, path=error.path, **fields)
        elif self.kind_of(error) is not ErrorKind.OTHER:
            log.error(line, **fields)
        else:
            # Most likely a bug of ours, so the log needs the traceback.
            log.error(line, exc_info=error, **fields)


def _note_of(result: JobOutcome, tries: Tries) -> Note:
    return Note(
        outcome=result.outcome,
        text=result.text,
        tries=tries,
        about=result.about,
        value=result.value,
        stored=result.stored,
    )


def _end_of_try(decision: RunAgain | Failed | None) -> dict[str, Any]:
    """Return the values of `TRIED_ONCE` for a try that ended with `decision`."""
    if isinstance(decision, RunAgain):
        return {"status": Status.TODO.value, "wait": decision.seconds, "priority": decision.priority}
    status = Status.FAILED if decision else Status.SUCCEEDED
    return {"status": status.value, "wait": None, "priority": HANDLE_PRIORITY}


def _final(error: Exception) -> str:
    return REFUSED if isinstance(error, Refusal) else FAILED


def describe(error: Exception) -> str:
    """Return the text of an error for operators."""
    text = str(error)
    if isinstance(error, UserError | PayloadError | Refusal):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def id_of(job: Job) -> int:
    """Return the id of a job that is stored."""
    if job.id is None:
        raise ValueError(f"{job.task_name}: a job that was never stored cannot run")
    return job.id


class Tasks:
    """The tasks of one engine, to be registered with Procrastinate."""

    def __init__(
        self,
        store: Store,
        processor: Processor,
        observer: JobObserver,
        guard: Guard,
        new_changes: Callable[[], Changes],
        deliveries: RecentDeliveries,
        check_after: float = CHECK_AFTER,
        first_wait: float = FIRST_WAIT,
    ) -> None:
        self._store = store
        self._guard = guard
        self._new_changes = new_changes
        self._deliveries = deliveries
        self._check_after = check_after
        self._first_wait = first_wait
        self.processor = processor
        self._observer = observer

    async def deliver(
        self, context: JobContext, *, guid: str, event: str, received_at: float, body: str | None = None
    ) -> None:
        """Find the handlers that accept a delivery, and create a job for each; let an only handler plan at once."""
        plan = OnlyPlan()

        async def work() -> JobOutcome | FollowUp:
            delivery_job = id_of(context.job)
            if body is not None:
                # A replica of an older release, which has no inbox, has accepted it.
                await self._store.move_body(delivery_job, context.job.lock, context.job.task_kwargs)
            delivery = await self.delivery(delivery_job, guid)
            if plan.origin is not None:
                # A record that the plan has read was changed meanwhile.
                return await self._plan_at_once(context.job, delivery, plan_job(plan.origin), plan.origin, plan.subject)
            return await self._route(context.job, delivery, delivery_job, 0, plan)

        await self._deliver(context.job, work, guid, event, received_at, id_of(context.job), plan)

    async def replay(
        self, context: JobContext, *, guid: str, replay: int, delivery_job: int, received_at: float
    ) -> None:
        """Route a delivery again that was handled before; applied effects are not repeated."""

        async def work() -> JobOutcome | FollowUp:
            return await self._route(context.job, await self.delivery(delivery_job, guid), delivery_job, replay)

        await self._deliver(context.job, work, guid, "replay", received_at, delivery_job, OnlyPlan())

    async def handle(self, context: JobContext, **args: Any) -> None:
        """Let one handler plan, and store the whole plan."""
        job, origin = _read_origin(context, args)

        async def work() -> JobOutcome | FollowUp:
            return await self._plan_and_store(job, origin)

        async def answer(message: str, interim: bool) -> None:
            await self._answer([origin], message, interim=interim)

        def watch(outcome: str, seconds: float) -> None:
            if origin.message is None:
                self._observer.handler(origin.handler, outcome, seconds)

        labels = {"handler": origin.handler}
        await self._try(job, work, origin.guid, watch, labels, HANDLE_RETRY_PRIORITY, answer=answer)

    async def effect(self, context: JobContext, **args: Any) -> None:
        """Apply one effect."""
        job, origin = _read_origin(context, args)
        kind = str(args["effect"].get("kind", ""))
        # `Attempt` has not begun yet, so an outage of the database must be counted here.
        with self._guard.outliving(id_of(job)):
            writes = await writes_of(self._store.connector, job, self._check_after)

        async def work() -> JobOutcome:
            return await apply_and_heal(writes, lambda: self._apply(origin, args, writes), self.processor.kind_of)

        def watch(outcome: str, seconds: float) -> None:
            self._observer.effect(kind, outcome, seconds)

        labels = {"handler": origin.handler, "target": args["target"]}
        await self._try(job, work, origin.guid, watch, labels, EFFECT_RETRY_PRIORITY, writes=writes)

    async def conclude(self, context: JobContext, **args: Any) -> None:
        """Let the handler of a plan decide what follows, once all effects of the plan have ended."""
        job, origin = _read_origin(context, args)

        async def work() -> JobOutcome | FollowUp:
            return await self._conclude(job, origin, args)

        async def answer(message: str, interim: bool) -> None:
            await self._answer([origin], NOT_CONCLUDED.format(message=message), interim=interim)

        def watch(outcome: str, seconds: float) -> None:
            self._observer.handler(origin.handler, outcome, seconds)

        labels = {"handler": origin.handler}
        await self._try(job, work, origin.guid, watch, labels, CONCLUSION_RETRY_PRIORITY, answer=answer)

    async def resume(
        self, context: JobContext, *, guid: str, delivery_job: int, job_id: int, attempts: int, received_at: float
    ) -> None:
        """Run a job again that failed an hour ago."""

        async def work() -> JobOutcome:
            resumed = await resume(self._store, Journal(self._store.connector), guid, job_id, attempts)
            return JobOutcome(REPLAYED, (RESUMED if resumed else NOT_RESUMED).format(job=job_id))

        await Attempt(
            job=context.job,
            work=work,
            guard=self._guard,
            watch=lambda *_: None,  # it waited on purpose, which says nothing about how fast deliveries are handled
            message=str,
            kind_of=self.processor.kind_of,
            labels={"delivery": guid},
        ).run(self._store.connector)

    async def delivery(self, job_id: int, guid: str) -> Delivery:
        """Read the delivery with the ID of its job and its GUID; raises `UserError` if it is no longer stored."""
        delivery = await self._deliveries.read(self._store.connector, job_id, guid)
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
        plan: OnlyPlan,
    ) -> None:
        async def answer(message: str, interim: bool) -> None:
            delivery = await self._deliveries.read(self._store.connector, delivery_job, guid)
            if delivery is not None:
                handlers = self.processor.answering(delivery)
                await self._answer(_origins(delivery, handlers, delivery_job, 0, job.lock), message, interim=interim)

        def watch(outcome: str, _: float) -> None:
            if plan.origin is None or outcome == IGNORED:
                self._observer.delivery(event, outcome, time.time() - received_at)
            else:
                self._observer.delivery(event, ROUTED, plan.routed_after)
                self._observer.handler(plan.origin.handler, outcome, time.monotonic() - plan.began)

        await self._try(job, work, guid, watch, {"event_name": event}, answer=answer, plan=plan)

    async def _try(
        self,
        job: Job,
        work: Callable[[], Awaitable[JobOutcome | FollowUp]],
        guid: str,
        watch: Callable[[str, float], None],
        labels: Mapping[str, str],
        retry_priority: int | None = None,
        writes: Writes | None = None,
        answer: Callable[[str, bool], Awaitable[None]] = _no_answer,
        plan: OnlyPlan | None = None,
    ) -> None:
        await Attempt(
            job=job,
            work=work,
            guard=self._guard,
            watch=watch,
            message=lambda error: self.processor.message(error, guid),
            kind_of=self.processor.kind_of,
            labels={"delivery": guid, **labels},
            retry_priority=retry_priority,
            writes=writes or Writes(),
            answer=answer,
            first_wait=self._first_wait,
            plan=plan or OnlyPlan(),
        ).run(self._store.connector)

    async def _route(
        self, job: Job, delivery: Delivery, delivery_job: int, replay: int, plan: OnlyPlan | None = None
    ) -> JobOutcome | FollowUp:
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
            return JobOutcome(IGNORED, routing.reason, subject)
        origins = _origins(delivery, routing.handlers, delivery_job, replay, job.lock)
        jobs = [plan_job(origin) for origin in origins]
        # A plan may have crashed the process of an earlier try, so it gets a job of its own then.
        if plan is not None and len(jobs) == 1 and not job.attempts and not await self._is_known(origins[0], jobs[0]):
            plan.origin, plan.subject = origins[0], subject
            plan.began, plan.routed_after = time.monotonic(), time.time() - delivery.received_at
            return await self._plan_at_once(job, delivery, jobs[0], origins[0], subject)
        # On a second try, existing jobs may be those of a first try by an earlier release.
        return FollowUp(partial(_routed, origins, subject, is_again=bool(job.attempts)), jobs)

    async def _is_known(self, origin: Origin, job: NewJob) -> bool:
        """Return whether the job of the plan exists, because another delivery has reported the event first.

        If the key of an event is the GUID, no other delivery reports it.
        """
        return not origin.intent.startswith(OWN_INTENT) and await self._store.is_stored(job)

    async def _plan_at_once(
        self, job: Job, delivery: Delivery, plan: NewJob, origin: Origin, subject: Mapping[str, Any]
    ) -> FollowUp:
        """Make the only plan of a delivery; its job becomes `plan`."""
        with structlog.contextvars.bound_contextvars(handler=origin.handler):
            planned = await self._plan(delivery, origin)
        return replace(await self._follow_up(job, origin, delivery, planned, subject), plan=plan)

    async def _plan_and_store(self, job: Job, origin: Origin) -> JobOutcome | FollowUp:
        if job.attempts and await self._store.is_planned(origin.guid, id_of(job)):
            # An earlier release has stored the plan and did not end the job. A second plan would see the changes that
            # the first plan's effects may have made already.
            return JobOutcome(PLANNED, PLANNED_BEFORE)
        delivery = await self.delivery(origin.delivery_job, origin.guid)
        return await self._follow_up(job, origin, delivery, await self._plan(delivery, origin), {})

    async def _follow_up(
        self, job: Job, origin: Origin, delivery: Delivery, planned: PlannedEffects, subject: Mapping[str, Any]
    ) -> FollowUp:
        planned, stored, changes = await self._with_changes(origin, planned)
        has_jobs = planned.effects or planned.conclusion_basis is not None
        jobs = effect_jobs(origin, id_of(job), delivery.repository, planned) if has_jobs else []
        outcome = JobOutcome(PLANNED, planned.why, subject, stored=stored)
        is_again = bool(origin.replay) or origin.message is not None
        return FollowUp(outcome, jobs, changes, again=is_again)

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
                outcome = APPLIED if applied.changed else UNCHANGED
                stored.append(StoredPart(place, effect.target, effect.effect, outcome, applied.text))
                changes.after_commit.append(partial(self._observer.effect, effect.kind, outcome, 0.0))
        return replace(planned, effects=tuple(with_job)), tuple(stored), changes

    async def _conclude(self, job: Job, origin: Origin, args: dict[str, Any]) -> JobOutcome | FollowUp:
        number = int(args["conclusion"])
        if job.attempts and await self._store.is_planned(origin.guid, id_of(job), number):
            return JobOutcome(CONCLUDED, PLANNED_BEFORE)
        ended = await self._store.ended(origin, effects_read_first())
        if isinstance(ended, Unfinished):
            # From now on the conclusion waits behind the effects' retries.
            raise RunAgain(0, min(CONCLUSION_RETRY_PRIORITY, ended.priority - 1))
        effects, is_answered = ended
        delivery = await self.delivery(origin.delivery_job, origin.guid)
        conclusion = ConclusionJob(
            origin.handler, origin.intent, args["conclusion_basis"], effects, again=is_answered or number > 1
        )
        planned = await self.processor.conclude(delivery, conclusion)
        planned, stored, changes = await self._with_changes(replace(origin, replay=0), planned)
        jobs = conclusion_jobs(origin, id_of(job), number, delivery.repository, planned)
        outcome = JobOutcome(CONCLUDED, planned.why, stored=stored)
        return FollowUp(outcome, jobs, changes)

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


def effects_read_first() -> Sequence[Mapping[str, Any]] | None:
    """Return, once, the effects that the statement that began this conclusion has read, unless it had to wait since."""
    if (job := JOB_RECORDS.get()) is None:
        return None
    effects, job.effects = job.effects, None
    return effects if time.monotonic() - job.read_at < FRESH else None


def _read_origin(context: JobContext, args: Mapping[str, Any]) -> tuple[Job, Origin]:
    """Return the job that runs, and the origin that its arguments and its lock name."""
    return context.job, Origin.read(args, context.job.lock)


def _origins(
    delivery: Delivery, handlers: Sequence[str], delivery_job: int, replay: int, lock: str | None
) -> list[Origin]:
    intent = intent_key(delivery)
    return [
        Origin(delivery.guid, handler, intent, delivery_job, delivery.received_at, replay, lock) for handler in handlers
    ]


def _routed(
    origins: Sequence[Origin], subject: Mapping[str, Any], deferred: Sequence[Deferred], *, is_again: bool = False
) -> JobOutcome:
    """Return the outcome of a delivery with the jobs of its plans: other deliveries may have had them before.

    With `is_again`, those may also come from an earlier try.
    """
    handlers = [origin.handler for origin, plan in zip(origins, deferred, strict=True) if plan.new or is_again]
    texts = [FOR_HANDLERS.format(handlers=", ".join(handlers))] if handlers else []
    if len(handlers) < len(origins):
        texts.append(ALREADY_HANDLED.format(intent=origins[0].intent))
    return JobOutcome(ROUTED if handlers else IGNORED, "; ".join(texts), subject)


def _outcome(applied: AppliedEffect) -> JobOutcome:
    outcome = APPLIED if applied.changed else UNCHANGED
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
    if check_again := writes.check_for_twins(partial(asdict, outcome)):
        raise check_again
    return outcome


def fail_unreadable(name: str, task: Task, connector: Connector, observer: JobObserver) -> Task:
    """Wrap a task so that the job fails if reading it raises; `Attempt` handles the errors of its work.

    Otherwise the jobs under its lock would wait for ever. Such a job is damaged, or another version wrote it. Its note
    stays unchanged, because it may list sent writes. The job runs again after a quiet hour, when a version that can
    read it may be running.
    """

    async def run(context: JobContext, **args: Any) -> None:
        try:
            await task(context, **args)
        except (RunAgain, Failed, DatabaseFailure):
            raise
        except Exception as error:
            # A note that cannot be read names the reason; anything else needs the traceback.
            trace = None if isinstance(error, UnreadableNote) else error
            labels = {"job": context.job.id, "task": name, "delivery": args.get("guid")}
            log.error(UNREADABLE, error=describe(error), exc_info=trace, **labels)  # noqa: TRY400
            _count(observer, name, args)
            await _note_reason(connector, context.job, error)
            await resume_later(connector, context.job)
            raise Failed from error

    return run


def _count(observer: JobObserver, task: str, args: Mapping[str, Any]) -> None:
    """Report the failure to the observer, as `Attempt` would."""
    match task:
        case definitions.HANDLE | definitions.CONCLUDE:
            observer.handler(str(args.get("handler", "")), FAILED, 0.0)
        case definitions.EFFECT:
            effect = args.get("effect")
            observer.effect(str(effect.get("kind", "")) if isinstance(effect, dict) else "", FAILED, 0.0)
        case definitions.DELIVER:
            observer.delivery(str(args.get("event", "")), FAILED, 0.0)


async def _note_reason(connector: Connector, job: Job, error: Exception) -> None:
    """Leave the reason in the job's note, unless the note itself cannot be read: `Note.shown` then says so."""
    try:
        note = await read_note(connector, id_of(job))
    except UnreadableNote:
        return
    text = UNREADABLE_JOB.format(error=describe(error))
    leave_note(job, note.failed(text))
