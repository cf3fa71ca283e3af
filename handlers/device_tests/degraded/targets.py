"""Read and store the state of degraded targets, and the nightly runs of all targets of a repository."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.engine.records import Key, Record
from handlers.device_tests.degraded.rule import (
    DegradedTarget,
    NightlyOutcome,
    is_degraded,
    judge_target,
    without_target,
)
from handlers.results.config import labs_of
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig
    from bot.engine.records import Records
    from bot.results.settings.targets import TargetSettings
    from bot.results.store.lab_reports import NightlyReports
    from bot.results.store.store import ResultsStore
    from handlers.tracking_branches.records import TrackingMove

WINDOW = 14 * 86400.0
"""Seconds for which nightly commits are read, in addition to the time that a target has for a repair."""

DEGRADED = Record("degraded", 1, DegradedTarget, "a target whose nightly runs are infra or missing", days=None)


@dataclass(frozen=True, slots=True)
class TargetJudgement:
    """The state of a target before and now."""

    about: TargetKey
    known: DegradedTarget | None
    now: DegradedTarget | None

    @property
    def is_to_report(self) -> bool:
        """Whether the state changed, or the issue does not show it yet."""
        return self.now is not None and (self.now != self.known or not self.now.reported)


def degraded_key(repository_id: int, about: TargetKey) -> Key[DegradedTarget]:
    """Return the key of a target's record."""
    return DEGRADED.of(repository_id, about.lab, about.target)


async def degraded_targets(records: Records, repository_id: int) -> Mapping[str, DegradedTarget]:
    """Return the targets of a repository that are degraded now, as LAB/TARGET."""
    stored = await records.under(DEGRADED, repository_id)
    return {name.replace(":", "/", 1): one for name, one in stored.items() if is_degraded(one)}


async def judge_targets(
    config: Config, records: Records, store: ResultsStore, repository: str, repository_id: int, now: float
) -> list[TargetJudgement]:
    """Judge the targets of `owner/name` that accept requests, and those that were degraded before."""
    settings = _settings(config.repository(repository))
    stored = {tuple(name.split(":", 1)): one for name, one in (await records.under(DEGRADED, repository_id)).items()}
    keys = dict.fromkeys([*((about.lab, about.target) for about in settings), *stored])
    if not keys:
        return []
    since = now - WINDOW - max((one.repair_seconds for one in settings.values()), default=0.0)
    reports = await asyncio.to_thread(store.labs.nightly, repository, since)
    moves = await TrackingRecord(config, records, NIGHTLY).moves(repository)
    found = []
    for lab, target in keys:
        about, known = TargetKey("", lab, target), stored.get((lab, target))
        if (of := settings.get(about)) is None:
            judged = without_target(known)
        else:
            runs = nightly_outcomes(TargetKey(repository, lab, target), reports, moves, since)
            judged = judge_target(known, runs, of.repair_seconds, now)
        found.append(TargetJudgement(TargetKey(repository, lab, target), known, judged))
    return found


def _settings(config: RepositoryConfig | None) -> dict[TargetKey, TargetSettings]:
    labs = labs_of(config).items() if config is not None else ()
    return {
        TargetKey("", lab, target): settings
        for lab, of in labs
        for target, settings in of.targets.items()
        if settings.takes_requests
    }


def nightly_outcomes(
    about: TargetKey, reports: NightlyReports, moves: Sequence[TrackingMove], since: float
) -> list[NightlyOutcome]:
    """Return the results of all nightly commits since a target's first one.

    Nightly commits are those that any lab tested, and all others to which the bot moved the nightly branch.
    """
    moved = {
        move["sha"]: datetime.fromisoformat(move["moved_at"] or move["found_at"]).timestamp()
        for move in moves
        if move["sha"]
    }
    commits, first = reports.targets.get(about, {}), reports.first.get(about)
    if first is None:
        return []
    found = []
    for sha in {*reports.committed, *(sha for sha, at in moved.items() if at >= since)}:
        # A commit that no lab has reported has no known date; the move of the nightly branch is the nearest moment.
        order = reports.committed.get(sha, moved.get(sha, 0.0))
        at = max(order, moved.get(sha) or reports.arrived.get(sha) or order)
        report = commits.get(sha)
        # One suite with usable results is enough: the rule asks whether the devices deliver results at all.
        # A new target has missed nothing that was tested before its first results.
        if order >= first:
            found.append(NightlyOutcome(sha, order, at, None if report is None else report.infra < report.suites))
    return found
