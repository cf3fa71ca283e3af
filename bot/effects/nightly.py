"""The last word on a night: what is known of the branch that labs test, where they and people look for it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.effects.base import Applied, EffectContext
from bot.effects.following import NOT_MOVED, how_it_ended, keep, tell_of_trouble
from bot.effects.statuses import SetStatus
from bot.following.decide import Step
from bot.following.kept import NIGHTLY

STATUS = "nightly"
DESCRIPTION = "the branch {branch} moved here on {day}, for labs to test"
BODY = """\
Labs test the commit at the head of `{branch}`, which I move every day to a newer commit of `{source}`. But {trouble}.

I try again every hour and every day, and close this issue when it works."""


@dataclass(frozen=True, slots=True)
class ConcludeNightly:
    """Look how the move went and where the branch is now, and tell labs, the commit, and people if need be.

    `day` is the one on which the timer was due, in its time zone and in ISO 8601.
    """

    step: Step
    day: str

    @property
    def target(self) -> str:
        """The branch."""
        return f"{NIGHTLY}:{self.step.branch}"

    async def apply(self, context: EffectContext) -> Applied:
        """Keep what is known first, then write the status and the issue; each of it looks before it writes."""
        ended = await how_it_ended(context, self.step)
        if ended is None:
            return Applied(NOT_MOVED, changed=False)
        await keep(context, NIGHTLY, self.step, ended)
        if self.step.chosen and ended.head == self.step.chosen:
            description = DESCRIPTION.format(branch=self.step.branch, day=self.day)
            await SetStatus(self.step.chosen, STATUS, "success", description).apply(context)
        return await tell_of_trouble(context, NIGHTLY, self.step, ended, BODY)
