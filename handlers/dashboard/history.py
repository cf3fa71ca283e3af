"""`/r/{owner}/{repo}/tests?id=…`: one test on all targets, from commit to commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

from nightjar_formats.model import BAD, Detail, SeenTest, Status, TargetKey
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bot.core.page_paths import history_path
from bot.results.compare.context import FailureContext
from bot.results.compare.flaky import WINDOW, Flakiness
from bot.results.report.findings import NewFailure
from bot.results.report.reproduce import command
from bot.results.report.texts import how_flaky
from bot.results.store.contexts import AskedFailures
from bot.results.store.grid import Grid
from bot.results.store.grid_rows import GridLine, GridRange
from bot.results.store.timelines import LeftOut, TimelineRun
from bot.results.store.trace import Position
from bot.web.csv_tables import CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.cells import CellState, GridCell
from handlers.dashboard.chart import DurationChart, duration_chart
from handlers.dashboard.content import content_of_results
from handlers.dashboard.issue_draft import IssueDraft
from handlers.dashboard.rows import cells_of_test
from handlers.dashboard.settings import TARGET_PATTERN, configured_targets, settings_and_target
from handlers.dashboard.source import file_in_id, source_place, source_url
from handlers.dashboard.wiring import DashboardParts

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.results.store.store import ResultsStore

RUNS = 30
"""Commits that the strip shows."""
MOST_LINES = 60
"""Targets and suites that a page shows."""
MOST_PROOFS = 10
LONGEST_MESSAGE = 1000


class HistoryQuery(BaseModel):
    """Which test is shown."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, StringConstraints(max_length=4000)] = Field(description="The test's ID.")
    target: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="Only this target, as LAB/TARGET."
    )


class HistoryCommit(BaseModel):
    """How the test ended at a commit."""

    model_config = ConfigDict(extra="forbid")

    sha: str
    committed_at: datetime
    cell: GridCell
    name: str = Field(description="What the test was called then.")
    seconds: float | None = Field(description="How long it took; null where that is not known.")


class HistoryFailing(BaseModel):
    """Since when the test fails, as the check run says it."""

    model_config = ConfigDict(extra="forbid")

    since: str = Field(description="The first nightly commit with the failure since the test last passed.")
    last_passed_at: str = Field(description="The last commit at which it passed; empty if it never did.")
    older: bool = Field(description="Whether there are runs before those that were looked at.")
    failed_before: int
    runs_before: int
    also_on: list[str] = Field(description="Other targets with the failure in their newest run, as LAB/TARGET.")
    message: str = Field(description="What the newest run reports, in one line; empty where that is not known.")


class HistoryFlakiness(BaseModel):
    """How flaky the test is, and the commits that prove it: each has both outcomes."""

    model_config = ConfigDict(extra="forbid")

    runs: int
    failed: int
    words: str
    proofs: list[str]


class HistorySource(BaseModel):
    """A test's place in the source, as its newest report or its ID has it."""

    model_config = ConfigDict(extra="forbid")

    path: str
    line: int | None
    url: str


class HistoryOnTarget(BaseModel):
    """The test in one suite on one target; runs have the newest first."""

    model_config = ConfigDict(extra="forbid")

    lab: str
    target: str
    suite: str
    runs: list[HistoryCommit]
    failing: HistoryFailing | None
    flakiness: HistoryFlakiness | None
    first_seen: str | None = Field(description="The oldest nightly commit that ran it.")
    first_seen_at: datetime | None
    renamed_from: list[str] = Field(description="What it was called before, the newest name first.")
    reproduce: str
    source: HistorySource | None = Field(description="Where its source is; null where no report says it.")
    issue_url: str = Field(description="GitHub's form for a new issue, filled in; empty for a test that is all right.")

    @property
    def chart(self) -> DurationChart | None:
        """How long it took from commit to commit, to be drawn."""
        return duration_chart(
            [(one.sha, one.seconds, one.cell.failed > 0) for one in self.runs if one.seconds is not None]
        )


class HistoryPage(BaseModel):
    """One test on all targets."""

    model_config = ConfigDict(extra="forbid")

    id: str
    targets: list[HistoryOnTarget]
    more: int = Field(description="Further targets and suites that have it.")


def history_page(parts: DashboardParts) -> Page:
    """Return the page."""

    async def load(asked: PageRequest) -> HistoryPage:
        name, settings = await settings_and_target(parts, asked)
        links = HistoryAddresses(f"{parts.github}/{name}", (parts.config.public_url or "").rstrip("/"))
        return await asked.pages.run(read_test, parts.store, name, settings, asked.query, links, parts.moment())

    return Page(
        path="/r/{owner}/{repo}/tests",
        api_path="/api/v1/repos/{owner}/{repo}/tests",
        summary="One test on all targets: how it ended from commit to commit, since when it fails, and how flaky it is",
        template="history.html",
        model=HistoryPage,
        query=HistoryQuery,
        load=load,
        content=content_of_results(parts),
        table=_table,
        most_csv_rows=MOST_LINES * RUNS,
    )


def _table(page: HistoryPage) -> CsvTable:
    rows = (
        (f"{on.lab}/{on.target}", on.suite, one.sha, one.committed_at, one.name, one.cell.state, one.seconds)
        for on in page.targets
        for one in on.runs
    )
    return CsvTable(("target", "suite", "sha", "committed_at", "test", "state", "seconds"), rows)


@dataclass(frozen=True, slots=True)
class HistoryAddresses:
    """The page of the repository on GitHub, and where our own pages are, which is empty if unknown."""

    page: str
    public_url: str


def read_test(
    store: ResultsStore,
    repository: str,
    settings: RepositoryConfig,
    query: HistoryQuery,
    links: HistoryAddresses,
    now: float,
) -> HistoryPage:
    """Read everything known about a test; it blocks. Raises LookupError for a test that no suite has."""
    lab, _, target = (query.target or "").partition("/")
    lines = store.grids.lines_of_test(GridRange(repository, lab or None, target or None), query.id)
    if not lines:
        raise LookupError(query.id)
    shown = lines[:MOST_LINES]
    found = []
    for _, of_suite in groupby(sorted(shown, key=lambda line: line.suite), key=lambda line: line.suite):
        found += _on_targets(store, settings, list(of_suite), query.id, links, now)
    order = {(line.about, line.suite): place for place, line in enumerate(shown)}
    found.sort(key=lambda one: order[TargetKey(repository, one.lab, one.target), one.suite])
    return HistoryPage(id=query.id, targets=found, more=len(lines) - len(shown))


def _on_targets(
    store: ResultsStore,
    settings: RepositoryConfig,
    lines: Sequence[GridLine],
    test: str,
    links: HistoryAddresses,
    now: float,
) -> list[HistoryOnTarget]:
    """Return the test on each target of a suite: what one statement reads for all of them is read once."""
    repository, suite, aliases = lines[0].about.repository, lines[0].suite, settings.aliases
    grids = store.grids.read_each(lines, GridRange(repository, limit=RUNS, aliases=aliases, test=test))
    nightly = store.grids.commits(GridRange(repository, limit=RUNS))
    traced = store.history(repository, suite, test, aliases)
    timelines = {
        line.series: store.timelines.of_test(line.about, suite, test, grid.commits[0][1], aliases, traced)
        for line in lines
        if (grid := grids[line.series]).commits
    }
    called = {
        (series, run.sha): (point, run.name)
        for series, timeline in timelines.items()
        for run in timeline[:RUNS]
        if (point := grids[series].points.get((series, run.sha)))
    }
    seconds = store.grids.durations(lines[0].row, called)
    return [
        found
        for line in lines
        if (timeline := timelines.get(line.series))
        and (
            found := _on_target(
                store, settings, line, _with_all(grids[line.series], nightly), timeline, seconds, test, links, now
            )
        )
    ]


def _with_all(grid: Grid, nightly: Sequence[Position]) -> Grid:
    """Return a grid of one line with the commits of which others have results: there, its own are missing."""
    if not grid.commits:
        return grid
    later = [one for one in nightly if one > grid.commits[-1]]
    return replace(grid, commits=sorted({*grid.commits, *later}, reverse=True)[:RUNS])


def _on_target(
    store: ResultsStore,
    settings: RepositoryConfig,
    line: GridLine,
    grid: Grid,
    timeline: Sequence[TimelineRun],
    seconds: Mapping[tuple[int, str], float],
    test: str,
    links: HistoryAddresses,
    now: float,
) -> HistoryOnTarget | None:
    about, suite = line.about, line.suite
    counted = [run for run in timeline if run.status is not None]
    if not counted:
        return None
    expected = about.full_name in configured_targets(settings)
    cells = cells_of_test(grid, line, store.grids.names(line), test, now, expected=expected)
    by_sha = {run.sha: run for run in timeline}
    runs = [
        _at_commit(committed_at, sha, cell, by_sha.get(sha), test, seconds.get((line.series, sha)))
        for (committed_at, sha), cell in zip(grid.commits, cells, strict=True)
    ]
    last = counted[0]
    bad = last.status in BAD and not last.flaky
    failure = _failure(store, line, last) if bad else None
    failing = _failing(store, line, last, test, settings, failure) if failure else None
    flaky = _flakiness(store, line, last, counted, test, settings)
    steps = _reproduce(settings, line, last, test)
    return HistoryOnTarget(
        lab=about.lab,
        target=about.target,
        suite=suite,
        runs=runs,
        failing=failing,
        flakiness=flaky,
        first_seen=counted[-1].sha,
        first_seen_at=datetime.fromtimestamp(counted[-1].committed_at, UTC),
        renamed_from=[name for name in dict.fromkeys(run.name for run in counted) if name != test],
        reproduce=steps,
        source=_source(links, last, failure),
        issue_url=_issue_url(links, line, test, failing, flaky, steps) if failing or flaky else "",
    )


def _at_commit(
    committed_at: float, sha: str, cell: GridCell, run: TimelineRun | None, test: str, seconds: float | None
) -> HistoryCommit:
    if run is not None and run.status is not None and cell.state is CellState.ABSENT:
        # It had another name then.
        bad, skipped = run.status in BAD, run.status is Status.SKIPPED
        state = CellState.STILL if bad else CellState.SKIPPED if skipped else CellState.PASS
        cell = GridCell(state=state, passed=int(not bad and not skipped), failed=int(bad), run_id=cell.run_id)
    at = datetime.fromtimestamp(committed_at, UTC)
    return HistoryCommit(sha=sha, committed_at=at, cell=cell, name=run.name if run else test, seconds=seconds)


def _failing(
    store: ResultsStore,
    line: GridLine,
    last: TimelineRun,
    test: str,
    settings: RepositoryConfig,
    failure: NewFailure,
) -> HistoryFailing:
    baselines = store.baselines(line.about, line.suite, last.sha, limit=1)
    asked = {line.suite: AskedFailures(baselines[0].sha if baselines else "", [test])}
    contexts = store.timelines.contexts(line.about, last.sha, asked, settings.aliases)
    context = contexts.get((line.suite, test), FailureContext())
    return HistoryFailing(
        since=context.since or last.sha,
        last_passed_at=context.good,
        older=context.older,
        failed_before=context.failed,
        runs_before=context.runs,
        also_on=list(context.also_on),
        message=failure.message[:LONGEST_MESSAGE],
    )


def _flakiness(
    store: ResultsStore,
    line: GridLine,
    last: TimelineRun,
    counted: Sequence[TimelineRun],
    test: str,
    settings: RepositoryConfig,
) -> HistoryFlakiness | None:
    assert last.status is not None
    if not any(run.flaky for run in counted[:WINDOW]):
        return None
    now = {test: SeenTest(last.status, last.flaky)}
    found = store.failures.flakiness(line.about, line.suite, last.sha, now, settings.aliases).get(test, Flakiness())
    if not found.proved:
        return None
    return HistoryFlakiness(
        runs=found.runs, failed=found.failed, words=how_flaky(found), proofs=list(_proofs(counted))[:MOST_PROOFS]
    )


def _proofs(counted: Sequence[TimelineRun]) -> Iterator[str]:
    """Yield the commits at which the test failed and passed, the newest first."""
    for run in counted:
        if run.flaky and run.left_out is LeftOut.NOTHING:
            yield run.sha


def _reproduce(settings: RepositoryConfig, line: GridLine, last: TimelineRun, test: str) -> str:
    lab = settings.results.labs.get(line.about.lab) if settings.results else None
    if lab is None or not lab.reproduce or last.status is None:
        return ""
    failure = NewFailure(line.suite, test, SeenTest(last.status), {})
    return command(lab.reproduce, failure, line.about.target, last.sha)


def _failure(store: ResultsStore, line: GridLine, last: TimelineRun) -> NewFailure:
    assert last.status is not None
    detail = store.grids.detail(line, last.sha, last.name) or Detail()
    seen = SeenTest(last.status, trouble=detail.trouble, message=detail.message)
    return NewFailure(line.suite, last.name, seen, {last.name: detail})


def _source(links: HistoryAddresses, last: TimelineRun, failure: NewFailure | None) -> HistorySource | None:
    path, line_number = source_place(failure) if failure else (file_in_id(last.name), None)
    if not path:
        return None
    return HistorySource(path=path, line=line_number, url=source_url(links.page, last.sha, path, line_number))


def _issue_url(
    links: HistoryAddresses,
    line: GridLine,
    test: str,
    failing: HistoryFailing | None,
    flaky: HistoryFlakiness | None,
    reproduce: str,
) -> str:
    target = line.about.full_name
    page = history_path(line.about.repository, test, target)
    return IssueDraft(
        links.page,
        test,
        line.suite,
        target,
        flaky=flaky.words if flaky else "",
        proofs=flaky.proofs if flaky else (),
        since=failing.since if failing else "",
        good=failing.last_passed_at if failing else "",
        message=failing.message if failing else "",
        reproduce=reproduce,
        history=f"{links.public_url}{page}" if links.public_url else "",
    ).address()
