"""The demo's story: two weeks of a compiler, two labs and five targets. No I/O, and the same each time.

One target simulates another one, on which tests fail that pass on the simulator. A test regresses, one is flaky, one
becomes slow, one is quarantined and one is renamed. One lab is broken for a night, and another one stops reporting. A
kernel becomes slower, and another one leaves the delegate.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr  # only for writing

from nightjar_formats.measurements import PROPERTY

NIGHTS = 14
SEED = 20_26
LAB, OTHER_LAB = "example-lab", "hubot-lab"
LOG_NAME = "log.txt"
"""The log of each run."""
TARGET, GPU, BOARD, LATE = "hexagon-v73", "adreno", "rpi-5", "mali"
"""Two targets of each lab; the last one stops reporting."""
SIMULATOR = "hexagon-sim"
"""A target of the first lab that simulates `TARGET`: no test fails on it."""
OPERATORS, RUNTIME, KERNELS = "operators", "runtime", "kernels"
SUITES = {(LAB, TARGET): (OPERATORS, RUNTIME, KERNELS), (LAB, GPU): (OPERATORS,), (LAB, SIMULATOR): (OPERATORS,)}
SUITES |= {(OTHER_LAB, BOARD): (RUNTIME,), (OTHER_LAB, LATE): (RUNTIME,)}
"""The suites of each target."""

BROKEN_NIGHT, SLOW_SINCE, RENAMED_AT, REGRESSED_AT, LATE_SINCE = 7, 9, 6, 11, 12
"""Nights on which something happens, the oldest being 0."""
EARLIER_NIGHTS = 20
"""Nights before the two weeks in which only kernels were measured: they show how noisy the numbers are."""
SLOWER_SINCE, LOST_AT = 8, 11
"""Nights since which a kernel is slower, and another one is no longer delegated."""
SLOWER_FACTOR = 1.12
CULPRIT = "src/tir/fuse.cc"
"""The file whose change breaks the tests of gather on both targets of the first lab, and ends a delegation."""
SLOWER_PATH, SLOWER_TITLE = "src/target/hexagon.cc", "[Hexagon] Align buffers to 128 bytes"
"""The file whose change makes a kernel slower, and its pull request."""
SEARCH_SECONDS = 42.0
"""How long a device works on a job of a search."""
FLAKY_NIGHTS, RERUN_NIGHT = (2, 5, 10), 10
"""Nights on which the flaky test fails, and the one on which the lab tests again, so that it ends both ways."""
SLOW_FACTOR = 1.7
LONG, LONG_FACTOR = "test_conv2d", 60
"""A test that takes minutes with all its parameters, and fails for nobody."""
TOLERANCE = (
    "AssertionError: Not equal to tolerance rtol=1e-05, atol=1e-05. Mismatched elements: {bad} / 2048 ({share} %)"
)
OUT_OF_BOUNDS = "IndexError: index 16 is out of bounds for axis 0 with size 16"
RPC_TIMEOUT = "RuntimeError: RPC timeout: the device did not answer within 60 s"
NO_DEVICE = "RuntimeError: cannot open the device: no such file or directory: /dev/kgsl-3d0"
COUNTERS = "RuntimeError: this kernel has no performance counters"

OPERATOR_NAMES = ("conv2d", "gather", "layer_norm", "matmul", "softmax", "topk")
TYPES, SHAPES = ("float32", "float16", "int8"), ("1x128", "16x64")
RUNTIME_NAMES = {
    "graph": ("test_load", "test_run", "test_share_memory"),
    "profiler": ("test_layers", "test_counters", "test_csv"),
    "rpc": ("test_connect", "test_upload", "test_large_array", "test_two_sessions"),
    "vm": ("test_call", "test_closure", "test_recursion"),
}
FLAKY = ("tests/python/runtime/test_rpc.py", "test_large_array")
QUARANTINED = ("tests/python/runtime/test_profiler.py", "test_counters")
RENAMED = (("tests/python/runtime/test_vm.py", "test_recursion"), ("tests/python/runtime/test_vm.py", "test_tail_call"))
KERNEL_FILE = "tests/python/kernels/test_kernels.py"
LATENCIES = {"test_conv2d": 8.4, "test_matmul": 41.2, "test_softmax": 2.1}
"""The usual latency of each kernel, in ms; its noise is about 0.5 %."""
SLOWER, LOST = "test_matmul", "test_conv2d"
ASSERTED_AT = 9
"""The line of each test file at which its tests fail."""
TEST_FILE = '''\
"""Tests of {name}, shortened for the demo."""

import numpy as np
import pytest


def compare(target, kernel, *arguments):
    actual, expected = target.run(kernel, *arguments), np.asarray(kernel(*arguments))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


{tests}'''


@dataclass(frozen=True)
class MergedChange:
    """A pull request that was merged before a night: who wrote it, its title, and the file that it changes."""

    night: int
    author: str
    title: str
    path: str


CHANGES = (
    MergedChange(0, "octocat", "[Runtime] Time each layer", "src/runtime/profiler.cc"),
    MergedChange(2, "hubot", "[Relax] Read shapes from the graph", "src/relax/shapes.cc"),
    MergedChange(3, "octocat", "[Docs] Describe how targets are named", "docs/targets.md"),
    MergedChange(4, "monalisa", "[Runtime] Send large arrays in chunks", "src/runtime/rpc.cc"),
    MergedChange(6, "hubot", "[VM] Turn recursion into tail calls", "src/runtime/vm.cc"),
    MergedChange(7, "octocat", "[CI] Build with fewer warnings", "cmake/warnings.cmake"),
    MergedChange(8, "monalisa", SLOWER_TITLE, SLOWER_PATH),
    MergedChange(9, "hubot", "[TIR] Split matmul by cache size", "src/tir/split.cc"),
    MergedChange(10, "octocat", "[Adreno] Keep textures between kernels", "src/target/adreno.cc"),
    MergedChange(11, "monalisa", "[TIR] Fuse gather into its consumers", CULPRIT),
    MergedChange(12, "octocat", "[Docs] Explain the runtime's threads", "docs/threads.md"),
    MergedChange(13, "hubot", "[Relax] Compute softmax with half the registers", "src/relax/softmax.cc"),
)
"""Pull requests in the order of their numbers, from 2 on: the first number is that of the issue."""
QUARANTINE_TITLE = "test_counters fails on rpi-5"
QUARANTINE_BODY = "The kernel of this board has no performance counters. A newer one has them."
OPENED_AT = 11
OPEN_TITLE = "[Hexagon] Tile softmax for wider registers"
OPEN_BODY = "Two tiles fit into the registers of v73.\n\ncc @octocat"
OPEN_PATH = "src/target/hexagon_softmax.cc"
RED_TITLE = "[TIR] Fuse everything"
VIEWS = {
    "": LATE,
    "flaky": FLAKY[1],
    "slow": "test_matmul[float32-16x64]",
    "skipped": "the device has no int8 sort",
    "nightly": RED_TITLE,
}
"""Words of the story that each view of the repository must show."""


@dataclass(frozen=True)
class StoryTest:
    """A test of a report, with how it ended: `failure` is empty if it passed, `skipped` is the reason.

    `measured` are its measurements, each with its name and the text of its property.
    """

    path: str
    name: str
    seconds: float
    failure: str = ""
    skipped: str = ""
    measured: tuple[tuple[str, str], ...] = ()


def test_files() -> dict[str, str]:
    """Return the test files of the repository: path to text."""
    functions: dict[str, list[str]] = {}
    for suite in (OPERATORS, RUNTIME, KERNELS):
        for path, name in _tests(suite, NIGHTS):
            function = f"def {name.partition('[')[0]}(target): ...\n"
            if function not in functions.setdefault(path, []):
                functions[path].append(function)
    return {
        path: TEST_FILE.format(name=path.rpartition("test_")[2].removesuffix(".py"), tests="\n\n".join(tests))
        for path, tests in functions.items()
    }


def tested_title(night: int) -> str:
    """Return the title of the commit that labs test in a night; nights before the two weeks are negative."""
    return f"[CI] Update the images of day {night + 1}"


def report(lab: str, target: str, suite: str, night: int) -> str:
    """Return the JUnit report of a nightly run; nights before the two weeks are negative."""
    return junit(_cases(lab, target, suite, night))


def report_of_pull_request(target: str, night: int = NIGHTS - 1) -> str:
    """Return the JUnit report of operators for a pull request that began at a night's commit and breaks one test."""
    cases = list(_cases(LAB, target, OPERATORS, night))
    broken_index = next(index for index, case in enumerate(cases) if case.name == "test_layer_norm[float16-16x64]")
    cases[broken_index] = StoryTest(
        cases[broken_index].path, cases[broken_index].name, 0.31, TOLERANCE.format(bad=96, share="4.7")
    )
    return junit(iter(cases))


def junit(cases: Iterator[StoryTest]) -> str:
    """Return test cases as pytest writes them."""
    elements = []
    for case in cases:
        result = ""
        if case.skipped:
            result = f'<skipped type="pytest.skip" message={quoteattr(case.skipped)}>{escape(case.skipped)}</skipped>'
        elif case.failure:
            text = f"{case.path}:{ASSERTED_AT}: in compare\n    np.testing.assert_allclose(actual, expected)\n"
            text += f"E   {case.failure}"
            result = f"<failure message={quoteattr(case.failure)}>{escape(text)}</failure>"
        group = case.path.removesuffix(".py").replace("/", ".")
        attributes = f'classname="{group}" name={quoteattr(case.name)} time="{case.seconds:.3f}"'
        properties = "".join(
            f'<property name="{PROPERTY}{name}" value={quoteattr(text)}/>' for name, text in case.measured
        )
        if properties:
            properties = f"<properties>{properties}</properties>"
        elements.append(f"<testcase {attributes}>{properties}{result}</testcase>")
    body = "".join(elements)
    return f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{body}</testsuite></testsuites>'


def log_of(report: str) -> str:
    """Return what pytest prints for a report."""
    lines = ["============ test session starts ============"]
    for case in ElementTree.fromstring(report).iter("testcase"):  # noqa: S314  # our own text
        test = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"
        failure = case.find("failure")
        if failure is None:
            lines.append(f"{test} {'SKIPPED' if case.find('skipped') is not None else 'PASSED'}")
        else:
            lines += [f"{test} FAILED", failure.text or "", f"FAILED {test} - {failure.get('message')}"]
    return "\n".join(lines) + "\n"


def _tests(suite: str, night: int) -> Iterator[tuple[str, str]]:
    """Yield path and name of each test of a suite."""
    if suite == OPERATORS:
        for name in OPERATOR_NAMES:
            for kind in TYPES:
                for shape in SHAPES:
                    yield f"tests/python/operators/test_{name}.py", f"test_{name}[{kind}-{shape}]"
        return
    if suite == KERNELS:
        yield from ((KERNEL_FILE, name) for name in LATENCIES)
        return
    old, new = RENAMED
    for part, names in RUNTIME_NAMES.items():
        for name in names:
            test = (f"tests/python/runtime/test_{part}.py", name)
            yield new if test == old and night >= RENAMED_AT else test


def _cases(lab: str, target: str, suite: str, night: int) -> Iterator[StoryTest]:
    generator = random.Random(f"{SEED} {lab} {target} {suite}")
    usual_seconds = {test: generator.uniform(0.05, 0.9) for test in _tests(suite, 0)}
    usual_seconds[RENAMED[1]] = 0.4
    generator = random.Random(f"{SEED} {lab} {target} {suite} {night}")
    for path, name in _tests(suite, night):
        seconds = usual_seconds[path, name] * generator.uniform(0.97, 1.03)
        if target == TARGET and name.startswith("test_matmul[float32") and night >= SLOW_SINCE:
            seconds *= SLOW_FACTOR
        if target == TARGET and suite == OPERATORS and name.startswith(f"{LONG}["):
            seconds *= LONG_FACTOR
        if suite == KERNELS:
            yield StoryTest(path, name, seconds, measured=_measured(name, night))
        elif target == GPU and "int8" in name and "topk" in name:
            yield StoryTest(path, name, 0.0, skipped="the device has no int8 sort")
        else:
            yield StoryTest(path, name, seconds, _failure(target, path, name, night))


def kernel_numbers(name: str, *, is_slower: bool, is_lost: bool) -> tuple[float, int]:
    """Return the usual latency of a kernel and its delegated nodes, with or without the changes of the two weeks."""
    latency = LATENCIES[name] * (SLOWER_FACTOR if is_slower and name == SLOWER else 1)
    return latency, 0 if is_lost and name == LOST else 1


def _measured(name: str, night: int) -> tuple[tuple[str, str], ...]:
    """Return what a kernel measures in a night; nights before the two weeks are negative."""
    latency, nodes = kernel_numbers(name, is_slower=night >= SLOWER_SINCE, is_lost=night >= LOST_AT)
    latency *= random.Random(f"{SEED} {name} {night}").gauss(1, 0.005)
    return ("latency", f"{latency:.3f} ms lower"), ("delegated_nodes", f"{nodes} nodes higher")


def _failure(target: str, path: str, name: str, night: int) -> str:
    """Return why a test fails, empty if it passes."""
    if target == SIMULATOR:
        return ""
    if target == GPU and night == BROKEN_NIGHT:
        return NO_DEVICE
    if (path, name) == FLAKY and target == TARGET and night in FLAKY_NIGHTS:
        return RPC_TIMEOUT
    if (path, name) == QUARANTINED and target == BOARD:
        return COUNTERS
    if name.startswith("test_gather[int8") and night >= REGRESSED_AT:
        return OUT_OF_BOUNDS
    if name.startswith("test_softmax[float16") and night == NIGHTS - 1:
        return TOLERANCE.format(bad=31, share="1.5")
    return ""
