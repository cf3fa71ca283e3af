"""The feature `skip_ci`: the status that says whether CI may skip a pull request."""

from __future__ import annotations

from bot.feature import Feature
from handlers.skip_ci import handler, records
from handlers.skip_ci.config import KEYS

FEATURE = Feature(
    name="skip_ci",
    config=KEYS,
    records=(records.SKIP_CI,),
    router=handler.router,
    titles={"skip-ci": "Whether CI runs", "merge-group-skip-ci": "Whether CI runs"},
)
