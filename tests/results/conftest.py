"""Fixtures of the tests of results."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bot.results.store.store import ResultsStore


@pytest.fixture
def store(url_with_tables: str) -> Iterator[ResultsStore]:
    """Return an empty store, on each database in turn."""
    made = ResultsStore(url_with_tables)
    made.open()
    yield made
    made.close()
