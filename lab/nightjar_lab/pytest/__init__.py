"""The pytest plugin of the lab kit. It does nothing in a project that uses none of it.

`targets_plugin` parametrises tests over targets; `run_plugin` selects, reports and reruns tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_lab.pytest import run_plugin, targets_plugin

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the plugin's halves. `-p no:nightjar` turns both off, `-p no:nightjar-run` only one."""
    pluginmanager.register(targets_plugin, "nightjar-targets")
    pluginmanager.register(run_plugin, "nightjar-run")
