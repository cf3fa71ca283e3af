"""Mention the subscribers of a topic once, and store the list of subscribers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from bot.effects.comments import change_sections
from bot.github.access import ISSUES, WritePermissions
from bot.github.addresses import pull_on_github
from bot.github.text import sticky
from bot.plan.effect import Applied, EffectContext, StoreContext, StoredEffect
from handlers.teams.records import MENTIONED_PEOPLE, TEAM_LIST, MentionedPeople, TeamList
from handlers.teams.texts import ALL_MENTIONED, FAILURE_SHOWN, LIST_OUTDATED, LIST_STORED, MENTIONED, SECTION_RECOVERED


@dataclass(frozen=True, slots=True)
class MentionSubscribers:
    """Mention people and teams in a section of the sticky comment of a pull request or an issue.

    A name that is already there stays: when a comment is edited, GitHub notifies only the people who are newly
    mentioned, but it notifies people again whose names were removed and added back. The section ends with `failure`,
    the reason why nobody could be added; without one, the reason of an earlier failure is removed.
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    number: int
    section: str
    people: tuple[str, ...]
    topics: tuple[str, ...]
    failure: str = ""

    @property
    def effect_key(self) -> str:
        """The issue or pull request."""
        return f"subscribers:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Mention the people that our record does not name yet; send no request to GitHub if there are none."""
        key = MENTIONED_PEOPLE.of(context.repository.id, self.number)
        stored = await context.records.get(key) or MentionedPeople()
        updated = replace(stored.with_others(MentionedPeople(self.people, self.topics)), failure=self.failure)
        if updated == stored and not context.writes.may_have_twins:
            return Applied(ALL_MENTIONED, changed=False, page=pull_on_github(self.number))
        # The comment before the record: after a crash in between, a retry writes the same section again. The other way
        # round, it would take those people for mentioned.
        changed, page = await change_sections(
            context, self.number, lambda present: sticky.with_section(present, self.section, updated.text())
        )
        await context.records.put(key, updated)
        names = ", ".join(name for name in updated.people if name not in stored.people)
        outcome = FAILURE_SHOWN if self.failure else MENTIONED.format(names=names) if names else SECTION_RECOVERED
        return Applied(outcome, changed=changed, page=page)


@dataclass(frozen=True, slots=True)
class StoreTeamList(StoredEffect):
    """Store the topics that an issue lists, unless a newer list is stored; see `TeamList`."""

    issue: int
    read_at: float
    topics: Mapping[str, tuple[str, ...]]

    @property
    def effect_key(self) -> str:
        """The list."""
        return "team-list"

    async def store(self, context: StoreContext) -> Applied:
        """Store the record."""
        team_list, is_newer = TeamList(self.issue, self.read_at, self.topics), False

        def newest(stored: TeamList | None) -> TeamList | None:
            nonlocal is_newer
            is_newer = stored is not None and stored.read_at > self.read_at
            return None if is_newer else team_list

        # Pull requests have different locks, so two of their jobs may store what they have read at the same time.
        await context.changes.change(TEAM_LIST.of(context.repository.id), newest)
        return Applied(LIST_OUTDATED, changed=False) if is_newer else Applied(LIST_STORED.format(issue=self.issue))
