"""`/operate`: deliveries and their outcomes; `/operate/deliveries/{guid}`: each step of one delivery."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from bot.engine.jobs.journal import FAILED, PlanStage
from bot.engine.upkeep import DONE_DAYS, FAILED_DAYS
from bot.github.addresses import NO_PAGE, stored_page
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.openapi import Parameter
from bot.web.page_routes import Page, PageRequest
from bot.web.texts import page_words
from handlers.operate.attention import MOST_FAILURES, OperatorMatter, attention_of, operator_answer
from handlers.operate.records import replays_asked
from handlers.operate.search import MOST_READ, SHOWN, DeliverySearch, find_deliveries
from handlers.operate.state import read_facts

if TYPE_CHECKING:
    from bot.engine.jobs.journal import DeliveryRecord, JobState
    from handlers.operate.wiring import OperateParts

LONGEST_REASON, LONGEST_STEP = 300, 4_000
MOST_STEPS = 300
"""The most steps of a delivery that a page shows; the page counts the rest."""
State = Literal["", "failed", "working", "waiting", "refused", "done", "ignored"]
GUID_PART = Parameter("guid", "The delivery's GUID.", {"type": "string"})


class DeliveriesQuery(BaseModel, extra="forbid"):
    """The filters of the list of deliveries."""

    repo: str = Field(default="", max_length=201, description="Only of this repository, as OWNER/NAME.")
    pr: int | None = Field(default=None, ge=1, le=2**31 - 1, description="Only of this pull request or issue.")
    event: str = Field(default="", max_length=100, description="Only this event, with or without its action.")
    state: State = Field(default="", description="Only those in this state.")
    q: str = Field(default="", max_length=200, description="Only those with this text in a GUID, a name or a reason.")
    all: bool = Field(default=False, description="Also list ignored deliveries.")
    before: int | None = Field(
        default=None,
        ge=1,
        le=2**62,
        description="Only deliveries before this; the value of `older` on the previous page.",
    )


class OperateDelivery(BaseModel, extra="forbid"):
    """A delivery in the list."""

    guid: str
    event: str
    repository: str
    number: int | None
    received_at: datetime
    state: str = Field(description="waiting, working, done, ignored, refused or failed.")
    reason: str
    replays: int


class OperatePage(BaseModel, extra="forbid"):
    """What needs a person, then deliveries that match, newest first."""

    answer: list[AnswerPart]
    attention: list[OperatorMatter] = Field(description="What needs a person, the most urgent first.")
    deliveries: list[OperateDelivery]
    older: int | None = Field(description="The `before` of the next page; null on the last one.")
    failed: bool = Field(description="Whether any stored delivery has failed.")
    done_days: int = Field(description="How long deliveries are stored.")
    failed_days: int = Field(description="How long those with failures are stored.")


class OperateStep(BaseModel, extra="forbid"):
    """One job of a delivery: the delivery itself (depth 0), a plan (1), or an effect (2)."""

    depth: int
    name: str
    state: str
    outcome: str
    text: str
    attempts: int
    at: datetime | None
    next_try: datetime | None
    url: str = Field(description="Where GitHub shows the result; empty if it has no page, or if that is not stored.")
    link: str = Field(description="What the address leads to, in words.")


class ShownReplay(BaseModel, extra="forbid"):
    """Who asked for a replay on this page, and when."""

    person: int = Field(description="The person's ID on GitHub.")
    login: str
    at: datetime


class OperateDeliveryPage(BaseModel, extra="forbid"):
    """A delivery with each of its steps."""

    delivery: OperateDelivery
    lock: str
    steps: list[OperateStep]
    more: int = Field(description="Number of steps that are not listed.")
    replayable: bool = Field(
        description="Whether the delivery can be replayed: a step failed, or all steps have ended."
    )
    asked: list[ShownReplay]


def deliveries_page(parts: OperateParts) -> Page:
    """Return the page with the list of deliveries."""

    async def load(request: PageRequest) -> OperatePage:
        query: DeliveriesQuery = request.query
        search = DeliverySearch(query.repo, query.pr, query.event, query.state, query.q, query.all)
        most = MOST_READ if request.as_csv else SHOWN
        page = await find_deliveries(parts.journal, parts.records, search, query.before, most)
        failed, _ = await parts.journal.failures(MOST_FAILURES)
        matters = [] if request.as_csv else attention_of(await read_facts(parts, failed))
        return OperatePage(
            answer=operator_answer(matters),
            attention=matters,
            deliveries=[_row(parts, record) for record in page.records],
            older=page.older,
            failed=bool(failed),
            done_days=round(DONE_DAYS),
            failed_days=round(FAILED_DAYS),
        )

    return Page(
        path="/operate",
        api_path="/api/v1/operate",
        summary="Deliveries, for operators",
        template="operate.html",
        model=OperatePage,
        query=DeliveriesQuery,
        load=load,
        table=_table,
        most_csv_rows=MOST_READ,
    )


def delivery_page(parts: OperateParts) -> Page:
    """Return the page of one delivery."""

    async def load(request: PageRequest) -> OperateDeliveryPage:
        return await read_delivery(parts, request.path["guid"])

    return Page(
        path="/operate/deliveries/{guid}",
        api_path="/api/v1/operate/deliveries/{guid}",
        summary="Each step of a delivery, for operators",
        template="operate_delivery.html",
        model=OperateDeliveryPage,
        parts=(GUID_PART,),
        load=load,
    )


async def read_delivery(parts: OperateParts, guid: str) -> OperateDeliveryPage:
    """Return a delivery as its page shows it; raise LookupError if none has this GUID."""
    record = await parts.journal.delivery(guid)
    if record is None:
        raise LookupError(guid)
    steps = list(_steps(parts, record))
    return OperateDeliveryPage(
        delivery=_row(parts, record),
        lock=record.lock or "",
        steps=steps[:MOST_STEPS],
        more=len(steps[MOST_STEPS:]),
        replayable=record.settled or any(job.state == FAILED for job in record.jobs),
        asked=[
            ShownReplay(person=replay.person, login=replay.login, at=datetime.fromtimestamp(replay.at, UTC))
            for replay in await replays_asked(parts.records, guid)
        ],
    )


def _row(parts: OperateParts, record: DeliveryRecord) -> OperateDelivery:
    return OperateDelivery(
        guid=record.guid,
        event=f"{record.event}.{record.action}" if record.action else record.event,
        repository=record.repository,
        number=record.number,
        received_at=datetime.fromtimestamp(record.received_at, UTC),
        state=record.state,
        reason=parts.shown(record.reason, LONGEST_REASON),
        replays=len(record.replays),
    )


def _table(page: OperatePage) -> CsvTable:
    columns = tuple(OperateDelivery.model_fields)
    return CsvTable.of(columns, page.deliveries)


def _steps(parts: OperateParts, record: DeliveryRecord) -> Iterator[OperateStep]:
    yield _step(parts, 0, "delivery", record.job)
    for number, job in enumerate(record.replays, start=1):
        yield _step(parts, 0, f"replay {number}", job)
    for plan in record.plans:
        stage = "" if plan.stage is PlanStage.PLAN else f"{plan.stage} of "
        yield _step(parts, 1, f"{stage}{plan.handler}", plan.job)
        for effect in plan.effects:
            page = stored_page(effect.page) if record.repository else NO_PAGE
            url = f"{parts.github}/{record.repository}/{page}" if page else ""
            yield _step(parts, 2, f"{effect.kind} {effect.target}", effect.job, url, page_words(page))


def _step(parts: OperateParts, depth: int, name: str, job: JobState, url: str = "", link: str = "") -> OperateStep:
    return OperateStep(
        depth=depth,
        name=parts.shown(name, LONGEST_REASON),
        state=job.state,
        outcome=job.outcome,
        text=parts.shown(job.text, LONGEST_STEP),
        attempts=job.attempts,
        at=datetime.fromtimestamp(job.at, UTC) if job.at is not None else None,
        next_try=datetime.fromtimestamp(job.next_try, UTC) if job.next_try is not None else None,
        url=url,
        link=link,
    )
