"""The half of the plugin that parametrises tests: targets, parameters and cached fixtures.

All of it returns at once in a project that declares no targets, sets no variable and uses none of our names.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from nightjar_lab.pytest import texts
from nightjar_lab.pytest.cached_fixtures import CachedValues, CacheUses
from nightjar_lab.pytest.decorators import MARKS, DecoratorUse
from nightjar_lab.pytest.parameters import ParameterSets, parametrize_together
from nightjar_lab.pytest.parametrize import mark_item, parametrize_over_targets
from nightjar_lab.pytest.registry import (
    ACTIVE,
    ANSWERS,
    CAPABILITIES,
    OTHER_TARGETS_TOO,
    TargetRegistry,
    start_registry,
)
from nightjar_lab.pytest.targets import TargetUseError


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the key of pytest's configuration."""
    parser.addini(OTHER_TARGETS_TOO, texts.OTHER_TARGETS_INI, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Read what the first conftest.py files declare, and the environment."""
    for mark, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")
    registry = start_registry(config)
    if registry.named or DecoratorUse.ever:
        registry.use()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Forget the run, and remove the folder in which its workers shared the answers of probes."""
    registry = _registry_of(config.pluginmanager)
    if registry is not None:
        ACTIVE.remove(registry)
        if registry.answers_of_workers is not None:
            shutil.rmtree(registry.answers_of_workers, ignore_errors=True)


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    """Read a conftest.py that is found while tests are collected."""
    registry = _registry_of(manager)
    if registry is not None:
        registry.read(plugin)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each worker of pytest-xdist the folder in which they share the answers of probes."""
    registry = _registry_of(node.config.pluginmanager)
    if registry is not None:
        if registry.answers_of_workers is None:
            registry.answers_of_workers = Path(tempfile.mkdtemp(prefix="nightjar-probes-"))
        node.workerinput[ANSWERS] = str(registry.answers_of_workers)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Have a worker of pytest-xdist tell the controller which targets it can test."""
    registry = _registry_of(session.config.pluginmanager)
    output = getattr(session.config, "workeroutput", None)
    if registry is not None and output is not None:
        output[CAPABILITIES] = registry.capabilities


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the targets that a worker can test; a worker that died has not sent them."""
    registry = _registry_of(node.config.pluginmanager)
    if registry is not None:
        registry.capabilities.update(getattr(node, "workeroutput", {}).get(CAPABILITIES, {}))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise a test over targets and over sets of parameters."""
    if ParameterSets.ever:
        parametrize_together(metafunc)
    if ACTIVE and ACTIVE[-1].in_use:
        fault = ""
        try:
            parametrize_over_targets(metafunc, ACTIVE[-1])
        except TargetUseError as error:
            fault = str(error)
        if fault:  # outside of the handler, which pytest would report as a second error
            pytest.fail(fault, pytrace=False)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests the marks of their targets before `-m` and `-k` select by them."""
    if ACTIVE and ACTIVE[-1].in_use:
        for item in items:
            mark_item(item, ACTIVE[-1])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Count which tests use a cached fixture, in order to forget its values after the last of them."""
    if CachedValues.ever:
        uses = CacheUses(session.items)
        session.config.pluginmanager.register(uses, "nightjar-cache-uses")


def _registry_of(manager: pytest.PytestPluginManager) -> TargetRegistry | None:
    return next((registry for registry in reversed(ACTIVE) if registry.config.pluginmanager is manager), None)
