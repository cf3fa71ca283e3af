"""`/r/{owner}/{repo}/pulls/{n}`: everything that the bot did for a pull request, and why."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from bot.core.events import locks_of
from bot.core.patterns import Pattern
from bot.effects.section_state import SECTION
from bot.engine.upkeep import DONE_DAYS, FAILED_DAYS
from bot.github.pull_heads import head_of, repository_id_of
from bot.web.help import ListedCommand
from bot.web.openapi import Parameter
from bot.web.page_routes import Page, PageRequest
from bot.web.problems import Problem
from handlers.dashboard import texts
from handlers.dashboard.story import DeliveryStory, StoryTeller
from handlers.dashboard.wiring import DashboardParts
from handlers.merge.pending import pending_merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.engine.jobs.journal import DeliveryRecord, Journal
    from handlers.merge.records import PendingMerge

DELIVERIES = 50
"""Deliveries on one page; those that needed no action count too, although the page hides them."""
LARGEST_NUMBER = 2**31 - 1
NUMBER_PART = Parameter("n", "The pull request's number.", {"type": "integer", "minimum": 1, "maximum": LARGEST_NUMBER})
_NUMBER = Pattern(r"[1-9][0-9]{0,9}")
MERGE_HANDLERS = ("merge-when-green", "merge")
"""The handlers whose plans say what a pending merge waits for."""


class PullQuery(BaseModel, extra="forbid"):
    """The part of the story to show."""

    before: int | None = Field(
        default=None,
        ge=1,
        le=2**62,
        description="Only deliveries before this; the value of `older` on the previous page.",
    )
    all: bool = Field(default=False, description="Also list deliveries that needed no action.")


class KnownHead(BaseModel, extra="forbid"):
    """The head of a pull request, as the newest webhook names it."""

    sha: str
    base: str
    is_open: bool


class WaitingMerge(BaseModel, extra="forbid"):
    """A pending merge of the pull request."""

    sha: str
    base: str
    by: str
    url: str = Field(description="The comment in which they asked.")
    asked_at: datetime | None
    queued: bool = Field(description="Whether it is in GitHub's merge queue.")
    why: str = Field(description="What the bot found at its last attempt; empty if that is not stored.")


class StickySection(BaseModel, extra="forbid"):
    """A section of the bot's comment that is about a commit."""

    section: str
    sha: str = Field(description="The commit that it is about.")
    at: datetime = Field(description="When it was computed.")
    out_of_date: bool = Field(description="Whether the head is another commit by now.")


class PullPage(BaseModel, extra="forbid"):
    """The story of a pull request: what came in, newest first, and what the bot did about it."""

    number: int
    github: str = Field(description="The repository's page on GitHub.")
    head: KnownHead | None
    merge: WaitingMerge | None
    sections: list[StickySection] = Field(description="What the bot's comment says about commits now.")
    commands: list[ListedCommand] = Field(description="The commands that people can give there, and who may use each.")
    deliveries: list[DeliveryStory]
    ignored: int = Field(description="Deliveries on this page that needed no action; `all` lists them.")
    older: int | None = Field(description="The `before` of the next page; null on the last one.")
    done_days: int = Field(description="How long deliveries are stored.")
    failed_days: int = Field(description="How long those with failures are stored.")


def pull_page(parts: DashboardParts) -> Page:
    """Return the page about one pull request."""

    async def load(request: PageRequest) -> PullPage:
        query, number = request.query, _number(request.path["n"])
        repository_id = await repository_id_of(parts.records, request.repository)
        if parts.config.repository(request.repository) is None or repository_id is None:
            raise LookupError(request.repository)
        head = await head_of(parts.records, repository_id, number)
        records = await _deliveries(parts.journal, repository_id, number, query.before)
        if head is None and not records:
            raise LookupError(str(number))
        pending = await pending_merge(parts.records, repository_id, number)
        github = f"{parts.github}/{request.repository}"
        teller = StoryTeller(parts.redact, github, parts.titles)
        stories = await request.pages.run(lambda: [teller.delivery(record) for record in records])
        _, commands = await parts.list_commands(request.repository) or ("", ())
        listed = [story for story in stories if query.all or story.state != "ignored"]
        return PullPage(
            number=number,
            github=github,
            head=KnownHead(sha=head.sha, base=head.base_ref, is_open=head.is_open) if head else None,
            merge=_merge(pending, stories) if pending else None,
            sections=await _sections(parts, repository_id, number, head.sha if head else ""),
            commands=list(commands),
            deliveries=listed,
            ignored=len(stories) - len(listed),
            older=records[-1].job.job_id if len(records) == DELIVERIES else None,
            done_days=round(DONE_DAYS),
            failed_days=round(FAILED_DAYS),
        )

    return Page(
        path="/r/{owner}/{repo}/pulls/{n}",
        api_path="/api/v1/repos/{owner}/{repo}/pulls/{n}",
        summary="Everything that the bot did for a pull request, and why",
        template="pull.html",
        model=PullPage,
        query=PullQuery,
        parts=(NUMBER_PART,),
        load=load,
    )


async def _deliveries(
    journal: Journal, repository_id: int, number: int, before_job: int | None
) -> list[DeliveryRecord]:
    """Return the newest deliveries about a pull request and about its groups in the merge queue.

    The two have different locks, so that nothing else of the pull request delays its merge.
    """
    return await journal.of_locks(locks_of(repository_id, number), DELIVERIES, before_job)


async def _sections(parts: DashboardParts, repository_id: int, number: int, head: str) -> list[StickySection]:
    """Return the sections of the bot's comment, without those that are empty now."""
    sections = await parts.records.under(SECTION, repository_id, number)
    return [
        StickySection(
            section=name,
            sha=section.sha,
            at=datetime.fromtimestamp(section.as_of, UTC),
            out_of_date=bool(head) and section.sha != head,
        )
        for name, section in sorted(sections.items())
        if section.digest
    ]


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > LARGEST_NUMBER:
        raise Problem(400, texts.BAD_NUMBER)
    return int(text)


def _merge(pending: PendingMerge, stories: Sequence[DeliveryStory]) -> WaitingMerge:
    merge_plans = (plan for story in stories for plan in reversed(story.plans) if plan.handler in MERGE_HANDLERS)
    return WaitingMerge(
        sha=pending.sha,
        base=pending.base,
        by=pending.by.login,
        url=pending.url,
        asked_at=_moment(pending.asked_at),
        queued=pending.queued,
        why=next((plan.why for plan in merge_plans if plan.why), ""),
    )


def _moment(text: str) -> Any:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None
