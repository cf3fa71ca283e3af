"""`/r/{owner}/{repo}/labs/{lab}`: the last uploads of a lab, how long its results take, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from typing import TYPE_CHECKING

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.github.pull_heads import repository_id_of
from bot.results.compare.target_health import STALE_SECONDS, is_stale
from bot.results.settings.targets import EVERY_PUSH, NIGHTLY_ONLY
from bot.results.state import Run
from bot.results.store.lists.lab_reports import lab_activity, lab_flips
from bot.results.store.lists.run_lists import lab_usage
from bot.web.csv_tables import CsvTable
from bot.web.openapi import Parameter
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.grid.page import ListedNightly
from handlers.dashboard.labs.answer import lab_answer, lab_steps
from handlers.dashboard.labs.model import (
    DegradedState,
    LabPage,
    LabQuota,
    LabRun,
    LabTarget,
    MissingNightlyRun,
    PausedState,
)
from handlers.dashboard.labs.promotion import Promotion, promotion_of
from handlers.dashboard.shared.content import Content, content_of_results
from handlers.dashboard.shared.percentiles import percentile
from handlers.dashboard.shared.settings import results_of
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.device_tests.degraded.rule import DegradedTarget, effective_tier
from handlers.device_tests.degraded.targets import degraded_targets
from handlers.device_tests.paused.records import paused_in_repositories
from handlers.device_tests.paused.rule import TargetPause
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord

if TYPE_CHECKING:
    from bot.results.settings.results import Lab
    from bot.results.store.lists.lab_reports import LabActivity, TargetActivity
    from handlers.tracking_branches.records import TrackingMove

DAY = 86400.0
DAYS = 30
"""Days, up to now, that the figures of the page cover."""
MOST_MISSING = 5
"""The most missed nightly commits of a target that the page names, the newest ones."""
MEGABYTE = 1_000_000
LAB_PART = Parameter("lab", "The lab's name in app.yaml.", {"type": "string", "maxLength": 64})


def lab_page(parts: DashboardParts) -> Page:
    """Return the page of a lab."""
    branches = TrackingRecord(parts.config, parts.records, NIGHTLY)
    results_content = content_of_results(parts)

    async def content(request: PageRequest) -> Content:
        results = await results_content(request)
        degraded = await _degraded_targets(parts, request.repository)
        paused = await paused_in_repositories(parts.records, [request.repository], parts.moment())
        return *results, await branches.moves(request.repository), degraded, paused

    async def load(request: PageRequest) -> LabPage:
        repository, _, results = results_of(parts, request.repository)
        name = request.path["lab"]
        lab = results.labs.get(name)
        if lab is None:
            raise LookupError(name)
        moves = await branches.moves(request.repository)
        degraded = await _degraded_targets(parts, request.repository)
        page = await request.pages.run(
            parts.results.store.read,
            read_lab,
            repository,
            name,
            lab,
            moves,
            degraded,
            parts.moment(),
            f"{parts.github}/{repository}",
            parts.public_url,
        )
        paused = await paused_in_repositories(parts.records, [repository], parts.moment())
        for target in page.targets:
            if pause := paused.get(TargetKey(repository, name, target.target)):
                target.paused = _paused_state(pause)
                target.tier = NIGHTLY_ONLY
        page.answer = lab_answer(page, repository, parts.moment())
        page.next_steps = lab_steps(page)
        return page

    return Page(
        path="/r/{owner}/{repo}/labs/{lab}",
        api_path="/api/v1/repos/{owner}/{repo}/labs/{lab}",
        summary="A lab's last uploads, how long its results take, and what went wrong",
        template="lab.html",
        model=LabPage,
        parts=(LAB_PART,),
        load=load,
        content=content,
        table=_table,
    )


async def _degraded_targets(parts: DashboardParts, repository: str) -> Mapping[str, DegradedTarget]:
    repository_id = await repository_id_of(parts.records, repository)
    return await degraded_targets(parts.records, repository_id) if repository_id is not None else {}


def read_lab(
    connection: sa.Connection,
    repository: str,
    name: str,
    lab: Lab,
    moves: Sequence[TrackingMove],
    degraded: Mapping[str, DegradedTarget],
    moment: float,
    github: str,
    public_url: str,
) -> LabPage:
    """Read the contents of a lab's page; it blocks. The keys of `degraded` are targets as LAB/TARGET."""
    activity = lab_activity(connection, repository, name, moment - DAYS * DAY)
    runs, size = lab_usage(connection, repository, name, moment - moment % DAY)
    moved = nightly_moves(moves, moment)
    # The nightly commits: those that any lab tested, and those that the branch moved to without a result.
    nightly, available = {**moved, **activity.tested}, {**activity.tested, **moved}

    could_move = {
        target
        for target, settings in lab.targets.items()
        if target in activity.targets and settings.tier != EVERY_PUSH and f"{name}/{target}" not in degraded
    }
    flips = lab_flips(connection, repository, name, could_move)

    def promotion(target: str, tier: int, missing: tuple[int, int]) -> Promotion | None:
        if target not in could_move:
            return None
        return promotion_of(tier, activity.targets[target], flips.get(target, ()), missing, available, moment)

    targets = [
        _target(target, settings.tier, degraded.get(f"{name}/{target}"), activity, nightly, moment, promotion)
        for target, settings in lab.targets.items()
    ]
    return LabPage(
        lab=name,
        contacts=list(lab.contacts),
        github=github,
        public_url=public_url,
        days=DAYS,
        quota=LabQuota(
            runs=runs,
            runs_per_day=lab.runs_per_day,
            megabytes=round(size / MEGABYTE, 1),
            megabytes_per_day=lab.megabytes_per_day,
        ),
        targets=sorted(targets, key=lambda target: not target.stale),
        unusable=[lab_run(run) for run in activity.unusable],
    )


def nightly_moves(moves: Iterable[TrackingMove], moment: float) -> dict[str, float]:
    """Return the commits to which the nightly branch moved in the last `DAYS`, and when."""
    moved = {}
    for move in moves:
        moved_at = datetime.fromisoformat(move["moved_at"] or move["found_at"]).timestamp()
        if move["sha"] and moved_at >= moment - DAYS * DAY:
            moved[move["sha"]] = moved_at
    return moved


def _target(
    target: str,
    tier: int,
    degraded: DegradedTarget | None,
    activity: LabActivity,
    nightly: Mapping[str, float],
    moment: float,
    promotion: Callable[[str, int, tuple[int, int]], Promotion | None],
) -> LabTarget:
    target_activity = activity.targets.get(target)
    newest = target_activity.newest if target_activity else None
    expected, missing = _missing_runs(target_activity, nightly, moment) if target_activity else (0, [])
    latencies, commits = (target_activity.latencies, target_activity.commits.values()) if target_activity else ((), ())
    return LabTarget(
        target=target,
        tier=effective_tier(tier, degraded),
        degraded=_degraded_state(degraded) if degraded and tier < NIGHTLY_ONLY else None,
        newest=lab_run(newest) if newest else None,
        stale=is_stale(newest.received_at if newest else None, moment),
        results=len(latencies),
        seconds_p50=percentile(latencies, 0.5),
        seconds_p90=percentile(latencies, 0.9),
        infra=sum(commit.infra for commit in commits),
        infra_of=sum(commit.suites for commit in commits),
        missing=len(missing),
        expected=expected,
        missing_commits=missing[:MOST_MISSING],
        unusable_since=_unusable_since(target_activity) if target_activity else None,
        promotion=promotion(target, tier, (len(missing), expected)),
    )


def _unusable_since(activity: TargetActivity) -> ListedNightly | None:
    """Return the first of the newest commits of which no suite has usable results; None if the newest one has some."""
    newest_first = sorted(activity.commits.items(), key=lambda item: (item[1].committed_at, item[0]), reverse=True)
    unusable = list(takewhile(lambda item: item[1].infra == item[1].suites, newest_first))
    if not unusable:
        return None
    sha, report = unusable[-1]
    return ListedNightly(sha=sha, committed_at=datetime.fromtimestamp(report.committed_at, UTC))


def _degraded_state(target: DegradedTarget) -> DegradedState:
    since = datetime.fromtimestamp(target.since, UTC)
    return DegradedState(since=since, sha=target.sha, infra=target.infra, missing=target.missing)


def _paused_state(pause: TargetPause) -> PausedState:
    return PausedState(until=datetime.fromtimestamp(pause.until, UTC), by=pause.by, reason=pause.reason)


def _missing_runs(
    activity: TargetActivity, nightly: Mapping[str, float], moment: float
) -> tuple[int, list[MissingNightlyRun]]:
    """Return how many commits a target had to test, and those without any result, newest first.

    A target owes nothing for commits before its first result, nor yet for those of the last `STALE_SECONDS`.
    """
    first_commit_at = activity.first_commit_at
    if first_commit_at is None:
        return 0, []
    expected = {
        sha: committed_at
        for sha, committed_at in nightly.items()
        if first_commit_at <= committed_at <= moment - STALE_SECONDS or sha in activity.commits
    }
    missing = sorted(
        ((committed_at, sha) for sha, committed_at in expected.items() if sha not in activity.commits), reverse=True
    )
    return len(expected), [
        MissingNightlyRun(sha=sha, at=datetime.fromtimestamp(committed_at, UTC)) for committed_at, sha in missing
    ]


def lab_run(run: Run) -> LabRun:
    """Return what pages say about a run."""
    key = run.key
    return LabRun(
        target=key.target,
        sha=key.sha,
        run_id=key.run_id,
        received_at=datetime.fromtimestamp(run.received_at, UTC),
        state=run.state,
        reason=run.reason,
    )


def _table(page: LabPage) -> CsvTable:
    newest = ("sha", "run_id", "received_at", "state")
    numbers = ("stale", "results", "seconds_p50", "seconds_p90", "infra", "infra_of", "missing", "expected")
    rows = (
        [
            target.target,
            target.tier,
            target.degraded.since if target.degraded else None,
            target.paused.until if target.paused else None,
            *(getattr(target.newest, column, None) for column in newest),
            *(getattr(target, column) for column in numbers),
        ]
        for target in page.targets
    )
    return CsvTable(("target", "tier", "degraded_since", "paused_until", *newest, *numbers), rows)
