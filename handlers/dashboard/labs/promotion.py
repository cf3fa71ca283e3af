"""Collect the evidence for moving a target to a better tier, which tests more, for the page of its lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from handlers.dashboard.shared.percentiles import percentile
from handlers.device_tests.degraded.promotion import Lacking, PromotionEvidence

if TYPE_CHECKING:
    from bot.results.compare.health import RunFlips
    from bot.results.store.lists.lab_reports import TargetActivity

DAY = 86400.0


class Promotion(BaseModel, extra="forbid"):
    """Whether a target could move to the next better tier, and what it lacks for that."""

    tier: int = Field(description="The tier that the target could move to.")
    days: int | None = Field(description="How many days ago its first nightly commit was made.")
    seconds_p90: float | None = Field(
        description="90th percentile of the time until a commit that labs could test had all results; null below five."
    )
    unsteady: int = Field(
        description="Results in which a test changed back within five runs: a false alarm, or one soon repaired."
    )
    unsteady_of: int = Field(description="All results that were evaluated; at most the newest 30 of each suite.")
    lacking: list[Lacking] = Field(description="What the target still lacks; empty if it is ready.")


def promotion_of(
    tier: int,
    activity: TargetActivity,
    runs: Sequence[RunFlips],
    missing: tuple[int, int],
    available: Mapping[str, float],
    moment: float,
) -> Promotion:
    """Return what a target of tier `tier` lacks for the next better tier, `tier - 1`.

    `runs` are the newest of each suite, with how many tests flipped back in them. `missing` is the number of nightly
    commits that it missed, and of all that it had to test. `available` has the time since which labs could test each
    commit, in seconds since 1970.
    """
    commits = activity.commits.values()
    latencies = sorted(
        arrived_at - max(available[sha], activity.commits[sha].committed_at)
        for sha, arrived_at in activity.arrived.items()
        if sha in activity.commits
    )
    evidence = PromotionEvidence(
        age=moment - activity.first_commit_at if activity.first_commit_at is not None else None,
        seconds=percentile(latencies, 0.9),
        missing=missing[0],
        expected=missing[1],
        infra=sum(commit.infra for commit in commits),
        infra_of=sum(commit.suites for commit in commits),
        unsteady=sum(run.flipped_back > 0 for run in runs),
        unsteady_of=len(runs),
    )
    return Promotion(
        tier=tier - 1,
        days=None if evidence.age is None else max(0, int(evidence.age // DAY)),
        seconds_p90=evidence.seconds,
        unsteady=evidence.unsteady,
        unsteady_of=evidence.unsteady_of,
        lacking=evidence.lacking(),
    )
