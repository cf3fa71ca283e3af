"""The last word on a look for the last good commit: what is known of its branch, where people and programs ask."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

from bot.github.access import ISSUES, WritePermissions
from bot.plan.effect import Applied, EffectContext
from handlers.branches.decide import Lag, Step
from handlers.branches.effects import NOT_MOVED, aim_of, how_it_ended, keep, tell_of_trouble
from handlers.branches.record import LAST_GOOD

BODY = """\
`{branch}` is to be at the newest commit of `{source}` on which everything that is required is green. But {trouble}.

I try again each time that I look for a newer one, and close this issue when it works."""


@dataclass(frozen=True, slots=True)
class ConcludeLastGood:
    """Look how the move went and where the branch is now; keep that, and tell people if need be.

    `lag` is how far the branch is behind where it was not moved, `lag_after` where it was. `require` are the patterns
    that verdicts go by: what was found by others says nothing.
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    step: Step
    lag: Lag | None
    lag_after: Lag | None
    require: tuple[str, ...]

    @property
    def target(self) -> str:
        """The branch."""
        return f"{LAST_GOOD}:{self.step.branch}"

    async def apply(self, context: EffectContext) -> Applied:
        """Keep what is known first, then open or close the issue; each of it looks before it writes."""
        aim = await aim_of(context, LAST_GOOD, self.step)
        ended = await how_it_ended(context, self.step)
        if ended is None:
            return Applied(NOT_MOVED, changed=False)
        lag = self._lag(ended.head)
        require = list(self.require)
        await keep(context, LAST_GOOD, self.step, ended, aim, lag=asdict(lag) if lag else None, require=require)
        return await tell_of_trouble(context, LAST_GOOD, self.step, ended, BODY)

    def _lag(self, head: str | None) -> Lag | None:
        # None as well where somebody else has moved the branch meanwhile: how far it is behind, the next look tells.
        return {self.step.before: self.lag, self.step.chosen: self.lag_after}.get(head or "")
