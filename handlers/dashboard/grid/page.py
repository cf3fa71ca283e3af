"""`/r/{owner}/{repo}`: the grid of targets, suites, folders and tests by nightly commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

import sqlalchemy as sa
from markupsafe import Markup
from pydantic import AfterValidator, BaseModel, Field, StringConstraints
from pydantic_core import PydanticCustomError

from bot.results.compare.target_health import is_stale
from bot.results.state import CommitSummary
from bot.results.store.grid.grid import grid_of, newest_of_lines
from bot.results.store.grid.rows import GridLine, GridRange
from bot.results.store.lists.run_lists import newest_arrivals
from bot.results.store.tables.cells import count_cell
from bot.results.store.tables.commits import summaries_of
from bot.results.store.tables.names import all_names
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.grid.answer import GridNews, SuiteNews, matching_answer
from handlers.dashboard.grid.rows import (
    MOST_ROWS,
    ONE_SIDED_OF,
    Folders,
    GridRow,
    ListedRows,
    NamesOf,
    RowFilter,
    RowKind,
    failures_first,
    find_tests,
    rows_of,
    rows_of_tests,
)
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.cell_markup import legend, row_of_cells
from handlers.dashboard.shared.cells import GridCell
from handlers.dashboard.shared.content import content_of_results
from handlers.dashboard.shared.settings import TARGET_PATTERN, pairs_of, quarantine_of, settings_and_target
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.device_tests.paused.records import paused_in_repositories
from handlers.results.config import LAB_RESULTS, RENAMES, configured_targets
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.results.store.grid.grid import Grid, GridPoint
    from handlers.tracking_branches.records import TrackingMove

UNEXPLAINED = (None, "flaky", "skipped", "passed")
"""Statuses of tests that did not fail: whether a quarantine or flakiness explains a failure need not be read."""
MOST_TARGETS = 40
"""The most targets on one page."""
COLUMNS = 14
"""Commits on one page, one in each column."""


def _existing_day(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise PydanticCustomError("day", texts.NO_SUCH_DAY) from None
    return text


Day = Annotated[str, StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(_existing_day)]
Status = Literal[
    "new-failure",
    "still-failing",
    "failing",
    "fails-on-device-only",
    "fails-on-simulator-only",
    "known-failure",
    "flaky",
    "skipped",
    "passed",
]


class GridQuery(BaseModel, extra="forbid"):
    """The part of the grid to show. All members are optional."""

    target: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="One target, as LAB/TARGET: its suites are the rows."
    )
    suite: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="One suite: its folders, files and tests are the rows."
    )
    folder: Annotated[str, StringConstraints(max_length=1000)] | None = Field(
        default=None, description="Tests whose ID begins with this, such as `tests/python/`."
    )
    status: Status | None = Field(
        default=None, description="Tests that ended like this in the newest complete run of their suite are the rows."
    )
    q: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Tests whose ID contains this text, ignoring case, are the rows."
    )
    since: Day | None = Field(default=None, description="Only commits made since this day (UTC), as YYYY-MM-DD.")
    before: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,12}(\.[0-9]{1,9})?$")] | None = Field(
        default=None, description="The `older` of another page: only commits made before, in seconds since 1970."
    )
    order: Literal["failures", "name"] = Field(
        default="failures",
        description="Whether rows that fail come first, or all are in the order of app.yaml and of names.",
    )
    page: int = Field(
        default=1, ge=1, le=1_000_000, description="The number of the page, where there are many targets or folders."
    )


class ListedNightly(BaseModel, extra="forbid"):
    """A commit that labs tested."""

    sha: str
    committed_at: datetime


class GridPage(BaseModel, extra="forbid"):
    """A grid: its rows have one cell for each commit, the newest commit first."""

    answer: list[AnswerPart] = Field(default=[], description="What is new, what fails and which labs are late.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    known_commits: dict[str, CommitSummary] = Field(
        default={}, description="Titles, authors and pull requests of commits on the page, where they are known."
    )
    takes_results: bool = Field(description="Whether app.yaml has `results` for the repository.")
    targets: list[str] = Field(description="All targets of app.yaml, as LAB/TARGET.")
    paused: dict[str, datetime] = Field(default={}, description="Until when targets are paused, by LAB/TARGET.")
    paired: dict[str, str] = Field(
        default={}, description="Simulators and their devices: for each target, the one to compare it with."
    )
    commits: list[ListedNightly]
    rows: list[GridRow]
    moved: bool = Field(default=False, description="Whether rows that fail were moved to the top.")
    more: int = Field(description="Number of matching rows that are not listed.")
    pages: int = Field(default=1, description="Number of pages with these rows.")
    older: str | None = Field(description="The `before` of the page with older commits; null if there is none.")

    @property
    def labs(self) -> list[str]:
        """Return the names of the labs of the targets, each once."""
        return list(dict.fromkeys(target.partition("/")[0] for target in self.targets))

    @property
    def legend(self) -> Markup:
        """Return the legend of the cells, as `<li>` elements."""
        return legend(with_pairs=bool(self.paired))

    def drawn(self, repository: str, row: GridRow) -> Markup:
        """Return the cells of a row as HTML."""
        cells = zip((commit.sha for commit in self.commits), row.cells, strict=True)
        return row_of_cells(repository, row.target, cells, with_counts=row.kind is not RowKind.TEST)


def grid_page(parts: DashboardParts) -> Page:
    """Return the page with the grid of a repository."""
    folders = Folders()
    nightlies = TrackingRecord(parts.config, parts.records, NIGHTLY)

    async def load(request: PageRequest) -> GridPage:
        name, settings = await settings_and_target(parts, request)
        if settings.of(LAB_RESULTS) is None:
            return GridPage(takes_results=False, targets=[], commits=[], rows=[], more=0, older=None)
        page = await request.pages.run(
            parts.results.store.read,
            read_grid,
            name,
            settings,
            request.query,
            parts.moment(),
            folders,
            request.as_csv,
            commits_of_moves(await nightlies.moves(name)),
        )
        pauses = await paused_in_repositories(parts.records, [name], parts.moment())
        page.paused = {f"{key.lab}/{key.target}": datetime.fromtimestamp(pauses[key].until, UTC) for key in pauses}
        page.paired = {target: pair.device or min(pair.simulators) for target, pair in pairs_of(settings).items()}
        return page

    return Page(
        path="/r/{owner}/{repo}",
        api_path="/api/v1/repos/{owner}/{repo}/grid",
        summary="Results by target and nightly commit",
        template="grid.html",
        model=GridPage,
        query=GridQuery,
        load=load,
        content=content_of_results(parts),
        table=_table,
        most_csv_rows=MOST_ROWS * COLUMNS,
    )


def read_grid(
    connection: sa.Connection,
    repository: str,
    settings: RepositoryConfig,
    query: GridQuery,
    moment: float,
    folders: Folders,
    all_targets: bool = False,
    commits_between: Mapping[tuple[str, str], int] = MappingProxyType({}),
) -> GridPage:
    """Read the part of the grid that a query names; it blocks. With `all_targets`, their rows are on one page.

    `commits_between` has the number of commits between two nightly commits, where it is known.
    """
    assert settings.of(LAB_RESULTS) is not None
    configured = configured_targets(settings)
    lab, _, target = (query.target or "").partition("/")
    grid_range = GridRange(
        repository,
        lab or None,
        target or None,
        query.suite,
        COLUMNS,
        float(query.before) if query.before else None,
        datetime.fromisoformat(query.since).replace(tzinfo=UTC).timestamp() if query.since else 0.0,
        settings.of(RENAMES).aliases,
        quarantine_of(settings, moment),
        paired=pairs_of(settings),
        counts=not (query.status or query.q or (query.target and query.suite)),
        configured=() if query.target else tuple(configured),
    )

    def names_of(line: GridLine) -> list[str]:
        return all_names(connection, line.row)

    row_filter = RowFilter(query.target, query.suite, query.folder or "", query.status, (query.q or "").lower())
    most, pages = MOST_ROWS, 1
    if row_filter.status or row_filter.text:
        grid, listed = _tests(connection, grid_range, row_filter, names_of, configured, moment)
    else:
        if not (query.target or all_targets):
            most, first = MOST_TARGETS, MOST_TARGETS * (query.page - 1)
            grid_range = replace(grid_range, most_targets=most, first_target=first)
        grid = grid_of(connection, grid_range)
        listed = rows_of(grid, names_of, row_filter, grid_range, moment, MOST_ROWS * (query.page - 1), folders)
        pages = -(-(len(listed.rows) + listed.unlisted) // most)
    if row_filter.status or row_filter.text:
        of_one_target = query.target is not None or len({line.target for line in grid.lines}) == 1
        answer, next_steps = matching_answer(listed, query.status, of_one_target=of_one_target), []
    else:
        late = late_targets(connection, repository, [query.target] if query.target else configured, moment)
        # A suite that ran at no commit of the grid still counts: lists of tests by status have its newest run too.
        rowed = {row.target for row in listed.rows}
        others = [line for line in grid.lines if line.target.full_name in rowed and _newest_point(grid, line) is None]
        old_points = newest_of_lines(connection, others, grid_range) if others else {}
        news = news_of(grid, old_points, listed.rows, grid_range, query, {} if query.before else late, commits_between)
        answer, next_steps = news.answer(), news.next_steps()
    # Of several pages, each would have its own failures first.
    is_whole = query.order == "failures" and not listed.unlisted
    rows = failures_first(listed.rows) if is_whole else listed.rows
    return GridPage(
        answer=answer if grid.commits else [],
        next_steps=next_steps if grid.commits else [],
        known_commits=summaries_of(connection, repository, [sha for _, sha in grid.commits]),
        takes_results=True,
        targets=configured,
        commits=[
            ListedNightly(sha=sha, committed_at=datetime.fromtimestamp(committed_at, UTC))
            for committed_at, sha in grid.commits
        ],
        rows=rows,
        moved=rows != listed.rows,
        more=listed.unlisted,
        pages=pages,
        older=f"{grid.commits[-1][0]!r}" if grid.older else None,
    )


def _tests(
    connection: sa.Connection,
    grid_range: GridRange,
    row_filter: RowFilter,
    names_of: NamesOf,
    configured: Sequence[str],
    moment: float,
) -> tuple[Grid, ListedRows]:
    """Find the tests that match in the newest runs, then read the older commits of those tests alone."""
    newest = grid_of(
        connection,
        replace(
            grid_range,
            newest_only=True,
            explain=row_filter.status not in UNEXPLAINED,
            paired=grid_range.paired if row_filter.status in ONE_SIDED_OF else {},
        ),
    )
    tests = find_tests(newest, names_of, row_filter)
    grid = grid_of(
        connection, replace(grid_range, ordinals={series: set(places) for series, places in tests.places.items()})
    )
    return grid, rows_of_tests(grid, names_of, tests, configured, moment)


def commits_of_moves(moves: Iterable[TrackingMove]) -> dict[tuple[str, str], int]:
    """Return how many commits each move of the nightly branch added, by the commits before and after it."""
    return {
        (move["previous_sha"], move["sha"]): move["commits"]
        for move in moves
        if move["previous_sha"] and move["sha"] and move["commits"]
    }


def late_targets(
    connection: sa.Connection, repository: str, targets: Iterable[str], moment: float
) -> dict[str, float | None]:
    """Return the late ones among targets, with the seconds since their newest nightly run, None for none."""
    arrivals = {
        key.full_name: received_at
        for key, received_at in newest_arrivals(connection, repository, on_nightly=True).items()
    }
    return {
        target: moment - arrivals[target] if target in arrivals else None
        for target in targets
        if is_stale(arrivals.get(target), moment)
    }


def news_of(
    grid: Grid,
    old_points: Mapping[int, GridPoint],
    rows: Sequence[GridRow],
    grid_range: GridRange,
    query: GridQuery,
    late: Mapping[str, float | None],
    commits_between: Mapping[tuple[str, str], int],
) -> GridNews:
    """Return what the newest usable runs of a grid's suites say, whatever rows the grid has.

    `old_points` has the newest ones of suites without any at the commits of the grid, by series.
    """
    # Of targets that left app.yaml, no further run is expected.
    expected = {query.target} if query.target else set(grid_range.configured)
    listed_targets = {row.target for row in rows} & expected
    lines = [line for line in grid.lines if line.target.full_name in listed_targets]
    by_suite = query.target is not None
    broken_columns = [column for column in range(len(grid.commits)) if any(row.cells[column].new for row in rows)]
    newest_break = grid.commits[broken_columns[0]] if broken_columns else None
    filters = {"target": query.target, "suite": query.suite, "since": query.since, "before": query.before}
    return GridNews(
        repository=grid_range.repository,
        filters=filters,
        by_suite=by_suite,
        row_count=len({line.name for line in lines}) if by_suite else len(listed_targets),
        # A folder has only some of the tests of its suite, so the numbers of the suite would be wrong there.
        suites=[] if query.folder else list(filter(None, (_suite_news(grid, line, old_points) for line in lines))),
        late_targets=late,
        unusable_targets=[
            target for target in targets_of_rows(rows) if target not in late and _is_unusable(grid, target)
        ],
        last_break=(newest_break[1], newest_break[0]) if newest_break else None,
        commit_count=len(grid.commits),
        commits_between=commits_between,
    )


def targets_of_rows(rows: Iterable[GridRow]) -> list[str]:
    """Return the targets of rows, each once."""
    return list(dict.fromkeys(row.target for row in rows))


def _usable_points(grid: Grid, line: GridLine) -> Iterator[GridPoint]:
    """Yield the points of a suite with complete and usable results, newest first."""
    for _, sha in grid.commits:
        point = grid.points.get((line.series, sha))
        if point and point.complete and not point.infra:
            yield point


def _newest_point(grid: Grid, line: GridLine) -> GridPoint | None:
    return next(_usable_points(grid, line), None)


def _suite_news(grid: Grid, line: GridLine, old_points: Mapping[int, GridPoint]) -> SuiteNews | None:
    """Return what the newest complete run of a suite with usable results says; None without one.

    Lists of tests by status are about the same run.
    """
    points = list(_usable_points(grid, line))
    newest = points[0] if points else old_points.get(line.series)
    if newest is None:
        return None
    counts = newest.counts or count_cell(newest.previous, newest.column)
    base = points[1].run.key.sha if len(points) > 1 else ""
    return SuiteNews(
        line.target.full_name, line.name, newest.run.key.sha, base, newest.has_baseline, counts.new, counts.failing
    )


def _is_unusable(grid: Grid, target: str) -> bool:
    """Return whether the newest nightly run of a target, of any suite, has no usable results."""
    series = [line.series for line in grid.lines if line.target.full_name == target]
    for _, sha in grid.commits:
        points = [point for number in series if (point := grid.points.get((number, sha)))]
        if points:
            return any(point.infra for point in points)
    return False


def _table(page: GridPage) -> CsvTable:
    row_columns, cell_columns = ("kind", "target", "suite", "folder"), tuple(GridCell.model_fields)
    rows = (
        [
            *(getattr(row, name) for name in row_columns),
            commit.sha,
            commit.committed_at,
            *(getattr(cell, name) for name in cell_columns),
        ]
        for row in page.rows
        for commit, cell in zip(page.commits, row.cells, strict=True)
    )
    return CsvTable((*row_columns, "sha", "committed_at", *cell_columns), rows)
