"""Who gets which part of a message: places that get all of it, and places that subscribed to targets and tests. No I/O.

A place that several subscriptions name gets one message with what any of them names, so nothing arrives twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.config.places import Place
from bot.core.aliases import STAR
from bot.results.store.failures.failures import Failure
from handlers.regressions.decide import EvaluatedTarget, RegressionChanges
from handlers.regressions.records import GroupMember, RegressionGroup

if TYPE_CHECKING:
    from handlers.regressions.config import Regressions, Subscription


@dataclass(frozen=True, slots=True)
class Audience:
    """Places that get the same messages: about what `subscriptions` name, or about everything if there are none."""

    places: tuple[Place, ...]
    subscriptions: tuple[Subscription, ...] = ()

    @property
    def has_issue(self) -> bool:
        """Whether one of the places is an issue."""
        return "issue" in self.places

    def gets_all_of(self, target: str) -> bool:
        """Return whether the audience gets all news of a target, LAB/TARGET."""
        return not self.subscriptions or any(not item.paths for item in self._of(target))

    def failures(self, target: str, failures: Iterable[Failure]) -> tuple[Failure, ...]:
        """Return the failures on a target that the audience hears of."""
        if self.gets_all_of(target):
            return tuple(failures)
        tests = _TestPaths(path for item in self._of(target) for path in item.paths)
        return tuple(failure for failure in failures if tests.accept(failure.test))

    def hears_of(self, target: str, test: str) -> bool:
        """Return whether the audience gets news of a test on a target, LAB/TARGET."""
        return bool(self.failures(target, [Failure("", test, "")]))

    def changes(self, target: str, changes: RegressionChanges) -> RegressionChanges:
        """Return the changes of a target that the audience hears of."""
        if self.gets_all_of(target):
            return changes
        return RegressionChanges(
            began=self.failures(target, changes.began),
            recovered=self.failures(target, changes.recovered),
            removed=self.failures(target, changes.removed),
        )

    def target(self, target: EvaluatedTarget, failing: Iterable[Failure]) -> EvaluatedTarget:
        """Return a target without what its texts say about other tests; `failing` are those that the audience sees."""
        if self.gets_all_of(target.about.full_name):
            return target
        suites = {failure.suite for failure in failing}
        unreliable = {suite: health for suite, health in target.unreliable.items() if suite in suites}
        return replace(target, unreliable=unreliable, quarantined=0, held=0)

    def members(self, members: Iterable[GroupMember]) -> tuple[GroupMember, ...]:
        """Return the members of a group with the tests that the audience hears of."""
        parts = (replace(member, tests=self._tests(member)) for member in members)
        return tuple(member for member in parts if member.tests)

    def group(self, group: RegressionGroup) -> RegressionGroup:
        """Return the part of a group that the audience hears of; it may have no members."""
        ended = (replace(item, member=replace(item.member, tests=self._tests(item.member))) for item in group.ended)
        return replace(
            group, members=self.members(group.members), ended=tuple(item for item in ended if item.member.tests)
        )

    def _tests(self, member: GroupMember) -> tuple[str, ...]:
        return tuple(failure.test for failure in self.failures(member.full_name, member.failures))

    def _of(self, target: str) -> list[Subscription]:
        return [item for item in self.subscriptions if not item.targets or target in item.targets]


class _TestPaths:
    """IDs of tests, and beginnings of IDs."""

    def __init__(self, patterns: Iterable[str]) -> None:
        written = set(patterns)
        self._prefixes = tuple(pattern.removesuffix(STAR) for pattern in written if pattern.endswith(STAR))
        self._tests = frozenset(pattern for pattern in written if not pattern.endswith(STAR))

    def accept(self, test: str) -> bool:
        return test in self._tests or test.startswith(self._prefixes)


def audiences_of(regressions: Regressions) -> Sequence[Audience]:
    """Return the audiences of messages: no place is in two of them."""
    audiences = [Audience(tuple(dict.fromkeys(regressions.to)))]
    subscribed = dict.fromkeys(place for item in regressions.subscriptions for place in item.to)
    for place in subscribed:
        if place not in regressions.to:
            items = tuple(item for item in regressions.subscriptions if place in item.to)
            audiences.append(Audience((place,), items))
    return audiences
