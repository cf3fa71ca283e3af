"""The feature `slow_tests`: whether CI runs the slow tests of a pull request."""

from __future__ import annotations

from bot.feature import Feature
from bot.plan.handler import joined
from handlers.slow_tests.config import KEYS
from handlers.slow_tests.handler import COMMANDS, router
from handlers.slow_tests.records import RECORDS
from handlers.slow_tests.revert.command import COMMANDS as REVERT_COMMANDS
from handlers.slow_tests.revert.fixes import router as fixes_router
from handlers.slow_tests.slow_set import source
from handlers.slow_tests.slow_set.handler import router as slow_set_router

FEATURE = Feature(
    name="slow_tests",
    config=KEYS,
    router=joined([router, fixes_router, slow_set_router]),
    preload=(source.__name__,),
    commands=(*COMMANDS, *REVERT_COMMANDS),
    records=RECORDS,
    titles={
        "slow-tests": "Slow tests",
        "slow-tests-branches": "Slow tests",
        "merge-group-slow-tests": "Slow tests",
        "reverts": "Reverted pull requests",
        "slow-set": "Slow tests",
    },
)
