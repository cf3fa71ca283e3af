"""What a few tests did in a job's run: how often each passed and failed at each commit, how, and what it measured.

This is stored with the job, never with the results of the commit: docs/decisions/runs-of-a-few-tests.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from nightjar_formats.runs.few_tests import BASE, FEW_TESTS, HEAD
from nightjar_formats.strict_json import read_json

MOST_KINDS = 5
"""The most kinds of failure of a test at a commit that are stored; others are counted."""


@dataclass(frozen=True, slots=True)
class FailureKind:
    """Failures of a test with one cause: how many, the message of the first of them, and its text, which may be cut."""

    count: int
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class MedianValue:
    """The median of what the attempts of a test measured under a name, in a unit."""

    name: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True)
class TestAttempts:
    """What a test did in all of its attempts at one commit; an attempt that was skipped says nothing.

    `kinds` are the most frequent kinds of failure, at most `MOST_KINDS`; `medians` are what the attempts measured.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    kinds: tuple[FailureKind, ...] = ()
    medians: tuple[MedianValue, ...] = ()

    def median(self, name: str, unit: str) -> float | None:
        """Return the median of a measurement; None if no attempt measured it in this unit."""
        return next((median.value for median in self.medians if (median.name, median.unit) == (name, unit)), None)

    @property
    def attempts(self) -> int:
        """Return how many attempts say something."""
        return self.passed + self.failed


@dataclass(frozen=True, slots=True)
class FewTestsOutcome:
    """The attempts of each test that ran, at the job's own commit and at its base. Tests that did not run are left out.

    `seconds` is how long the lab's device worked on it, as far as the manifests say.
    """

    head: Mapping[str, TestAttempts] = field(default_factory=dict)
    base: Mapping[str, TestAttempts] = field(default_factory=dict)
    seconds: float = 0.0

    def of(self, test: str, side: str = HEAD) -> TestAttempts:
        """Return the attempts of a test at the job's commit, or at its base."""
        return (self.base if side == BASE else self.head).get(test, TestAttempts())

    def dump(self) -> str:
        """Return the outcome as JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def load(stored: str) -> FewTestsOutcome:
        """Read what `dump` wrote; an empty text is an outcome without attempts. Raises ValueError."""
        if not stored:
            return FewTestsOutcome()
        document = read_json(stored)
        return FewTestsOutcome(_attempts(document["head"]), _attempts(document["base"]), float(document["seconds"]))

    def plus(self, other: FewTestsOutcome) -> FewTestsOutcome:
        """Return both together: a job of several suites has a run for each."""
        return FewTestsOutcome(
            _joined(self.head, other.head), _joined(self.base, other.base), self.seconds + other.seconds
        )


def job_of_run(run_id: str) -> str:
    """Return the ID of the job to which a run of a few tests belongs: `tests-1f2e-2` is of `tests-1f2e`."""
    return FEW_TESTS + run_id.removeprefix(FEW_TESTS).partition("-")[0]


def most_frequent(kinds: Sequence[FailureKind]) -> tuple[FailureKind, ...]:
    """Return the most frequent kinds of failure; of two that are equally frequent, the first one first."""
    return tuple(sorted(kinds, key=lambda kind: -kind.count)[:MOST_KINDS])


def _attempts(stored: Mapping[str, Mapping[str, object]]) -> dict[str, TestAttempts]:
    result = {}
    for test, values in stored.items():
        kinds, medians = values["kinds"], values.get("medians", [])
        assert isinstance(kinds, list), "as `dump` wrote it"
        assert isinstance(medians, list), "as `dump` wrote it"
        result[test] = TestAttempts(
            int(str(values["passed"])),
            int(str(values["failed"])),
            int(str(values["skipped"])),
            tuple(FailureKind(**kind) for kind in kinds),
            tuple(MedianValue(**median) for median in medians),
        )
    return result


def _joined(one: Mapping[str, TestAttempts], other: Mapping[str, TestAttempts]) -> dict[str, TestAttempts]:
    joined = dict(one)
    for test, attempts in other.items():
        earlier = joined.get(test, TestAttempts())
        counts = {kind.message: kind for kind in earlier.kinds}
        for kind in attempts.kinds:
            known = counts.get(kind.message)
            counts[kind.message] = replace(known, count=known.count + kind.count) if known else kind
        joined[test] = TestAttempts(
            earlier.passed + attempts.passed,
            earlier.failed + attempts.failed,
            earlier.skipped + attempts.skipped,
            most_frequent(list(counts.values())),
            earlier.medians or attempts.medians,
        )
    return joined
