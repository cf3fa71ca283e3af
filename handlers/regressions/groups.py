"""Group targets on which the same tests fail, so that one message is enough for all of them. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bot.effects.remember import StoreRecord
from bot.news.effects import IssueState
from bot.news.message import News
from bot.results.store.failures.failures import RECOVERED, Failure
from handlers.regressions.decide import (
    REMOVED,
    EvaluatedRun,
    EvaluatedTarget,
    RegressionChanges,
    group_failures,
    pack_failures,
)
from handlers.regressions.records import WAITING_NEWS, GroupMember, RegressionGroup, WaitingNews

FAILING = "failing"
"""The key of the current failures in the packed changes."""
SHARED, LEAST_OF_LARGER = 0.9, 0.5
"""Two sets of failing tests are the same if they share this part of the smaller set, and this part of the larger.

The reasons for these limits are in docs/decisions/one-message-for-several-targets.md.
"""
ACTIVE = 7 * 86400.0
"""In seconds: news does not wait for a target without a newer evaluated commit, as its results may never arrive."""
JOINED = 7 * 86400.0
"""Seconds after which no further target joins a group."""


@dataclass(frozen=True, slots=True)
class NewsHold:
    """Whether the news of a target `must_wait` for the news of other targets.

    `has_other_targets`: other targets of the repository were evaluated lately. `grouped_tests` are tests of the target,
    with their suites, that issues of groups list; the target's own issue leaves them out. `commit_times` has the times
    of the commits of new failures, by SHA; it and `moment`, the current time, are in seconds since 1970.
    """

    repository_id: int
    moment: float
    commit_times: Mapping[str, float]
    has_other_targets: bool = False
    must_wait: bool = False
    grouped_tests: Collection[tuple[str, str]] = ()

    def own_failures(self, failing: Iterable[Failure]) -> list[Failure]:
        """Return the failures that the issue of the target lists."""
        return [failure for failure in failing if (failure.suite, failure.test) not in self.grouped_tests]

    def waiting_news(
        self,
        target: EvaluatedTarget,
        changes: RegressionChanges,
        failing: Sequence[Failure],
        key: str,
        news: News,
        issue: IssueState,
    ) -> StoreRecord:
        """Return the effect that stores news until it is posted."""
        began = tuple(
            GroupMember(
                target.about.lab,
                target.about.target,
                regression.suite,
                regression.since,
                self.commit_times.get(regression.since, target.committed_at),
                regression.good,
                self.commit_times.get(regression.good, 0.0),
                regression.tests,
            )
            for regression in group_failures(changes.began)
        )
        failures = {
            RECOVERED: changes.recovered,
            REMOVED: changes.removed,
            FAILING: self.own_failures(failing),
        }
        reliability = (changes.unreliable, changes.reliable)
        return self._record(target, key, began, pack_failures(failures), reliability, news, issue)

    def issue_updates(self, target: EvaluatedTarget, key: str) -> tuple[StoreRecord, ...]:
        """Return the effect that triggers an update of the issues of the target's groups, if it may be in one.

        If there are other targets, the message of a group may be in progress and its record not stored yet.
        """
        return (self._record(target, key),) if self.grouped_tests or self.has_other_targets else ()

    def _record(self, target: EvaluatedTarget, key: str, *news: Any) -> StoreRecord:
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        record = WAITING_NEWS.of(self.repository_id, target.about.lab, target.about.target, digest)
        return StoreRecord.of(record, WaitingNews(target, self.moment, key, *news))


NO_HOLD = NewsHold(0, 0.0, MappingProxyType({}))


def active_targets(evaluated: Mapping[str, EvaluatedRun], moment: float) -> dict[str, EvaluatedRun]:
    """Return the targets whose newest evaluated commit is not older than `ACTIVE` seconds."""
    return {target: newest for target, newest in evaluated.items() if newest.committed_at >= moment - ACTIVE}


def is_time_to_post(
    waiting: Collection[WaitingNews],
    groups: Iterable[RegressionGroup],
    evaluated: Mapping[str, EvaluatedRun],
    moment: float,
    wait: float,
) -> bool:
    """Return whether waiting news is posted now: all active targets were evaluated, or the wait is over.

    `evaluated` has the newest evaluated run of each target, `wait` is in seconds. A group gets at most one message per
    `wait`. News of ended failures waits only for news of new failures.
    """
    if not waiting:
        return False
    new_failures = [news for news in waiting if news.began]
    if not new_failures or min(news.opened_at for news in new_failures) + wait <= moment:
        return True
    if any(group.news_at + wait > moment for group in groups):
        return False
    newest_commit = max(news.about.committed_at for news in new_failures)
    return all(run.committed_at >= newest_commit for run in active_targets(evaluated, moment).values())


def grouped_members(members: Iterable[GroupMember]) -> list[list[GroupMember]]:
    """Group the members with the same failing tests of a suite, in an order that does not depend on arrival."""
    groups: list[list[GroupMember]] = []
    for member in sorted(members, key=_order):
        group = next((group for group in groups if joins(member, group)), None)
        if group is None:
            groups.append([member])
        else:
            group.append(member)
    return groups


def _order(member: GroupMember) -> tuple[float, str, str, str, tuple[str, ...]]:
    return member.since_at, member.since, member.suite, member.full_name, member.tests


def joins(candidate: GroupMember, group: Sequence[GroupMember]) -> bool:
    """Return whether the tests of a group fail on a further target too, since a commit that fits the members."""
    first = group[0]
    if candidate.suite != first.suite or any(candidate.full_name == member.full_name for member in group):
        return False
    smaller, larger = sorted((set(candidate.tests), set(first.tests)), key=len)
    shared = len(smaller & larger)
    if shared < SHARED * len(smaller) or shared < LEAST_OF_LARGER * len(larger):
        return False
    return is_consistent([*group, candidate])


def is_consistent(members: Collection[GroupMember]) -> bool:
    """Return whether one commit may have broken all members: the newest pass is older than the oldest failure."""
    return newest_good(members)[0] < oldest_since(members)[0]


def newest_good(members: Collection[GroupMember]) -> tuple[float, str]:
    """Return the time and the SHA of the newest commit at which the tests passed on any target."""
    return max((member.good_at, member.good) for member in members)


def oldest_since(members: Collection[GroupMember]) -> tuple[float, str]:
    """Return the time and the SHA of the oldest commit at which the tests failed on any target."""
    return min((member.since_at, member.since) for member in members)


def required_ancestors(members: Collection[GroupMember]) -> list[tuple[str, str, float]]:
    """Return pairs of commits of which the second must be an ancestor of the first, with the time of the second.

    If one range of commits fits all members, then the newest pass is an ancestor of the oldest failure, the oldest
    failure is an ancestor of all other failures, and all other passes are ancestors of the newest pass.
    """
    (good_at, good), (since_at, since) = newest_good(members), oldest_since(members)
    pairs = {(since, good, good_at), *((member.since, since, since_at) for member in members)}
    pairs |= {(good, member.good, member.good_at) for member in members}
    return sorted(pair for pair in pairs if pair[0] and pair[1] and pair[0] != pair[1])


def is_narrower(larger: RegressionGroup, group: RegressionGroup) -> bool:
    """Return whether the range of a group became smaller when others joined it, which made it `larger`."""
    old_range, new_range = (
        (newest_good(members), oldest_since(members)) for members in (group.all_members, larger.all_members)
    )
    return old_range != new_range


def shared_tests(members: Collection[GroupMember]) -> tuple[str, ...]:
    """Return the tests that fail on at least one member, sorted."""
    return tuple(sorted({test for member in members for test in member.tests}))
