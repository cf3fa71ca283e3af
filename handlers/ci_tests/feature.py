"""Everything of the tests that CI ran: skipped tests and how long tests take."""

from __future__ import annotations

from bot.feature import Feature
from bot.plan.handler import joined
from handlers.ci_tests import runtime, skipped_tests

FEATURE = Feature(
    name="ci_tests",
    config=("skipped_tests", "runtime"),
    router=joined([skipped_tests.router, runtime.router]),
    sections=(skipped_tests.NAME, runtime.NAME),
)
