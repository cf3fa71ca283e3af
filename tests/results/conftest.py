"""Fixtures of the tests of results."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.results.store.store import ResultsStore
from tests.tables import with_tables


@pytest.fixture
def store(database_url: str) -> Iterator[ResultsStore]:
    """Return an empty store, on each database in turn."""
    made = ResultsStore(with_tables(database_url))
    made.open()
    yield made
    made.close()
