"""The features, each a file or a folder. `bot.app.features` joins them; below it, nothing in `bot` knows a feature.

They are loaded once somebody asks for `FEATURES`: a process that imports one module of one feature, such as one that
reads a report, needs none of the others. `CONFIG_KEYS` loads only the modules `config` of the features: the keys that
each feature has in app.yaml, so that a command that reads app.yaml starts fast.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.config.repository_keys import RepositoryKey
    from bot.feature import Feature

    CONFIG_KEYS: tuple[RepositoryKey[Any], ...]
    FEATURES: tuple[Feature, ...]

__all__ = ["CONFIG_KEYS", "FEATURES"]

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
    "handlers.welcome.feature",
    "handlers.lint.feature",
    "handlers.skip_ci.feature",
    "handlers.rebuild_docker.feature",
    "handlers.ci_decisions.feature",
    "handlers.docs_link.feature",
    "handlers.ci_reports.feature",
    "handlers.skipped_tests.feature",
    "handlers.runtime.feature",
    "handlers.stale_reviews.feature",
    "handlers.docker_update.feature",
    "handlers.dashboard.feature",
    "handlers.operate.feature",
    "handlers.help.feature",
)
"""The modules that declare a `FEATURE`. The handlers of a delivery run in this order."""


def __getattr__(name: str) -> Any:
    """Return `FEATURES` or `CONFIG_KEYS`."""
    if name == "FEATURES":
        return _features()
    if name == "CONFIG_KEYS":
        return _config_keys()
    raise AttributeError(name)


@cache
def _features() -> "tuple[Feature, ...]":
    return tuple(import_module(module).FEATURE for module in MODULES)


@cache
def _config_keys() -> "tuple[RepositoryKey[Any], ...]":
    """Return the `KEYS` of each feature that has a module `config` beside the one that declares the feature."""
    modules = [f"{module.rpartition('.')[0]}.config" for module in MODULES]
    return tuple(key for module in modules if find_spec(module) for key in import_module(module).KEYS)
