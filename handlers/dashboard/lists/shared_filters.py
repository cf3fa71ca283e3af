"""The filters and pages that the lists of flaky, slow and skipped tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field, StringConstraints

from bot.results.state import CommitSummary
from bot.results.store.lists.listed_tests import ListedTests
from bot.web.answers import AnswerPart
from handlers.dashboard.shared.settings import TARGET_PATTERN
from handlers.results.config import RENAMES

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.web.page_routes import PageRequest

ROWS = 100
"""Tests on one page of a list."""
DAY = 86400.0


class ListQuery(BaseModel, extra="forbid"):
    """The filters of a list of tests. All are optional."""

    target: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="Only tests of this target, as LAB/TARGET."
    )
    q: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Only tests whose ID contains this text, ignoring case."
    )
    page: Annotated[int, Field(ge=1, le=10_000)] = Field(default=1, description="Which page of the list.")


class TestsOfRepository(BaseModel, extra="forbid"):
    """The members that every list of tests has."""

    answer: list[AnswerPart] = Field(default=[], description="What the list says, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    known_commits: dict[str, CommitSummary] = Field(
        default={}, description="Titles, authors and pull requests of commits on the page, where they are known."
    )
    takes_results: bool = Field(description="Whether app.yaml has `results` for the repository.")
    targets: list[str] = Field(description="All targets of app.yaml, as LAB/TARGET.")
    has_results: bool = Field(description="Whether any results of a nightly commit are stored.")
    total: int = Field(description="Number of matching tests, on all pages.")
    pages: int


def store_query(request: PageRequest, name: str, settings: RepositoryConfig, target: str | None) -> ListedTests:
    """Translate the query of a page into that of the store; a CSV file begins with the first test, not with a page."""
    query: ListQuery = request.query
    limit = request.most_rows(ROWS)
    lab, _, device = (target or "").partition("/")
    return ListedTests(
        name,
        (lab, device) if target else None,
        (query.q or "").lower(),
        0 if request.as_csv else (query.page - 1) * ROWS,
        limit,
        settings.of(RENAMES).aliases,
    )


def page_count(total: int) -> int:
    """Return the number of pages of a list: 1 at least, as an empty list has a page too."""
    return max(1, -(-total // ROWS))
