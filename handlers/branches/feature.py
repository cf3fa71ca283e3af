"""Everything of the branches that the bot moves: the nightly and the last good one."""

from __future__ import annotations

from bot.feature import Feature
from bot.plan.handler import joined
from handlers.branches import last_good, nightly, record
from handlers.branches.nightly_effects import MarkNightly, PublishNightly

FEATURE = Feature(
    name="branches",
    config=("nightly", "last_good"),
    records=record.RECORDS,
    router=joined([nightly.router, last_good.router]),
    effects=(MarkNightly, PublishNightly),
)
