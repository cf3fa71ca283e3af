"""Two commits that run in turn on one device: when the runs stop, and what the report says."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import pytest
from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.pairs import MOST_RATIO
from nightjar_formats.refused import Refused
from nightjar_formats.runs.benchmark import MAX_FAILURES, MAX_LISTED, BenchmarkEnd, BenchmarkReport, read_report
from nightjar_formats.runs.few_tests import BASE, HEAD
from nightjar_lab.benchmark import MOST_BLOCKS, MeasurementKey, SideRun, compare, run_of

from handlers.device_tests.benchmarks.texts import report_text

CONV, ADD = MeasurementKey("test_conv", "latency"), MeasurementKey("test_add", "latency")
NODES = MeasurementKey("test_conv", "delegated_nodes")


@dataclass
class Device:
    """A device that measures a test at both commits: a run takes 10 s, and `noise` is the deviation of a value."""

    slowdown: float = 1.0
    noise: float = 0.01
    runs: list[tuple[str, int]] = field(default_factory=list)
    rng: Random = field(default_factory=lambda: Random("device"))

    def clock(self) -> float:
        return 10.0 * len(self.runs)

    def run(self, side: str, number: int) -> SideRun:
        self.runs.append((side, number))
        # The device becomes slower with each run.
        level = 4.0 * (1 + 0.001 * len(self.runs)) * (self.slowdown if side == HEAD else 1.0)
        measured = {
            CONV: Measurement("latency", level * self.rng.lognormvariate(0, self.noise), "ms", Better.LOWER),
            NODES: Measurement("delegated_nodes", 12.0 if side == BASE else 11.0, "nodes", Better.HIGHER),
        }
        if side == HEAD:  # a new test
            measured[ADD] = Measurement("latency", 1.0, "ms")
        return SideRun(measured, ["test_broken"] if side == HEAD else [])

    def compare(self, precision: float = 0.02, seconds: float = 1e9, until: float = 1e9) -> BenchmarkReport:
        return read_report(compare(precision, seconds, self.run, self.clock, until).text)


def test_the_runs_stop_when_the_ratio_is_precise_and_the_report_has_it() -> None:
    device = Device(slowdown=1.05)
    report = device.compare()
    assert device.runs[:6] == [(BASE, 0), (HEAD, 0), (BASE, 1), (HEAD, 2), (HEAD, 3), (BASE, 4)]
    assert report.end is BenchmarkEnd.PRECISE
    assert 4 <= report.blocks < 20
    assert report.seconds == 40 * report.blocks
    nodes, conv = report.measurements  # what only one commit measures has no ratio
    assert (nodes.name, nodes.base, nodes.head, nodes.low, nodes.high) == ("delegated_nodes", 12, 11, 11 / 12, 11 / 12)
    assert conv.low < 1.05 < conv.high
    assert conv.low > 1
    assert conv.interval.width <= 0.02
    assert (conv.unit, conv.better) == ("ms", Better.LOWER)
    assert report.failures == {BASE: [], HEAD: ["test_broken"]}
    equal = Device().compare().measurements[1]
    assert not equal.interval.excludes_one


def test_the_runs_stop_at_the_end_of_the_time_and_after_many_blocks() -> None:
    device = Device(noise=0.5)
    report = device.compare(seconds=205)
    # Five blocks take 200 s. A sixth one would end at 240 s, so it does not begin.
    assert (report.end, report.blocks, len(device.runs)) == (BenchmarkEnd.BUDGET, 5, 22)
    assert Device(noise=0.5).compare().blocks == MOST_BLOCKS
    # One block alone is too little for a ratio with noise.
    cut = Device().compare(until=85)
    assert (cut.end, cut.blocks) == (BenchmarkEnd.BUDGET, 1)
    assert [row.name for row in cut.measurements] == ["delegated_nodes"]


def test_the_report_of_extreme_numbers_and_of_many_failures_can_be_read() -> None:
    values = {BASE: (5e-324, 1e-200), HEAD: (1e308, 1e200)}

    def run(side: str, number: int) -> SideRun:
        measured = {
            CONV: Measurement("latency", values[side][number % 2], "ms"),
            NODES: Measurement("delegated_nodes", values[side][0], "nodes"),
        }
        return SideRun(measured, [f"test_{number}_{place}" for place in range(1000)])

    compared = compare(0.02, 1e9, run, lambda: 0.0)
    assert {len(tests) for tests in compared.failures.values()} == {MAX_FAILURES}
    report = read_report(compared.text)
    assert {row.high for row in report.measurements} == {MOST_RATIO}
    assert "+99999999900.0 %" in report_text("", report)


def test_numbers_that_differ_without_a_ratio_are_named() -> None:
    of_side = {
        BASE: (Measurement("latency", 5.0, "ms"), Measurement("undelegated_nodes", 0, "nodes"), Measurement("loss", 0)),
        HEAD: (Measurement("latency", 5e-3, "s"), Measurement("undelegated_nodes", 3, "nodes"), Measurement("loss", 0)),
    }

    def run(side: str, number: int) -> SideRun:
        return SideRun({MeasurementKey("a::b", number.name): number for number in of_side[side]}, [])

    report = read_report(compare(0.02, 1e9, run, lambda: 0.0).text)
    assert (report.measurements, report.blocks) == ((), 1)
    assert report.without_ratio == ["latency of a::b", "undelegated_nodes of a::b"]
    text = report_text("title", report)
    assert text.startswith("**title**: no measurement can be compared as a ratio.")
    assert "or the units differ: `latency of a::b`, `undelegated_nodes of a::b`." in text
    older = json.loads(report.text)
    del older["without_ratio"]
    assert read_report(json.dumps(older)).without_ratio == []


def test_only_numbers_that_both_commits_keep_apart_are_named_as_changed_without_a_ratio() -> None:
    """Each has the values of four runs: base, head, head, base."""
    blocks: dict[str, Sequence[Sequence[float]]] = {
        "latency": [(1, 1, 1, 1)] * 10 + [(0, 1, 1, 1)],  # has a row
        "loss": [(0, 0.5, 0, 0.5)] * 11,  # the same numbers at both commits
        "drift": [(-0.2, 0.1, 0.3, 0.2)] * 11,  # noise around zero
        "error": [(-0.3, 0.1, 0.2, -0.1)] * 10 + [(0.15, 0.1, 0.2, -0.1)],  # apart in all blocks but the last
        "nodes": [(0, 3, 3, 0)] * 11,
        "offset": [(-5, -2, -3, -4)] * 11,
    }
    runs: list[int] = []

    def run(side: str, number: int) -> SideRun:
        runs.append(number)
        block, place = divmod(number - 1, 4)
        measured = {MeasurementKey("a::b", name): Measurement(name, of[block][place]) for name, of in blocks.items()}
        # The values are equal, and their units are not.
        measured[MeasurementKey("a::b", "time")] = Measurement("time", 1.0, "ms" if side == BASE else "s")
        # One block has a ratio, which is too few, and the others have zeros.
        measured[MeasurementKey("a::b", "rare")] = Measurement("rare", float(number if block == 0 else 0))
        return SideRun(measured, [])

    report = read_report(compare(0.02, 44, run, lambda: float(len(runs))).text)
    assert report.blocks == 11
    assert [row.name for row in report.measurements] == ["latency"]
    assert report.without_ratio == ["nodes of a::b", "offset of a::b", "time of a::b"]


def test_measurements_and_failures_are_read_from_reports_of_any_format() -> None:
    junit = (
        b'<testsuite><testcase classname="a" name="b"><properties><property name="measurement.latency" '
        b'value="1.5 ms lower"/><property name="measurement.zero" value="0"/></properties></testcase>'
        b'<testcase classname="a" name="c"><failure/></testcase></testsuite>'
    )
    line = {
        "$report_type": "TestReport",
        "nodeid": "t.py::test",
        "when": "call",
        "outcome": "passed",
        "user_properties": [["measurement.latency", "2.5 ms"]],
    }
    teardown = {"$report_type": "TestReport", "nodeid": "t.py::test", "when": "teardown", "outcome": "passed"}
    reportlog = "\n".join(
        json.dumps(entry) for entry in (line, teardown, {"$report_type": "SessionFinish", "exitstatus": 0})
    )
    run = run_of(iter([("a.xml", io.BytesIO(junit)), ("b.jsonl", io.BytesIO(reportlog.encode()))]))
    assert {key: measurement.value for key, measurement in run.measured.items()} == {
        ("a::b", "latency"): 1.5,
        ("a::b", "zero"): 0.0,
        ("t.py::test", "latency"): 2.5,
    }
    assert run.failures == ["a::c"]


def test_a_report_of_a_benchmark_is_checked_and_bounded() -> None:
    good = json.loads(Device().compare().text)
    changes: list[dict[str, object]] = [
        {"schema": 2},
        {"precision": "NaN"},
        {"end": "bored"},
        {"measurements": [{**good["measurements"][0], "low": -1}]},
        {"measurements": [{"test": "a"}]},
        {"failures": []},
        {"blocks": 1e999},
        # Numbers that no text and no page can show.
        {"blocks": 10**300},
        {"unlisted": 10**300},
        {"precision": 1e306},
        {"seconds": "nan"},
        {"seconds": 1e300},
        {"measurements": [{**good["measurements"][0], "high": 1e308}]},
        {"measurements": [{**good["measurements"][0], "low": 2, "high": 0.5}]},
    ]
    for change in changes:
        with pytest.raises(Refused):
            read_report(json.dumps({**good, **change}))
    for content in (b"", b"[]", b"\xff", b"[" * 10_000):
        with pytest.raises(Refused):
            read_report(content)
    long = {**good["measurements"][0], "test": "x" * 5000}
    with pytest.raises(Refused):
        read_report(json.dumps({**good, "measurements": [long] * 1000}))
    half = {**good["measurements"][0], "test": "\ud800"}
    assert read_report(json.dumps({**good, "measurements": [half]})).measurements[0].test == "?"
    report = read_report(json.dumps({**good, "measurements": [long] * 300}))
    assert (len(report.measurements), len(report.measurements[0].test)) == (MAX_LISTED, 1000)
