"""Skip slow tests and tests of later levels on request, and print the cut-off table of TVM's RFC 0055 for this run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import pytest

from nightjar_formats.items import counted
from nightjar_formats.terminal import quoted_text
from nightjar_lab import levels
from nightjar_lab.pytest import run_texts as texts
from nightjar_lab.pytest.printable import printable

VARIABLE = "SKIP_SLOW_TESTS"
TRUE = frozenset({"true", "1", "yes"})
"""The values that TVM accepts, in upper or lower case; slow.h accepts the same."""
CUT_OFFS = tuple(range(10, 101, 10))
"""RFC 0055's, in seconds. A project whose tests are all faster gets tenths or hundredths of them."""
SCALES = (1.0, 0.1, 0.01)
MOST_CANDIDATES = 20
MINUTE = 60.0


class TimedTest(NamedTuple):
    """The duration of a test in this run; `failed` of its earlier `runs` failed, if that is known."""

    test: str
    seconds: float
    slow: bool = False
    failed_now: bool = False
    failed: int | None = None
    runs: int | None = None


class PastOfTest(Protocol):
    """The known facts about earlier runs of a test."""

    @property
    def failed(self) -> int | None: ...  # noqa: D102
    @property
    def runs(self) -> int | None: ...  # noqa: D102


def skips_slow_tests(environment: Mapping[str, str] = os.environ) -> bool:
    """Say whether SKIP_SLOW_TESTS asks to skip slow tests."""
    return environment.get(VARIABLE, "").lower() in TRUE


def level_of_run(environment: Mapping[str, str] = os.environ) -> str:
    """Return the level that NIGHTJAR_LEVEL or SKIP_SLOW_TESTS asks for; empty to run everything.

    Raises ValueError for a level that does not exist.
    """
    level = environment.get(levels.VARIABLE, "").strip().lower()
    if level and level not in levels.LEVELS:
        names = ", ".join(levels.LEVELS)
        raise ValueError(texts.LEVEL_UNKNOWN.format(level=quoted_text(level), levels=names))
    return levels.PULL_REQUEST if skips_slow_tests(environment) else level


class SkipLevels:
    """Skips tests of later levels than that of the run. Registered only if the run has a level."""

    def __init__(self, level: str) -> None:
        self._level = level

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Add a skip, so that the test is counted and the reason is shown."""
        for item in items:
            level = _level_of(item)
            if levels.is_above(level, self._level):
                item.add_marker(pytest.mark.skip(reason=self._reason(level)))

    def _reason(self, level: str) -> str:
        if level == levels.MAIN and skips_slow_tests():
            return texts.SLOW_SKIPPED.format(value=printable(os.environ.get(VARIABLE, "")))
        return texts.LEVEL_SKIPPED.format(level=level, run=self._level)


def _level_of(item: pytest.Item) -> str:
    """Return the level of a test: the latest of its marks. Raises `pytest.UsageError` for one that does not exist."""
    level = levels.MAIN if item.get_closest_marker("slow") is not None else levels.PULL_REQUEST
    for mark in item.iter_markers("level"):
        name = mark.args[0] if mark.args else ""
        if name not in levels.LEVELS:
            names = ", ".join(levels.LEVELS)
            problem = texts.LEVEL_UNKNOWN.format(level=quoted_text(str(name)), levels=names)
            raise pytest.UsageError(f"{printable(item.nodeid)}: {problem}")
        level = name if levels.is_above(name, level) else level
    return level


class MarkSlowReports:
    """Marks the report of a slow test, in the process that runs the test, because only there its marks are known."""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        """Add the mark to the report."""
        outcome = yield
        if outcome.excinfo is None and item.get_closest_marker("slow") is not None:  # type: ignore[attr-defined]
            outcome.get_result().nightjar_slow = True  # type: ignore[attr-defined]


class SlowReport:
    """Adds up the durations of this run and prints what a cut-off would save."""

    def __init__(self, past: Mapping[str, PastOfTest], notice: str = "") -> None:
        self._past = past
        self._notice = notice
        self._seconds: dict[str, float] = {}
        self._slow: set[str] = set()
        self._failed: set[str] = set()
        self._skipped: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase."""
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + max(0.0, report.duration)
        if report.failed:
            self._failed.add(report.nodeid)
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skipped.add(report.nodeid)
        if getattr(report, "nightjar_slow", False):
            self._slow.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table."""
        terminalreporter.section(texts.SLOW_TITLE)
        if self._notice:
            terminalreporter.write_line(self._notice, yellow=True)
        for line in slow_report_lines(self._tests()):
            terminalreporter.write_line(line)

    def _tests(self) -> list[TimedTest]:
        tests = []
        for test, seconds in self._seconds.items():
            if test in self._skipped:
                continue
            past = self._past.get(test)
            tests.append(
                TimedTest(
                    test,
                    seconds,
                    test in self._slow,
                    test in self._failed,
                    past.failed if past else None,
                    past.runs if past else None,
                )
            )
        return tests


def slow_report_lines(tests: Sequence[TimedTest]) -> Iterator[str]:
    """Yield the cut-off table of RFC 0055, and the tests that could be marked."""
    if not tests:
        yield texts.SLOW_NOTHING
        return
    longest = max(test.seconds for test in tests)
    scale = next((scale for scale in SCALES if longest > CUT_OFFS[0] * scale), SCALES[-1])
    total = sum(test.seconds for test in tests)
    yield texts.SLOW_TOTAL.format(tests=counted(len(tests)), minutes=total / MINUTE)
    for cut_off in CUT_OFFS:
        above = [test.seconds for test in tests if test.seconds > cut_off * scale]
        yield texts.SLOW_CUT_OFF.format(
            cut_off=round(cut_off * scale, 2), minutes=round(sum(above) / MINUTE, 2), tests=counted(len(above))
        )
    least = CUT_OFFS[0] * scale
    yield ""
    yield from _candidates([test for test in tests if test.seconds > least and not test.slow], least)


def _candidates(tests: list[TimedTest], least: float) -> Iterator[str]:
    if not tests:
        yield texts.SLOW_NO_CANDIDATES.format(cut_off=round(least, 2))
        return
    tests.sort(key=lambda test: (-test.seconds, test.test))
    candidates = tests[:MOST_CANDIDATES]
    yield texts.SLOW_CANDIDATES
    rows = [texts.SLOW_COLUMNS, *((f"{test.seconds:.2f}", _rate(test), printable(test.test)) for test in candidates)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for seconds, rate, name in rows:
        yield f"  {seconds:>{widths[0]}}  {rate:>{widths[1]}}  {name}"
    if len(tests) > len(candidates):
        yield "  " + texts.SLOW_MORE.format(more=len(tests) - len(candidates))
    yield texts.SLOW_ADVICE
    if all(test.runs is None for test in candidates):
        yield texts.SLOW_NO_RATES


def _rate(test: TimedTest) -> str:
    if test.runs is not None and test.failed is not None:
        return texts.SLOW_RATE.format(failed=test.failed, runs=test.runs)
    return texts.SLOW_FAILED_NOW if test.failed_now else texts.SLOW_RATE_UNKNOWN
