"""The nightly branch: once a day it moves to the newest commit that is fit, so that all labs test one commit."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bot.effects.following import moves
from bot.effects.nightly import ConcludeNightly
from bot.following.decide import Look, iso, step_of
from bot.following.kept import NIGHTLY
from bot.following.look import Looking
from bot.ours import Ours
from bot.plan import Context, Plan, Router
from bot.timers import TIMER_DUE, moment_of

if TYPE_CHECKING:
    from bot.config.nightly import Nightly

router = Router()


@router.on(TIMER_DUE, NIGHTLY, name=NIGHTLY, feature="nightly")
async def move_nightly(context: Context) -> Plan:
    """Look at the branch and the commits that it may move to, and decide."""
    nightly = context.config.nightly
    assert nightly is not None, "the handler is asked where the feature is on"
    at = moment_of(context.delivery.payload)
    ours = Ours.of(context.me, context.config)
    look = await Looking(context.github, context.repository.full_name, nightly, iso(at), ours).look()
    return decide(look, nightly, at)


def decide(look: Look, nightly: Nightly, at: float) -> Plan:
    """Return what is to be done at a moment, in seconds since 1970."""
    step = step_of(look, nightly, at)
    day = datetime.fromtimestamp(at, ZoneInfo(nightly.timezone)).date().isoformat()
    return Plan(moves(step), step.why, ConcludeNightly(step, day))
