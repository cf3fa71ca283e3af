"""The subscribers of topics, and who was mentioned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.engine.records import Record
from bot.github.text.markdown import code
from handlers.teams.texts import AND, CC, FAILED

MOST = 50
"""The most people and teams that the bot mentions in one conversation."""
Topics = Mapping[str, tuple[str, ...]]
"""The subscribers of each topic: topics are folded, names are without their `@`."""


@dataclass(frozen=True, slots=True)
class TeamList:
    """The list in the issue `issue`; `read_at` is when reading it began, in seconds since 1970."""

    issue: int
    read_at: float
    topics: Topics


TEAM_LIST = Record("team-list", 1, TeamList, "the subscribers of each topic, as an issue lists them", days=None)


@dataclass(frozen=True, slots=True)
class MentionedPeople:
    """The people who were mentioned in a conversation, and for which topics; `failure` says why others were not."""

    people: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    failure: str = ""

    def with_others(self, others: MentionedPeople) -> MentionedPeople:
        """Return the union, each person once; return `self` if `others` names nobody new."""
        present = {name.lower() for name in self.people}
        new = [name for name in others.people if name.lower() not in present][: max(0, MOST - len(self.people))]
        if not new:
            return self
        people = sorted((*self.people, *new), key=str.lower)
        return MentionedPeople(tuple(people), tuple(sorted({*self.topics, *others.topics})), self.failure)

    def text(self) -> str:
        """Return the comment's section in Markdown, with the names as mentions; empty if there is nothing to say."""
        parts = [self._cc() if self.people else "", FAILED.format(why=self.failure) if self.failure else ""]
        return "\n\n".join(filter(None, parts))

    def _cc(self) -> str:
        *most, last = [f"@{name}" for name in self.people]
        names = AND.join([", ".join(most), last] if most else [last])
        return CC.format(names=names, topics=", ".join(map(code, self.topics)))


MENTIONED_PEOPLE = Record("team-tags", 1, MentionedPeople, "who was mentioned on an issue or a pull request", days=365)
RECORDS = (TEAM_LIST, MENTIONED_PEOPLE)
