"""When the revert of a culprit is looked at: whenever its search has another answer, or none again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handlers.regressions.config import REGRESSIONS
from handlers.searches.records import CulpritSearch
from handlers.searches.revert.decide import reverted_pull
from handlers.searches.revert.effects import CheckRevert
from handlers.searches.revert.records import CULPRIT_REVERT, RevertEvent

if TYPE_CHECKING:
    from bot.plan.handler import Context


async def revert_checks(
    context: Context, old: CulpritSearch, search: CulpritSearch, moment: float
) -> tuple[CheckRevert, ...]:
    """Return the effect that looks at the revert of a search, if a change of its answer may matter to it.

    `moment` is in seconds since 1970.
    """
    if search.answer == old.answer:
        return ()
    regressions, pull = context.config.of(REGRESSIONS), reverted_pull(search)
    if not (pull and regressions is not None and regressions.revert):
        revert = await context.records.get(CULPRIT_REVERT.of(context.repository.id, search.id))
        if revert is None:
            return ()
        pull = revert.pull
    return (CheckRevert(RevertEvent(search.id, pull, f"step:{search.step}", moment)),)
