"""Count people's commands, so that nobody can make the bot write more than its limits allow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from bot.commands import texts
from bot.commands.budget import CommandOutcome, CommandTally, CountedComment
from bot.engine.records import Record
from bot.plan.effect import Applied, StoreContext, StoredEffect

COMMANDS_BY = Record(
    "commands-by", 1, CommandTally, "the commands of a person in a repository, of the last hour", days=7
)
COMMANDS_ON = Record(
    "commands-on",
    1,
    CommandTally,
    "the commands on a pull request of the last hour, and who got an explanation of who may run them",
    days=365,
)


@dataclass(frozen=True, slots=True)
class CountCommands(StoredEffect):
    """Count a comment with commands for its writer and its pull request; `at` in seconds since 1970.

    `notified`: the answer tells the person who may run commands.
    """

    number: int
    person_id: int
    at: float
    commands: int
    outcome: CommandOutcome
    notified: bool = False

    @property
    def effect_key(self) -> str:
        """The person and the pull request."""
        return f"commands:{self.number}:{self.person_id}"

    async def store(self, context: StoreContext) -> Applied:
        """Count the comment once per intent: a job of an earlier release may have been applied to one record only."""
        comment = CountedComment(self.at, self.commands, self.outcome)
        repository = context.repository.id
        by_person, on_pull = COMMANDS_BY.of(repository, self.person_id), COMMANDS_ON.of(repository, self.number)
        for key, notified in ((by_person, None), (on_pull, self.person_id if self.notified else None)):
            context.changes.update(key, partial(_with_comment, context.intent, comment, notified))
        return Applied(texts.COUNTED.format(commands=self.commands))


def _with_comment(
    intent: str, comment: CountedComment, notified: int | None, tally: CommandTally | None
) -> CommandTally:
    return (tally or CommandTally()).with_comment(intent, comment, notified)
