"""What the bot remembers of degraded targets."""

from __future__ import annotations

from dataclasses import dataclass

from bot.engine.records import Record
from handlers.device_tests.degraded.rule import DegradedTarget


@dataclass(frozen=True, slots=True)
class JudgedTargets:
    """When the targets of a repository were last evaluated (`at`), and since when without a gap.

    Both are in seconds since 1970.
    """

    at: float
    since: float


JUDGED = Record("targets-judged", 1, JudgedTargets, "when the targets of a repository were last evaluated", days=None)
DEGRADED = Record("degraded", 1, DegradedTarget, "a target whose nightly runs are infra or missing", days=None)
