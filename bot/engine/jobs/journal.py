"""Read deliveries, and the plans and effects that followed, from the inbox, the jobs and their notes.

It only reads, with two queries a page, and works beside a running server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, LiteralString

from bot.core.events import Delivery, Payload, subject_of
from bot.core.utc import iso_utc_or_none
from bot.engine.jobs.definitions import CONCLUDE, DELIVER, EFFECT, HANDLE, REPLAY
from bot.engine.jobs.inbox import unpacked
from bot.engine.jobs.notes import FOR_HANDLERS, IGNORED, REFUSED, ROUTED, UNKNOWN_END, Note, StoredPart
from bot.engine.sql.transactions import Connector

WAITING, WORKING, DONE, FAILED = "waiting", "working", "done", "failed"
STATES = (DONE, IGNORED, REFUSED, WAITING, WORKING, FAILED)
"""The states of a delivery: that of its job with the highest place."""
PAGE = 50
ROWS_READ = 500
"""Deliveries that one query reads while searching for matches of a filter."""
MOMENTS = ("at", "next_try", "received_at")
"""Fields that are moments, in seconds since 1970."""

_DELIVERIES: LiteralString = """
SELECT delivery.id, 'deliver' AS task_name, coalesce(CAST(job.status AS text), 'succeeded') AS status, delivery.lock,
       coalesce(job.attempts, 0) AS attempts, job.scheduled_at, delivery.guid, delivery.event, delivery.received_at,
       coalesce(note.outcome, CASE WHEN delivery.note IS NOT NULL THEN 'ignored' END) AS outcome,
       coalesce(note.text, delivery.note) AS note,
       coalesce(note.at, CASE WHEN delivery.note IS NOT NULL THEN delivery.received_at END) AS at,
       CASE WHEN job.status = 'doing' AND note.job_id IS NULL THEN delivery.body END AS body
  FROM nightjar_inbox AS delivery LEFT JOIN procrastinate_jobs AS job ON job.id = delivery.id
       LEFT JOIN nightjar_notes AS note ON note.job_id = delivery.id
"""
RECENT: LiteralString = _DELIVERIES + " WHERE delivery.id < %(before)s ORDER BY delivery.id DESC LIMIT %(limit)s"
# A delivery has failed if one of its jobs has. Few jobs fail, so the query starts from the index of failed jobs. The
# plus keeps both databases from reading all deliveries below an ID instead (https://sqlite.org/optoverview.html).
_HAS_FAILED: LiteralString = """
 WHERE delivery.guid IN (SELECT args ->> 'guid' FROM procrastinate_jobs WHERE status = 'failed')
   AND +delivery.id < %(before)s ORDER BY delivery.id DESC LIMIT %(limit)s
"""
RECENT_FAILED: LiteralString = _DELIVERIES + _HAS_FAILED
# `status = 'failed'` is the condition of the index `nightjar_failed`, which finds failed jobs without the others.
NOTHING_TO_DO = "there was nothing to do"
FAILED_JOBS: LiteralString = """
SELECT id, args ->> 'guid' AS guid FROM procrastinate_jobs
 WHERE status = 'failed' AND id < %(before)s ORDER BY id DESC LIMIT %(limit)s
"""
OF_LOCK: LiteralString = _DELIVERIES + (
    " WHERE delivery.lock = %(lock)s AND delivery.id < %(before)s ORDER BY delivery.id DESC LIMIT %(limit)s"
)
OF_LOCK_ACCEPTED: LiteralString = _DELIVERIES + (
    " WHERE delivery.lock = %(lock)s AND delivery.id < %(before)s AND delivery.note IS NULL"
    " ORDER BY delivery.id DESC LIMIT %(limit)s"
)
DELIVERY_BY_GUID: LiteralString = f"{_DELIVERIES} WHERE delivery.guid = %(guid)s"
DELIVERIES_BY_GUID: LiteralString = f"{_DELIVERIES} WHERE delivery.guid = ANY(%(guids)s)"
DERIVED: LiteralString = """
SELECT job.id, job.task_name, job.status, job.attempts, job.scheduled_at, job.args,
       note.outcome, note.text AS note, note.at
  FROM procrastinate_jobs AS job LEFT JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.task_name <> 'deliver' AND (job.args ->> 'guid') = ANY(%(guids)s)
 ORDER BY job.id
"""
# `max` of the places in `STATES` is what `DeliveryRecord.state` computes from all jobs.
STATES_BY_GUID: LiteralString = """
SELECT guid, max(CASE WHEN status = 'todo' THEN 3 WHEN status = 'doing' THEN 4
                      WHEN status NOT IN ('succeeded', 'cancelled') THEN 5 WHEN outcome = 'refused' THEN 2
                      WHEN task_name = 'deliver' AND outcome = 'ignored' THEN 1 ELSE 0 END) AS place
  FROM (SELECT delivery.guid, 'deliver' AS task_name, coalesce(CAST(job.status AS text), 'succeeded') AS status,
               coalesce(note.outcome, CASE WHEN delivery.note IS NOT NULL THEN 'ignored' END) AS outcome
          FROM nightjar_inbox AS delivery LEFT JOIN procrastinate_jobs AS job ON job.id = delivery.id
               LEFT JOIN nightjar_notes AS note ON note.job_id = delivery.id
         WHERE delivery.guid = ANY(%(guids)s)
         UNION ALL
        SELECT job.args ->> 'guid', job.task_name, CAST(job.status AS text), note.outcome
          FROM procrastinate_jobs AS job LEFT JOIN nightjar_notes AS note ON note.job_id = job.id
         WHERE job.task_name <> 'deliver' AND (job.args ->> 'guid') = ANY(%(guids)s) AND job.task_name <> 'resume'
       ) AS jobs
 GROUP BY guid HAVING count(*) FILTER (WHERE task_name = 'deliver') > 0
"""
STORED_GUIDS: LiteralString = "SELECT guid FROM nightjar_inbox WHERE guid = ANY(%(guids)s)"
BODY: LiteralString = "SELECT body FROM nightjar_inbox WHERE guid = %(guid)s"
NO_LIMIT = 2**62  # above every id; both databases have 64 bits


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of one job; moments are seconds since 1970.

    `state` is waiting, working, done, ignored, refused or failed, since the moment `at`. `text` is for operators;
    `message` tells people why the job failed, and is empty if it did not fail.
    """

    job_id: int
    state: str
    outcome: str
    text: str
    attempts: int
    next_try: float | None
    at: float | None
    message: str = ""

    @property
    def settled(self) -> bool:
        """Whether the job has ended."""
        return self.state not in (WAITING, WORKING)


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """One effect; `effect` is its data as JSON. An effect that was stored together with its plan has the plan's job."""

    job: JobState
    kind: str
    target: str
    effect: Mapping[str, Any]
    page: str
    """Where GitHub shows the result, below the repository's page; empty if unknown."""


class PlanStage(StrEnum):
    """Which decision of a handler a plan is."""

    PLAN = "plan"
    ANSWER = "answer"
    """The answer to people after the plan has failed."""
    CONCLUSION = "conclusion"
    """The decision that follows from the outcomes of the plan's effects."""


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The decision of one handler about a delivery."""

    job: JobState
    handler: str
    intent: str
    replay: int
    stage: PlanStage
    effects: tuple[EffectRecord, ...]
    basis: Mapping[str, Any] = field(default_factory=dict)
    """What a conclusion decides by, as its job stores it; empty for any other plan."""


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """One delivery with all its jobs. Fields that are not known (yet) are empty, or None."""

    job: JobState
    guid: str
    event: str
    action: str
    repository: str
    number: int | None
    received_at: float
    lock: str | None
    replays: tuple[JobState, ...]
    plans: tuple[PlanRecord, ...]

    @property
    def jobs(self) -> list[JobState]:
        """The delivery's own job and all jobs that follow from it, each once."""
        derived = [job for plan in self.plans for job in (plan.job, *(effect.job for effect in plan.effects))]
        # The job of a delivery may be that of its only plan, which says more; effects may be stored with their plan.
        own = next((plan.job for plan in self.plans if plan.job.job_id == self.job.job_id), self.job)
        jobs: dict[int, JobState] = {}
        for job in (own, *self.replays, *derived):
            jobs.setdefault(job.job_id, job)
        return list(jobs.values())

    @property
    def settled(self) -> bool:
        """Whether all jobs have ended."""
        return all(job.settled for job in self.jobs)

    @property
    def reason(self) -> str:
        """The reason of its state: errors and refusals, else the reasons of the plans, else the texts of the effects.

        For a delivery that no handler accepted: why.
        """
        failed = [job.text for job in self.jobs if job.state in (FAILED, REFUSED)]
        planned = [plan.job.text for plan in self.plans]
        written = [effect.job.text for plan in self.plans for effect in plan.effects]
        for texts in (failed, planned, written):
            if any(texts):
                return "; ".join(dict.fromkeys(filter(None, texts)))
        # The text of a routed delivery has only the names of handlers.
        return self.job.text if self.job.outcome != ROUTED else NOTHING_TO_DO if self.settled else ""

    @property
    def state(self) -> str:
        """The state of the delivery: failed if any job failed, else working, waiting, refused, ignored, or done."""
        states = {job.state for job in self.jobs}
        for state in (FAILED, WORKING, WAITING, REFUSED):
            if state in states:
                return state
        return self.job.state

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON values, with moments as text in UTC."""
        return {"state": self.state, **asdict(self, dict_factory=_with_text_moments)}


def _with_text_moments(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: iso_utc_or_none(value) if name in MOMENTS else value for name, value in fields}


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """The deliveries to list. Empty fields match all; `ignored`: include deliveries that no handler accepted.

    `event` is an event, or an event with its action: `issue_comment.created`.
    """

    failed: bool = False
    repository: str = ""
    number: int | None = None
    event: str = ""
    ignored: bool = False

    def accepts(self, row: Mapping[str, Any]) -> bool:
        """Return whether a delivery's row matches, except for `failed`, which the query selects."""
        note = Note.shown(row["outcome"], row["note"])
        subject = _subject(row, note)
        return (
            self.repository.lower() in ("", subject.get("repository", "").lower())
            and self.number in (None, subject.get("number"))
            and self.event in ("", row["event"], f"{row['event']}.{subject.get('action', '')}")
            and (self.ignored or note.outcome != IGNORED)
        )


class Journal:
    """The deliveries of one database."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector

    async def recent(
        self, limit: int = PAGE, before_id: int | None = None, *, failed: bool = False
    ) -> list[DeliveryRecord]:
        """Return deliveries, newest first; `before_id` is the `job.job_id` of the last one of the previous page."""
        rows = await self._connector.execute_query_all_async(
            RECENT_FAILED if failed else RECENT, before=NO_LIMIT if before_id is None else before_id, limit=limit
        )
        return await self._records(rows)

    async def failures(self, limit: int, before_id: int | None = None) -> tuple[list[DeliveryRecord], int | None]:
        """Return deliveries with failures, each once, by their last failure, newest first.

        Reads at most `limit` failures, of jobs with smaller IDs than `before_id`. Also returns the `before_id` of the
        next page; None if this is the last.
        """
        end_id = NO_LIMIT if before_id is None else before_id
        rows = await self._connector.execute_query_all_async(FAILED_JOBS, before=end_id, limit=limit)
        guids = list(dict.fromkeys(row["guid"] for row in rows if row["guid"] is not None))
        records = await self.deliveries(guids)
        failed = [records[guid] for guid in guids if guid in records]
        # A delivery that failed again later is on an earlier page.
        first_time = [
            record for record in failed if all(job.job_id < end_id for job in record.jobs if job.state == FAILED)
        ]
        return first_time, rows[-1]["id"] if len(rows) == limit else None

    async def matching(self, limit: int, delivery_filter: DeliveryFilter) -> list[DeliveryRecord]:
        """Return at most `limit` deliveries that a filter accepts, newest first."""
        query, before_id = RECENT_FAILED if delivery_filter.failed else RECENT, NO_LIMIT
        matches: list[Mapping[str, Any]] = []
        while len(matches) < limit and (
            rows := await self._connector.execute_query_all_async(query, before=before_id, limit=ROWS_READ)
        ):
            matches += [row for row in rows if delivery_filter.accepts(row)]
            before_id = rows[-1]["id"]
        return await self._records(matches[:limit])

    async def of_lock(self, lock: str, limit: int = PAGE, before_id: int | None = None) -> list[DeliveryRecord]:
        """Return the deliveries of a lock, as of one pull request (`bot.core.events.lock_key`), newest first."""
        return await self.of_locks([lock], limit, before_id)

    async def of_locks(
        self, locks: Iterable[str], limit: int = PAGE, before_id: int | None = None, *, accepted: Iterable[str] = ()
    ) -> list[DeliveryRecord]:
        """Return the newest `limit` deliveries of several locks, newest first.

        Of the locks in `accepted`, only those that a handler could accept: most events about a commit are ignored.
        """
        end_id = NO_LIMIT if before_id is None else before_id
        queries = [*((OF_LOCK, lock) for lock in locks), *((OF_LOCK_ACCEPTED, lock) for lock in accepted)]
        # One statement per lock: for several locks, no index has the order.
        rows = [
            row
            for query, lock in queries
            for row in await self._connector.execute_query_all_async(query, lock=lock, before=end_id, limit=limit)
        ]
        return await self._records(sorted(rows, key=lambda row: row["id"], reverse=True)[:limit])

    async def delivery(self, guid: str) -> DeliveryRecord | None:
        """Return the delivery of a GUID, or None."""
        records = await self._records(await self._connector.execute_query_all_async(DELIVERY_BY_GUID, guid=guid))
        return records[0] if records else None

    async def deliveries(self, guids: Sequence[str]) -> dict[str, DeliveryRecord]:
        """Return the deliveries that are still stored, by GUID."""
        rows = await self._connector.execute_query_all_async(DELIVERIES_BY_GUID, guids=list(guids)) if guids else []
        return {record.guid: record for record in await self._records(rows)}

    async def states(self, guids: Sequence[str]) -> dict[str, str]:
        """Return the states (`DeliveryRecord.state`) of the deliveries that are still stored, by GUID.

        It reads no arguments and no notes, so it costs a tenth of `deliveries`.
        """
        rows = await self._connector.execute_query_all_async(STATES_BY_GUID, guids=list(guids)) if guids else []
        return {row["guid"]: STATES[row["place"]] for row in rows}

    async def payload(self, guid: str) -> Payload | None:
        """Return the payload of the delivery of a GUID, or None."""
        rows = await self._connector.execute_query_all_async(BODY, guid=guid)
        return Payload(unpacked(rows[0]["body"])) if rows else None

    async def known_guids(self, guids: Sequence[str]) -> set[str]:
        """Return the GUIDs whose deliveries are stored, with one query."""
        rows = await self._connector.execute_query_all_async(STORED_GUIDS, guids=list(guids))
        return {row["guid"] for row in rows}

    async def _records(self, rows: Sequence[Mapping[str, Any]]) -> list[DeliveryRecord]:
        if not rows:
            return []
        derived = await self._connector.execute_query_all_async(DERIVED, guids=[row["guid"] for row in rows])
        by_guid = defaultdict(list)
        for row in derived:
            by_guid[row["args"]["guid"]].append(row)
        return [_delivery(row, by_guid[row["guid"]]) for row in rows]


def _delivery(row: Mapping[str, Any], derived: Sequence[Mapping[str, Any]]) -> DeliveryRecord:
    note, plans = Note.shown(row["outcome"], row["note"]), tuple(_plans(derived))
    job, subject = _job(row, note), _subject(row, note)
    for plan in plans:
        if plan.job.job_id == job.job_id:
            # Its only plan was made in the delivery's own job, whose row was read again with those of other jobs.
            job = replace(plan.job, outcome=ROUTED, text=FOR_HANDLERS.format(handlers=plan.handler))
    return DeliveryRecord(
        job=job,
        guid=row["guid"],
        event=row["event"],
        action=subject.get("action", ""),
        repository=subject.get("repository", ""),
        number=subject.get("number"),
        received_at=row["received_at"],
        lock=row["lock"],
        replays=tuple(_job(job_row) for job_row in derived if job_row["task_name"] == REPLAY),
        plans=plans,
    )


def _subject(row: Mapping[str, Any], note: Note) -> Mapping[str, Any]:
    """Return action, repository and number of a delivery; of one that is being handled, they are only in its body."""
    if row["body"] is None:
        return note.about
    return subject_of(Delivery(row["guid"], row["event"], Payload(unpacked(row["body"])), row["received_at"]))


def _plans(derived: Sequence[Mapping[str, Any]]) -> Iterable[PlanRecord]:
    # Arguments may be damaged, or in the form of another version: such a job must be listed nonetheless.
    plans = {row["id"] for row in derived if row["task_name"] in (HANDLE, CONCLUDE)}
    effects = defaultdict(list)
    for row in derived:
        if row["task_name"] == EFFECT and (plan := row["args"].get("plan_job")) in plans:
            effects[plan].append(_effect(row))
    for row in derived:
        args, is_plan = row["args"], row["id"] in plans
        if is_plan and args.get("message") is not None and not effects[row["id"]] and row["status"] == "succeeded":
            continue  # nobody had to be informed of the failure
        if is_plan or (row["task_name"] == EFFECT and args.get("plan_job") not in plans):
            job = _job(row)
            planned = effects[row["id"]]
            for part in Note.shown(row["outcome"], row["note"]).stored:
                planned.insert(part.place, _stored_effect(part, job))
            yield PlanRecord(
                job=job,
                handler=str(args.get("handler", "")),
                intent=str(args.get("intent", "")),
                replay=args.get("replay", 0),
                stage=_stage(row["task_name"], args),
                effects=tuple(planned),
                basis=_basis(args),
            )


def _basis(args: Mapping[str, Any]) -> Mapping[str, Any]:
    stored = args.get("conclusion_basis")
    basis = stored.get("basis") if isinstance(stored, dict) else None
    return basis if isinstance(basis, dict) else {}


def _stage(task: str, args: Mapping[str, Any]) -> PlanStage:
    if task == CONCLUDE:
        return PlanStage.CONCLUSION
    return PlanStage.PLAN if args.get("message") is None else PlanStage.ANSWER


def _effect(row: Mapping[str, Any]) -> EffectRecord:
    args, note = row["args"], Note.shown(row["outcome"], row["note"])
    effect = args.get("effect")
    effect = effect if isinstance(effect, dict) else {}
    return EffectRecord(
        job=_job(row, note),
        kind=str(effect.get("kind", "")),
        target=str(args.get("target", "")),
        effect=effect,
        page=note.about.get("page", ""),
    )


def _stored_effect(part: StoredPart, job: JobState) -> EffectRecord:
    kind = str(part.effect.get("kind", ""))
    return EffectRecord(replace(job, outcome=part.outcome, text=part.text), kind, part.target, part.effect, "")


def _job(row: Mapping[str, Any], note: Note | None = None) -> JobState:
    note = note or Note.shown(row["outcome"], row["note"])
    scheduled_at = row["scheduled_at"] if row["status"] == "todo" else None
    state = _state(row["status"], row["task_name"], note)
    return JobState(
        job_id=row["id"],
        state=state,
        outcome=note.outcome,
        text=note.text or (UNKNOWN_END if state == FAILED else ""),
        attempts=row["attempts"],
        next_try=scheduled_at.timestamp() if scheduled_at else None,
        at=row["at"],
        message=note.message,
    )


def _state(status: str, task: str, note: Note) -> str:
    if status == "todo":
        return WAITING
    if status == "doing":
        return WORKING
    if status in ("succeeded", "cancelled"):
        # A cancelled job gave way to a newer one; see `bot.engine.worker.repeat`.
        if note.outcome == REFUSED:
            return REFUSED
        return IGNORED if task == DELIVER and note.outcome == IGNORED else DONE
    return FAILED
