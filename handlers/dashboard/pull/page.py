"""`/r/{owner}/{repo}/pulls/{n}`: what is pending, the results, and everything that the bot did for a pull request."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from bot.core.events import locks_of
from bot.core.patterns import Pattern
from bot.core.utc import moment_or_none
from bot.effects.checks import CHECK_RUN
from bot.effects.section_state import SECTION, SECTION_EVENT, SectionEvent
from bot.engine.jobs.journal import FAILED
from bot.engine.upkeep import DONE_DAYS, FAILED_DAYS
from bot.github.addresses import check_run_on_github
from bot.github.check_runs import SUCCESS
from bot.github.pull_heads import LARGEST_NUMBER, head_of, repository_id_of
from bot.web.openapi import Parameter
from bot.web.page_routes import Page, PageRequest
from bot.web.problems import Problem
from handlers.dashboard.pull.answer import UNSETTLED, AnswerFacts, answer_of, next_steps_of
from handlers.dashboard.pull.device_tests import (
    approve_command,
    benchmarks_of,
    device_tests_of,
    guids_of_jobs,
    listed_jobs,
)
from handlers.dashboard.pull.model import HeadCheckRun, KnownHead, PullPage, StickySection, WaitingMerge
from handlers.dashboard.pull.results import HeadResults, ignored_failures_of, ignored_on_targets, refused_presses_of
from handlers.dashboard.pull.story import DeliveryStory, StoryTeller, without_links
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.settings import settings_of
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.device_tests.commands import TEST_ON
from handlers.device_tests.model import DeviceJobState
from handlers.device_tests.targets import request_targets
from handlers.merge.commands import WHEN_GREEN
from handlers.merge.pending import pending_merge
from handlers.results.config import LAB_RESULTS
from handlers.stale_reviews.records import REMINDED_AT, Reminded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.config.model import RepositoryConfig
    from bot.effects.checks import WrittenCheckRun
    from bot.effects.section_state import SectionState
    from bot.engine.jobs.journal import DeliveryRecord, Journal
    from bot.github.pull_heads import PullHead
    from handlers.dashboard.pull.story import CommandStory
    from handlers.device_tests.model import DeviceJob
    from handlers.merge.records import PendingMerge

DELIVERIES = 50
"""Deliveries on one page; those that needed no action count too, although the page hides them."""
MOST_HEAD_DELIVERIES = 100
"""Deliveries about the head that one page reads."""
MOST_COMMANDS = 20
"""The most commands that the page lists; the deliveries below have them all."""
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


def pull_page(parts: DashboardParts) -> Page:
    """Return the page about one pull request."""
    head_results = HeadResults(parts)

    async def load(request: PageRequest) -> PullPage:
        query, number = request.query, _number(request.path["n"])
        repository, settings = settings_of(parts, request.repository)
        repository_id = await repository_id_of(parts.records, request.repository)
        if repository_id is None:
            raise LookupError(request.repository)
        head = await head_of(parts.records, repository_id, number)
        sections = await parts.records.under(SECTION, repository_id, number)
        deliveries = await _deliveries(parts.journal, repository_id, number, sections, query.before)
        if head is None and not deliveries:
            raise LookupError(str(number))
        sha = head.sha if head else ""
        all_jobs = await parts.jobs.of_pull(repository_id, number)
        jobs = listed_jobs(all_jobs, sha)
        job_deliveries = [] if query.before else list((await parts.journal.deliveries(guids_of_jobs(jobs))).values())
        github = f"{parts.github}/{request.repository}"
        teller = StoryTeller(parts.redact, github, parts.titles)
        older = deliveries[-1].job.job_id if len(deliveries) == DELIVERIES else None
        head_deliveries = (
            await _deliveries_of_head(parts.journal, repository_id, sha, query.before, older) if sha else []
        )
        listed_deliveries = sorted(
            {delivery.guid: delivery for delivery in (*deliveries, *head_deliveries, *job_deliveries)}.values(),
            key=_job_id,
            reverse=True,
        )
        stories = await request.pages.run(lambda: [teller.delivery(delivery) for delivery in listed_deliveries])
        commands = [command for delivery in deliveries for command in teller.commands(delivery)]
        ignored = await ignored_failures_of(parts.records, repository_id, number)
        written = await parts.records.under(CHECK_RUN, repository_id, sha) if sha else {}
        results, more_targets = (
            await head_results.of(request, repository, number, sha, ignored, written) if sha else ([], 0)
        )
        pending = await pending_merge(parts.records, repository_id, number)
        merge = _merge(pending, stories, commands) if pending else None
        check_runs = _check_runs(written, github)
        tests = await device_tests_of(parts, settings, jobs)
        _, listed_commands = await parts.list_commands(request.repository) or ("", ())
        known_head = _head(head) if head else None
        facts = AnswerFacts(
            repository=repository,
            head=known_head,
            merge=merge,
            results=results,
            tests=tests,
            commands=commands,
            check_runs=check_runs,
            working=0 if query.before else sum(story.state in UNSETTLED for story in stories),
            test_commands=_test_commands(parts, settings, jobs, sha),
            approve_command=_approve_command(parts, jobs, sha),
        )
        listed_stories = [story for story in stories if query.all or story.state != "ignored"]
        reminded = await parts.records.get(REMINDED_AT.of(repository_id, number)) or Reminded()
        return PullPage(
            number=number,
            github=github,
            answer=answer_of(facts),
            next_steps=next_steps_of(facts),
            pending=facts.pending,
            head=known_head,
            merge=merge,
            results=results,
            more_targets=more_targets,
            commands_given=commands[:MOST_COMMANDS],
            device_tests=tests,
            benchmarks=await request.pages.run(benchmarks_of, jobs),
            more_device_tests=len(all_jobs) - len(jobs),
            check_runs=check_runs,
            ignored_failures=ignored_on_targets(ignored),
            refused_presses=await refused_presses_of(parts.records, repository_id, number),
            reminded_at=moment_or_none(reminded.at),
            sections=_sections(sections, sha),
            commands=list(listed_commands),
            deliveries=listed_stories,
            ignored=len(stories) - len(listed_stories),
            older=older,
            done_days=round(DONE_DAYS),
            failed_days=round(FAILED_DAYS),
        )

    return Page(
        path="/r/{owner}/{repo}/pulls/{n}",
        api_path="/api/v1/repos/{owner}/{repo}/pulls/{n}",
        summary="What is pending for a pull request, its results, and everything that the bot did, and why",
        template="pull.html",
        model=PullPage,
        query=PullQuery,
        parts=(NUMBER_PART,),
        load=load,
    )


async def _deliveries(
    journal: Journal,
    repository_id: int,
    number: int,
    sections: Mapping[str, SectionState],
    before_job: int | None,
) -> list[DeliveryRecord]:
    """Return the newest deliveries about a pull request, its groups in the merge queue and its sections.

    They have different locks, so that nothing else of the pull request delays its merge, for example.
    """
    section_locks = [
        SECTION_EVENT.lock(repository_id, SectionEvent(section, number, "", {})) for section in sorted(sections)
    ]
    return await journal.of_locks((*locks_of(repository_id, number), *section_locks), DELIVERIES, before_job)


async def _deliveries_of_head(
    journal: Journal, repository_id: int, sha: str, before_job: int | None, after_job: int | None
) -> list[DeliveryRecord]:
    """Return the deliveries about a commit from which something followed, among the newest between two jobs.

    Most events about a commit are those of CI, in which the bot has nothing to do. So they have a limit of their own:
    they would fill the page.
    """
    newest = await journal.of_locks((), MOST_HEAD_DELIVERIES, before_job, accepted=[f"sha:{repository_id}:{sha}"])
    return [record for record in newest if record.job.job_id > (after_job or 0) and _has_consequences(record)]


def _has_consequences(record: DeliveryRecord) -> bool:
    return not record.settled or record.state == FAILED or any(plan.effects for plan in record.plans)


def _job_id(record: DeliveryRecord) -> int:
    return record.job.job_id


def _head(head: PullHead) -> KnownHead:
    merged = bool(head.merged_at)
    return KnownHead(
        sha=head.sha,
        base=head.base_ref,
        is_open=head.is_open,
        state=head.state,
        title=head.title,
        author=head.author,
        merged_by=head.merged_by if merged else "",
        merged_at=moment_or_none(head.merged_at),
    )


def _check_runs(written: Mapping[str, WrittenCheckRun], github: str) -> list[HeadCheckRun]:
    """Return the check runs that the bot wrote on the head, those that are not green first."""
    return [
        HeadCheckRun(
            name=name,
            title=check_run.title,
            conclusion=check_run.conclusion,
            url=f"{github}/{check_run_on_github(check_run.id)}",
            computed_at=datetime.fromtimestamp(check_run.as_of, UTC),
        )
        for name, check_run in sorted(written.items(), key=lambda item: (item[1].conclusion == SUCCESS, item[0]))
        if check_run.id
    ]


def _sections(sections: Mapping[str, SectionState], head: str) -> list[StickySection]:
    """Return the sections of the bot's comment, without those that are empty now."""
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


def _merge(pending: PendingMerge, stories: Sequence[DeliveryStory], commands: Sequence[CommandStory]) -> WaitingMerge:
    """Describe a pending merge: its newest plan says what it waits for, or else the answer to its command."""
    merge_plans = (plan.why for story in stories for plan in reversed(story.plans) if plan.handler in MERGE_HANDLERS)
    answers = (command.result for command in commands if WHEN_GREEN.name in command.command)
    return WaitingMerge(
        sha=pending.sha,
        base=pending.base,
        by=pending.by.login,
        url=pending.url,
        asked_at=moment_or_none(pending.asked_at),
        queued=pending.queued,
        why=without_links(next(filter(None, (*merge_plans, *answers)), "")),
    )


def _test_commands(
    parts: DashboardParts, settings: RepositoryConfig, jobs: Sequence[DeviceJob], sha: str
) -> dict[str, str]:
    """Return the commands that ask for a test of the head, by target; none if there is a test already."""
    if any(job.sha == sha for job in jobs):
        return {}
    targets = request_targets(settings.of(LAB_RESULTS))
    return {target.full_name: f"{parts.config.mentions[0]} {TEST_ON.name} {target.name}" for target in targets}


def _approve_command(parts: DashboardParts, jobs: Sequence[DeviceJob], sha: str) -> str:
    """Return the command that approves the tests of the head; empty if none waits for an approval."""
    waits = any(job.sha == sha and job.state is DeviceJobState.WAITING for job in jobs)
    return approve_command(parts, sha) if waits else ""
