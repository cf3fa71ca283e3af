"""`/r/{owner}/{repo}/flaky`: the flaky tests, with the commits that prove it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from bot.core.listing import counted
from bot.core.page_paths import history_path
from bot.core.utc import datetime_of
from bot.results.store.lists.flaky_tests import MOST_TESTS, flaky_tests
from bot.results.store.tables.commits import summaries_of
from bot.web.csv_tables import CsvTable
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
    from bot.results.store.lists.flaky_tests import FlakyList, FlakyTest
    from bot.results.store.lists.listed_tests import ListedTests

DAYS = 30


class FlakyQuery(ListQuery):
    """The filters of the list of flaky tests. All are optional."""

    days: Annotated[int, Field(ge=1, le=400)] = Field(
        default=DAYS, description="Only tests that changed between good and bad in the last so many days."
    )


class FlakyProof(BaseModel, extra="forbid"):
    """A commit at which a test both passed and failed."""

    sha: str
    committed_at: datetime
    run_id: str = Field(description="The commit's last run of the suite.")
    runs: int = Field(description="Runs of the commit; if it is 1, that run's report has both outcomes.")


class FlakyTestRow(BaseModel, extra="forbid"):
    """A flaky test of a target."""

    target: str
    suite: str
    test: str
    proved: int = Field(description="How many commits of the last 40 runs had both outcomes.")
    failed: int = Field(description="How many of `runs` failed.")
    runs: int = Field(description="How many of the last 40 runs passed or failed.")
    flips: int = Field(description="How often the test changed between good and bad.")
    explains: bool = Field(description="Whether check runs count its newest failures as flakiness.")
    proofs: list[FlakyProof] = Field(description="The newest commits with both outcomes.")


class FlakyPage(TestsOfRepository):
    """Flaky tests, those with the most proof first."""

    tests: list[FlakyTestRow]


def flaky_page(parts: DashboardParts) -> Page:
    """Return the page of flaky tests."""

    async def load(request: PageRequest) -> FlakyPage:
        name, settings = await settings_and_target(parts, request)
        query: FlakyQuery = request.query
        targets = configured_targets(settings)
        if settings.of(LAB_RESULTS) is None:
            return FlakyPage(takes_results=False, targets=[], has_results=False, total=0, pages=1, tests=[])
        stored_query = store_query(request, name, settings, query.target)
        flaky, summaries = await request.pages.run(
            parts.results.store.read, _read, stored_query, parts.moment() - query.days * DAY
        )
        page = FlakyPage(
            takes_results=True,
            targets=targets,
            has_results=flaky.suites > 0,
            total=flaky.total,
            pages=page_count(flaky.total),
            tests=[_row(test) for test in flaky.tests],
        )
        answer, next_steps = flaky_answer(page, query, name), flaky_steps(page, name)
        return page.model_copy(update={"answer": answer, "next_steps": next_steps, "known_commits": summaries})

    return Page(
        path="/r/{owner}/{repo}/flaky",
        api_path="/api/v1/repos/{owner}/{repo}/flaky",
        summary="Flaky tests, with commits that have both outcomes",
        template="flaky.html",
        model=FlakyPage,
        query=FlakyQuery,
        load=load,
        content=content_of_results(parts),
        table=_table,
    )


def _read(
    connection: sa.Connection, stored_query: ListedTests, since: float
) -> tuple[FlakyList, dict[str, CommitSummary]]:
    flaky = flaky_tests(connection, stored_query, since)
    shas = {proof.sha for test in flaky.tests for proof in test.proofs}
    return flaky, summaries_of(connection, stored_query.repository, shas)


def _row(test: FlakyTest) -> FlakyTestRow:
    proofs = [
        FlakyProof(sha=proof.sha, committed_at=datetime_of(proof.committed_at), run_id=proof.run_id, runs=proof.runs)
        for proof in test.proofs
    ]
    return FlakyTestRow(
        target=test.target.full_name,
        suite=test.suite,
        test=test.test,
        proved=test.proved,
        failed=test.failed,
        runs=test.runs,
        flips=test.flips,
        explains=test.explains,
        proofs=proofs,
    )


def _table(page: FlakyPage) -> CsvTable:
    columns = ("target", "suite", "test", "proved", "failed", "runs", "flips")
    rows = (
        [*(getattr(test, column) for column in columns), " ".join(proof.sha for proof in test.proofs)]
        for test in page.tests
    )
    return CsvTable((*columns, "proofs"), rows)


def flaky_answer(page: FlakyPage, query: FlakyQuery, repository: str) -> Sentence:
    """Say how many tests are flaky, and name the one with the most proof."""
    if not page.has_results:
        return []
    days = counted(query.days, "day")
    place = answer_texts.ON_TARGET.format(target=query.target) if query.target else ""
    if not page.total:
        return [] if query.q else sentence([phrase(answer_texts.NOTHING_FLAKY.format(place=place, days=days))])
    tests = counted(page.total, "test")
    if page.total >= MOST_TESTS:
        tests = answer_texts.AT_LEAST.format(tests=tests)
    start = answer_texts.FLAKY_TESTS.format(
        tests=tests, were="was" if page.total == 1 else "were", place=place, days=days
    )
    worst = page.tests[0] if page.tests and query.page == 1 else None
    if worst is None or not worst.proved:
        return sentence([phrase(start)])
    proof = answer_texts.MOST_PROOF.format(target=worst.target, commits=counted(worst.proved, "commit"))
    return sentence([phrase(start)], [link_to_test(repository, worst.test, worst.target), phrase(proof)])


def flaky_steps(page: FlakyPage, repository: str) -> list[Sentence]:
    """Say what a maintainer and a contributor can do about flaky tests."""
    if not page.tests:
        return []
    worst = page.tests[0]
    return [
        [
            phrase(answer_texts.MAINTAINER),
            phrase(answer_texts.SEE_PROOF, history_path(repository, worst.test, worst.target)),
        ],
        [phrase(answer_texts.CONTRIBUTOR), phrase(answer_texts.FLAKY_IS_KNOWN)],
    ]
