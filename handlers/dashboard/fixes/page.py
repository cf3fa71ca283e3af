"""`/r/{owner}/{repo}/fixes`: how long failures on branches, and regressions, take to be fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from bot.core.listing import counted
from bot.github.pull_heads import repository_id_of
from bot.results.store.failures.failures import newest_messages
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.page_filters import age
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.fixes.times import ALL, failures_of_branch, fix_times, regressions_of
from handlers.dashboard.shared import answer_texts as texts
from handlers.dashboard.shared.answers import Sentence, phrase, sentence
from handlers.dashboard.shared.content import content_of_results_and_records
from handlers.dashboard.shared.settings import settings_of
from handlers.main_failures.records import FAILURES
from handlers.results.owners import owners_in_force

if TYPE_CHECKING:
    from handlers.dashboard.fixes.times import FixTimes
    from handlers.dashboard.shared.wiring import DashboardParts

DAYS, DAY = 90, 86400.0
MOST_MESSAGES = 2_000


class FixTimeRow(BaseModel, extra="forbid"):
    """How long the fixes of a branch, a target or an owner take. Times are null if there are fewer than five fixes."""

    kind: Literal["all", "branch", "target", "owner"]
    name: str = Field(description="The branch, the target as LAB/TARGET, or the owner; empty for nobody, and for all.")
    fixed: int
    failing: int = Field(description="How many failures last.")
    median_seconds: float | None = Field(description="Half of the fixes took no longer than this.")
    ninety_percent_seconds: float | None = Field(description="90 % of the fixes took no longer than this.")


class FixesPage(BaseModel, extra="forbid"):
    """The time from the message about a failure to its fix, over the last 90 days."""

    answer: list[AnswerPart]
    days: int
    rows: list[FixTimeRow]


def fixes_page(parts: DashboardParts) -> Page:
    """Return the page of times to fix."""

    async def load(request: PageRequest) -> FixesPage:
        name, settings = settings_of(parts, request.repository)
        settings = await parts.in_force(name, settings)
        since = parts.moment() - DAYS * DAY
        messages = await request.pages.run(parts.results.store.read, newest_messages, name, since, MOST_MESSAGES)
        failures = regressions_of(messages, await owners_in_force(parts.records, name, settings))
        repository_id = await repository_id_of(parts.records, name)
        branches = await parts.records.under(FAILURES, repository_id) if repository_id is not None else {}
        for branch, branch_failures in sorted(branches.items()):
            failures += failures_of_branch(branch, branch_failures, since)
        times = fix_times(failures)
        return FixesPage(answer=fixes_answer(times), days=DAYS, rows=[_row(group) for group in times])

    return Page(
        path="/r/{owner}/{repo}/fixes",
        api_path="/api/v1/repos/{owner}/{repo}/fixes",
        summary="How long failures take to be fixed, by branch, target and owner",
        template="fixes.html",
        model=FixesPage,
        load=load,
        content=content_of_results_and_records(parts),
        table=_table,
    )


def _row(times: FixTimes) -> FixTimeRow:
    kind, name = times.group
    return FixTimeRow.model_validate(
        {
            "kind": kind,
            "name": name,
            "fixed": times.fixed,
            "failing": times.failing,
            "median_seconds": times.median,
            "ninety_percent_seconds": times.longest,
        }
    )


def _table(page: FixesPage) -> CsvTable:
    columns = tuple(FixTimeRow.model_fields)
    return CsvTable.of(columns, page.rows)


def fixes_answer(times: list[FixTimes]) -> Sentence:
    """Say how long half and nearly all of the fixes took, and how many failures last."""
    total = next((group for group in times if group.group[0] == ALL), None)
    if total is None:
        return sentence([phrase(texts.NOTHING_FAILED.format(days=DAYS))])
    failing = phrase(texts.NOT_FIXED.format(failures=counted(total.failing, "failure")))
    clauses = [[failing]] if total.failing else []
    if not total.fixed:
        return sentence([phrase(texts.NONE_FIXED.format(days=DAYS))], *clauses)
    if total.median is None or total.longest is None:
        return sentence([phrase(texts.FEW_FIXED.format(failures=counted(total.fixed, "failure"), days=DAYS))], *clauses)
    halves = {"median": age(total.median), "longest": age(total.longest)}
    fixed = phrase(texts.FIXED_WITHIN.format(failures=counted(total.fixed, "failure"), days=DAYS, **halves))
    return sentence([fixed], *clauses)
