"""The fixture `dev`: a device of the target that a test runs on. Registered in projects that use targets."""

from __future__ import annotations

import pytest


@pytest.fixture
def dev(request: pytest.FixtureRequest, target: str) -> object:
    """Make a device for the target of this test, as the project's conftest.py declares."""
    from nightjar_lab.pytest.registry import ACTIVE, make_device

    return make_device(ACTIVE[-1].declared_for(request.node.path), target)
