"""Run only the tests that a job of the bot names, each as often as it says.

Both come from the agent's variables, so that no command has to pass them on.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

from nightjar_lab.few_tests import is_same_test


class NamedTests:
    """Deselects all tests but the named ones, before other plugins divide what is left."""

    def __init__(self, tests: tuple[str, ...]) -> None:
        self._tests = tests

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Select the named tests."""
        selected = [item for item in items if any(is_same_test(test, item.nodeid) for test in self._tests)]
        chosen = set(map(id, selected))
        if deselected := [item for item in items if id(item) not in chosen]:
            config.hook.pytest_deselected(items=deselected)
            items[:] = selected


class RepeatedTests:
    """Runs each test several times. Each run is reported as if it were the only one; failures are not run again."""

    def __init__(self, count: int) -> None:
        self._count = count

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a test with its fixtures, again and again; no other plugin runs it then."""
        for _ in range(self._count):
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            runtestprotocol(item, nextitem=nextitem)
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True
