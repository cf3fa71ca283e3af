"""The outcomes of a run's tests, of which thousands share one object: each object is processed once. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import compress

from nightjar_formats.model import SeenTest

Wanted = Callable[[SeenTest], bool]


class SharedOutcomes:
    """The outcomes of a run's tests, searched by conditions on the outcome."""

    def __init__(self, tests: Mapping[str, SeenTest]) -> None:
        self._tests = tests
        self._outcomes = list(tests.values())
        self._keys = list(map(id, self._outcomes))
        self._outcome_of = dict(zip(self._keys, self._outcomes))

    @cached_property
    def counted(self) -> list[tuple[SeenTest, int]]:
        """Return each outcome with the number of tests that share it."""
        return [(self._outcome_of[key], count) for key, count in Counter(self._keys).items()]

    def which(self, condition: Wanted) -> list[str]:
        """Return the tests whose outcome meets a condition."""
        keys = {key for key, outcome in self._outcome_of.items() if condition(outcome)}
        return list(compress(self._tests, map(keys.__contains__, self._keys))) if keys else []

    def count(self, condition: Wanted) -> int:
        """Count the tests whose outcome meets a condition."""
        return sum(count for outcome, count in self.counted if condition(outcome))

    def all(self, condition: Wanted) -> bool:
        """Say whether the outcomes of all tests meet a condition."""
        return all(map(condition, self._outcome_of.values()))
