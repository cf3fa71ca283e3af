"""Run two commits in turn on one device (base, head, head, base), until the ratios of what they measure are precise.

The first run of each commit does not count: the command builds the commit there, and the device warms up.
docs/decisions/benchmarks-in-turn.md says why it is done this way.
"""

from __future__ import annotations

import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from statistics import median
from typing import BinaryIO, NamedTuple

from nightjar_formats.limits import MAX_NAME
from nightjar_formats.measurements import Measurement
from nightjar_formats.model import BAD
from nightjar_formats.pairs import LEAST_BLOCKS, Block, Ratio, ratio_of, within_bounds
from nightjar_formats.readers import read
from nightjar_formats.runs.benchmark import (
    MAX_FAILURES,
    MAX_LISTED,
    BenchmarkEnd,
    BenchmarkReport,
    ComparedMeasurement,
)
from nightjar_formats.runs.few_tests import BASE, HEAD
from nightjar_lab import texts

BLOCK = (BASE, HEAD, HEAD, BASE)
MOST_BLOCKS = 60
MOST_SERIES = 1000
"""The most measurements of all tests that are compared."""
MOST_SHOWN = 60
"""The most characters of a name in the progress."""


class MeasurementKey(NamedTuple):
    """A test, and the name of what it measures."""

    test: str
    name: str


class SideRun(NamedTuple):
    """What the tests of one run measured, and those that failed."""

    measured: Mapping[MeasurementKey, Measurement]
    failures: Sequence[str]


def run_of(reports: Iterator[tuple[str, BinaryIO]]) -> SideRun:
    """Read the reports of a run, each with its name. Raises Refused."""
    measured: dict[MeasurementKey, Measurement] = {}
    failures: list[str] = []
    for name, stream in reports:
        for case in read(stream, name):
            test = case.own_name[:MAX_NAME]
            if case.status in BAD:
                failures.append(test)
            for measurement in case.measurements:
                measured[MeasurementKey(test, measurement.name)] = measurement
    return SideRun(measured, failures)


def joined(runs: Sequence[SideRun]) -> SideRun:
    """Return what all suites measured in one run."""
    measured: dict[MeasurementKey, Measurement] = {}
    for run in runs:
        measured.update(run.measured)
    return SideRun(measured, [test for run in runs for test in run.failures])


def only_named(run: SideRun, tests: Collection[str]) -> SideRun:
    """Return what the named tests did; all, if none of them is there: the report may write their names otherwise."""
    measured = {key: measurement for key, measurement in run.measured.items() if key.test in tests}
    return SideRun(measured, [test for test in run.failures if test in tests]) if measured else run


_Range = tuple[tuple[str, float], tuple[str, float]]
"""The lowest and the highest number of a side, each with its unit before it: numbers in two units are apart."""


class Benchmark:
    """The runs of a benchmark so far."""

    def __init__(self, precision: float) -> None:
        self._precision = precision
        self._blocks: dict[MeasurementKey, list[Block]] = defaultdict(list)
        self._examples: dict[MeasurementKey, Measurement] = {}
        self._failures: dict[str, dict[str, None]] = {BASE: {}, HEAD: {}}
        self._without_ratio: dict[MeasurementKey, dict[str, _Range]] = {}
        self.count = 0
        """How many blocks there are."""

    def add(self, runs: Sequence[SideRun]) -> None:
        """Add a block of four runs, in the order of `BLOCK`.

        What not all of them measured has no ratio, nor have numbers that are not positive, or in different units.
        """
        for side, run in zip(BLOCK, runs):
            self.note_failures(side, run)
        common = set.intersection(*(set(run.measured) for run in runs))
        for key in sorted(common):
            if key not in self._blocks and len(self._blocks) >= MOST_SERIES:
                continue
            first, second, third, fourth = values = [run.measured[key].value for run in runs]
            units = {run.measured[key].unit for run in runs}
            if min(values) > 0 and len(units) == 1:
                self._blocks[key].append((first, second, third, fourth))
                self._examples[key] = runs[1].measured[key]
            elif key in self._without_ratio or len(self._without_ratio) < MOST_SERIES:
                ranges = self._without_ratio.setdefault(key, {})
                for side, run in zip(BLOCK, runs):
                    number = (run.measured[key].unit, run.measured[key].value)
                    low, high = ranges.get(side, (number, number))
                    ranges[side] = (min(low, number), max(high, number))
        self.count += 1

    def note_failures(self, side: str, run: SideRun) -> None:
        """Note which tests failed in a run, as many as the report lists."""
        known = self._failures[side]
        for test in run.failures:
            if len(known) >= MAX_FAILURES:
                break
            known[test] = None

    @property
    def is_precise(self) -> bool:
        """Whether all intervals are as narrow as requested, or nothing can be compared."""
        if not self._blocks:
            return self.count > 0
        ratios = [self._ratio(key) for key in self._blocks]
        return all(ratio is not None and ratio.width <= self._precision for ratio in ratios)

    def _ratio(self, key: MeasurementKey) -> Ratio | None:
        blocks = self._blocks[key]
        if self._examples[key].is_exact and len(set(blocks)) == 1:
            base, head, _, _ = blocks[0]
            ratio = within_bounds(head / base)
            return Ratio(ratio, ratio, ratio)
        return ratio_of(blocks)

    @property
    def progress(self) -> str:
        """Say how many blocks there are, and how wide the widest interval is so far."""
        begun = texts.BLOCKS_SO_FAR.format(count=self.count, most=MOST_BLOCKS)
        ratios = [(ratio, key) for key in self._blocks if (ratio := self._ratio(key)) is not None]
        if not ratios:
            return texts.TOO_FEW_BLOCKS.format(blocks=begun, least=LEAST_BLOCKS)
        ratio, key = max(ratios, key=lambda item: item[0].width)
        value, low, high = (f"{100 * (bound - 1):+.1f}" for bound in (ratio.value, ratio.low, ratio.high))
        name = f"{key.name[:MOST_SHOWN]} of {key.test[-MOST_SHOWN:]}"
        precision = f"{100 * self._precision:g}"
        return texts.WIDEST_SO_FAR.format(
            blocks=begun, name=name, share=value, low=low, high=high, width=f"{100 * ratio.width:.1f}", least=precision
        )

    def report(self, end: BenchmarkEnd, seconds: float) -> BenchmarkReport:
        """Return the report, with the measurements that differ most first."""
        compared = []
        for key in self._blocks:
            ratio = self._ratio(key)
            if ratio is not None:
                compared.append(self._compared(key, ratio))
        compared.sort(key=lambda row: (not row.interval.excludes_one, -abs(row.ratio - 1), row.test, row.name))
        with_ratio = {MeasurementKey(row.test, row.name) for row in compared}
        return BenchmarkReport(
            self._precision,
            self.count,
            round(seconds, 1),
            end,
            compared[:MAX_LISTED],
            {side: sorted(tests) for side, tests in self._failures.items()},
            max(0, len(compared) - MAX_LISTED),
            [
                texts.MEASURED_NAME.format(name=key.name, test=key.test)
                for key, ranges in self._without_ratio.items()
                if key not in with_ratio and _are_apart(ranges[BASE], ranges[HEAD])
            ][:MAX_FAILURES],
        )

    def _compared(self, key: MeasurementKey, ratio: Ratio) -> ComparedMeasurement:
        example, blocks = self._examples[key], self._blocks[key]
        base = _median([value for first, _, _, fourth in blocks for value in (first, fourth)])
        head = _median([value for _, second, third, _ in blocks for value in (second, third)])
        return ComparedMeasurement(
            key.test, key.name, example.unit, example.better, base, head, ratio.value, ratio.low, ratio.high
        )


def _are_apart(base: _Range, head: _Range) -> bool:
    """Whether all numbers of one side are above all of the other: around 0, runs of one commit differ too."""
    return base[1] < head[0] or head[1] < base[0]


def _median(values: Sequence[float]) -> float:
    # The sum of the two middle values may be infinite.
    return min(sys.float_info.max, median(values))


def compare(
    precision: float,
    seconds: float,
    run: Callable[[str, int], SideRun],
    clock: Callable[[], float] = time.monotonic,
    until: float = math.inf,
    show: Callable[[str], None] = lambda _: None,
) -> BenchmarkReport:
    """Run both sides in turn until all ratios are as precise as requested, or for so many seconds.

    `run` runs a side; its second argument counts the runs, and is 0 for the first of each side, which does not count.
    Another block begins only if there is time for one like the longest so far. The clock begins after the first run of
    each side. `until` is a time on the clock at which all must have ended. `show` gets the progress, for people.
    """
    benchmark = Benchmark(precision)
    end, longest, number = BenchmarkEnd.BUDGET, 0.0, 0
    show(texts.FIRST_RUNS)
    for side in (BASE, HEAD):
        benchmark.note_failures(side, run(side, 0))
    began = clock()
    while True:
        block_began = clock()
        if benchmark.count >= MOST_BLOCKS:
            end = BenchmarkEnd.MOST_BLOCKS
            break
        if block_began + longest > min(began + seconds, until):
            break
        runs: list[SideRun] = []
        for side in BLOCK:
            number += 1
            runs.append(run(side, number))
        benchmark.add(runs)
        show(benchmark.progress)
        longest = max(longest, clock() - block_began)
        if benchmark.is_precise:
            end = BenchmarkEnd.PRECISE
            break
    return benchmark.report(end, clock() - began)
