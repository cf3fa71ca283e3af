"""The feature `merge`: commands, pending merges and their effects."""

from __future__ import annotations

from bot.feature import Feature
from bot.plan.handler import joined
from handlers.merge import commands, pending, records, waiting
from handlers.merge.config import KEYS
from handlers.merge.effects import LeaveQueue, MergePull
from handlers.merge.pending import note_refresh
from handlers.merge.pending_effects import EndPendingMerge, RequestRefresh, StorePendingMerge
from handlers.merge.update_effects import UpdateBranch

FEATURE = Feature(
    name="merge",
    config=KEYS,
    events=(pending.REFRESH_EVENT,),
    records=records.RECORDS,
    router=joined([commands.router, waiting.router]),
    commands=commands.COMMANDS,
    note=note_refresh,
    notes_of=(pending.REFRESH_EVENT.name,),
    effects=(EndPendingMerge, LeaveQueue, MergePull, RequestRefresh, StorePendingMerge, UpdateBranch),
    titles={
        "merge-when-green-triggers": "Pending merge",
        "merges": "Pending merges",
        "merge-when-green": "Pending merge",
    },
)
