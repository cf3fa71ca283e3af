"""Read the subscribers of topics from app.yaml and an issue's list, and find those of an issue or pull request. Pure.

Anybody may open and comment on the issue with the list, so only text by people with the triage role is read, which
includes the issue's description. A line must hold topics, then names: "thanks @hubot for this" lists nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bot.core.events import Payload, person_or_ghost
from bot.core.listing import listed
from bot.core.patterns import Pattern
from bot.core.titles import folded, tags_of
from bot.github.text.markdown import HOLE, code, truncate, visible_lines
from bot.github.text.mentions import login_or_team, mentioned
from handlers.teams.records import MentionedPeople, Topics
from handlers.teams.texts import EXAMPLE, INVALID_LINES

if TYPE_CHECKING:
    from handlers.teams.config import Teams

LISTERS = frozenset({"triage", "write", "maintain", "admin"})
"""The roles of people who may list others. `author_association` does not say: it is CONTRIBUTOR for members whose
membership is private."""
MOST_SHOWN, LONGEST_SHOWN = 5, 100
LONGEST_TOPIC = 50


_PARENTHESES = Pattern(r"\([^()]*\)")
_TASK = Pattern(r"^\[[ xX]\] ")
_BETWEEN = Pattern(r" ?[,;&] ?(?:and )?| and | ")
_AROUND_TOPIC = " :-\N{EN DASH}\N{EM DASH}"
_AFTER_NAME = ".,;:"


@dataclass(frozen=True, slots=True)
class ReadLines:
    """The topics that a text lists, and the lines that name somebody but cannot be read."""

    topics: dict[str, tuple[str, ...]]
    unreadable: tuple[str, ...]


def read_lines(text: str) -> ReadLines:
    """Read a list: lines `- hexagon, adreno (phones): @octocat, @octo-org/compiler`, with or without a bullet.

    A line must hold topics, then names, and nothing else; text in parentheses is a comment. Lines that name nobody are
    headings and prose, and what stands below the head of an earlier mail is somebody else's. The predecessor read `x.`
    and `x,` as names, `a, b` as one topic, and a quoted `> ci` as one.
    """
    entries: list[tuple[str, list[str]]] = []
    unreadable = []
    for line in visible_lines(text):
        if "@" in line.text:
            line_entries = list(_entries(_without_comments(line.text)))
            entries += line_entries
            if not line_entries:
                unreadable.append(" ".join(line.text.replace(HOLE, "…").split()))
    return ReadLines(joined_topics(entries), tuple(unreadable))


def listed_topics(text: str) -> dict[str, tuple[str, ...]]:
    """Return the subscribers of each topic in a text."""
    return read_lines(text).topics


def _without_comments(line: str) -> str:
    """Return a line without a task's checkbox and without text in parentheses."""
    return " ".join(_PARENTHESES.sub(" ", _TASK.sub("", " ".join(line.split()))).split())


def _entries(line: str) -> Iterator[tuple[str, list[str]]]:
    beginning, sign, names = line.partition("@")
    tags = [folded(tag) for tag in beginning.strip(_AROUND_TOPIC).split(",")]
    words = [word.rstrip(_AFTER_NAME) for word in _BETWEEN.split(sign + names) if word]
    if HOLE in line or not all(word.startswith("@") for word in words):
        return
    people = [name for name in map(login_or_team, words) if name]
    for tag in tags:
        if tag and people and len(tag) <= LONGEST_TOPIC and not set(tag) & set("[]"):
            yield tag, people


def unreadable_text(lines: Sequence[str]) -> str:
    """Return the answer to lines that cannot be read, as Markdown that mentions nobody."""
    quoted = [code(truncate(line, LONGEST_SHOWN)) for line in lines[:MOST_SHOWN]]
    return INVALID_LINES.format(lines=listed(quoted, MOST_SHOWN, len(lines)), example=code(EXAMPLE))


def joined_topics(entries: Iterable[tuple[str, Iterable[str]]]) -> dict[str, tuple[str, ...]]:
    """Return the subscribers of each topic without duplicates; a topic may have several entries."""
    names_by_topic: dict[str, dict[str, str]] = {}
    for topic, people in entries:
        for name in people:
            names_by_topic.setdefault(folded(topic), {}).setdefault(name.lower(), name)
    return {topic: tuple(people.values()) for topic, people in names_by_topic.items()}


def configured_topics(config: Teams) -> dict[str, tuple[str, ...]]:
    """Return the subscribers that app.yaml lists."""
    return joined_topics((topic, [name.removeprefix("@") for name in names]) for topic, names in config.topics.items())


@dataclass(frozen=True, slots=True)
class OpenedThread:
    """The fields of an issue or a pull request that this feature reads."""

    number: int
    author: str
    title: str
    body: str
    labels: tuple[str, ...]

    @classmethod
    def of(cls, subject: Payload) -> Self:
        """Read the payload of an issue or a pull request."""
        labels = tuple(label.text("name") for label in subject.items("labels"))
        author = person_or_ghost(subject).login
        return cls(subject.integer("number"), author, subject.text("title"), subject.text("body"), labels)

    @property
    def tags(self) -> frozenset[str]:
        """Return the tags in its title, and its labels."""
        return frozenset(map(folded, (*tags_of(self.title), *self.labels)))


def topic_subscribers(
    opened: OpenedThread, topics: Topics, owner: str, not_meant: Collection[str] = ()
) -> MentionedPeople:
    """Return the subscribers of its topics, without the author and without people that its own text mentions.

    Names are compared without regard to case. Only teams of the repository's `owner` count. `not_meant` are lowercase
    names that never count, such as the names that people call the bot by.
    """
    matched = sorted(opened.tags & topics.keys())
    present = {name.lower() for name in mentioned(f"{opened.title}\n\n{opened.body}", owner)}
    excluded = {opened.author.lower(), *present, *not_meant}
    people = {
        name.lower(): name for topic in matched for name in topics[topic] if _team_of(name) in ("", owner.lower())
    }
    subscribers = tuple(name for key, name in sorted(people.items()) if key not in excluded)
    return MentionedPeople(subscribers, tuple(topic for topic in matched if set(subscribers) & set(topics[topic])))


def _team_of(name: str) -> str:
    organization, slash, _ = name.partition("/")
    return organization.lower() if slash else ""
