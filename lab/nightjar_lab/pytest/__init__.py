"""The pytest plugin of the lab kit. It does nothing in a project that uses none of it.

`targets_plugin` parametrises tests over targets; `run_plugin` selects, reports and reruns tests.
"""

from __future__ import annotations

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


def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    """Load the plugin of backend suites if the command line names them."""
    if any("suite" in argument for argument in args):
        from nightjar_lab.suite import pytest_plugin

        if pytest_plugin.names_suite(args) and not early_config.pluginmanager.is_registered(pytest_plugin):
            early_config.pluginmanager.register(pytest_plugin, "nightjar-suite")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the plugin's halves. `-p no:nightjar` turns both off, `-p no:nightjar-run` only one."""
    pluginmanager.register(targets_plugin, "nightjar-targets")
    pluginmanager.register(run_plugin, "nightjar-run")
