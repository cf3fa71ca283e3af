"""The features, each a file or a folder. `bot.app.features` joins them; below it, nothing in `bot` knows a feature.

They are loaded once somebody asks for `FEATURES`: a process that imports one module of one feature, such as one that
reads a report, needs none of the others.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.feature import Feature

    FEATURES: tuple[Feature, ...]

__all__ = ["FEATURES"]

MODULES = (
    "handlers.slow_tests.feature",
    "handlers.rerun.feature",
    "handlers.cc_reviewers.feature",
    "handlers.results.feature",
    "handlers.regressions.feature",
    "handlers.device_tests.feature",
    "handlers.labs.feature",
    "handlers.tracking_branches.feature",
    "handlers.nightly.feature",
    "handlers.last_good.feature",
    "handlers.main_failures.feature",
    "handlers.repository_file.feature",
    "handlers.merge.feature",
    "handlers.teams.feature",
    "handlers.welcome",
    "handlers.lint",
    "handlers.skip_ci.feature",
    "handlers.rebuild_docker.feature",
    "handlers.ci_decisions.feature",
    "handlers.docs_link",
    "handlers.ci_reports.feature",
    "handlers.skipped_tests.feature",
    "handlers.runtime.feature",
    "handlers.stale_reviews.feature",
    "handlers.docker_update.feature",
    "handlers.dashboard.feature",
    "handlers.operate.feature",
)
"""The modules that declare a `FEATURE`. The handlers of a delivery run in this order."""


def __getattr__(name: str) -> Any:
    """Return `FEATURES`."""
    if name != "FEATURES":
        raise AttributeError(name)
    return _features()


@cache
def _features() -> "tuple[Feature, ...]":
    return tuple(import_module(module).FEATURE for module in MODULES)
