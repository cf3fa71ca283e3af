"""The outcomes of a run's tests, of which thousands share one object: each object is processed once. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import compress

from nightjar_formats.model import SeenTest

Wanted = Callable[[SeenTest], bool]


class SharedOutcomes:
    """How the tests of a run ended, to be asked by conditions on their outcomes."""

    def __init__(self, tests: Mapping[str, SeenTest]) -> None:
        self._tests = tests
        self._outcomes = list(tests.values())
        self._keys = list(map(id, self._outcomes))
        self._outcome_of = dict(zip(self._keys, self._outcomes))

    @cached_property
    def counted(self) -> list[tuple[SeenTest, int]]:
        """Each outcome, and how many tests share it."""
        return [(self._outcome_of[key], count) for key, count in Counter(self._keys).items()]

    def which(self, wanted: Wanted) -> list[str]:
        """Return the tests that ended as wanted."""
        keys = {key for key, outcome in self._outcome_of.items() if wanted(outcome)}
        return list(compress(self._tests, map(keys.__contains__, self._keys))) if keys else []

    def count(self, wanted: Wanted) -> int:
        """Return how many tests ended as wanted."""
        return sum(count for outcome, count in self.counted if wanted(outcome))

    def all(self, wanted: Wanted) -> bool:
        """Return whether all tests ended as wanted."""
        return all(map(wanted, self._outcome_of.values()))
