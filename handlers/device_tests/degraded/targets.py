"""Read and store the state of degraded targets, and the nightly runs of all targets of a repository."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.engine.records import Key
from bot.results.store.lists.lab_reports import nightly_reports
from handlers.device_tests.degraded.records import DEGRADED
from handlers.device_tests.degraded.rule import (
    DegradedTarget,
    NightlyOutcome,
    is_degraded,
    judge_target,
    outcomes_outside,
    without_requests,
)
from handlers.device_tests.paused.records import stored_pauses
from handlers.results.config import labs_of
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig
    from bot.engine.records import Records
    from bot.results.settings.targets import TargetSettings
    from bot.results.store.lists.lab_reports import NightlyReports
    from bot.results.store.store import ResultsStore
    from handlers.tracking_branches.records import TrackingMove

WINDOW = 14 * 86400.0
"""Seconds for which nightly commits are read, in addition to the time that a target has for a repair."""


@dataclass(frozen=True, slots=True)
class TargetJudgement:
    """The stored state of a target, and its new state; None means that it is healthy."""

    target: TargetKey
    old_state: DegradedTarget | None
    new_state: DegradedTarget | None

    @property
    def must_report(self) -> bool:
        """Whether the state changed, or the issue does not show it yet."""
        return self.new_state is not None and (self.new_state != self.old_state or not self.new_state.reported)


def degraded_key(repository_id: int, target: TargetKey) -> Key[DegradedTarget]:
    """Return the key of a target's record."""
    return DEGRADED.of(repository_id, target.lab, target.target)


async def degraded_targets(records: Records, repository_id: int) -> Mapping[str, DegradedTarget]:
    """Return the targets of a repository that are degraded now, by LAB/TARGET."""
    stored = await records.under(DEGRADED, repository_id)
    return {name.replace(":", "/", 1): state for name, state in stored.items() if is_degraded(state)}


async def judge_targets(
    config: Config, records: Records, store: ResultsStore, repository: str, repository_id: int, moment: float
) -> list[TargetJudgement]:
    """Evaluate the targets of `owner/name` that accept requests, and those that were degraded before."""
    settings = _settings(config.repository(repository))
    records_of_targets = await records.under(DEGRADED, repository_id)
    stored = {tuple(name.split(":", 1)): state for name, state in records_of_targets.items()}
    keys = dict.fromkeys([*((target.lab, target.target) for target in settings), *stored])
    if not keys:
        return []
    since = moment - WINDOW - max((target.repair_seconds for target in settings.values()), default=0.0)
    reports = await asyncio.to_thread(store.read, nightly_reports, repository, since)
    # Without results no target is judged by its runs.
    moves = await TrackingRecord(config, records, NIGHTLY).moves(repository) if reports.first_commits else ()
    pauses = await stored_pauses(records, repository_id)
    judgements = []
    for lab, name in keys:
        target, old_state = TargetKey(repository, lab, name), stored.get((lab, name))
        target_settings = settings.get(TargetKey("", lab, name))
        if target_settings is None:
            new_state = without_requests(old_state)
        else:
            runs = nightly_outcomes(target, reports, moves, since)
            own_pauses = pauses[target.full_name].pauses if target.full_name in pauses else ()
            runs = outcomes_outside(own_pauses, runs, target_settings.repair_seconds)
            new_state = judge_target(old_state, runs, target_settings.repair_seconds, moment)
        judgements.append(TargetJudgement(target, old_state, new_state))
    return judgements


def _settings(config: RepositoryConfig | None) -> dict[TargetKey, TargetSettings]:
    """Return the settings of targets that accept requests; their keys have no repository."""
    labs = labs_of(config).items() if config is not None else ()
    return {
        TargetKey("", lab, target): settings
        for lab, lab_settings in labs
        for target, settings in lab_settings.targets.items()
        if settings.takes_requests
    }


def nightly_outcomes(
    target: TargetKey, reports: NightlyReports, moves: Sequence[TrackingMove], since: float
) -> list[NightlyOutcome]:
    """Return the outcomes of all nightly commits since a target's first results.

    Nightly commits are those that any lab tested, and all others to which the bot moved the nightly branch.
    """
    moved_at = {
        move["sha"]: datetime.fromisoformat(move["moved_at"] or move["found_at"]).timestamp()
        for move in moves
        if move["sha"]
    }
    commits, first_commit_at = reports.targets.get(target, {}), reports.first_commits.get(target)
    if first_commit_at is None:
        return []
    outcomes = []
    for sha in {*reports.committed, *(sha for sha, moment in moved_at.items() if moment >= since)}:
        # The date of a commit that no lab has reported is unknown; the move of the nightly branch is the nearest time.
        committed_at = reports.committed.get(sha, moved_at.get(sha, 0.0))
        testable_at = max(committed_at, moved_at.get(sha) or reports.arrived.get(sha) or committed_at)
        report = commits.get(sha)
        # One suite with usable results is enough: the rule asks whether the devices deliver results at all.
        # Commits before the first results of a new target are not missing.
        if committed_at >= first_commit_at:
            usable = None if report is None else report.infra < report.suites
            outcomes.append(NightlyOutcome(sha, committed_at, testable_at, usable))
    return outcomes
