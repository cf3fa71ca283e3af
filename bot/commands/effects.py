"""What is counted of people's commands, so that nobody makes the bot write more than it may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bot.commands.budget import Counted, Kind, Tally
from bot.core.errors import TryAgain
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext

COUNTED, CHANGED = "{commands} command(s) counted", "somebody else counted at the same moment"


def person_key(repository_id: int, person_id: int) -> str:
    """Return the key of the record of what a person asked for in a repository."""
    return f"commands-by:{repository_id}:{person_id}"


def pull_key(repository_id: int, number: int) -> str:
    """Return the key of the record of what was asked for on a pull request."""
    return f"commands-on:{repository_id}#{number}"


@dataclass(frozen=True, slots=True)
class CountCommands:
    """Count a comment with commands for its writer and its pull request; `at` in seconds since 1970.

    `told`: the person was told on this pull request who may run commands.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    number: int
    person_id: int
    at: float
    commands: int
    outcome: Kind
    told: bool = False

    @property
    def target(self) -> str:
        """The person and the pull request."""
        return f"commands:{self.number}:{self.person_id}"

    async def apply(self, context: EffectContext) -> Applied:
        """Count it once for its intent. Raises `TryAgain` where another comment is counted at this very moment."""
        one = Counted(self.at, self.commands, self.outcome)
        repository = context.repository.id
        for key, told in (
            (person_key(repository, self.person_id), None),
            (pull_key(repository, self.number), self.person_id if self.told else None),
        ):
            known = await context.records.get(key)
            new = Tally.read(known).with_one(context.intent, one, told).as_record()
            if known != new and not await context.records.exchange(key, known, new):
                raise TryAgain(CHANGED)
        return Applied(COUNTED.format(commands=self.commands))
