"""The nightly branch: once a day it moves to the newest commit that is fit, so that all labs test one commit."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bot.github.ours import Ours
from bot.plan.handler import Context, Plan, Router
from bot.timers.timers import TIMER_DUE, moment_of
from handlers.branches.decide import TrackingScan, iso, step_of
from handlers.branches.effects import moves
from handlers.branches.nightly_effects import ConcludeNightly
from handlers.branches.record import NIGHTLY
from handlers.branches.scan import Looking

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


def decide(look: TrackingScan, nightly: Nightly, at: float) -> Plan:
    """Return what is to be done at a moment, in seconds since 1970."""
    step = step_of(look, nightly, at)
    day = datetime.fromtimestamp(at, ZoneInfo(nightly.timezone)).date().isoformat()
    return Plan(moves(step), step.why, ConcludeNightly(step, day))
