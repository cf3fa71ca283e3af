"""Lists of tests for pages: which are flaky, slow, or skipped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import sqlalchemy as sa

from bot.results.store.lists.flaky_tests import FlakyList, flaky_tests
from bot.results.store.lists.listed_tests import ListedTests
from bot.results.store.lists.skipped_tests import SkippedList, skipped_tests
from bot.results.store.lists.slow_tests import Durations, durations_of
from bot.results.store.tables.names import SuiteNames


class ListsOfTests:
    """Reads lists of tests. Its methods block. Moments are in seconds since 1970."""

    def __init__(self, reading: Callable[[], AbstractContextManager[sa.Connection]], suite_names: SuiteNames) -> None:
        self._reading = reading
        self._suite_names = suite_names

    def flaky(self, query: ListedTests, since: float) -> FlakyList:
        """Return the tests that were flaky in commits made since a moment."""
        with self._reading() as connection:
            return flaky_tests(connection, self._suite_names, query, since)

    def slow(self, query: ListedTests) -> Durations:
        """Return how long the tests of a target take, and the slowest of them."""
        with self._reading() as connection:
            return durations_of(connection, self._suite_names, query)

    def skipped(self, query: ListedTests, since: float) -> SkippedList:
        """Return the tests that the newest runs skipped, and the tests that no target has run since a moment."""
        with self._reading() as connection:
            return skipped_tests(connection, self._suite_names, query, since)
