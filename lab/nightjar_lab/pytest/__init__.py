"""The pytest plugin of the lab kit. It does nothing in a project that uses none of it.

`targets_plugin` parametrises tests over targets; `run_plugin` selects, reports and reruns tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nightjar_lab.pytest import run_plugin, targets_plugin
from nightjar_lab.pytest.cached_fixtures import fixture
from nightjar_lab.pytest.decorators import (
    enabled_targets,
    exclude_targets,
    known_failing_targets,
    parametrize_targets,
    requires,
    skip_parameterizations,
    xfail_parameterizations,
)
from nightjar_lab.pytest.parameters import parameter, parameters
from nightjar_lab.pytest.targets import Target

if TYPE_CHECKING:
    import pytest

__all__ = [
    "Target",
    "enabled_targets",
    "exclude_targets",
    "fixture",
    "known_failing_targets",
    "parameter",
    "parameters",
    "parametrize_targets",
    "requires",
    "skip_parameterizations",
    "xfail_parameterizations",
]


SUITE = "nightjar_lab.suite"
"""The package whose cases are tests where the command line names it."""


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Load the plugin of backend suites if the command line names their package, their file, or a test in it."""
    folder = Path(__file__).parents[1] / "suite"
    file = folder / "cases.py"
    for argument in args:
        name = str(argument).partition("::")[0]
        is_path = name.endswith(("suite", "suite/", file.name)) and Path(name).resolve() in (folder, file)
        if is_path or name in (SUITE, f"{SUITE}.{file.stem}"):
            # By its name, so that the kit's other plugins do not depend on the suites.
            early_config.pluginmanager.import_plugin(f"{SUITE}.pytest_plugin")
            return


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the plugin's halves. `-p no:nightjar` turns both off, `-p no:nightjar-run` only one."""
    pluginmanager.register(targets_plugin, "nightjar-targets")
    pluginmanager.register(run_plugin, "nightjar-run")
