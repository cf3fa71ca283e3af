"""The feature `skipped_tests`: the section about tests that CI skips."""

from __future__ import annotations

from bot.feature import Feature
from handlers.skipped_tests import handler, section

FEATURE = Feature(
    name="skipped_tests",
    config=("skipped_tests",),
    router=handler.router,
    sections=(handler.NAME,),
    preload=(section.__name__,),
)
