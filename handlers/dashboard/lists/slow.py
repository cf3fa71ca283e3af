"""`/r/{owner}/{repo}/slow`: the time that skipping slow tests would save, and how often they fail (RFC 0055)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from pydantic import BaseModel, Field

from bot.core.listing import counted
from bot.results.store.lists.slow_tests import GOOD_RUNS, durations_of
from bot.web.csv_tables import CsvTable
from bot.web.page_filters import duration
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.lists.shared_filters import ListQuery, TestsOfRepository, page_count, store_query
from handlers.dashboard.shared import answer_texts
from handlers.dashboard.shared.answers import Sentence, command, link_to_test, phrase, sentence
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import settings_and_target
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS, configured_targets

if TYPE_CHECKING:
    from bot.results.store.lists.slow_tests import Durations

MINUTE = 60


class SlowCutOff(BaseModel, extra="forbid"):
    """How much time a target saves if it skips the tests that take longer than a cut-off."""

    seconds: int = Field(description="The cut-off, in seconds.")
    tests: int = Field(description="Number of tests that take longer than the cut-off.")
    minutes_saved: float


class SlowTestRow(BaseModel, extra="forbid"):
    """A test, its duration, and how often it failed."""

    suite: str
    test: str
    seconds: float = Field(description="The mean of the last good runs in which it ran.")
    failed: int = Field(description="How many of `runs` failed.")
    runs: int = Field(description="How many of the last 40 runs passed or failed.")


class SlowPage(TestsOfRepository):
    """The durations of the tests of a target, the slowest first."""

    target: str | None = Field(description="The target that is shown; by default the first one with durations.")
    good_runs: int = Field(description="The mean covers at most this many runs.")
    timed: int = Field(description="Number of tests with a duration.")
    minutes: float = Field(description="Total duration of these tests, in minutes.")
    cut_offs: list[SlowCutOff]
    tests: list[SlowTestRow]


def slow_page(parts: DashboardParts) -> Page:
    """Return the page of slow tests."""

    async def load(request: PageRequest) -> SlowPage:
        name, settings = await settings_and_target(parts, request)
        query: ListQuery = request.query
        targets = configured_targets(settings)

        def read(connection: sa.Connection) -> tuple[str | None, Durations | None]:
            durations = None
            for target in [query.target] if query.target else targets:
                durations = durations_of(connection, store_query(request, name, settings, target))
                if durations.timed:
                    return target, durations
            return query.target, durations

        target, durations = await request.pages.run(parts.results.store.read, read)
        page = SlowPage(
            takes_results=settings.of(LAB_RESULTS) is not None,
            targets=targets,
            has_results=durations is not None and durations.runs > 0,
            total=durations.listed if durations else 0,
            pages=page_count(durations.listed if durations else 0),
            target=target,
            good_runs=GOOD_RUNS,
            timed=durations.timed if durations else 0,
            minutes=durations.seconds / MINUTE if durations else 0.0,
            cut_offs=[
                SlowCutOff(seconds=cut_off.seconds, tests=cut_off.tests, minutes_saved=cut_off.saved / MINUTE)
                for cut_off in (durations.cut_offs if durations else ())
            ],
            tests=[
                SlowTestRow(suite=test.suite, test=test.test, seconds=test.seconds, failed=test.failed, runs=test.runs)
                for test in (durations.slowest if durations else ())
            ],
        )
        return page.model_copy(update={"answer": slow_answer(page), "next_steps": slow_steps(page, name)})

    return Page(
        path="/r/{owner}/{repo}/slow",
        api_path="/api/v1/repos/{owner}/{repo}/slow",
        summary="Slow tests of a target, and how much time skipping them would save",
        template="slow.html",
        model=SlowPage,
        query=ListQuery,
        load=load,
        content=content_of_results(parts),
        table=_table,
    )


def _table(page: SlowPage) -> CsvTable:
    columns = ("suite", "test", "seconds", "failed", "runs")
    return CsvTable.of(columns, page.tests)


def slow_answer(page: SlowPage) -> Sentence:
    """Say how long the tests take, and what skipping the slow ones would save."""
    if not (page.timed and page.target):
        return []
    start = [
        phrase(
            answer_texts.TESTS_TAKE.format(
                tests=counted(page.timed, "test"),
                take="takes" if page.timed == 1 else "take",
                target=page.target,
                duration=duration(page.minutes * MINUTE),
            )
        )
    ]
    cut_off = page.cut_offs[0]
    if not cut_off.tests:
        return sentence(start, [phrase(answer_texts.NONE_SLOW.format(seconds=cut_off.seconds))])
    saved = duration(cut_off.minutes_saved * MINUTE)
    slow = answer_texts.SOME_SLOW.format(
        tests=f"{cut_off.tests:,}", take="takes" if cut_off.tests == 1 else "take", seconds=cut_off.seconds, saved=saved
    )
    return sentence(start, [phrase(slow)])


def slow_steps(page: SlowPage, repository: str) -> list[Sentence]:
    """Say what a maintainer can do about slow tests."""
    if not (page.tests and page.target and page.cut_offs and page.cut_offs[0].tests):
        return []
    slowest = link_to_test(repository, page.tests[0].test, page.target)
    return [
        [
            phrase(answer_texts.MAINTAINER),
            phrase(answer_texts.MARK_SLOW),
            command(answer_texts.SLOW_MARK),
            phrase(answer_texts.FIRST),
            slowest,
        ]
    ]
