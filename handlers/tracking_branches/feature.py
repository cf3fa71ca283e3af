"""The records of tracking branches, which the features `nightly` and `last_good` share."""

from __future__ import annotations

from bot.feature import Feature
from handlers.tracking_branches import records

FEATURE = Feature(name="tracking_branches", records=records.RECORDS)
