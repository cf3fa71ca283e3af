"""Decide which changes of measurements share a message, and which groups have ended. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from bot.engine.records import Record
from bot.results.measurements.groups import SeriesOfTargets, grouped
from bot.results.measurements.moved import MovedSeries

NEAR = 14 * 86400.0
"""In seconds: if a late run moves the commit since which a series has its level no further, it is the same change."""

MOVED_ISSUE = "moved:"
"""How the keys of issues about measurements begin."""

IsLasting = Callable[[MovedSeries], bool]
"""Says whether a change still alarms people: it is worse, has not ended, and its test is not quarantined."""


@dataclass(frozen=True, slots=True)
class MovedMember:
    """A change in a group, by its `id`, with what finds the change again if a late run moved its commit."""

    id: str
    target: str
    suite: str
    test: str
    name: str
    is_rise: bool
    since_at: float

    @classmethod
    def of(cls, change: MovedSeries) -> Self:
        """Return the member for a change."""
        return cls(
            change.id, change.target.full_name, change.suite, change.test, change.name, change.is_rise, change.since_at
        )

    @property
    def series(self) -> SeriesOfTargets:
        """What members of several targets have in common."""
        return SeriesOfTargets(self.suite, self.test, self.name, self.is_rise)

    def is_same(self, change: MovedSeries) -> bool:
        """Return whether a change is this one, moved by a few nights."""
        return (self.target, self.series) == (change.target.full_name, SeriesOfTargets.of(change)) and abs(
            self.since_at - change.since_at
        ) <= NEAR


@dataclass(frozen=True, slots=True)
class MovedGroup:
    """Changes that share one message and one issue: those at the commit `since`.

    `name` is in the key of the issue. `lasting` are the members that still alarm people, by ID, as the issue shows
    them. `opened_at` is in seconds since 1970.
    """

    name: str
    since: str
    members: tuple[MovedMember, ...]
    lasting: tuple[str, ...]
    opened_at: float

    @property
    def key(self) -> str:
        """The key of the group's issue."""
        return f"{MOVED_ISSUE}{self.name}"

    def accepts(self, changes: Sequence[MovedSeries]) -> bool:
        """Return whether the changes of a new group, at least one and all at one commit, belong to this one.

        They do if they came with this group's commit, and either on one of its targets, or with the same series that
        moved on one of its targets: all of them or a part, or more.
        """
        if changes[0].since != self.since:
            return False
        new_targets = {change.target.full_name for change in changes}
        if any(member.target in new_targets for member in self.members):
            return True
        new_series = set(map(SeriesOfTargets.of, changes))
        series_of = dict[str, set[SeriesOfTargets]]()
        for member in self.members:
            series_of.setdefault(member.target, set()).add(member.series)
        return any(new_series <= series or new_series >= series for series in series_of.values())


MOVED_GROUP = Record("moved-group", 1, MovedGroup, "measurements that moved at one commit, in one message", days=365)


class GroupUpdate(NamedTuple):
    """A group before and after an update: `old` is None for a new one. `changes` has its changes, by ID."""

    old: MovedGroup | None
    group: MovedGroup
    changes: Mapping[str, MovedSeries]


def updated_groups(
    groups: Iterable[MovedGroup],
    stored: Mapping[str, MovedSeries],
    recent: Iterable[MovedSeries],
    is_lasting: IsLasting,
    moment: float,
) -> list[GroupUpdate]:
    """Return the groups that are new, and those whose message is outdated.

    `stored` has the changes of the members of `groups` that are still known, by ID. `recent` are the changes that may
    be new. `moment` is in seconds since 1970.
    """
    changes = dict(stored)
    alarming = [change for change in recent if is_lasting(change)]
    old_groups, group_of = list(groups), dict[str, MovedGroup]()
    for group in old_groups:
        moved = [_member_now(member, stored, alarming) for member in group.members]
        group_of[group.name] = replace(group, members=tuple(dict.fromkeys(moved)))
    in_groups = {member.id for group in group_of.values() for member in group.members}
    changes |= {change.id: change for change in alarming}
    for new_changes in grouped(change for change in alarming if change.id not in in_groups):
        members = tuple(map(MovedMember.of, new_changes))
        # Sorted, so that the group does not depend on the order of records.
        name = hashlib.sha256("\0".join(member.id for member in members).encode()).hexdigest()[:16]
        new_group = MovedGroup(name, new_changes[0].since, (), (), moment)
        joined = next((group for _, group in sorted(group_of.items()) if group.accepts(new_changes)), new_group)
        group_of[joined.name] = replace(joined, members=(*joined.members, *members))
    old_of = {group.name: group for group in old_groups}
    updates = []
    for name, group in group_of.items():
        of_group = {member.id: changes[member.id] for member in group.members if member.id in changes}
        lasting = tuple(sorted(change.id for change in of_group.values() if is_lasting(change)))
        update = GroupUpdate(old_of.get(name), replace(group, lasting=lasting), of_group)
        if update.group != update.old:
            updates.append(update)
    return updates


def _member_now(member: MovedMember, stored: Mapping[str, MovedSeries], alarming: Iterable[MovedSeries]) -> MovedMember:
    """Return a member, or in its place the change into which a late run turned it."""
    if member.id in stored:
        return member
    return next((MovedMember.of(change) for change in alarming if member.is_same(change)), member)
