"""`/r/{owner}/{repo}/tests?id=…`: one test on all targets, from commit to commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bot.results.compare.context import FailureContext
from bot.results.compare.flaky import Flakiness
from bot.results.model import BAD, SeenTest, Status
from bot.results.report.findings import NewFailure
from bot.results.report.reproduce import command
from bot.results.report.texts import how_flaky
from bot.results.store.contexts import AskedFailures
from bot.results.store.grid import GridLine, GridRange
from bot.results.store.timelines import LeftOut, TimelineRun
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.cells import CellState, GridCell
from handlers.dashboard.chart import DurationChart, duration_chart
from handlers.dashboard.rows import cells_of_test
from handlers.dashboard.settings import TARGET_PATTERN, results_of
from handlers.dashboard.wiring import DashboardParts

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.results.store.store import ResultsStore

RUNS = 30
"""Commits that the strip shows."""
MOST_LINES = 60
"""Targets and suites that a page shows."""
MOST_PROOFS = 10


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


class HistoryFlakiness(BaseModel):
    """How flaky the test is, and the commits that prove it: each has both outcomes."""

    model_config = ConfigDict(extra="forbid")

    runs: int
    failed: int
    words: str
    proofs: list[str]


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

    @property
    def chart(self) -> DurationChart | None:
        """How long it took from commit to commit, to be drawn."""
        return duration_chart(
            [(one.sha, one.seconds, one.cell.failed > 0) for one in reversed(self.runs) if one.seconds is not None]
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
        name, settings, _ = results_of(parts, asked.repository)
        return await asked.pages.run(read_test, parts.store, name, settings, asked.query)

    return Page(
        path="/r/{owner}/{repo}/tests",
        api_path="/api/v1/repos/{owner}/{repo}/tests",
        summary="One test on all targets: how it ended from commit to commit, since when it fails, and how flaky it is",
        template="history.html",
        model=HistoryPage,
        query=HistoryQuery,
        load=load,
    )


def read_test(store: ResultsStore, repository: str, settings: RepositoryConfig, query: HistoryQuery) -> HistoryPage:
    """Read everything known of a test; it blocks. Raises LookupError for a test that no suite has."""
    lab, _, target = (query.target or "").partition("/")
    lines = store.grids.lines_of_test(GridRange(repository, lab or None, target or None), query.id)
    if not lines:
        raise LookupError(query.id)
    shown = lines[:MOST_LINES]
    return HistoryPage(
        id=query.id,
        targets=[one for line in shown if (one := _on_target(store, settings, line, query.id)) is not None],
        more=len(lines) - len(shown),
    )


def _on_target(store: ResultsStore, settings: RepositoryConfig, line: GridLine, test: str) -> HistoryOnTarget | None:
    about, suite, aliases = line.about, line.suite, settings.aliases
    asked = GridRange(about.repository, about.lab, about.target, suite, RUNS, aliases=aliases)
    grid = store.grids.read(asked)
    if not grid.commits:
        return None
    newest = grid.commits[0][1]
    timeline = store.timelines.of_test(about, suite, test, newest, aliases)
    counted = [run for run in timeline if run.status is not None]
    if not counted:
        return None
    cells = cells_of_test(grid, line, store.grids.names(line), test)
    by_sha = {run.sha: run for run in timeline}
    seconds = store.grids.durations(line, [(run.sha, run.name) for run in timeline[:RUNS]])
    runs = [
        _at_commit(committed_at, sha, cell, by_sha.get(sha), test, seconds.get(sha))
        for (committed_at, sha), cell in zip(grid.commits, cells, strict=True)
    ]
    last = counted[0]
    return HistoryOnTarget(
        lab=about.lab,
        target=about.target,
        suite=suite,
        runs=runs,
        failing=_failing(store, line, last, test, settings) if last.status in BAD and not last.flaky else None,
        flakiness=_flakiness(store, line, last, counted, test, settings),
        first_seen=counted[-1].sha,
        first_seen_at=datetime.fromtimestamp(counted[-1].committed_at, UTC),
        renamed_from=[name for name in dict.fromkeys(run.name for run in counted) if name != test],
        reproduce=_reproduce(settings, line, last, test),
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
    store: ResultsStore, line: GridLine, last: TimelineRun, test: str, settings: RepositoryConfig
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
