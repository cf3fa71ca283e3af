"""`/r/{owner}/{repo}/slow`: the time that skipping slow tests would save, and how often they fail (RFC 0055)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from bot.results.store.slow_tests import GOOD_RUNS
from bot.web.csv_tables import CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.content import content_of_results
from handlers.dashboard.lists import ListQuery, TestsOfRepository, asked_tests, page_count
from handlers.dashboard.settings import configured_targets, settings_and_target
from handlers.dashboard.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.results.store.slow_tests import Durations
    from bot.results.store.store import ResultsStore

MINUTE = 60


class SlowCutOff(BaseModel):
    """How much time a target saves if it skips the tests that take longer than a cut-off."""

    model_config = ConfigDict(extra="forbid")

    seconds: int = Field(description="The cut-off, in seconds.")
    tests: int = Field(description="Number of tests that take longer than the cut-off.")
    minutes_saved: float


class SlowTestRow(BaseModel):
    """A test, its duration, and how often it failed."""

    model_config = ConfigDict(extra="forbid")

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

    async def load(asked: PageRequest) -> SlowPage:
        name, settings = await settings_and_target(parts, asked)
        query: ListQuery = asked.query
        targets = configured_targets(settings)

        def read(store: ResultsStore) -> tuple[str | None, Durations | None]:
            found = None
            for target in [query.target] if query.target else targets:
                found = store.lists.slow(asked_tests(asked, name, settings, target))
                if found.timed:
                    return target, found
            return query.target, found

        target, found = await asked.pages.run(read, parts.store)
        return SlowPage(
            takes_results=settings.of(LAB_RESULTS) is not None,
            targets=targets,
            has_results=found is not None and found.runs > 0,
            total=found.listed if found else 0,
            pages=page_count(found.listed if found else 0),
            target=target,
            good_runs=GOOD_RUNS,
            timed=found.timed if found else 0,
            minutes=found.seconds / MINUTE if found else 0.0,
            cut_offs=[
                SlowCutOff(seconds=one.seconds, tests=one.tests, minutes_saved=one.saved / MINUTE)
                for one in (found.cut_offs if found else ())
            ],
            tests=[
                SlowTestRow(suite=one.suite, test=one.test, seconds=one.seconds, failed=one.failed, runs=one.runs)
                for one in (found.slowest if found else ())
            ],
        )

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
    return CsvTable(columns, ([getattr(one, column) for column in columns] for one in page.tests))
