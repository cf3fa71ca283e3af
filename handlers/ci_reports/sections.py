"""Request and write the sections about CI's test results, and read those results.

Two features use this. Each has its own keys, deliveries and section, so neither can delay the other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.core.events import Payload
from bot.core.untrusted.pool import POOL
from bot.core.untrusted.queue import Owner
from bot.effects.section_state import SECTION_EVENT, SectionEvent
from bot.effects.section_words import seconds_since_1970, short
from bot.effects.sections import RequestSection, SubmitSection
from bot.github.pull_heads import confirmed_head, pulls_with_head
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.plan.page_links import pull_page_url
from bot.results.deliveries import CHECK_EVENT, check_event_in
from handlers.ci_reports import texts
from handlers.ci_reports.stored import stored_outcomes
from handlers.ci_reports.workflow_runs import FINISHED, EndedRun, read_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from bot.config import RepositoryConfig
    from bot.core.events import Delivery
    from handlers.ci_reports.keys import Tests
    from handlers.ci_reports.outcomes import HeadAndBase

WORKFLOW_RUN, COMPLETED = "workflow_run", "completed"


def request_when_tested(
    router: Router, section: str, feature: str, tests_of: Callable[[RepositoryConfig], Tests | None]
) -> None:
    """Request a section when CI has uploaded results and when a workflow run of the tests has ended."""

    def accepts(delivery: Delivery, config: RepositoryConfig) -> bool:
        return is_run_of_tests(delivery, tests_of(config))

    @router.on(CHECK_EVENT.name, name=f"{section}-results", feature=feature)
    async def after_results(context: Context) -> Plan:
        config, event = tests_of(context.config), check_event_in(context.delivery.payload)
        if config is None or (event.target.lab, event.target.target) != (config.lab, config.target):
            return NOTHING
        return await _request_sections(context, section, event.sha, {"over": event.over})

    @router.on(WORKFLOW_RUN, COMPLETED, name=f"{section}-run", feature=feature, accepts=accepts)
    async def after_run(context: Context) -> Plan:
        # Once more: the settings may have changed since the delivery was routed.
        if not is_run_of_tests(context.delivery, tests_of(context.config)):
            return NOTHING
        ended = EndedRun.of(context.delivery.payload.at(WORKFLOW_RUN))
        if ended.conclusion not in FINISHED:
            return Plan(why=texts.WHY_NOT_FINISHED.format(conclusion=ended.conclusion))
        return await _request_sections(context, section, ended.run.sha, ended.as_json())


def is_run_of_tests(delivery: Delivery, config: Tests | None) -> bool:
    """Return whether a delivery is about a run of the workflow that app.yaml names for the tests."""
    workflow = config.workflow if config is not None else None
    return workflow is not None and delivery.payload.text(WORKFLOW_RUN, "name") == workflow


async def _request_sections(context: Context, section: str, sha: str, source: Mapping[str, Any]) -> Plan:
    numbers = await pulls_with_head(context.records, context.repository.id, sha)
    effects = tuple(RequestSection(section, number, sha, source) for number in numbers)
    return Plan(effects, why=texts.WHY_REQUESTED.format(sha=sha, count=len(numbers)))


@dataclass(frozen=True, slots=True)
class HeadOutcomes:
    """The test results of a head. `branch` is the base branch; `as_of` is in seconds since 1970."""

    tested: HeadAndBase
    branch: str
    as_of: float


async def read_outcomes(context: Context, config: Tests, event: SectionEvent) -> HeadOutcomes | str:
    """Return the test results of a head and of its base, or the reason why there is nothing to report.

    Raises `TryAgain`, and GitHub's errors.
    """
    as_of = _as_of(event)
    head = await confirmed_head(context.records, context.github, context.repository, event.number, event.sha)
    if head is None:
        return texts.NO_HEAD.format(sha=event.sha, number=event.number)
    if config.lab is not None and config.target is not None:
        target = TargetKey(context.repository.full_name, config.lab, config.target)
        has_all_suites = bool(event.about.get("over"))
        tested = await stored_outcomes(context, target, event.sha, has_all_suites=has_all_suites)
        if tested is None:
            return texts.NO_RESULTS.format(sha=event.sha)
        return HeadOutcomes(tested, head.base_ref, as_of)
    if "workflow_id" not in event.about:
        return texts.ANOTHER_SOURCE
    ended = EndedRun.of(Payload(event.about))
    return HeadOutcomes(await read_run(context, ended, config.artifacts, head.base_ref, as_of), head.base_ref, as_of)


async def compare(
    context: Context,
    section: str,
    event: SectionEvent,
    outcomes: HeadOutcomes,
    describe: Callable[..., str],
    *arguments: object,
) -> Plan:
    """Return the section that `describe` writes; it is called with the outcomes, then with `arguments`.

    It is called in a separate process, because the code of a pull request decides how much there is to compare. Raises
    `OverLimit` if the comparison costs too much, and `TryAgain` while too many others wait.
    """
    pool, owner = context.part(POOL), Owner(context.repository.full_name.lower(), event.sha)
    text = await pool.run(owner, pool.limits.tests, describe, outcomes.tested, *arguments)
    url = pull_page_url(context, event.number)
    if text and url:
        text = f"{text}\n\n{texts.PAGE.format(url=url)}"
    return Plan(
        (SubmitSection(section, event.number, event.sha, text, outcomes.as_of),),
        why=texts.WHY_COMPARED.format(sha=event.sha),
    )


def failure_section(context: Context, section: str, text: str, message: str, reason: str) -> Plan:
    """Return a section that says why there are no results; `reason` goes to the audit log.

    `text` is a template with places for the commit, `sha`, and for `message`, `why`.
    """
    event = SECTION_EVENT.read(context.delivery.payload)
    section_text = text.format(sha=short(event.sha), why=message)
    return Plan((SubmitSection(section, event.number, event.sha, section_text, _as_of(event)),), why=reason)


def _as_of(event: SectionEvent) -> float:
    """Return the time of the results: when the workflow run ended, or now for uploaded results, which are read now."""
    return seconds_since_1970(event.about["updated_at"]) if "updated_at" in event.about else time.time()
