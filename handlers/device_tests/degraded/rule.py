"""Decide when a target is degraded by one tier, and when it is restored, from its nightly runs. Pure.

The rule is about whether the devices of a target deliver results at all. `bot.results.compare.health` decides whether
the results are reliable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.results.settings.targets import NIGHTLY_ONLY
from handlers.device_tests.paused.rule import TargetPause

GOOD_RUNS = 2
"""The number of good nightly runs in a row after which a target is restored."""


@dataclass(frozen=True, slots=True)
class NightlyOutcome:
    """The results of a nightly commit on a target; moments are seconds since 1970.

    `committed_at` is the time of the commit, `testable_at` the time from which labs could test it. `usable` is False if
    the results are infra, None if there are none.
    """

    sha: str
    committed_at: float
    testable_at: float
    usable: bool | None


@dataclass(frozen=True, slots=True)
class DegradedTarget:
    """A target that is degraded, or was until now: `restored`.

    No nightly run since the commit `sha` was good. Labs could test that commit from `since` on; `order` is the time of
    the oldest bad commit. When the bot noticed it, `infra` runs had no usable results, and `missing` runs had not
    arrived. `reported`: the issue says so.
    """

    sha: str
    since: float
    order: float
    infra: int
    missing: int
    restored: bool = False
    reported: bool = False


def effective_tier(tier: int, state: DegradedTarget | None) -> int:
    """Return the tier that counts: while degraded, tier 1 behaves as tier 2, and tier 2 accepts no requests."""
    return min(NIGHTLY_ONLY, tier + 1) if is_degraded(state) else tier


def is_degraded(state: DegradedTarget | None) -> bool:
    """Return whether a target is degraded now."""
    return state is not None and not state.restored


def judge_target(
    old_state: DegradedTarget | None, runs: Sequence[NightlyOutcome], repair_within: float, moment: float
) -> DegradedTarget | None:
    """Return the new state of a target at a moment, None if it is healthy; `repair_within` is in seconds."""
    ordered = sorted(runs, key=lambda run: (run.committed_at, run.sha))
    if old_state is not None and not old_state.restored:
        # A run that may still arrive does not count: it is neither good nor missing yet.
        decided = [run for run in ordered if run.usable is not None or run.testable_at + repair_within <= moment]
        # Commits before the first bad one do not count either, as they may have been good.
        newest = [run for run in decided if run.committed_at >= old_state.order][-GOOD_RUNS:]
        is_repaired = len(newest) == GOOD_RUNS and all(run.usable for run in newest)
        return _restored(old_state) if is_repaired else old_state
    bad = ordered[_index_after_last_good(ordered) :]
    first_bad = min(bad, key=lambda run: run.testable_at, default=None)
    if first_bad is None or first_bad.testable_at + repair_within > moment:
        return old_state
    infra = sum(run.usable is False for run in bad)
    missing = sum(run.usable is None and run.testable_at + repair_within <= moment for run in bad)
    return DegradedTarget(first_bad.sha, first_bad.testable_at, bad[0].committed_at, infra, missing)


def without_requests(old_state: DegradedTarget | None) -> DegradedTarget | None:
    """Return the new state of a target that no longer accepts requests: it is no longer degraded."""
    return _restored(old_state) if old_state is not None and not old_state.restored else old_state


def outcomes_outside(
    pauses: Sequence[TargetPause], outcomes: Sequence[NightlyOutcome], repair_within: float
) -> list[NightlyOutcome]:
    """Return the nightly outcomes that count.

    A run that is missing or unusable does not count if the target was paused during the time that it had for a run,
    which is `repair_within` seconds after labs could test the commit.
    """

    def was_paused(outcome: NightlyOutcome) -> bool:
        first, last = outcome.testable_at, outcome.testable_at + repair_within
        return any(pause.since <= last and first < pause.until for pause in pauses)

    return [outcome for outcome in outcomes if outcome.usable or not was_paused(outcome)]


def _restored(state: DegradedTarget) -> DegradedTarget:
    return replace(state, restored=True, reported=False)


def _index_after_last_good(runs: Sequence[NightlyOutcome]) -> int:
    return max((index + 1 for index, run in enumerate(runs) if run.usable), default=0)
