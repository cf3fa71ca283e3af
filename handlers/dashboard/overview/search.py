"""`/search` and `/r/{owner}/{repo}/search`: repositories, pull requests, commits, targets, labs and tests.

Only repositories that the reader may see are searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import sqlalchemy as sa
from pydantic import BaseModel, Field, StringConstraints

from bot.core.page_paths import commit_path, history_path, lab_path, measurement_path, pull_path, view_path
from bot.core.patterns import Pattern
from bot.github.pull_heads import HEAD, LARGEST_NUMBER, repository_ids
from bot.results.store.lists.search import commits_with_prefix, commits_with_title, names_with_text
from bot.results.store.measurements.names import NamedMeasurement, measurements_with_words
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.measurements.texts import NAMED as MEASUREMENT_OF_TEST
from handlers.dashboard.overview.page import visible_repositories
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.settings import settings_of
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import configured_targets, labs_of

if TYPE_CHECKING:
    from bot.results.store.lists.search import CommitMatch, TestMatches

MOST_HITS = 20
"""The most hits of each kind that a search lists."""
MOST_REPOSITORIES = 200
"""The most repositories whose results are searched; a search in one repository has no such limit."""
_DIGITS = Pattern(r"[0-9A-Fa-f]{4,40}")
_NUMBER = Pattern(r"#?([1-9][0-9]{0,9})")


class HitKind(StrEnum):
    """What a search finds, in the order of the page."""

    REPOSITORY = "repository"
    PULL = "pull request"
    COMMIT = "commit"
    TARGET = "target"
    LAB = "lab"
    TEST = "test"
    MEASUREMENT = "measurement"


class SearchQuery(BaseModel, extra="forbid"):
    """What to search for."""

    q: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None,
        description="A part of the name of a test, measurement, target, lab or repository, or of the title of a "
        "commit; the first digits of a commit (4 at least); or the number of a pull request. Letter case does not "
        "matter.",
    )


class SearchHit(BaseModel, extra="forbid"):
    """Something that matches, and the page that shows it."""

    kind: HitKind
    repository: str
    name: str
    href: str = Field(description="The path of its page.")
    title: str = Field(default="", description="The title of a commit; empty if it is not known, and for other kinds.")
    author: str = Field(default="", description="The author of a commit; empty as for `title`.")
    committed_at: datetime | None = Field(default=None, description="When a commit was made; null if not known.")
    pull_request: int | None = Field(default=None, description="The pull request of a commit; null if there is none.")


class SearchPage(BaseModel, extra="forbid"):
    """What matches, by kind: at most 20 of each."""

    answer: list[AnswerPart] = Field(description="How much matches.")
    hits: list[SearchHit]
    incomplete_kinds: list[HitKind] = Field(description="The kinds of which more match than are listed.")
    unsearched: list[str] = Field(description="Repositories with so many tests that not all were searched.")
    public_unknown: bool = Field(
        default=False,
        description="Whether GitHub did not say which repositories are public; then some were not searched.",
    )

    @property
    def groups(self) -> list[tuple[HitKind, list[SearchHit]]]:
        """Return the hits of each kind that has any."""
        groups = [(kind, [hit for hit in self.hits if hit.kind is kind]) for kind in HitKind]
        return [(kind, hits) for kind, hits in groups if hits]


def site_search(parts: DashboardParts) -> Page:
    """Return the page that searches all repositories that the reader may see."""

    async def load(request: PageRequest) -> SearchPage:
        visible = await visible_repositories(request, list(parts.config.repositories))
        page = await _search(parts, request, visible.names, names=visible.names)
        return page.model_copy(update={"public_unknown": visible.public_unknown})

    return Page(
        path="/search",
        api_path="/api/v1/search",
        summary="Search all repositories that the reader may see",
        template="search.html",
        model=SearchPage,
        query=SearchQuery,
        load=load,
        table=_table,
    )


def repository_search(parts: DashboardParts) -> Page:
    """Return the page that searches one repository."""

    async def load(request: PageRequest) -> SearchPage:
        name, _ = settings_of(parts, request.repository)
        return await _search(parts, request, [name], names=[])

    return Page(
        path="/r/{owner}/{repo}/search",
        api_path="/api/v1/repos/{owner}/{repo}/search",
        summary="Search a repository",
        template="search.html",
        model=SearchPage,
        query=SearchQuery,
        load=load,
        table=_table,
    )


async def _search(
    parts: DashboardParts, request: PageRequest, repositories: Sequence[str], names: Sequence[str]
) -> SearchPage:
    """Search the content of `repositories`, and the `names` of repositories."""
    text = (request.query.q or "").strip()
    if not text:
        return SearchPage(answer=[AnswerPart(text=texts.SEARCH_EMPTY)], hits=[], incomplete_kinds=[], unsearched=[])
    searched = repositories[:MOST_REPOSITORIES]
    commits, tests, measurements = await request.pages.run(parts.results.store.read, _stored_matches, searched, text)
    lower_text = text.lower()
    candidates: dict[HitKind, Iterable[SearchHit]] = {
        HitKind.REPOSITORY: (
            _hit(HitKind.REPOSITORY, name, name, view_path(name)) for name in names if lower_text in name.lower()
        ),
        HitKind.PULL: await _pulls(parts, searched, text),
        HitKind.COMMIT: map(_commit_hit, commits),
        HitKind.TARGET: _targets(parts, repositories, lower_text),
        HitKind.LAB: _labs(parts, repositories, lower_text),
        HitKind.TEST: (_hit(HitKind.TEST, name, test, history_path(name, test)) for name, test in tests.tests),
        HitKind.MEASUREMENT: map(_measurement_hit, measurements),
    }
    hits_of = {kind: list(islice(hits, MOST_HITS + 1)) for kind, hits in candidates.items()}
    listed = {kind: hits[:MOST_HITS] for kind, hits in hits_of.items()}
    return SearchPage(
        answer=[
            AnswerPart(
                text=texts.search_answer(text, {kind.value: len(hits) for kind, hits in hits_of.items()}, MOST_HITS)
            )
        ],
        hits=[hit for hits in listed.values() for hit in hits],
        incomplete_kinds=[kind for kind, hits in hits_of.items() if len(hits) > MOST_HITS],
        unsearched=[*tests.unsearched, *repositories[MOST_REPOSITORIES:]],
    )


def _stored_matches(
    connection: sa.Connection, repositories: Sequence[str], text: str
) -> tuple[list[CommitMatch], TestMatches, list[NamedMeasurement]]:
    is_sha = _DIGITS.fullmatch(text) is not None
    commits = commits_with_prefix(connection, repositories, text.lower(), MOST_HITS + 1) if is_sha else []
    if not commits:
        commits = commits_with_title(connection, repositories, text.lower(), MOST_HITS + 1)
    tests = names_with_text(connection, repositories, text.lower(), MOST_HITS + 1)
    measurements = measurements_with_words(connection, repositories, text.lower().split(), MOST_HITS + 1)
    return commits, tests, measurements


def _hit(kind: HitKind, repository: str, name: str, href: str) -> SearchHit:
    return SearchHit(kind=kind, repository=repository, name=name, href=href)


def _measurement_hit(match: NamedMeasurement) -> SearchHit:
    name = MEASUREMENT_OF_TEST.format(name=match.name, test=match.test)
    href = measurement_path(match.repository, match.test, match.name)
    return _hit(HitKind.MEASUREMENT, match.repository, name, href)


def _commit_hit(commit: CommitMatch) -> SearchHit:
    return SearchHit(
        kind=HitKind.COMMIT,
        repository=commit.repository,
        name=commit.sha,
        href=commit_path(commit.repository, commit.sha),
        title=commit.title,
        author=commit.author,
        committed_at=datetime.fromtimestamp(commit.committed_at, UTC) if commit.committed_at is not None else None,
        pull_request=commit.pull_request,
    )


async def _pulls(parts: DashboardParts, repositories: Sequence[str], text: str) -> list[SearchHit]:
    """Return the pull requests with this number of which a payload has arrived."""
    match = _NUMBER.fullmatch(text)
    number = int(match[1]) if match else 0
    if not 0 < number <= LARGEST_NUMBER:
        return []
    ids = await repository_ids(parts.records, repositories)
    keys = {name: HEAD.of(repository_id, number) for name, repository_id in ids.items()}
    heads = await parts.records.get_some(keys.values())
    return [
        _hit(HitKind.PULL, name, f"#{number}", pull_path(name, number))
        for name, key in keys.items()
        if key.name in heads
    ]


def _targets(parts: DashboardParts, repositories: Sequence[str], text: str) -> Iterator[SearchHit]:
    for name in repositories:
        settings = parts.config.repository(name)
        for target in configured_targets(settings) if settings is not None else ():
            if text in target.lower():
                yield _hit(HitKind.TARGET, name, target, view_path(name, target=target))


def _labs(parts: DashboardParts, repositories: Sequence[str], text: str) -> Iterator[SearchHit]:
    for name in repositories:
        settings = parts.config.repository(name)
        for lab in labs_of(settings) if settings is not None else ():
            if text in lab.lower():
                yield _hit(HitKind.LAB, name, lab, lab_path(name, lab))


def _table(page: SearchPage) -> CsvTable:
    columns = tuple(SearchHit.model_fields)
    return CsvTable.of(columns, page.hits)
