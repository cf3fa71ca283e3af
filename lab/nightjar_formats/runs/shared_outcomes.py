"""The outcomes of a run's tests, of which thousands share one object: each object is processed once. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from functools import cached_property
from itertools import compress, filterfalse
from typing import Generic, Protocol, TypeVar

from nightjar_formats.columns import SEEN, at
from nightjar_formats.model import SeenTest

Test = TypeVar("Test")
Wanted = Callable[[SeenTest], bool]
_IS_PRESENT = bytes(byte > 0 for byte in range(256))
_BYTES = range(1, len(SEEN))


class SuiteNames(Protocol):
    """The names of a suite in their order, and the ordinal of each."""

    @property
    def ordered(self) -> Sequence[str]:
        """The names."""
        ...

    @property
    def ordinals(self) -> Mapping[str, int]:
        """The ordinal of each name."""
        ...


class SharedOutcomes(Generic[Test]):
    """The outcomes of a run's tests, searched by conditions on the outcome."""

    def __init__(self, tests: Mapping[Test, SeenTest]) -> None:
        self._tests = tests
        self._outcomes = list(tests.values())
        self._keys = list(map(id, self._outcomes))
        self._outcome_of = dict(zip(self._keys, self._outcomes))

    @cached_property
    def counted(self) -> list[tuple[SeenTest, int]]:
        """Return each outcome with the number of tests that share it."""
        return [(self._outcome_of[key], count) for key, count in Counter(self._keys).items()]

    def which(self, condition: Wanted) -> list[Test]:
        """Return the tests whose outcome meets a condition."""
        keys = {key for key, outcome in self._outcome_of.items() if condition(outcome)}
        return list(compress(self._tests, map(keys.__contains__, self._keys))) if keys else []

    def count(self, condition: Wanted) -> int:
        """Count the tests whose outcome meets a condition."""
        return sum(count for outcome, count in self.counted if condition(outcome))

    def all(self, condition: Wanted) -> bool:
        """Say whether the outcomes of all tests meet a condition."""
        return all(condition(outcome) for outcome, _ in self.counted)


class ColumnOutcomes(Mapping[str, SeenTest]):
    """The outcomes of a run's tests as a column of status bytes, one for each name of the suite.

    `explained` has the outcomes with a message or a trouble, by ordinal. No object is made for each test until somebody
    lists all of them; another process gets them as a dictionary.
    """

    def __init__(self, names: SuiteNames, statuses: bytes, explained: Mapping[int, SeenTest]) -> None:
        self.names = names
        self.statuses = statuses
        self._explained = explained

    def __getitem__(self, test: str) -> SeenTest:
        ordinal = self.names.ordinals[test]
        byte = at(self.statuses, ordinal)
        if not byte:
            raise KeyError(test)
        return self._explained.get(ordinal) or SEEN[byte]

    def __contains__(self, test: object) -> bool:
        ordinal = self.names.ordinals.get(test)  # type: ignore[call-overload]  # any object may be looked for
        return ordinal is not None and at(self.statuses, ordinal) > 0

    def __iter__(self) -> Iterator[str]:
        return compress(self.names.ordered, self.statuses)

    def __len__(self) -> int:
        return len(self.statuses) - self.statuses.count(0)

    def __reduce__(self) -> tuple[type[dict[str, SeenTest]], tuple[dict[str, SeenTest]]]:
        return dict, (self._listed,)

    def keys(self) -> KeysView[str]:
        """Return all tests."""
        return self._listed.keys()

    def values(self) -> ValuesView[SeenTest]:
        """Return all outcomes."""
        return self._listed.values()

    def items(self) -> ItemsView[str, SeenTest]:
        """Return all tests with their outcomes."""
        return self._listed.items()

    @cached_property
    def _listed(self) -> dict[str, SeenTest]:
        present = self.statuses.replace(b"\0", b"")
        tests = dict(zip(self, map(SEEN.__getitem__, present), strict=True))
        return tests | {self.names.ordered[ordinal]: outcome for ordinal, outcome in self._explained.items()}

    @cached_property
    def _unexplained(self) -> bytes:
        column = bytearray(self.statuses)
        for ordinal in self._explained:
            column[ordinal] = 0
        return bytes(column)

    @cached_property
    def _shared(self) -> SharedOutcomes[int]:
        return SharedOutcomes(self._explained)

    @cached_property
    def counted(self) -> list[tuple[SeenTest, int]]:
        """Return each outcome with the number of tests that share it."""
        counts = [(SEEN[byte], self._unexplained.count(byte)) for byte in _BYTES]
        return [(seen, count) for seen, count in counts if count] + self._shared.counted

    def which(self, condition: Wanted) -> list[str]:
        """Return the tests whose outcome meets a condition."""
        wanted = bytes(byte in _BYTES and condition(SEEN[byte]) for byte in range(256))
        marks = bytearray(self._unexplained.translate(wanted))
        for ordinal in self._shared.which(condition):
            marks[ordinal] = 1
        return list(compress(self.names.ordered, marks))

    def count(self, condition: Wanted) -> int:
        """Count the tests whose outcome meets a condition."""
        return sum(count for outcome, count in self.counted if condition(outcome))

    def all(self, condition: Wanted) -> bool:
        """Say whether the outcomes of all tests meet a condition."""
        return all(condition(outcome) for outcome, _ in self.counted)

    def has_names_of(self, other: ColumnOutcomes) -> bool:
        """Return whether another run has the same suite, with the same names."""
        return self.names is other.names or self.names.ordered == other.names.ordered

    def only_here(self, other: ColumnOutcomes) -> list[str]:
        """Return the tests that another run of the same suite does not have."""
        size = len(self.statuses)
        here, there = (run.statuses.translate(_IS_PRESENT) for run in (self, other))
        marks = int.from_bytes(here, "little") & ~int.from_bytes(there[:size], "little")
        return list(compress(self.names.ordered, marks.to_bytes(size, "little"))) if marks else []


Outcomes = SharedOutcomes[str] | ColumnOutcomes


def shared(tests: Mapping[str, SeenTest]) -> Outcomes:
    """Return the outcomes of tests, to be searched by conditions."""
    return tests if isinstance(tests, ColumnOutcomes) else SharedOutcomes(tests)


def only_in(tests: Mapping[str, SeenTest], other_tests: Mapping[str, SeenTest]) -> set[str]:
    """Return the tests that are not among `other_tests`. A difference of keys would build a set of all tests."""
    if (
        isinstance(tests, ColumnOutcomes)
        and isinstance(other_tests, ColumnOutcomes)
        and tests.has_names_of(other_tests)
    ):
        return set(tests.only_here(other_tests))
    return set(filterfalse(other_tests.__contains__, tests))
