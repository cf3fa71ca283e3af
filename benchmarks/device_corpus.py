"""Generate nightly runs that resemble those of a real device lab: JUnit files of many boards and versions.

The real lab had 38 boards, 86 versions and 1,144 runs with 4,890 tests each. Its runner changed the rule for names four
times. A tenth of the runs fails as a whole, most failures last for one run, and a third of the tests is skipped.

Detailed reports also have what the files of such labs have: a suite for each scenario, with long properties, long
names, and the output of many tests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

BOARDS, VERSIONS, RUNS_OF_BOARD = 38, 86, 30
SEED = 20_261_123
JITTER = 0.05
FAILING, LASTING, MASS = 0.003, 0.3, 0.1
HEAD = """<?xml version="1.0" encoding="utf-8"?>
<testsuites>
  <testsuite name="{name}" timestamp="2026-11-23T05:10:00" >
"""
LOG = "\n".join(
    f"[00:00:0{line % 10}.{line:03}] *** Booting the kernel, build v{line}.{line % 7}\nE: register {line} is {line:08x}"
    for line in range(12)
)
TOPICS, SUITES, FUNCTIONS = 64, 4, 37
SUITE_HEAD = """  <testsuite name="{name}" tests="{tests}" time="1.5" timestamp="2026-11-23T05:10:00" hostname="{host}">
    <properties>
{properties}    </properties>
"""
PROPERTIES = tuple(
    f'      <property name="{name}" value="{value}"/>\n'
    for name, value in (
        ("architecture", "arm"),
        ("platform", "example_board_h743zi/stm32h743xx"),
        ("toolchain", "zephyr-sdk-0.17.4/arm-zephyr-eabi-gcc 12.2.0 (crosstool-NG 1.25.0.164_510bd2d)"),
        ("build_options", " ".join(f"-DCONFIG_EXAMPLE_OPTION_NUMBER_{number}=y" for number in range(12))),
        ("path", "tests/kernel/example/of/a/long/path/to/the/sources/of/the/scenario"),
        ("runnable", "True"),
    )
)
OUTPUT = escape("*** Booting the kernel ***\nRunning TESTSUITE example\nSTART - test\n PASS - test in 0.012 seconds\n")
SCENARIO_TESTS, TESTS_WITH_OUTPUT = 12, 5
"""The tests of a scenario, and of how many tests one has its output in the report."""
LONG = ".userspace.with_a_long_name_of_the_configuration.minimal_libc"
REASONS = ("runtime filter", "ztest skip", "not supported by the board")

Parts = tuple[str, str, str]
"""The topic, suite and function of a test."""
RULES: tuple[Callable[[Parts], str], ...] = (
    lambda p: f"{p[0]}.{p[0]}.{p[1]}.test_{p[2]}",
    lambda p: f"{p[0]}.{p[1]}.test_{p[2]}",
    lambda p: f"{p[0]}.{p[1]}.{p[2]}",
    lambda p: f"{p[1]}.{p[2]}",
    lambda p: f"{p[0]}.{p[1]}.test_{p[2]}_case",
)
"""The rules by which the runner names a test, in order of time."""


@dataclass(frozen=True, slots=True)
class BoardRun:
    """A run of a board: the number of its version, and its report."""

    board: int
    version: int
    tests: int
    report: bytes


def every_test() -> list[Parts]:
    """Return all tests."""
    return [
        (f"kernel.topic_{topic}", f"topic_{topic}_suite_{suite}", f"{('poll', 'queue', 'timer')[number % 3]}_{number}")
        for topic in range(TOPICS)
        for suite in range(SUITES)
        for number in range(FUNCTIONS)
    ]


def runs(boards: int = BOARDS, *, detailed: bool = False) -> Iterator[BoardRun]:
    """Yield the runs of some boards, in the order of their versions."""
    labs = [_Board(number, detailed=detailed) for number in range(boards)]
    for version in range(VERSIONS):
        for board in labs:
            if version in board.versions:
                yield board.run(version)


class _Board:
    """One board; `ends` has a letter for the outcome of each test."""

    def __init__(self, number: int, *, detailed: bool = False) -> None:
        self._detailed = detailed
        self._chance = chance = random.Random(SEED + number)
        self._number = number
        all_tests = every_test()
        self.versions = set(chance.sample(range(VERSIONS), RUNS_OF_BOARD))
        start = chance.randrange(len(all_tests) // 2)
        # A board has only the half of all tests that its hardware can run.
        unsupported = all_tests[:start] or all_tests
        some = chance.sample(unsupported, min(150, len(unsupported)))
        self._tests = sorted({*all_tests[start : start + len(all_tests) // 2], *some})
        self._skipped = [chance.random() < 1 / 3 for _ in self._tests]
        self._seconds = [chance.lognormvariate(-3, 1.3) for _ in self._tests]
        self._failing: set[int] = set()

    def run(self, version: int) -> BoardRun:
        """Return the board's run of a version."""
        chance, rule = self._chance, RULES[version * len(RULES) // VERSIONS]
        share = chance.uniform(0.02, 0.2) if chance.random() < MASS else FAILING
        self._failing = {test for test in self._failing if chance.random() < LASTING}
        failing = self._failing | set(chance.sample(range(len(self._tests)), int(share * len(self._tests))))
        self._failing = failing if share == FAILING else self._failing
        name = f"board-{self._number}"
        lines = [HEAD.format(name=name)]
        for place, parts in enumerate(self._tests):
            seconds = self._seconds[place] * chance.gauss(1, JITTER)
            test, classname = rule(parts), parts[0]
            if self._detailed:
                test, classname = f"{classname}{LONG}.{test}", f"{classname}{LONG}"
                if place % SCENARIO_TESTS == 0:
                    properties = "".join(PROPERTIES)
                    lines.append("  </testsuite>\n")
                    lines.append(
                        SUITE_HEAD.format(name=classname, tests=SCENARIO_TESTS, host=name, properties=properties)
                    )
            begin = f"    <testcase name={quoteattr(test)} classname={quoteattr(classname)}"
            if self._skipped[place]:
                reason = quoteattr(REASONS[place % len(REASONS)])
                lines.append(f'{begin}>\n      <skipped type="skipped" message={reason}/>\n    </testcase>\n')
            elif place in failing:
                text = escape(f"{LOG}\nAssertion failed at main.c:{place}: value of {parts[2]} is {version % 5}")
                lines.append(
                    f'{begin} time="{seconds:.2f}">\n      <failure type="failure" message="Failed">{text}</failure>\n'
                    "    </testcase>\n"
                )
            elif self._detailed and place % TESTS_WITH_OUTPUT == 0:
                lines.append(f'{begin} time="{seconds:.2f}"><system-out>{OUTPUT}</system-out></testcase>\n')
            else:
                lines.append(f'{begin} time="{seconds:.2f}"/>\n')
        lines.append("  </testsuite>\n</testsuites>\n")
        return BoardRun(self._number, version, len(self._tests), "".join(lines).encode())
