"""Group targets on which the same tests fail, so that one message is enough for all of them. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Self

from bot.effects.remember import StoreRecord
from bot.engine.records import Record
from bot.news.effects import IssueState
from bot.news.message import News
from bot.results.store.failures import Failure, FailureEnd
from handlers.regressions.decide import (
    RECOVERED,
    REMOVED,
    JudgedTarget,
    KnownRegressions,
    RegressionChanges,
    grouped,
    packed,
)

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
Ends = Mapping[tuple[str, Failure], FailureEnd]
"""How reported failures on targets (`LAB/TARGET`) ended; those that are not stored are left out."""
LASTS = FailureEnd("", "")
UNKNOWN_END = FailureEnd("unknown", "")
"""The end of a failure that is not stored, for example after the database was replaced."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """Tests of a suite that began to fail together on a target, at the commit `since`.

    They last passed at `good`, which is empty if they never did. The moments of both are in seconds since 1970.
    """

    lab: str
    target: str
    suite: str
    since: str
    since_at: float
    good: str
    good_at: float
    tests: tuple[str, ...]

    @property
    def where(self) -> str:
        """The target, as people read it."""
        return f"{self.lab}/{self.target}"

    @property
    def failures(self) -> list[Failure]:
        """The failures of its tests."""
        return [Failure(self.suite, test, self.since, self.good) for test in self.tests]


@dataclass(frozen=True, slots=True)
class EndedTests:
    """Tests of a member whose failure ended at the nightly commit `sha`, and `how`."""

    member: GroupMember
    how: str
    sha: str


@dataclass(frozen=True, slots=True)
class RegressionGroup:
    """Targets on which the same tests fail; they share one message and one issue.

    `name` is in the key of the issue. `members` have the tests whose failure lasts, and `ended` the others. `page` is
    that of the repository. `news_at` is the time of the newest message, in seconds since 1970.
    """

    name: str
    members: tuple[GroupMember, ...]
    page: str
    opened_at: float
    news_at: float
    ended: tuple[EndedTests, ...] = ()

    @classmethod
    def of(cls, members: Sequence[GroupMember], page: str, at: float) -> Self:
        """Return the group that some members begin."""
        # The name is a digest of the members, so that a plan which is made again opens no second issue.
        text = "\0".join(part for one in members for part in (one.where, one.suite, one.since, *one.tests))
        return cls(hashlib.sha256(text.encode()).hexdigest()[:16], tuple(members), page, at, at)

    @property
    def every(self) -> tuple[GroupMember, ...]:
        """Its members, with the tests whose failure lasts, and again with those whose failure ended."""
        return (*self.members, *(one.member for one in self.ended))

    def after(self, ends: Ends) -> Self:
        """Return the group with the tests that ended since among the others of `ended`.

        It does not get them back: if a test fails again, the message of its target reports it.
        """
        members, ended = list[GroupMember](), list(self.ended)
        for one in self.members:
            tests: dict[FailureEnd, list[str]] = {}
            for failure in one.failures:
                tests.setdefault(ends.get((one.where, failure), UNKNOWN_END), []).append(failure.test)
            if lasting := tests.pop(LASTS, None):
                members.append(replace(one, tests=tuple(lasting)))
            ended += [EndedTests(replace(one, tests=tuple(those)), end.how, end.sha) for end, those in tests.items()]
        return replace(self, members=tuple(members), ended=tuple(ended))


@dataclass(frozen=True, slots=True)
class WaitingNews:
    """News of a target that waits for news of other targets.

    If the same tests fail on no other target, `news` and `issue` are posted unchanged; `key` identifies them. `began`
    are the new failures. `changes`, compressed by `packed`, has the failures that ended and those of today, and
    `reliability` the suites that became unreliable and reliable. Without `news`, only issues of groups are refreshed.
    """

    about: JudgedTarget
    opened_at: float
    key: str = ""
    began: tuple[GroupMember, ...] = ()
    changes: str = ""
    reliability: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    news: News | None = None
    issue: IssueState | None = None


WAITING_NEWS = Record("regression-news", 1, WaitingNews, "news of a target that waits for other targets", days=30)
REGRESSION_GROUP = Record("regression-group", 1, RegressionGroup, "targets that fail in the same tests", days=365)


@dataclass(frozen=True, slots=True)
class NewsHold:
    """Whether the repository has `others`, targets evaluated lately, and news of a target waits for theirs (`shared`).

    `grouped` are its tests, with their suites, that issues of groups list; the target's own issue leaves them out.
    `moments` has the times of the commits of new failures; `at` is now. All are in seconds since 1970.
    """

    repository_id: int
    at: float
    moments: Mapping[str, float]
    others: bool = False
    shared: bool = False
    grouped: Collection[tuple[str, str]] = ()

    def own(self, failing: Iterable[Failure]) -> list[Failure]:
        """Return the failures that the issue of the target lists."""
        return [one for one in failing if (one.suite, one.test) not in self.grouped]

    def waiting(
        self,
        target: JudgedTarget,
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
                one.suite,
                one.since,
                self.moments.get(one.since, target.committed_at),
                one.good,
                self.moments.get(one.good, 0.0),
                one.tests,
            )
            for one in grouped(changes.began)
        )
        sides = {RECOVERED: changes.recovered, REMOVED: changes.removed, FAILING: self.own(failing)}
        reliability = (changes.unreliable, changes.reliable)
        return self._stored(target, key, began, packed(sides), reliability, news, issue)

    def refresh(self, target: JudgedTarget, key: str) -> tuple[StoreRecord, ...]:
        """Return the effect that triggers an update of the issues of the target's groups, if it may be in any.

        If there are other targets, the message of a group may be in progress and its record not yet stored.
        """
        return (self._stored(target, key),) if self.grouped or self.others else ()

    def _stored(self, target: JudgedTarget, key: str, *news: Any) -> StoreRecord:
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        record = WAITING_NEWS.of(self.repository_id, target.about.lab, target.about.target, digest)
        return StoreRecord.of(record, WaitingNews(target, self.at, key, *news))


NO_HOLD = NewsHold(0, 0.0, MappingProxyType({}))


def active_targets(known: Mapping[str, KnownRegressions], now: float) -> dict[str, KnownRegressions]:
    """Return the targets with an evaluated commit of the last days."""
    return {where: one for where, one in known.items() if one.committed_at >= now - ACTIVE}


def is_time_to_post(
    waiting: Collection[WaitingNews],
    groups: Iterable[RegressionGroup],
    known: Mapping[str, KnownRegressions],
    now: float,
    wait: float,
) -> bool:
    """Return whether waiting news is posted now: all active targets were evaluated, or the wait is over.

    A group gets at most one message per `wait`. News of what ended waits only for news of what began.
    """
    if not waiting:
        return False
    news = [one for one in waiting if one.began]
    # News of what ended waits only for news of what began; without any, it is posted now.
    if not news or min(one.opened_at for one in news) + wait <= now:
        return True
    if any(group.news_at + wait > now for group in groups):
        return False
    newest = max(one.about.committed_at for one in news)
    return all(one.committed_at >= newest for one in active_targets(known, now).values())


def grouped_members(members: Iterable[GroupMember]) -> list[list[GroupMember]]:
    """Return members with the same failing tests of a suite in groups, in an order that does not depend on arrival."""
    groups: list[list[GroupMember]] = []
    for one in sorted(members, key=lambda one: (one.since_at, one.since, one.suite, one.where, one.tests)):
        group = next((group for group in groups if joins(one, group)), None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    return groups


def joins(one: GroupMember, group: Sequence[GroupMember]) -> bool:
    """Return whether the tests of a group fail on a target too, since a commit that fits the other members."""
    first = group[0]
    if one.suite != first.suite or any(one.where == other.where for other in group):
        return False
    smaller, larger = sorted((set(one.tests), set(first.tests)), key=len)
    shared = len(smaller & larger)
    if shared < SHARED * len(smaller) or shared < LEAST_OF_LARGER * len(larger):
        return False
    return is_consistent([*group, one])


def is_consistent(members: Collection[GroupMember]) -> bool:
    """Return whether one commit may have broken all members: the newest pass is older than the oldest failure."""
    return newest_good(members)[0] < oldest_since(members)[0]


def newest_good(members: Collection[GroupMember]) -> tuple[float, str]:
    """Return the newest commit at which the tests passed on any target, and before it its moment."""
    return max((one.good_at, one.good) for one in members)


def oldest_since(members: Collection[GroupMember]) -> tuple[float, str]:
    """Return the oldest commit at which the tests failed on any target, and before it its moment."""
    return min((one.since_at, one.since) for one in members)


def range_to_ask(members: Collection[GroupMember]) -> list[tuple[str, str, float]]:
    """Return pairs of commits: the first must contain the second. The third value is the time of the second.

    The oldest failure contains the newest pass; all failures contain the oldest one, and the newest pass all others.
    """
    (good_at, good), (since_at, since) = newest_good(members), oldest_since(members)
    pairs = {(since, good, good_at), *((one.since, since, since_at) for one in members)}
    pairs |= {(good, one.good, one.good_at) for one in members}
    return sorted(pair for pair in pairs if pair[0] and pair[1] and pair[0] != pair[1])


def is_narrower(group: RegressionGroup, before: RegressionGroup) -> bool:
    """Return whether the range of a group became smaller when others joined."""
    ranges = [(newest_good(one.every), oldest_since(one.every)) for one in (group, before)]
    return ranges[0] != ranges[1]


def shared_tests(members: Collection[GroupMember]) -> tuple[str, ...]:
    """Return the tests that fail on at least one member, sorted."""
    return tuple(sorted({test for one in members for test in one.tests}))
