"""Read the files of a run of a few tests or of a benchmark, in a separate process (`bot.core.untrusted`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import BinaryIO

from nightjar_formats import readers
from nightjar_formats.limits import MAX_MEASUREMENTS, MAX_MESSAGE
from nightjar_formats.model import BAD, Case, Status
from nightjar_formats.readers.causes import cause, failure_cause
from nightjar_formats.refused import Refused
from nightjar_formats.runs import benchmark
from nightjar_formats.runs.few_tests import BASE, HEAD, side_of
from nightjar_formats.runs.identity import Resolver

from bot.results.few_tests import FailureKind, FewTestsOutcome, MedianValue, TestAttempts, most_frequent
from bot.results.ingest import texts
from bot.results.ingest.parse import NamedFile

MOST_ATTEMPTS = 200
"""The attempts of a test at a commit in a run that count, the first ones: no job asks for as many."""
MOST_CAUSES = 100
"""The most causes of a test's failures that are told apart while its files are read."""
MOST_TEXT = 4_000
"""The most characters of a failure's text; its end says more than its beginning."""
MOST_TEXTS = 60_000
"""The most characters of all texts of a run; further ones are empty."""
MOST_MEDIANS = 1_000
"""The most medians of measurements of a run; further ones are left out."""


@dataclass
class _Attempts:
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    kinds: dict[str, FailureKind] = field(default_factory=dict)
    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def add(self, case: Case) -> None:
        if sum(self.counts.values()) >= MOST_ATTEMPTS:
            return
        status = case.status
        outcome = "failed" if status in BAD else "skipped" if status is Status.SKIPPED else "passed"
        self.counts[outcome] += 1
        self._add_values(case)
        if status in BAD:
            message = cause(case.message, case.text)
            key = failure_cause(message)
            known = self.kinds.get(key)
            if known is not None:
                self.kinds[key] = FailureKind(known.count + 1, known.message, known.text)
            elif len(self.kinds) < MOST_CAUSES:
                self.kinds[key] = FailureKind(1, message[:MAX_MESSAGE], case.text[-MOST_TEXT:])

    def _add_values(self, case: Case) -> None:
        """Add what a case measured, whether or not it failed: tests often measure, and then check the value."""
        for measurement in case.measurements:
            series = measurement.name, measurement.unit
            if series in self.values or len(self.values) < MAX_MEASUREMENTS:
                self.values.setdefault(series, []).append(measurement.value)

    def frozen(self) -> TestAttempts:
        kinds = most_frequent(list(self.kinds.values()))
        medians = tuple(MedianValue(name, unit, median(values)) for (name, unit), values in self.values.items())
        return TestAttempts(self.counts["passed"], self.counts["failed"], self.counts["skipped"], kinds, medians)


def read_attempts(
    files: Sequence[BinaryIO],
    names: Sequence[NamedFile],
    listed: frozenset[str],
    tests: Collection[str],
    seconds: float,
) -> FewTestsOutcome:
    """Return what these `tests` did; the files may contain any others, which do not count.

    `listed` are the files of the repository at the job's commit. Raises `Refused` for a file that cannot be read.
    """
    requested = frozenset(tests)
    sides: dict[str, dict[str, _Attempts]] = {HEAD: defaultdict(_Attempts), BASE: defaultdict(_Attempts)}
    resolver = Resolver(listed)
    for file, (name, format_) in zip(files, names, strict=True):
        attempts = sides[side_of(name)]
        for case in readers.read(file, name, format_):
            test_id, _ = resolver.resolve(case)
            if test_id in requested:
                attempts[test_id].add(case)
    left, medians = MOST_TEXTS, MOST_MEDIANS
    frozen: dict[str, dict[str, TestAttempts]] = {HEAD: {}, BASE: {}}
    for side, side_attempts in sides.items():
        for test, attempts_of_test in side_attempts.items():
            within, left = _within(attempts_of_test.frozen(), left)
            frozen[side][test] = replace(within, medians=within.medians[:medians])
            medians -= len(frozen[side][test].medians)
    return FewTestsOutcome(frozen[HEAD], frozen[BASE], seconds)


def read_benchmark(files: Sequence[BinaryIO], names: Sequence[NamedFile]) -> str:
    """Return the checked report of a benchmark among the files of a run. Raises `Refused` if there is none."""
    for file, (name, _) in zip(files, names, strict=True):
        if name == benchmark.FILE:
            return benchmark.read_report(file.read(benchmark.MAX_REPORT_BYTES + 1)).text
    raise Refused(texts.NO_BENCHMARK.format(name=benchmark.FILE))


def _within(attempts: TestAttempts, characters: int) -> tuple[TestAttempts, int]:
    """Return the attempts with texts of at most so many characters in all, and how many are left."""
    kinds: list[FailureKind] = []
    for kind in attempts.kinds:
        text = kind.text if len(kind.text) <= characters else ""
        characters -= len(text)
        kinds.append(FailureKind(kind.count, kind.message, text))
    return replace(attempts, kinds=tuple(kinds)), characters
