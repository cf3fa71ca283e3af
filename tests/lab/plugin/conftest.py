"""Fixtures of the plugin's tests: a project, and an environment without our own settings."""

from __future__ import annotations

import os

import pytest

from tests.lab.plugin.project import Project


@pytest.fixture(autouse=True)
def _plain_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run pytest without the plugins and variables of this repository's own tests."""
    if "pytester" in request.fixturenames:
        request.getfixturevalue("pytester")  # removes PYTEST_ADDOPTS
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:asyncio -p no:cov -p no:timeout -p no:hypothesispytest")
    for name in os.environ:
        if name.startswith(("NIGHTJAR_", "GITHUB_")) or name in ("SKIP_SLOW_TESTS", "TVM_TEST_TARGETS", "CI"):
            monkeypatch.delenv(name)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project that declares targets, or uses parameters and cached fixtures."""
    return Project(pytester, monkeypatch)
