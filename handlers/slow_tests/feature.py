"""The feature `slow_tests`: whether CI runs the slow tests of a pull request."""

from __future__ import annotations

from bot.feature import Feature
from handlers.slow_tests.config import KEYS
from handlers.slow_tests.handler import COMMANDS, router
from handlers.slow_tests.records import CHOICE

FEATURE = Feature(
    name="slow_tests",
    config=KEYS,
    router=router,
    commands=COMMANDS,
    records=(CHOICE,),
    titles={"slow-tests": "Slow tests", "slow-tests-branches": "Slow tests", "merge-group-slow-tests": "Slow tests"},
)
