"""The searches for tests that fail, for links on other pages."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from bot.github.pull_heads import repository_id_of
from bot.results.culprit.search import SearchOutcome
from bot.results.ingest.commit_summaries import commit_summary
from handlers.dashboard.searches import texts
from handlers.searches.records import SEARCH_SUMMARY, SearchSummary, searched_test_key

if TYPE_CHECKING:
    from bot.engine.records import Records

SuiteTest = tuple[str, str, str]
"""A test on a target: LAB/TARGET, its suite and its ID."""


class SearchOfTest(BaseModel, extra="forbid"):
    """The newest search for the commit that a test began to fail with."""

    id: str
    words: str = Field(description="Its answer, or that it has none yet.")


async def searches_of(records: Records, repository: str, tests: Collection[SuiteTest]) -> dict[SuiteTest, SearchOfTest]:
    """Return the newest search for each of some tests; those that were never searched are left out."""
    repository_id = await repository_id_of(records, repository) if tests else None
    if repository_id is None:
        return {}
    keys = {test: searched_test_key(repository_id, *test) for test in tests}
    searched = await records.get_some(list(keys.values()))
    if not searched:
        return {}
    places = {test: searched[key.name].place for test, key in keys.items() if key.name in searched}
    summary_keys = {place: SEARCH_SUMMARY.of(repository_id, place) for place in places.values()}
    summaries = await records.get_some(list(summary_keys.values()))
    return {
        test: SearchOfTest(id=summary.id, words=words_of(summary))
        for test, place in places.items()
        if (summary := summaries.get(summary_keys[place].name))
    }


def words_of(summary: SearchSummary) -> str:
    """Say in a few words what a search found."""
    if summary.outcome != SearchOutcome.CULPRIT.value:
        return texts.OUTCOMES.get(summary.outcome, summary.outcome)
    title = commit_summary(summary.title, "").title or summary.sha[: texts.SHORT]
    number = f" (#{summary.pull})" if summary.pull else ""
    return f"{texts.OUTCOMES[summary.outcome]} {title}{number}, {texts.percent(summary.probability)}"
