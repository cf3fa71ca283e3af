"""Limit how many commands a person may write, by the counts of the last hour. Pure.

Strangers must not be able to make the bot write at will: each answer is a write, and GitHub allows only a few hundred
writes an hour, for everybody together. Moments are GitHub's own times of the comments, in seconds since 1970, so a
delivery that comes late counts in its own hour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.config.commands import Commands

HOUR = 3600.0
# https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits
REFUSALS_AN_HOUR = 5
"""Refused comments of one person that get a reaction within an hour; the bot ignores further ones."""
MOST_NOTIFIED = 200
"""The most people per pull request that the bot remembers as informed about who may run commands."""
MOST_COUNTED = 1_000
"""The most comments of one hour that we store for a pull request or a person; the limits are far lower."""


class CommandOutcome(StrEnum):
    """How the bot handled a comment with commands."""

    RUN = "run"
    REFUSED = "refused"
    OVER = "over"


class CommandResponse(StrEnum):
    """What to do about a comment with commands."""

    RUN = "run"
    """Run the commands."""
    REFUSE = "refuse"
    """Reply why the person may not run the commands, and who may."""
    REACT = "react"
    """React only: an earlier comment on this pull request explained to this person who may run commands."""
    PERSON_OVER = "person-over"
    """Say that the person's limit is reached."""
    PULL_OVER = "pull-over"
    """Say that the pull request's limit is reached."""
    NOTHING = "nothing"
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class CountedComment:
    """One comment with commands: when it was written, how many commands it has, and how the bot handled it."""

    at: float
    commands: int
    kind: CommandOutcome


@dataclass(frozen=True, slots=True)
class CommandTally:
    """The comments of a person, or on a pull request, by the intents of their deliveries.

    `notified`: the IDs of people who got an answer on this pull request that says who may run commands.
    """

    counted: Mapping[str, CountedComment] = field(default_factory=dict)
    notified: tuple[int, ...] = ()

    def with_one(self, intent: str, one: CountedComment, notified: int | None = None) -> CommandTally:
        """Return the tally with one more comment, and without comments that are more than an hour older than it."""
        recent = {key: other for key, other in self.counted.items() if other.at > one.at - HOUR}
        recent[intent] = one
        newest = dict(list(recent.items())[-MOST_COUNTED:])
        if notified is None or notified in self.notified:
            return replace(self, counted=newest)
        return replace(self, counted=newest, notified=(*self.notified, notified)[-MOST_NOTIFIED:])

    def within_an_hour(self, at: float, intent: str) -> Sequence[CountedComment]:
        """Return the comments of the hour before a moment, except the one with this intent."""
        return [one for key, one in self.counted.items() if key != intent and one.at > at - HOUR]


@dataclass(frozen=True, slots=True)
class CommandsQuestion:
    """The comment with commands that `decide_response` decides about; `refused`: the person may run none of them."""

    intent: str
    at: float
    commands: int
    person_id: int
    refused: bool
    writer: bool


def decide_response(
    asked: CommandsQuestion, person: CommandTally, pull: CommandTally, limits: Commands
) -> CommandResponse:
    """Return the response to a comment with commands; it depends on earlier ones within an hour."""
    by_person = person.within_an_hour(asked.at, asked.intent)
    if asked.refused:
        if sum(one.kind is CommandOutcome.REFUSED for one in by_person) >= REFUSALS_AN_HOUR:
            return CommandResponse.NOTHING
        return CommandResponse.REACT if asked.person_id in pull.notified else CommandResponse.REFUSE
    if _run(by_person) + asked.commands > limits.per_person:
        return _over(by_person, CommandResponse.PERSON_OVER)
    on_pull = pull.within_an_hour(asked.at, asked.intent)
    # Otherwise strangers could use up a pull request's limit and block its maintainers.
    if not asked.writer and _run(on_pull) + asked.commands > limits.per_pull_request:
        return _over(on_pull, CommandResponse.PULL_OVER)
    return CommandResponse.RUN


def is_ignored(intent: str, at: float, person: CommandTally, limits: Commands) -> bool:
    """Return whether a person's limit is reached and an answer has said so: whatever they write gets no response."""
    by_person = person.within_an_hour(at, intent)
    return _run(by_person) >= limits.per_person and _has_answer(by_person)


def _run(counted: Sequence[CountedComment]) -> int:
    return sum(one.commands for one in counted if one.kind is CommandOutcome.RUN)


def _over(counted: Sequence[CountedComment], response: CommandResponse) -> CommandResponse:
    return CommandResponse.NOTHING if _has_answer(counted) else response


def _has_answer(counted: Sequence[CountedComment]) -> bool:
    """Return whether the bot has said within the hour that a limit is reached; it says so once."""
    return any(one.kind is CommandOutcome.OVER for one in counted)
