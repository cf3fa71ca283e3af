"""`/r/{owner}/{repo}/skipped`: tests that are skipped, where and since when; and tests that ran nowhere for a week."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from bot.core.listing import counted
from bot.core.page_paths import view_path
from bot.core.utc import datetime_of
from bot.results.store.lists.skipped_tests import skipped_tests
from bot.results.store.tables.commits import summaries_of
from bot.web.csv_tables import Cell, CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.lists.shared_filters import (
    DAY,
    ListQuery,
    TestsOfRepository,
    page_count,
    store_query,
)
from handlers.dashboard.shared import answer_texts
from handlers.dashboard.shared.answers import Sentence, link_to_test, phrase, sentence
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import settings_and_target
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS, configured_targets

if TYPE_CHECKING:
    import sqlalchemy as sa

    from bot.results.state import CommitSummary
    from bot.results.store.lists.listed_tests import ListedTests
    from bot.results.store.lists.skipped_tests import IdleTest, SkippedList, SkippedOn, SkippedTest

WEEK = 7 * DAY
SHOWN_REASON = 300


class SkippedHere(BaseModel, extra="forbid"):
    """A target on which a test is skipped."""

    target: str
    since: str = Field(description="The first of the consecutive commits at which it was skipped.")
    since_at: datetime
    at_least: bool = Field(description="Whether it was skipped in all of the last 40 runs, and perhaps earlier.")
    reason: str = Field(description="The reason in the lab's report.")


class SkippedTestRow(BaseModel, extra="forbid"):
    """A test that the newest run of a target skipped."""

    suite: str
    test: str
    skipped: list[SkippedHere]
    runs_on: list[str] = Field(description="Targets whose newest run did not skip it.")


class IdleTestRow(BaseModel, extra="forbid"):
    """A test that ran on no target in the last week."""

    suite: str
    test: str
    skipped_on: list[str]
    silent: list[str] = Field(
        description="Targets on which it is not skipped, but which have uploaded nothing for a week."
    )


class SkippedPage(TestsOfRepository):
    """The skipped tests, and those that ran nowhere; `total` and `pages` are those of `tests`."""

    tests: list[SkippedTestRow]
    idle: list[IdleTestRow] = Field(description="The first 100 tests that have not run anywhere for a week.")
    idle_total: int


def skipped_page(parts: DashboardParts) -> Page:
    """Return the page of skipped tests."""

    async def load(request: PageRequest) -> SkippedPage:
        name, settings = await settings_and_target(parts, request)
        query: ListQuery = request.query
        stored_query = store_query(request, name, settings, query.target)
        skipped, summaries = await request.pages.run(
            parts.results.store.read, _read, stored_query, parts.moment() - WEEK
        )
        page = SkippedPage(
            takes_results=settings.of(LAB_RESULTS) is not None,
            targets=configured_targets(settings),
            has_results=skipped.suites > 0,
            total=skipped.total,
            pages=page_count(skipped.total),
            tests=[_row(test) for test in skipped.tests],
            idle=[_idle_row(test) for test in skipped.idle],
            idle_total=skipped.idle_total,
        )
        answer, next_steps = skipped_answer(page, query, name), skipped_steps(page, name)
        return page.model_copy(update={"answer": answer, "next_steps": next_steps, "known_commits": summaries})

    return Page(
        path="/r/{owner}/{repo}/skipped",
        api_path="/api/v1/repos/{owner}/{repo}/skipped",
        summary="Skipped tests by target and since when, and tests that have not run anywhere for a week",
        template="skipped.html",
        model=SkippedPage,
        query=ListQuery,
        load=load,
        content=content_of_results(parts),
        table=_table,
    )


def _read(
    connection: sa.Connection, stored_query: ListedTests, since: float
) -> tuple[SkippedList, dict[str, CommitSummary]]:
    skipped = skipped_tests(connection, stored_query, since)
    shas = {skip.since for test in skipped.tests for skip in test.skipped_on}
    return skipped, summaries_of(connection, stored_query.repository, shas)


def _row(test: SkippedTest) -> SkippedTestRow:
    return SkippedTestRow(
        suite=test.suite,
        test=test.test,
        skipped=[_skip_on_target(skip) for skip in test.skipped_on],
        runs_on=[target.full_name for target in test.runs_on],
    )


def _skip_on_target(skip: SkippedOn) -> SkippedHere:
    return SkippedHere(
        target=skip.target.full_name,
        since=skip.since,
        since_at=datetime_of(skip.since_at),
        at_least=skip.at_least,
        reason=skip.why[:SHOWN_REASON],
    )


def _idle_row(test: IdleTest) -> IdleTestRow:
    return IdleTestRow(
        suite=test.suite,
        test=test.test,
        skipped_on=[target.full_name for target in test.skipped_on],
        silent=[target.full_name for target in test.silent],
    )


def _table(page: SkippedPage) -> CsvTable:
    columns = ("suite", "test", "target", "since", "since_at", "reason")
    rows: list[tuple[Cell, ...]] = [
        (test.suite, test.test, skip.target, skip.since, skip.since_at, skip.reason)
        for test in page.tests
        for skip in test.skipped
    ]
    return CsvTable(columns, rows)


def skipped_answer(page: SkippedPage, query: ListQuery, repository: str) -> Sentence:
    """Say how many tests are skipped, and how many run nowhere."""
    if not page.has_results or query.q:
        return []
    path = view_path(repository, "skipped", target=query.target)
    place = answer_texts.ON_TARGET.format(target=query.target) if query.target else ""
    verb = "is" if page.total == 1 else "are"
    skipped = (
        [phrase(answer_texts.SKIPPED_TESTS.format(tests=counted(page.total, "test"), verb=verb, place=place), path)]
        if page.total
        else [phrase(answer_texts.NOTHING_SKIPPED.format(place=place))]
    )
    idle_tests = counted(page.idle_total, "test")
    return sentence(
        skipped, [phrase(answer_texts.IDLE_TESTS.format(tests=idle_tests), f"{path}#idle")] if page.idle_total else []
    )


def skipped_steps(page: SkippedPage, repository: str) -> list[Sentence]:
    """Say what a maintainer can do about tests that run nowhere."""
    if not page.idle:
        return []
    return [
        [
            phrase(answer_texts.MAINTAINER),
            phrase(answer_texts.RUN_OR_REMOVE),
            link_to_test(repository, page.idle[0].test, ""),
        ]
    ]
