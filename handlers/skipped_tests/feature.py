"""The feature `skipped_tests`: the section about tests that CI skips."""

from __future__ import annotations

from bot.feature import Feature
from handlers.skipped_tests import handler, section
from handlers.skipped_tests.config import KEYS

FEATURE = Feature(
    name="skipped_tests",
    config=KEYS,
    router=handler.router,
    sections=(handler.NAME,),
    preload=(section.__name__,),
    titles={
        "skipped-tests-results": "Section on skipped tests",
        "skipped-tests-run": "Section on skipped tests",
        "skipped-tests": "Section on skipped tests",
    },
)
