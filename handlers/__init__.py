"""The features, each a file or a folder. `bot.app.features` joins them; below it, nothing in `bot` knows a feature.

They are loaded once somebody asks for `FEATURES`: a process that imports one module of one feature, such as one that
reads a report, needs none of the others. `CONFIG_KEYS` loads only the modules `config` of the features: the keys that
each feature has in app.yaml, so that a command that reads app.yaml starts fast.

Other packages add features as entry points: docs/architecture.md, *Features of other packages*.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from bot.core.errors import StartError

if TYPE_CHECKING:
    from bot.config.repository_keys import RepositoryKey
    from bot.feature import Feature

    CONFIG_KEYS: tuple[RepositoryKey[Any], ...]
    FEATURES: tuple[Feature, ...]

__all__ = ["CONFIG_KEYS", "FEATURES"]

GROUP = "nightjar.features"
"""The entry points of other packages, each the name of a module that declares a `FEATURE`."""
BROKEN = "the feature {module}, an entry point {group} of an installed package, cannot be loaded: {problem}"

Loaded = TypeVar("Loaded")

MODULES = (
    "handlers.slow_tests.feature",
    "handlers.rerun.feature",
    "handlers.cc_reviewers.feature",
    "handlers.results.feature",
    "handlers.regressions.feature",
    "handlers.weekly_digest.feature",
    "handlers.device_tests.feature",
    "handlers.searches.feature",
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
    "handlers.mute.feature",
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
def _modules_of_packages() -> tuple[str, ...]:
    """Return the modules of other packages, in the order of their names."""
    return tuple(sorted({point.value for point in entry_points(group=GROUP)}))


@cache
def _features() -> "tuple[Feature, ...]":
    return _all(lambda module: import_module(module).FEATURE)


@cache
def _config_keys() -> "tuple[RepositoryKey[Any], ...]":
    """Return the `KEYS` of each feature that has a module `config` beside the one that declares the feature."""
    return tuple(key for keys in _all(_keys) for key in keys)


def _keys(module: str) -> "tuple[RepositoryKey[Any], ...]":
    config = f"{module.rpartition('.')[0]}.config"
    keys: tuple[RepositoryKey[Any], ...] = import_module(config).KEYS if find_spec(config) else ()
    return keys


def _all(load: Callable[[str], Loaded]) -> tuple[Loaded, ...]:
    """Load something of each feature's module; those of other packages come last. Raises StartError for theirs."""
    loaded = [load(module) for module in MODULES]
    for module in _modules_of_packages():
        try:
            loaded.append(load(module))
        except Exception as error:  # whatever the code of others raises
            raise StartError(BROKEN.format(module=module, group=GROUP, problem=error)) from error
    return tuple(loaded)
