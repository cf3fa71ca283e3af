"""Decide when a target is degraded by one tier, and when it is restored, from its nightly runs. Pure.

The rule is about whether the devices of a target deliver results at all. `bot.results.compare.health` decides whether
the results are reliable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.results.settings.targets import NIGHTLY_ONLY

GOOD_RUNS = 2
"""The number of good nightly runs in a row after which a target is restored."""


@dataclass(frozen=True, slots=True)
class NightlyOutcome:
    """The results of a nightly commit on a target; moments are seconds since 1970.

    `order` is the time of the commit, `at` the time from which labs could test it. `usable` is False if the results are
    infra, None if there are none.
    """

    sha: str
    order: float
    at: float
    usable: bool | None


@dataclass(frozen=True, slots=True)
class DegradedTarget:
    """A target that is degraded, or was until now: `restored`.

    Since the nightly commit `sha`, which labs could test at `since` and which was made at `order`, no nightly run was
    good; when that was noticed, `infra` runs had no usable results, and `missing` had not come. `reported`: the
    issue says so.
    """

    sha: str
    since: float
    order: float
    infra: int
    missing: int
    restored: bool = False
    reported: bool = False


def effective_tier(tier: int, known: DegradedTarget | None) -> int:
    """Return the tier that counts: tier 1 behaves as tier 2, and tier 2 accepts no requests, while it is degraded."""
    return min(NIGHTLY_ONLY, tier + 1) if is_degraded(known) else tier


def is_degraded(known: DegradedTarget | None) -> bool:
    """Return whether a target is degraded now."""
    return known is not None and not known.restored


def judge_target(
    known: DegradedTarget | None, runs: Sequence[NightlyOutcome], repair_within: float, now: float
) -> DegradedTarget | None:
    """Return the new state of a target, None if it is healthy; `known` is the old one, `repair_within` in seconds."""
    ordered = sorted(runs, key=lambda one: (one.order, one.sha))
    if known is not None and not known.restored:
        # A run that may still arrive is left out: it is neither good nor missing yet.
        decided = [one for one in ordered if one.usable is not None or one.at + repair_within <= now]
        # Not the commits before the first bad one, which may have been good.
        last = [one for one in decided if one.order >= known.order][-GOOD_RUNS:]
        return _restored(known) if len(last) == GOOD_RUNS and all(one.usable for one in last) else known
    bad = ordered[_after_last_good(ordered) :]
    late = min(bad, key=lambda one: one.at, default=None)
    if late is None or late.at + repair_within > now:
        return known
    infra = sum(one.usable is False for one in bad)
    missing = sum(one.usable is None and one.at + repair_within <= now for one in bad)
    return DegradedTarget(late.sha, late.at, bad[0].order, infra, missing)


def without_target(known: DegradedTarget | None) -> DegradedTarget | None:
    """Return what happens to a target that no longer accepts requests: there is nothing to degrade."""
    return _restored(known) if known is not None and not known.restored else known


def _restored(known: DegradedTarget) -> DegradedTarget:
    return replace(known, restored=True, reported=False)


def _after_last_good(ordered: Sequence[NightlyOutcome]) -> int:
    return max((place + 1 for place, one in enumerate(ordered) if one.usable), default=0)
