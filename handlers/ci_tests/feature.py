"""The feature `ci_tests`: sections about skipped tests, and about how long tests take."""

from __future__ import annotations

from bot.core.untrusted.pool import POOL
from bot.feature import Feature, Services
from bot.plan.handler import joined
from bot.results.service import RESULTS
from handlers.ci_tests import archives, runtime, runtimes_text, skipped_tests, skips_text
from handlers.ci_tests.artifacts import ARTIFACTS_READER, Artifacts


async def provide(services: Services) -> None:
    """Provide the reader of artifacts, which both sections share."""
    services.parts[ARTIFACTS_READER] = Artifacts(services.part(RESULTS).file_lists, services.part(POOL))


FEATURE = Feature(
    name="ci_tests",
    config=("skipped_tests", "runtime"),
    router=joined([skipped_tests.router, runtime.router]),
    sections=(skipped_tests.NAME, runtime.NAME),
    provide=provide,
    preload=tuple(module.__name__ for module in (archives, skips_text, runtimes_text)),
)
