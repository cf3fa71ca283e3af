"""`/r/{owner}/{repo}/commits/{sha}`: one commit on all targets, with the suites of each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa
from pydantic import BaseModel, Field

from bot.core.listing import counted
from bot.core.page_paths import lab_path, view_path
from bot.core.patterns import Pattern
from bot.results.state import CommitSummary
from bot.results.store.grid.grid import grid_of_commit
from bot.results.store.grid.rows import GridRange, commits_beginning_with, lines_of
from bot.results.store.tables.cells import count_cell
from bot.results.store.tables.commits import summaries_of
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.openapi import Parameter
from bot.web.page_routes import Page, PageRequest
from bot.web.problems import Problem
from handlers.dashboard.shared import answer_texts, texts
from handlers.dashboard.shared.answers import Sentence, name_list, phrase, sentence
from handlers.dashboard.shared.cell_markup import SHAPES
from handlers.dashboard.shared.cells import WORST_FIRST, CellState, GridCell, counted_cell, no_cell
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import pairs_of, quarantine_of, settings_of
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import RENAMES, configured_targets

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig

SHA_DIGITS = Pattern("[0-9a-f]{7,40}")
COMMIT_PART = Parameter("sha", "The commit, 7 digits at least.", {"type": "string"})
COUNTS = ("passed", "failed", "new", "known", "flaky", "skipped")


class CommitRow(BaseModel, extra="forbid"):
    """A suite on a target at the commit."""

    target: str = Field(description="As LAB/TARGET.")
    suite: str
    cell: GridCell
    base: str = Field(description="The nightly commit that it is compared with; empty if there is none.")

    @property
    def failing(self) -> int:
        """Return the number of failures that nothing explains."""
        return self.cell.failed - self.cell.known

    @property
    def shape(self) -> tuple[str, str]:
        """Return the CSS class and the character of its state."""
        return SHAPES[self.cell.state]

    @property
    def order(self) -> tuple[bool, int, int, str, str]:
        """Return its sort key: new failures first, then the worst state."""
        place = WORST_FIRST.index(self.cell.state) if self.cell.state in WORST_FIRST else len(WORST_FIRST)
        return not self.cell.new, place, -self.failing, self.target, self.suite


class CommitPage(BaseModel, extra="forbid"):
    """A commit on all targets: new failures first, then all other failures."""

    answer: list[AnswerPart] = Field(default=[], description="What the commit broke, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    sha: str
    committed_at: datetime
    nightly: bool = Field(description="Whether it is a commit of the nightly branch.")
    pull_request: int | None = Field(description="The pull request whose head it was, or that it came with.")
    github: str = Field(description="The repository's page on GitHub.")
    previous: str = Field(description="The newest nightly commit that a suite is compared with; empty without one.")
    rows: list[CommitRow]
    known_commits: dict[str, CommitSummary] = Field(
        description="Titles, authors and pull requests of commits on the page, where they are known."
    )


def commit_page(parts: DashboardParts) -> Page:
    """Return the page of a commit."""

    async def load(request: PageRequest) -> CommitPage:
        name, settings = settings_of(parts, request.repository)
        digits = request.path["sha"].lower()
        if SHA_DIGITS.fullmatch(digits) is None:
            raise Problem(400, texts.BAD_SHA)
        page = await request.pages.run(
            parts.results.store.read, read_commit, name, settings, digits, parts.moment(), f"{parts.github}/{name}"
        )
        answer, next_steps = commit_answer(page, name), commit_steps(page, name)
        return page.model_copy(update={"answer": answer, "next_steps": next_steps})

    return Page(
        path="/r/{owner}/{repo}/commits/{sha}",
        api_path="/api/v1/repos/{owner}/{repo}/commits/{sha}",
        summary="One commit on all targets, with the suites of each",
        template="commit.html",
        model=CommitPage,
        parts=(COMMIT_PART,),
        load=load,
        content=content_of_results(parts),
        table=_table,
    )


def read_commit(
    connection: sa.Connection, repository: str, settings: RepositoryConfig, digits: str, moment: float, github: str
) -> CommitPage:
    """Read the results of a commit; it blocks.

    Raises LookupError if no commit with results begins with `digits`, and `Problem` 400 if several do.
    """
    configured = set(configured_targets(settings))
    grid_range = GridRange(
        repository,
        aliases=settings.of(RENAMES).aliases,
        quarantine=quarantine_of(settings, moment),
        counts=True,
        paired=pairs_of(settings),
    )
    lines = lines_of(connection, grid_range)
    shas = commits_beginning_with(connection, [line.series for line in lines], digits, 2)
    if len(shas) > 1:
        raise Problem(400, texts.AMBIGUOUS_COMMIT.format(digits=digits))
    if not shas:
        raise LookupError(digits)
    commit = grid_of_commit(connection, grid_range, shas[0])
    committed_at, sha = commit.grid.commits[0]
    rows = []
    for line in commit.grid.lines:
        point = commit.grid.points.get((line.series, sha))
        target = line.target.full_name
        if point is not None:
            cell = counted_cell(point, point.counts or count_cell(point.previous, point.column))
        else:
            cell = no_cell(line, committed_at, moment, expected=commit.mainline and target in configured)
        if cell.state is not CellState.NONE:
            _, base = commit.bases.get(line.series, (0.0, ""))
            rows.append(CommitRow(target=target, suite=line.name, cell=cell, base=base))
    _, previous = max(commit.bases.values(), default=(0.0, ""))
    summaries = summaries_of(connection, repository, {sha, *(row.base for row in rows)})
    return CommitPage(
        sha=sha,
        committed_at=datetime.fromtimestamp(committed_at, UTC),
        nightly=commit.mainline,
        pull_request=commit.pull_request or (summaries[sha].pull_request if sha in summaries else None),
        github=github,
        previous=previous,
        rows=sorted(rows, key=lambda row: row.order),
        known_commits=summaries,
    )


def _table(page: CommitPage) -> CsvTable:
    columns = ("target", "suite", "state", *COUNTS, "run_id", "reason", "base")
    rows = (
        [
            row.target,
            row.suite,
            row.cell.state,
            *(getattr(row.cell, count) for count in COUNTS),
            row.cell.run_id,
            row.cell.reason,
            row.base,
        ]
        for row in page.rows
    )
    return CsvTable(columns, rows)


def commit_answer(page: CommitPage, repository: str) -> Sentence:
    """Say on which targets a commit broke tests, and which targets have no results of it."""
    targets = list(dict.fromkeys(row.target for row in page.rows))
    new, failing = sum(row.cell.new for row in page.rows), sum(row.failing for row in page.rows)
    base_by_target = {row.target: row.base for row in page.rows if row.cell.new}
    if new:
        names = [
            phrase(
                target,
                view_path(repository, "compare", target=target, base=base, head=page.sha, status="new-failure"),
            )
            for target, base in base_by_target.items()
        ]
        scope = answer_texts.OF_SUBJECTS.format(
            count=len(base_by_target), subjects=counted(len(targets), answer_texts.TARGET)
        )
        start = answer_texts.NEW_FAILURES.format(failures=counted(new, "new failure"), on=scope)
        news = [phrase(f"{start}: "), *name_list(names, answer_texts.TARGET)]
    elif failing:
        words = answer_texts.FAIL_ON_TARGETS.format(
            tests=counted(failing, "failure"),
            count=len({row.target for row in page.rows if row.failing}),
            targets=counted(len(targets), answer_texts.TARGET),
        )
        news = [phrase(f"{words}{answer_texts.NONE_NEW if page.previous else ''}")]
    else:
        news = [phrase(answer_texts.NO_TEST_FAILED)]
    unusable = dict.fromkeys(row.target for row in page.rows if row.cell.state is CellState.INFRA)
    absent = dict.fromkeys(
        row.target for row in page.rows if row.cell.state in (CellState.MISSING, CellState.WAIT, CellState.PART)
    )
    return sentence(
        news,
        _targets_clause(repository, unusable, answer_texts.NO_USABLE_RESULTS),
        _targets_clause(repository, absent, answer_texts.NOT_ALL_ARRIVED),
    )


def _targets_clause(repository: str, targets: Iterable[str], words: str) -> Sentence:
    names = [phrase(target, lab_path(repository, target.partition("/")[0])) for target in targets]
    return [*name_list(names, answer_texts.TARGET), phrase(words)] if names else []


def commit_steps(page: CommitPage, repository: str) -> list[Sentence]:
    """Say what a maintainer and a lab can do about a commit."""
    steps = []
    if page.previous and any(row.cell.new for row in page.rows):
        href = f"{page.github}/compare/{page.previous}...{page.sha}"
        steps.append([phrase(answer_texts.MAINTAINER), phrase(answer_texts.READ_COMMITS_BEFORE, href)])
    problem_states = (CellState.INFRA, CellState.MISSING, CellState.PART)
    for row in [row for row in page.rows if row.cell.state in problem_states][:1]:
        lab = row.target.partition("/")[0]
        steps.append(
            [phrase(answer_texts.LAB), phrase(answer_texts.SEE_LAB.format(lab=lab), lab_path(repository, lab))]
        )
    return steps
