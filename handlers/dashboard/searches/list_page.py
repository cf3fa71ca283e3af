"""`/r/{owner}/{repo}/searches`: searches for the commit that tests began to fail with, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel, Field

from bot.core.listing import counted
from bot.core.utc import datetime_of
from bot.github.pull_heads import repository_id_of
from bot.results.ingest.commit_summaries import commit_summary
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.searches import texts
from handlers.dashboard.shared.answers import phrase, sentence
from handlers.dashboard.shared.settings import settings_of
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.searches.records import SEARCH_SUMMARY, SearchSummary

ROWS, MOST_CSV = 50, 1_000
PLACE = r"^[0-9]{12}-[0-9a-f]{12}$"


class SearchesQuery(BaseModel, extra="forbid"):
    """The searches to list."""

    before: str | None = Field(
        default=None, pattern=PLACE, description="Only older searches; the `older` of another page."
    )


class SearchRow(BaseModel, extra="forbid"):
    """A search."""

    id: str
    suite: str
    test: str = Field(description="The first of its tests.")
    tests: int = Field(description="How many tests began to fail together.")
    measurement: str = Field(description="What changed of what the test measures; empty in a search for failures.")
    targets: list[str]
    good: str = Field(description="The commit at which the tests passed.")
    bad: str = Field(description="The commit at which they fail.")
    commits: int = Field(description="How many commits are searched.")
    runs: int
    device_seconds: float
    began_at: datetime
    ended_at: datetime | None
    outcome: str = Field(description="culprit, environment, not repeated, range or budget; empty while it runs.")
    probability: float = Field(description="Of the outcome.")
    sha: str = Field(description="The culprit; empty for none.")
    title: str
    pull_request: int | None = Field(description="The pull request that was merged as the culprit.")

    @property
    def words(self) -> str:
        """Return the outcome in words."""
        return texts.OUTCOMES.get(self.outcome, self.outcome)


class SearchesPage(BaseModel, extra="forbid"):
    """Searches, the newest first."""

    answer: list[AnswerPart] = Field(default=[], description="How many searches run and ended, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    searches: list[SearchRow]
    older: str | None = Field(description="The `before` of the next page; null on the last one.")


def searches_page(parts: DashboardParts) -> Page:
    """Return the list of a repository's searches."""

    async def load(request: PageRequest) -> SearchesPage:
        name, _ = settings_of(parts, request.repository)
        repository_id, most = await repository_id_of(parts.records, name), MOST_CSV if request.as_csv else ROWS
        if repository_id is None:
            return SearchesPage(answer=_answer([]), searches=[], older=None)
        # One more is read, only to know whether there are older ones.
        summaries = await parts.records.newest_under(
            SEARCH_SUMMARY, repository_id, most=most + 1, end_part=request.query.before
        )
        rows = [_row(summary) for summary in summaries[:most]]
        older = summaries[most - 1].place if len(summaries) > most else None
        return SearchesPage(answer=_answer(rows), searches=rows, older=older)

    return Page(
        path="/r/{owner}/{repo}/searches",
        api_path="/api/v1/repos/{owner}/{repo}/searches",
        summary="Searches for the commit that tests began to fail with",
        template="searches.html",
        model=SearchesPage,
        query=SearchesQuery,
        load=load,
        table=_table,
        most_csv_rows=MOST_CSV,
    )


def _row(summary: SearchSummary) -> SearchRow:
    return SearchRow(
        id=summary.id,
        suite=summary.suite,
        test=summary.test,
        tests=summary.tests,
        measurement=summary.measurement,
        targets=list(summary.targets),
        good=summary.good,
        bad=summary.bad,
        commits=summary.commits,
        runs=summary.runs,
        device_seconds=summary.seconds,
        began_at=datetime_of(summary.began_at),
        ended_at=datetime_of(summary.ended_at) if summary.ended_at else None,
        outcome=summary.outcome,
        probability=summary.probability,
        sha=summary.sha,
        title=commit_summary(summary.title, "").title,
        pull_request=summary.pull or None,
    )


def _answer(rows: Sequence[SearchRow]) -> list[AnswerPart]:
    running = sum(not row.outcome for row in rows)
    named = sum(row.outcome == "culprit" for row in rows)
    unnamed = len(rows) - running - named
    if not rows:
        return sentence([phrase(texts.NO_SEARCHES)])
    return sentence(
        [phrase(counted(running, *texts.RUNNING))] if running else [],
        [phrase(counted(named, *texts.NAMED))] if named else [],
        [phrase(texts.OTHER.format(count=unnamed))] if unnamed else [],
    )


def _table(page: SearchesPage) -> CsvTable:
    names = ("id", "suite", "test", "tests", "commits", "runs", "device_seconds", "began_at", "outcome", "sha")
    return CsvTable.of((*names, "measurement"), page.searches)
