"""`/r/{owner}/{repo}/pulls`: the pull requests that the bot knows, newest first, and what is pending for each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from bot.core.page_paths import pull_path
from bot.effects.checks import CHECK_RUN, WrittenCheckRun
from bot.github.pull_heads import LARGEST_NUMBER, listed_heads, repository_id_of
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.answers import Sentence, name_list, phrase, sentence
from handlers.dashboard.shared.settings import settings_of
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.merge.records import MERGE_REQUEST
from handlers.results.config import configured_targets

if TYPE_CHECKING:
    from bot.github.pull_heads import PullHead

ROWS = 50
"""Pull requests on one page."""
MOST_READ = 1_000
"""Pull requests that one page reads while it searches for those that match."""
MOST_TARGETS = 20
"""The most targets whose check runs a row shows."""


class PullsQuery(BaseModel, extra="forbid"):
    """The pull requests to list. All members are optional."""

    state: Literal["open", "merged", "closed"] | None = Field(
        default=None, description="Only pull requests in this state; `closed` are those that were not merged."
    )
    author: Annotated[str, StringConstraints(max_length=100)] | None = Field(
        default=None, description="Only pull requests of this login; upper and lower case do not matter."
    )
    before: int | None = Field(
        default=None, ge=1, le=LARGEST_NUMBER, description="Only lower numbers; the `older` of another page."
    )


class TargetCheck(BaseModel, extra="forbid"):
    """What the check run of a target says about the head of a pull request."""

    target: str
    title: str
    conclusion: str = Field(description="success or neutral; empty while the check run is not completed.")


class PullRow(BaseModel, extra="forbid"):
    """A pull request."""

    number: int
    title: str = Field(description="Empty if an earlier release stored the pull request.")
    author: str
    state: Literal["open", "merged", "closed"]
    sha: str = Field(description="The head.")
    updated_at: str = Field(description="In ISO 8601.")
    merge: Literal["", "waiting", "queued"] = Field(description="Whether a merge is pending, and where it waits.")
    device_tests: int = Field(description="Requested device tests that have not ended.")
    checks: list[TargetCheck] = Field(description="The results of the head, by target.")

    @property
    def updated(self) -> datetime:
        """Return the time of `updated_at`."""
        return datetime.fromisoformat(self.updated_at)


class PullsPage(BaseModel, extra="forbid"):
    """Pull requests, the highest number first."""

    answer: list[AnswerPart] = Field(default=[], description="How many are open, and for which something is pending.")
    pulls: list[PullRow]
    older: int | None = Field(description="The `before` of the next page; null on the last one.")


def pulls_page(parts: DashboardParts) -> Page:
    """Return the list of a repository's pull requests."""

    async def load(request: PageRequest) -> PullsPage:
        query: PullsQuery = request.query
        name, settings = settings_of(parts, request.repository)
        repository_id = await repository_id_of(parts.records, name)
        if repository_id is None:
            return PullsPage(pulls=[], older=None)
        heads, older = await _matching(parts, repository_id, query, MOST_READ if request.as_csv else ROWS)
        merges = await parts.records.get_some([MERGE_REQUEST.of(repository_id, number) for number in heads])
        tests = await parts.jobs.open_of_pulls(repository_id, heads)
        checks = await _checks(parts, repository_id, heads, configured_targets(settings)[:MOST_TARGETS])
        rows = []
        for number, head in heads.items():
            request_of_pull = merges.get(MERGE_REQUEST.of(repository_id, number).name)
            pending = request_of_pull.pending if request_of_pull else None
            rows.append(
                PullRow(
                    number=number,
                    title=head.title,
                    author=head.author,
                    state=head.state,
                    sha=head.sha,
                    updated_at=head.updated_at,
                    merge="" if pending is None else "queued" if pending.queued else "waiting",
                    device_tests=tests.get(number, 0),
                    checks=checks.get(head.sha, []),
                )
            )
        return PullsPage(answer=pulls_answer(rows, name), pulls=rows, older=older)

    return Page(
        path="/r/{owner}/{repo}/pulls",
        api_path="/api/v1/repos/{owner}/{repo}/pulls",
        summary="Pull requests, and what is pending for each",
        template="pulls.html",
        model=PullsPage,
        query=PullsQuery,
        load=load,
        table=_table,
        most_csv_rows=MOST_READ,
    )


def pulls_answer(pulls: Sequence[PullRow], repository: str) -> Sentence:
    """Say how many of the listed pull requests are open, and for which a merge or a device test is pending."""
    if not pulls:
        return []
    open_pulls = sum(pull.state == "open" for pull in pulls)
    pending = [pull for pull in pulls if pull.merge or pull.device_tests]
    links = [phrase(f"#{pull.number}", pull_path(repository, pull.number)) for pull in pending]
    return sentence(
        [phrase(texts.pulls_open(open_pulls, len(pulls)))],
        [phrase(texts.PENDING_FOR), *name_list(links, "pull request")] if links else [],
    )


async def _matching(
    parts: DashboardParts, repository_id: int, query: PullsQuery, most: int
) -> tuple[dict[int, PullHead], int | None]:
    """Return the newest pull requests that match, at most `most`, and the number before which the next page begins.

    It reads at most `MOST_READ` pull requests, or `most` if that is more: a page may have few rows and a next page.
    """
    filtered = bool(query.state or query.author)
    count = max(MOST_READ, most) if filtered else most
    # One more is read, only to know whether there are older ones.
    heads = await listed_heads(parts.records, repository_id, count + 1, query.before)
    numbers = list(heads)
    read = dict(list(heads.items())[:count])
    matches = {number: head for number, head in read.items() if _matches(head, query)}
    listed = dict(list(matches.items())[:most])
    if len(matches) > most:
        return listed, list(listed)[-1]
    return listed, numbers[count - 1] if len(numbers) > count else None


def _matches(head: PullHead, query: PullsQuery) -> bool:
    return query.state in (None, head.state) and (query.author is None or query.author.lower() == head.author.lower())


async def _checks(
    parts: DashboardParts, repository_id: int, heads: Mapping[int, PullHead], targets: Collection[str]
) -> dict[str, list[TargetCheck]]:
    """Return what the check runs of targets say, by head; those that are not green come first."""
    keys = {
        (head.sha, target): CHECK_RUN.of(repository_id, head.sha, f"hardware/{target}")
        for head in heads.values()
        for target in targets
    }
    written: Mapping[str, WrittenCheckRun] = await parts.records.get_some(keys.values())
    checks: dict[str, list[TargetCheck]] = {}
    for (sha, target), key in keys.items():
        check_run = written.get(key.name)
        if check_run is not None and check_run.title:
            check = TargetCheck(target=target, title=check_run.title, conclusion=check_run.conclusion)
            checks.setdefault(sha, []).append(check)
    return {sha: sorted(of_head, key=lambda check: check.conclusion == "success") for sha, of_head in checks.items()}


def _table(page: PullsPage) -> CsvTable:
    columns = ("number", "title", "author", "state", "sha", "updated_at", "merge", "device_tests")
    rows = (
        [
            *(getattr(pull, column) for column in columns),
            "; ".join(f"{check.target}: {check.title}" for check in pull.checks),
        ]
        for pull in page.pulls
    )
    return CsvTable((*columns, "checks"), rows)
