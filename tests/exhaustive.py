"""`--without-exhaustive`: leave out tests that cost seconds to repeat, at length, what quicker ones show.

A mark `exhaustive` says which they are; what it names are the parameters, as in a test's ID, with which a test runs
always. `make test` leaves them out, `make test EXHAUSTIVE=yes` runs all tests. Why: docs/decisions/exhaustive-tests.md.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

FEW_EXAMPLES = 40
NO_SUCH = "{test}: its mark `exhaustive` names the parameters {name}, which it does not have"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--without-exhaustive", action="store_true", help="leave out tests that are marked exhaustive")


def pytest_configure(config: pytest.Config) -> None:
    """Let tests of properties try fewer examples, where they don't say how many."""
    settings.register_profile("few", settings.default, max_examples=FEW_EXAMPLES)
    if config.option.without_exhaustive:
        settings.load_profile("few")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the exhaustive tests.

    Raises pytest.UsageError if a mark names parameters that its test doesn't have.
    """
    if not config.option.without_exhaustive:
        return
    exhaustive: list[pytest.Item] = []
    others: list[pytest.Item] = []
    absent: dict[str, set[str]] = {}
    for item in items:
        mark = item.get_closest_marker("exhaustive")
        test, _, parameters = item.nodeid.partition("[")
        always = mark is None or parameters[:-1] in mark.args
        (others if always else exhaustive).append(item)
        if mark is not None:
            absent.setdefault(test, set(mark.args)).discard(parameters[:-1])
    whole_files = not (config.option.lf or any("::" in name for name in config.args))
    for test, names in absent.items() if whole_files else ():
        for name in names:
            raise pytest.UsageError(NO_SUCH.format(test=test, name=name))
    items[:] = others
    config.hook.pytest_deselected(items=exhaustive)
