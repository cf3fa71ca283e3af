"""`/labs` and `/r/{owner}/{repo}/labs`: labs, how complete and how fast their results are, and whom to ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa
from nightjar_formats.model import TargetKey
from pydantic import BaseModel, Field

from bot.core.page_paths import lab_path
from bot.core.utc import datetime_of
from bot.results.compare.target_health import STALE_SECONDS, is_stale
from bot.results.store.lists.lab_reports import activity_of_labs
from bot.results.store.tables.revisions import revisions_of
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.page_filters import age
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.labs.model import LabRun
from handlers.dashboard.labs.page import DAY, DAYS, lab_run, nightly_moves
from handlers.dashboard.overview.page import split_in_pages, visible_repositories
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.content import Content, content_of_results
from handlers.dashboard.shared.percentiles import percentile
from handlers.dashboard.shared.settings import settings_of
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.device_tests.paused.records import paused_in_repositories
from handlers.results.config import LAB_RESULTS, labs_of
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord

if TYPE_CHECKING:
    from bot.results.settings.results import Lab
    from bot.results.store.lists.lab_reports import TargetActivity
    from handlers.tracking_branches.records import TrackingMove


MOST_LATE_TARGETS = 3
"""The most late targets of a lab that the first sentence and a row name."""


class LabSummary(BaseModel, extra="forbid"):
    """A lab and its nightly runs of the last 30 days: one of each of its targets at each nightly commit."""

    repository: str
    lab: str
    contacts: list[str]
    targets: int
    paused: int = Field(default=0, description="How many of its targets are paused.")
    newest: LabRun | None = Field(description="The last nightly run of any target, however old.")
    stale: bool = Field(description="Whether the last nightly run arrived more than 36 hours ago, or never.")
    late_targets: dict[str, datetime | None] = Field(
        default={},
        description="Targets whose last run came more than 36 hours ago, of a lab that is not stale; null: none yet.",
    )
    runs: int = Field(
        description="Nightly runs that were expected: those that are complete, and others 36 hours after the commit."
    )
    complete: int = Field(description="Nightly runs in which each suite has complete and usable results.")
    incomplete: int = Field(description="Nightly runs in which a suite has incomplete or no usable results.")
    missing: int = Field(description="Nightly runs of which nothing arrived.")
    uptime: float | None = Field(description="`complete` divided by `runs`; null if none was expected.")
    results: int = Field(description="Results of a suite at a commit of the nightly branch.")
    seconds_p50: float | None = Field(
        description="Median time from the commit to the first result of a suite; null below five results."
    )
    seconds_p90: float | None = Field(description="90th percentile of that time; null below five results.")


class LabsPage(BaseModel, extra="forbid"):
    """All labs: those without a recent nightly run first, then those with the lowest uptime."""

    answer: list[AnswerPart] = Field(description="Which labs are late.")
    takes_results: bool = Field(description="Whether app.yaml has `results` for the repository.")
    days: int = Field(description="The number of days that the figures cover.")
    labs: list[LabSummary]


class AllLabsPage(BaseModel, extra="forbid"):
    """The labs of the repositories that the reader may see, in the order of `LabsPage` on each page."""

    answer: list[AnswerPart] = Field(description="Which labs of this page are late.")
    days: int = Field(description="The number of days that the figures cover.")
    labs: list[LabSummary]
    private_unknown: bool = Field(
        description="Whether GitHub did not say which private repositories the reader may see; then none is listed."
    )
    public_unknown: bool = Field(
        description="Whether GitHub did not say which other repositories are public; then some may be missing."
    )
    number: int = Field(description="The number of this page; the first one is 1.")
    pages: int = Field(description="Number of pages.")


class AllLabsQuery(BaseModel, extra="forbid"):
    """The page to show."""

    page: int = Field(default=1, ge=1, le=1_000_000, description="The number of the page.")


def labs_page(parts: DashboardParts) -> Page:
    """Return the page of all labs of a repository."""
    branches = TrackingRecord(parts.config, parts.records, NIGHTLY)
    results_content = content_of_results(parts)

    async def content(request: PageRequest) -> Content:
        results = await results_content(request)
        paused = await paused_in_repositories(parts.records, [request.repository], parts.moment())
        return *results, await branches.moves(request.repository), paused

    async def load(request: PageRequest) -> LabsPage:
        name, settings = settings_of(parts, request.repository)
        results = settings.of(LAB_RESULTS)
        if results is None:
            return LabsPage(answer=labs_answer([], parts.moment()), takes_results=False, days=DAYS, labs=[])
        moves = await branches.moves_of([name])
        labs = await request.pages.run(parts.results.store.read, read_labs, {name: results.labs}, moves, parts.moment())
        await _add_pauses(parts, labs)
        return LabsPage(answer=labs_answer(labs, parts.moment()), takes_results=True, days=DAYS, labs=labs)

    return Page(
        path="/r/{owner}/{repo}/labs",
        api_path="/api/v1/repos/{owner}/{repo}/labs",
        summary="How complete and how fast the results of each lab are, and whom to ask",
        template="labs.html",
        model=LabsPage,
        load=load,
        content=content,
        table=_table,
    )


def all_labs_page(parts: DashboardParts) -> Page:
    """Return the page of the labs of all repositories that the reader may see."""
    branches = TrackingRecord(parts.config, parts.records, NIGHTLY)

    def labs(name: str) -> Mapping[str, Lab]:
        settings = parts.config.repository(name)
        return labs_of(settings) if settings is not None else {}

    def in_pages(names: Iterable[str]) -> list[list[str]]:
        """Return the names of the repositories with labs on each page: a page has about as many targets as `/`."""
        targets = {name: sum(len(lab.targets) for lab in labs(name).values()) for name in names}
        return split_in_pages([name for name in names if targets[name]], targets)

    def on_page(request: PageRequest, pages: Sequence[list[str]]) -> list[str]:
        number = request.query.page
        return pages[number - 1] if number <= len(pages) else []

    async def content(request: PageRequest) -> Content:
        visible = await visible_repositories(request, list(parts.config.repositories))
        pages = in_pages(visible.names)
        names = on_page(request, pages)
        revisions = await request.pages.look_up(parts.results.store.read, revisions_of, names)
        paused = await paused_in_repositories(parts.records, names, parts.moment())
        missing = visible.private_unknown, visible.public_unknown
        return names, missing, len(pages), revisions, await branches.moves_of(names), paused, parts.moment()

    async def load(request: PageRequest) -> AllLabsPage:
        visible = await visible_repositories(request, list(parts.config.repositories))
        pages = in_pages(visible.names)
        summaries: list[LabSummary] = []
        for names in pages if request.as_csv else [on_page(request, pages)]:
            moves = await branches.moves_of(names)
            labs_of_names = {name: labs(name) for name in names}
            read = parts.results.store.read
            summaries += await request.pages.run(read, read_labs, labs_of_names, moves, parts.moment())
        await _add_pauses(parts, summaries)
        return AllLabsPage(
            answer=labs_answer(summaries, parts.moment(), of_page=len(pages) > 1),
            days=DAYS,
            labs=summaries,
            private_unknown=visible.private_unknown,
            public_unknown=visible.public_unknown,
            number=request.query.page,
            pages=len(pages),
        )

    return Page(
        path="/labs",
        api_path="/api/v1/labs",
        summary="How complete and how fast the results of each lab are, and whom to ask, in all repositories",
        template="all_labs.html",
        model=AllLabsPage,
        query=AllLabsQuery,
        load=load,
        content=content,
        table=_table,
    )


async def _add_pauses(parts: DashboardParts, labs: Sequence[LabSummary]) -> None:
    """Count the paused targets of each lab, which are not late."""
    repositories = list(dict.fromkeys(lab.repository for lab in labs))
    paused_targets = await paused_in_repositories(parts.records, repositories, parts.moment())
    paused = Counter((key.repository, key.lab) for key in paused_targets)
    for lab in labs:
        lab.paused = paused[lab.repository, lab.lab]
        for key in paused_targets:
            if (key.repository, key.lab) == (lab.repository, lab.lab):
                lab.late_targets.pop(key.target, None)


def read_labs(
    connection: sa.Connection,
    labs: Mapping[str, Mapping[str, Lab]],
    moves: Mapping[str, Sequence[TrackingMove]],
    moment: float,
) -> list[LabSummary]:
    """Read what all labs of some repositories sent, in as many statements as for one; it blocks.

    `labs` has the labs of each repository by name, and `moves` those of its nightly branch.
    """
    tested, activity = activity_of_labs(connection, list(labs), moment - DAYS * DAY)
    summaries = []
    for repository, labs_of_repository in labs.items():
        nightly = {**nightly_moves(moves.get(repository, ()), moment), **tested[repository]}
        for name, lab in labs_of_repository.items():
            targets = {target: activity.get(TargetKey(repository, name, target)) for target in lab.targets}
            summaries.append(_summary(repository, name, lab, targets, nightly, moment))
    return sorted(
        summaries, key=lambda lab: (not lab.stale, not lab.late_targets, 1.0 if lab.uptime is None else lab.uptime)
    )


def _summary(
    repository: str,
    name: str,
    lab: Lab,
    activity: Mapping[str, TargetActivity | None],
    nightly: Mapping[str, float],
    moment: float,
) -> LabSummary:
    targets = [target for target in activity.values() if target]
    complete, incomplete, missing = map(
        sum, zip((0, 0, 0), *(_count_runs(target, nightly, moment) for target in targets), strict=True)
    )
    latencies = sorted(latency for target in targets for latency in target.latencies)
    newest = max((target.newest for target in targets if target.newest), key=lambda run: run.received_at, default=None)
    stale = is_stale(newest.received_at if newest else None, moment)
    arrivals = {
        name: target.newest.received_at if target and target.newest else None for name, target in activity.items()
    }
    runs = complete + incomplete + missing
    return LabSummary(
        repository=repository,
        lab=name,
        contacts=list(lab.contacts),
        targets=len(lab.targets),
        newest=lab_run(newest) if newest else None,
        stale=stale,
        late_targets={
            name: None if received_at is None else datetime_of(received_at)
            for name, received_at in arrivals.items()
            if not stale and is_stale(received_at, moment)
        },
        runs=runs,
        complete=complete,
        incomplete=incomplete,
        missing=missing,
        uptime=complete / runs if runs else None,
        results=len(latencies),
        seconds_p50=percentile(latencies, 0.5),
        seconds_p90=percentile(latencies, 0.9),
    )


def _count_runs(target: TargetActivity, nightly: Mapping[str, float], moment: float) -> tuple[int, int, int]:
    """Return how many nightly runs of a target are complete, incomplete, and missing.

    A target owes nothing for commits before its first result, and has `STALE_SECONDS` for each commit.
    """
    complete = incomplete = missing = 0
    for sha, committed_at in nightly.items():
        report = target.commits.get(sha)
        if report is not None and report.is_complete:
            complete += 1
        elif committed_at > moment - STALE_SECONDS:
            continue
        elif report is not None:
            incomplete += 1
        elif target.first_commit_at is not None and committed_at >= target.first_commit_at:
            missing += 1
    return complete, incomplete, missing


def labs_answer(labs: Sequence[LabSummary], moment: float, *, of_page: bool = False) -> list[AnswerPart]:
    """Say which labs are late at a moment, in seconds since 1970. With `of_page`, there are labs on other pages."""
    if not labs:
        return [AnswerPart(text=texts.NO_LABS)]
    late = [lab for lab in labs if lab.stale or lab.late_targets]
    if not late:
        return [AnswerPart(text=texts.labs_on_time(len(labs), of_page=of_page))]
    parts = [AnswerPart(text=texts.labs_late(len(late), len(labs), of_page=of_page))]
    for number, lab in enumerate(late[: texts.MOST_NAMED_LABS]):
        last = lab.newest.received_at if lab.newest else None
        for place, (target, received_at) in enumerate(
            list(lab.late_targets.items())[:MOST_LATE_TARGETS] or [("", last)]
        ):
            parts += [
                AnswerPart(text=", " if number or place else " "),
                AnswerPart(text=f"{lab.lab}/{target}".rstrip("/"), href=lab_path(lab.repository, lab.lab)),
                AnswerPart(text=texts.lab_silence(age(moment - received_at.timestamp()) if received_at else "")),
            ]
    return [*parts, AnswerPart(text=".")]


def _table(page: LabsPage | AllLabsPage) -> CsvTable:
    newest = ("target", "sha", "run_id", "received_at")
    columns = [
        column
        for column in LabSummary.model_fields
        if column not in ("repository", "lab", "contacts", "newest", "late_targets")
    ]
    rows: Iterable[Sequence[str | float | datetime | None]] = (
        [
            lab.repository,
            lab.lab,
            " ".join(lab.contacts),
            *(getattr(lab, column) for column in columns),
            " ".join(lab.late_targets),
            *(getattr(lab.newest, column, None) for column in newest),
        ]
        for lab in page.labs
    )
    return CsvTable(
        ("repository", "lab", "contacts", *columns, "late_targets", *(f"newest_{column}" for column in newest)), rows
    )
