"""Announce which failures began, and what moved, for the search for the cause (`find` of `regressions`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from nightjar_formats.model import TargetKey

from bot.engine.internal import InternalEvent
from bot.plan.effect import Applied, StoreContext, StoredEffect
from bot.results.measurements.moved import MovedSeries
from bot.results.store.failures.failures import Failure
from handlers.regressions import texts
from handlers.regressions.decide import EvaluatedTarget, group_failures
from handlers.regressions.records import GroupMember, RegressionGroup, group_issue, target_issue

MOST_TESTS = 10
"""The most tests of a member that are announced: a search needs no more."""


@dataclass(frozen=True, slots=True)
class FailuresBegun:
    """Failures of `members` began together, and the issue of the key `issue` is about them.

    With a `measurement`, what the only test of all members measures under this name got worse instead.
    """

    issue: str
    members: tuple[GroupMember, ...]
    measurement: str = ""


def _guid(repository: int, begun: FailuresBegun) -> str:
    return f"begun:{repository}:{hashlib.sha256(repr(begun).encode()).hexdigest()[:32]}"


FAILURES_BEGUN = InternalEvent(
    "nightjar.failures-begun", FailuresBegun, guid=_guid, lock=lambda repository, _: f"begun:{repository}"
)


@dataclass(frozen=True, slots=True)
class AnnounceBegun(StoredEffect):
    """Announce failures that began together."""

    begun: FailuresBegun

    @property
    def effect_key(self) -> str:
        """What began."""
        return _guid(0, self.begun)

    async def store(self, context: StoreContext) -> Applied:
        """Announce them once."""
        new = await context.changes.announce(FAILURES_BEGUN, context.repository, self.begun)
        return Applied(texts.BEGUN_ANNOUNCED.format(issue=self.begun.issue), changed=new)


def begun_on_target(target: EvaluatedTarget, began: Iterable[Failure]) -> tuple[AnnounceBegun, ...]:
    """Return the effects that announce failures of one target."""
    return tuple(
        _announcement(target_issue(target.about.full_name), [member]) for member in members_of(target.about, began)
    )


def begun_in_group(group: RegressionGroup) -> AnnounceBegun:
    """Return the effect that announces the failures of several targets."""
    return _announcement(group_issue(group.name), group.members)


def begun_move(issue: str, changes: Sequence[MovedSeries]) -> AnnounceBegun:
    """Return the effect that announces one series that moved on some targets."""
    return AnnounceBegun(FailuresBegun(issue, tuple(map(member_of, changes)), changes[0].name))


def member_of(change: MovedSeries) -> GroupMember:
    """Return a change of a measurement as the member of a group."""
    target = change.target
    return GroupMember(
        target.lab, target.target, change.suite, change.since, change.since_at, change.good, 0.0, (change.test,)
    )


def members_of(about: TargetKey, failures: Iterable[Failure]) -> list[GroupMember]:
    """Return the failures of a target that began together; those that never passed are left out."""
    return [
        GroupMember(about.lab, about.target, group.suite, group.since, 0.0, group.good, 0.0, group.tests)
        for group in group_failures(failures)
        if group.good
    ]


def _announcement(issue: str, members: Sequence[GroupMember]) -> AnnounceBegun:
    cut = tuple(replace(member, tests=member.tests[:MOST_TESTS]) for member in members)
    return AnnounceBegun(FailuresBegun(issue, cut))
