"""The reader of CI's test results, which the features `skipped_tests` and `runtime` share."""

from __future__ import annotations

from bot.core.untrusted.pool import POOL
from bot.feature import Feature, Services
from bot.results.service import RESULTS
from handlers.ci_reports import archives
from handlers.ci_reports.artifacts import ARTIFACTS_READER, Artifacts


async def provide(services: Services) -> None:
    """Provide the reader of artifacts. Sharing it means that each artifact is downloaded and read once."""
    services.parts[ARTIFACTS_READER] = Artifacts(services.part(RESULTS).file_lists, services.part(POOL))


FEATURE = Feature(name="ci_reports", provide=provide, preload=(archives.__name__,))
