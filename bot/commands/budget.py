"""Limit how many commands a person may write, by the counts of the last hour. Pure.

Each answer is a write, and GitHub allows only a few hundred writes an hour for everybody together, so strangers must
not cause unlimited answers. Times are GitHub's own times of the comments, in seconds since 1970, so a late delivery
counts in the hour of its comment.
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

    `notified` has the IDs of people to whom an answer on this pull request has explained who may run commands.
    """

    counted: Mapping[str, CountedComment] = field(default_factory=dict)
    notified: tuple[int, ...] = ()

    def with_comment(self, intent: str, comment: CountedComment, notified: int | None = None) -> CommandTally:
        """Return the tally with another comment, and without comments that are more than an hour older than it."""
        recent = {key: earlier for key, earlier in self.counted.items() if earlier.at > comment.at - HOUR}
        recent[intent] = comment
        newest = dict(list(recent.items())[-MOST_COUNTED:])
        if notified is None or notified in self.notified:
            return replace(self, counted=newest)
        return replace(self, counted=newest, notified=(*self.notified, notified)[-MOST_NOTIFIED:])

    def within_an_hour(self, moment: float, intent: str) -> Sequence[CountedComment]:
        """Return the comments of the hour before a moment, except the one with this intent."""
        return [comment for key, comment in self.counted.items() if key != intent and comment.at > moment - HOUR]


@dataclass(frozen=True, slots=True)
class CommandsQuestion:
    """A comment with commands for `decide_response`; with `refused`, the person may run none of the commands."""

    intent: str
    written_at: float
    commands: int
    person_id: int
    refused: bool
    writer: bool


def decide_response(
    question: CommandsQuestion, person: CommandTally, pull: CommandTally, limits: Commands
) -> CommandResponse:
    """Return the response to a comment with commands, by the earlier comments within an hour."""
    by_person = person.within_an_hour(question.written_at, question.intent)
    if question.refused:
        if sum(comment.kind is CommandOutcome.REFUSED for comment in by_person) >= REFUSALS_AN_HOUR:
            return CommandResponse.NOTHING
        return CommandResponse.REACT if question.person_id in pull.notified else CommandResponse.REFUSE
    if _commands_run(by_person) + question.commands > limits.per_person:
        return _over_limit(by_person, CommandResponse.PERSON_OVER)
    on_pull = pull.within_an_hour(question.written_at, question.intent)
    # Otherwise strangers could use up a pull request's limit and block its maintainers.
    if not question.writer and _commands_run(on_pull) + question.commands > limits.per_pull_request:
        return _over_limit(on_pull, CommandResponse.PULL_OVER)
    return CommandResponse.RUN


def is_ignored(intent: str, moment: float, person: CommandTally, limits: Commands) -> bool:
    """Return whether a person's limit is reached and an answer has said so. Then nothing they write gets a response."""
    by_person = person.within_an_hour(moment, intent)
    return _commands_run(by_person) >= limits.per_person and _has_answer(by_person)


def _commands_run(counted: Sequence[CountedComment]) -> int:
    return sum(comment.commands for comment in counted if comment.kind is CommandOutcome.RUN)


def _over_limit(counted: Sequence[CountedComment], response: CommandResponse) -> CommandResponse:
    return CommandResponse.NOTHING if _has_answer(counted) else response


def _has_answer(counted: Sequence[CountedComment]) -> bool:
    """Return whether the bot has said within the hour that a limit is reached; it says so once."""
    return any(comment.kind is CommandOutcome.OVER for comment in counted)
