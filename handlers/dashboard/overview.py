"""`/`: the repositories that the reader may see, the last result of each target, and how far branches are behind."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from nightjar_formats.model import TargetKey
from pydantic import BaseModel, ConfigDict, Field

from bot.core.aliases import Aliases
from bot.core.errors import TryAgain
from bot.web.csv_tables import Cell, CsvTable
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.cells import STALE_SECONDS
from handlers.dashboard.content import Content
from handlers.dashboard.wiring import DashboardParts
from handlers.last_good.route import LastGoods
from handlers.results.config import LAB_RESULTS, RENAMES
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord

if TYPE_CHECKING:
    from bot.results.settings.results import Results
    from bot.results.store.failures.failing_now import TargetNow
    from bot.results.store.store import ResultsStore

MOST_FAILING = 5
"""The most failing tests of a target that the page names."""


class FailingNow(BaseModel):
    """A test that fails in the newest nightly run of its suite."""

    model_config = ConfigDict(extra="forbid")

    suite: str
    test: str
    since: str = Field(description="The first nightly commit with the failure since the test last passed.")


class TargetOverview(BaseModel):
    """The last results of a target of a lab. An unknown member is null."""

    model_config = ConfigDict(extra="forbid")

    lab: str
    target: str
    received_at: datetime | None = Field(description="When the newest stored run arrived.")
    stale: bool = Field(description="Whether the newest run arrived more than 36 hours ago, or never.")
    sha: str | None = Field(description="The newest commit with complete results.")
    suites: int = Field(description="How many suites have complete results of any nightly commit.")
    failing: int = Field(description="How many tests fail in the newest nightly run of each suite.")
    failures: list[FailingNow] = Field(description="Some of those tests.")


class BranchOverview(BaseModel):
    """A branch that the bot moves: its commit, and how far it is behind."""

    model_config = ConfigDict(extra="forbid")

    branch: str
    sha: str | None
    moved_at: datetime | None
    behind: int | None = Field(description="Number of newer commits; null if unknown.")
    hours: float | None = Field(description="Age of the oldest of these commits.")
    why: str


class RepositoryOverview(BaseModel):
    """A repository that the reader may see."""

    model_config = ConfigDict(extra="forbid")

    repository: str
    takes_results: bool = Field(description="Whether app.yaml has `results` for it.")
    targets: list[TargetOverview]
    nightly: BranchOverview | None
    last_good: BranchOverview | None


class OverviewPage(BaseModel):
    """All repositories that the reader may see, in the order of app.yaml."""

    model_config = ConfigDict(extra="forbid")

    repositories: list[RepositoryOverview]
    private_unknown: bool = Field(
        description="Whether GitHub did not say which private repositories the reader may see; then none is listed."
    )


def overview_page(parts: DashboardParts) -> Page:
    """Return the page with all repositories."""
    nightlies = TrackingRecord(parts.config, parts.records, NIGHTLY)
    last_goods = LastGoods(parts.config, parts.records, parts.moment)

    async def content(request: PageRequest) -> Content:
        public = [name for name in parts.config.repositories if await request.pages.is_public(name)]
        branches = [(await _read_record(nightlies.of, name), await _read_record(last_goods, name)) for name in public]
        return public, await request.pages.look_up(parts.store.revisions.of, public), branches, parts.moment()

    async def load(request: PageRequest) -> OverviewPage:
        overviews = []
        visible, unknown = await visible_repositories(request, list(parts.config.repositories))
        for name in visible:
            settings = parts.config.repositories[name]
            results = settings.of(LAB_RESULTS)
            targets = (
                await request.pages.run(
                    target_overviews, parts.store, name, results, settings.of(RENAMES).aliases, parts.moment()
                )
                if results
                else []
            )
            nightly, last_good = await _read_record(nightlies.of, name), await _read_record(last_goods, name)
            overviews.append(
                RepositoryOverview(
                    repository=name,
                    takes_results=results is not None,
                    targets=targets,
                    nightly=_nightly(nightly) if nightly else None,
                    last_good=_last_good(last_good) if last_good else None,
                )
            )
        return OverviewPage(repositories=overviews, private_unknown=unknown)

    return Page(
        path="/",
        api_path="/api/v1/repos",
        summary="All repositories that the reader may see: last results of each target, and the state of the branches",
        template="overview.html",
        model=OverviewPage,
        load=load,
        content=content,
        table=_table,
    )


async def visible_repositories(request: PageRequest, names: Sequence[str]) -> tuple[list[str], bool]:
    """Return the repositories that the reader may see, and whether private ones may be missing.

    They may be missing if GitHub did not say which of them the reader may read.
    """
    public = {name for name in names if await request.pages.is_public(name)}
    unknown = False
    private: Collection[str] = ()
    try:
        private = await request.pages.viewers.readable(request.request, [name for name in names if name not in public])
    except TryAgain:
        unknown = True
    return [name for name in names if name in public or name in private], unknown


def target_overviews(
    store: ResultsStore, repository: str, results: Results, aliases: Aliases, moment: float
) -> list[TargetOverview]:
    """Read the last results of each target, in the order of app.yaml; it blocks."""
    newest = store.newest(repository)
    states = store.failures.targets_now(repository, MOST_FAILING, aliases)
    targets = [
        TargetKey(repository, lab, target)
        for lab, lab_settings in results.labs.items()
        for target in lab_settings.targets
    ]
    return [_target(target, newest.get(target), states.get(target), moment) for target in targets]


def _target(target: TargetKey, received: float | None, state: TargetNow | None, moment: float) -> TargetOverview:
    return TargetOverview(
        lab=target.lab,
        target=target.target,
        received_at=datetime.fromtimestamp(received, UTC) if received is not None else None,
        stale=received is None or moment - received > STALE_SECONDS,
        sha=state.sha if state else None,
        suites=state.suites if state else 0,
        failing=state.failing if state else 0,
        failures=[
            FailingNow(suite=failure.suite, test=failure.test, since=failure.since)
            for failure in (state.failures if state else ())
        ],
    )


async def _read_record(read: Any, repository: str) -> Mapping[str, Any] | None:
    try:
        record: Mapping[str, Any] = await read(repository)
    except LookupError as error:
        if isinstance(error, KeyError | IndexError):  # a bug, not an answer
            raise
        return None
    return record


def _nightly(record: Mapping[str, Any]) -> BranchOverview:
    skipped: Sequence[object] = record["why_not_newer"]
    return _branch(record, len(skipped), None)


def _last_good(record: Mapping[str, Any]) -> BranchOverview:
    lag = record["lag"]
    return _branch(record, lag["commits"] if lag else None, lag["hours"] if lag else None)


def _branch(record: Mapping[str, Any], behind: int | None, hours: float | None) -> BranchOverview:
    moved = record["moved_at"]
    return BranchOverview(
        branch=record["branch"],
        sha=record["sha"],
        moved_at=datetime.fromisoformat(moved) if moved else None,
        behind=behind,
        hours=hours,
        why=record["trouble"] or record["why"],
    )


def _table(page: OverviewPage) -> CsvTable:
    columns = ("received_at", "stale", "sha", "suites", "failing")
    branches = ("nightly_sha", "nightly_behind", "last_good_sha", "last_good_behind")
    return CsvTable(("repository", "target", *columns, *branches), _rows(page, columns))


def _rows(page: OverviewPage, columns: Sequence[str]) -> Iterator[list[Cell]]:
    """Yield a row for each target, and one row for a repository without targets."""
    for repository in page.repositories:
        heads = [
            (branch.sha, branch.behind) if branch else (None, None)
            for branch in (repository.nightly, repository.last_good)
        ]
        branches = [cell for branch in heads for cell in branch]
        for target in repository.targets:
            values = (getattr(target, column) for column in columns)
            yield [repository.repository, f"{target.lab}/{target.target}", *values, *branches]
        if not repository.targets:
            yield [repository.repository, None, *(None for _ in columns), *branches]
