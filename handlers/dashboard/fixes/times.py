"""Compute how long failures take to be fixed, by branch, target and owner. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.results.store.failures.failures import RECOVERED
from handlers.dashboard.shared.percentiles import percentile

if TYPE_CHECKING:
    from bot.results.compare.owners import OwnersOf
    from bot.results.store.failures.failures import RegressionMessage
    from handlers.main_failures.decide import KnownFailures

BRANCH, TARGET, OWNER, ALL = "branch", "target", "owner", "all"
NO_OWNER = ""
Group = tuple[str, str]
"""What failures are counted by, and its name."""


@dataclass(frozen=True, slots=True)
class KnownFailure:
    """A failure that was reported: `seconds` from the message to the fix, None while it lasts."""

    groups: tuple[Group, ...]
    seconds: float | None


@dataclass(frozen=True, slots=True)
class FixTimes:
    """How many failures of a group were fixed, how many last, and how long half and 90 % of the fixes took at most.

    The times are None if there are too few fixes.
    """

    group: Group
    fixed: int
    failing: int
    median: float | None
    longest: float | None


def failures_of_branch(branch: str, stored: KnownFailures, since: float) -> list[KnownFailure]:
    """Return the failures of a watched branch that were fixed since a moment, or last."""
    groups = ((ALL, ""), (BRANCH, branch))
    fixed = [KnownFailure(groups, fix.until - fix.since) for fix in stored.fixed if fix.until >= since]
    return [*fixed, *(KnownFailure(groups, None) for _ in stored.failing)]


def regressions_of(messages: Iterable[RegressionMessage], owners_of: OwnersOf) -> list[KnownFailure]:
    """Return the regressions that messages are about.

    Tests of a target that began to fail together, and were fixed together, are one regression. One that ended in
    another way was not fixed: a removed test says nothing about the time to fix.
    """
    owners, seconds = dict[tuple[str, str, str], dict[str, None]](), dict[tuple[str, str, str], float | None]()
    for item in messages:
        message = item.message
        if message.ended in ("", RECOVERED):
            key = (item.target.full_name, message.since, message.ended_in)
            owners.setdefault(key, {}).update(dict.fromkeys(owners_of(item.test) or (NO_OWNER,)))
            duration = max(0.0, message.ended_at - message.reported_at) if message.ended else None
            # The first message counts, if some of the tests were reported later.
            seconds[key] = max(duration, seconds.get(key) or 0.0) if duration is not None else None
    return [
        KnownFailure(((ALL, ""), (TARGET, key[0]), *((OWNER, owner) for owner in owners[key])), taken)
        for key, taken in seconds.items()
    ]


def fix_times(failures: Sequence[KnownFailure]) -> list[FixTimes]:
    """Return the times of each group: first of all failures, then by branch, target and owner."""
    by_group = dict[Group, list[float | None]]()
    for failure in failures:
        for group in failure.groups:
            by_group.setdefault(group, []).append(failure.seconds)
    order = (ALL, BRANCH, TARGET, OWNER)
    groups = sorted(by_group, key=lambda group: (order.index(group[0]), group[1]))
    return [_times_of(group, by_group[group]) for group in groups]


def _times_of(group: Group, durations: Sequence[float | None]) -> FixTimes:
    fixed = sorted(seconds for seconds in durations if seconds is not None)
    return FixTimes(group, len(fixed), len(durations) - len(fixed), percentile(fixed, 0.5), percentile(fixed, 0.9))
