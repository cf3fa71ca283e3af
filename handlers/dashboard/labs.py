"""`/r/{owner}/{repo}/labs`: all labs, how complete and how fast their results are, and whom to ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa
from pydantic import BaseModel, Field

from bot.core.page_paths import lab_path
from bot.results.compare.target_health import STALE_SECONDS, is_stale
from bot.results.store.lists.lab_reports import activity_of_labs
from bot.web.answers import AnswerPart
from bot.web.csv_tables import CsvTable
from bot.web.page_filters import age
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard import texts
from handlers.dashboard.content import Content, content_of_results
from handlers.dashboard.lab import DAY, DAYS, lab_run, nightly_moves
from handlers.dashboard.lab_model import LabRun
from handlers.dashboard.percentiles import percentile
from handlers.dashboard.settings import settings_of
from handlers.dashboard.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord

if TYPE_CHECKING:
    from bot.results.settings.results import Lab
    from bot.results.store.lists.lab_reports import TargetActivity
    from handlers.tracking_branches.records import TrackingMove


class LabSummary(BaseModel, extra="forbid"):
    """A lab and its nightly runs of the last 30 days: one of each of its targets at each nightly commit."""

    lab: str
    contacts: list[str]
    targets: int
    newest: LabRun | None = Field(description="The last nightly run of any target, however old.")
    stale: bool = Field(description="Whether the last nightly run arrived more than 36 hours ago, or never.")
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


def labs_page(parts: DashboardParts) -> Page:
    """Return the page of all labs of a repository."""
    branches = TrackingRecord(parts.config, parts.records, NIGHTLY)
    results_content = content_of_results(parts)

    async def content(request: PageRequest) -> Content | None:
        results = await results_content(request)
        return results and (*results, await branches.moves(request.repository))

    async def load(request: PageRequest) -> LabsPage:
        name, settings = settings_of(parts, request.repository)
        results = settings.of(LAB_RESULTS)
        if results is None:
            return _page(name, [], parts.moment(), takes_results=False)
        moves = await branches.moves(request.repository)
        summaries = await request.pages.run(
            parts.results.store.read, read_labs, name, results.labs, moves, parts.moment()
        )
        return _page(name, summaries, parts.moment(), takes_results=True)

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


def read_labs(
    connection: sa.Connection,
    repository: str,
    labs: Mapping[str, Lab],
    moves: Sequence[TrackingMove],
    moment: float,
) -> list[LabSummary]:
    """Read what all labs sent; it blocks."""
    tested, activity = activity_of_labs(connection, repository, moment - DAYS * DAY)
    nightly = {**nightly_moves(moves, moment), **tested}
    summaries = [
        _summary(
            name,
            lab,
            [activity[name][target] for target in lab.targets if target in activity.get(name, {})],
            nightly,
            moment,
        )
        for name, lab in labs.items()
    ]
    return sorted(summaries, key=lambda lab: (not lab.stale, 1.0 if lab.uptime is None else lab.uptime))


def _summary(
    name: str, lab: Lab, targets: Sequence[TargetActivity], nightly: Mapping[str, float], moment: float
) -> LabSummary:
    complete, incomplete, missing = map(
        sum, zip((0, 0, 0), *(_runs(target, nightly, moment) for target in targets), strict=True)
    )
    latencies = sorted(latency for target in targets for latency in target.latencies)
    newest = max((target.newest for target in targets if target.newest), key=lambda run: run.received_at, default=None)
    runs = complete + incomplete + missing
    return LabSummary(
        lab=name,
        contacts=list(lab.contacts),
        targets=len(lab.targets),
        newest=lab_run(newest) if newest else None,
        stale=is_stale(newest.received_at if newest else None, moment),
        runs=runs,
        complete=complete,
        incomplete=incomplete,
        missing=missing,
        uptime=complete / runs if runs else None,
        results=len(latencies),
        seconds_p50=percentile(latencies, 0.5),
        seconds_p90=percentile(latencies, 0.9),
    )


def _runs(target: TargetActivity, nightly: Mapping[str, float], moment: float) -> tuple[int, int, int]:
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


def _page(repository: str, labs: Sequence[LabSummary], moment: float, *, takes_results: bool) -> LabsPage:
    return LabsPage(answer=_answer(repository, labs, moment), takes_results=takes_results, days=DAYS, labs=list(labs))


def _answer(repository: str, labs: Sequence[LabSummary], moment: float) -> list[AnswerPart]:
    if not labs:
        return [AnswerPart(text=texts.NO_LABS)]
    late = [lab for lab in labs if lab.stale]
    if not late:
        return [AnswerPart(text=texts.labs_on_time(len(labs)))]
    parts = [AnswerPart(text=texts.labs_late(len(late), len(labs)))]
    for number, lab in enumerate(late[: texts.MOST_NAMED_LABS]):
        since = age(moment - lab.newest.received_at.timestamp()) if lab.newest else ""
        parts += [
            AnswerPart(text=", " if number else " "),
            AnswerPart(text=lab.lab, href=lab_path(repository, lab.lab)),
            AnswerPart(text=texts.lab_silence(since)),
        ]
    return [*parts, AnswerPart(text=".")]


def _table(page: LabsPage) -> CsvTable:
    newest = ("target", "sha", "run_id", "received_at")
    columns = [column for column in LabSummary.model_fields if column not in ("lab", "contacts", "newest")]
    rows: Iterable[Sequence[str | float | datetime | None]] = (
        [
            lab.lab,
            " ".join(lab.contacts),
            *(getattr(lab, column) for column in columns),
            *(getattr(lab.newest, column, None) for column in newest),
        ]
        for lab in page.labs
    )
    return CsvTable(("lab", "contacts", *columns, *(f"newest_{column}" for column in newest)), rows)
