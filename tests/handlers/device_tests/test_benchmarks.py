"""The words of `@ci benchmark`, and the texts about what a benchmark has shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from nightjar_formats.measurements import Better
from nightjar_formats.runs.benchmark import BenchmarkEnd, BenchmarkReport, ComparedMeasurement

from handlers.device_tests.benchmarks.model import (
    BENCHMARK,
    PRECISION,
    BadOptions,
    BenchmarkWords,
    benchmark_words,
    report_of,
)
from handlers.device_tests.benchmarks.texts import MOST_ROWS, difference_text, report_text, section_text
from handlers.device_tests.model import DeviceJob, DeviceJobState, FewTests, JobEnd
from tests.handlers.device_tests.cases import OTHER_SHA, new_job

EQUAL = ComparedMeasurement("t.py::test_add", "latency", "ms", Better.LOWER, 1.0, 1.001, 1.001, 0.995, 1.007)
SLOWER = ComparedMeasurement("t.py::test_conv", "latency", "ms", Better.LOWER, 4.0, 4.2, 1.05, 1.038, 1.0641)
FEWER = ComparedMeasurement("t.py::test_conv", "nodes", "nodes", Better.HIGHER, 12.0, 6.0, 0.5, 0.5, 0.5)


def report(*rows: ComparedMeasurement, **changes: Any) -> BenchmarkReport:
    return replace(BenchmarkReport(0.02, 9, 600.0, BenchmarkEnd.PRECISE, rows), **changes)


def ended(report: BenchmarkReport | None, **changes: Any) -> DeviceJob:
    few_tests = FewTests(base_sha=OTHER_SHA, precision=0.02)
    job = new_job(purpose=BENCHMARK, few_tests=few_tests, outcome=report.text if report else "")
    return replace(job, **{"state": DeviceJobState.DONE, **changes})


def test_the_words_after_the_command_are_tests_a_target_and_options() -> None:
    for text, words in (
        ("on board", BenchmarkWords((), "board")),
        ("a b ON board", BenchmarkWords(("a", "b"), "board")),
        ("test on on board", BenchmarkWords(("test", "on"), "board")),
        ("on board to 1%", BenchmarkWords((), "board", 0.01)),
        ("a on board within 1h to ±0.5", BenchmarkWords(("a",), "board", 0.005, 3600.0)),
        ("a b", BenchmarkWords(("a", "b"), "")),
        ("a on", BenchmarkWords(("a",), "")),
        ("", BenchmarkWords((), "")),
    ):
        assert benchmark_words(text.split()) == words, text
    for options in ("to", "to 1", "to 60%", "to nan%", "to 1% 2%", "within 5", "within 0m", "quickly now", "to -1%"):
        if options == "to 1":
            assert benchmark_words(["on", "board", *options.split()]).precision == 0.01
            continue
        with pytest.raises(BadOptions):
            benchmark_words(["on", "board", *options.split()])
    assert PRECISION == 0.02


def test_a_difference_is_a_share_with_its_interval_and_a_verdict() -> None:
    assert difference_text(EQUAL, 0.02) == "no difference larger than 2 %"
    assert difference_text(replace(EQUAL, high=1.0312), 0.02) == "no difference larger than 3.2 %"
    assert difference_text(SLOWER, 0.02) == "+5.0 % (+3.8 to +6.4), worse"
    assert difference_text(replace(SLOWER, better=Better.NONE), 0.02) == "+5.0 % (+3.8 to +6.4)"
    assert difference_text(FEWER, 0.02) == "-50.0 %, worse"
    assert difference_text(replace(FEWER, better=Better.LOWER), 0.02) == "-50.0 %, better"
    assert difference_text(replace(EQUAL, ratio=1.0, low=1.0, high=1.0), 0.02) == "the same in all runs"


def test_the_answer_says_what_is_known() -> None:
    for rows, answer in (
        ((), "no test measured anything at both commits."),
        ((EQUAL,), "no difference larger than 2 % (95 %) in 1 measurement."),
        ((SLOWER,), "1 measurement changed (95 %)."),
        ((SLOWER, FEWER, EQUAL), "2 measurements changed; no difference larger than 2 % (95 %) in 1 measurement."),
    ):
        text = report_text("title", report(*rows))
        assert text.startswith(f"**title**: {answer[:-1]}"), text
    none = report_text("title", report(end=BenchmarkEnd.BUDGET, blocks=2))
    assert "not enough runs to tell. There was time for 4 runs of each commit; a comparison takes 8." in none
    changed = report(end=BenchmarkEnd.BUDGET, blocks=2, without_ratio=["z of t"])
    assert report_text("title", changed) == (
        none + "\n\nThese measurements changed, but have no ratio, because a value is zero or negative or the units "
        "differ: `z of t`."
    )
    none_at_all = replace(changed, end=BenchmarkEnd.PRECISE)
    assert "no measurement can be compared as a ratio." in report_text("title", none_at_all)
    late = report_text("title", report(EQUAL, end=BenchmarkEnd.BUDGET))
    assert "18 runs of each commit, in turn, in 10 minutes: the time ended before all intervals were as narrow" in late
    failed = report_text("title", report(EQUAL, failures={"base": [], "head": [f"t{n}" for n in range(9)]}))
    assert "Failed at the head: `t0`, `t1`, `t2`, `t3`, `t4` and 4 more." in failed
    assert "so a few of 25 may be wrong" in report_text("title", report(*[EQUAL] * 25))


def test_the_section_is_bounded_and_shows_names_as_code() -> None:
    hostile = replace(SLOWER, test="a|b`c\n@octocat <b>" + "x" * 900, name="n|m", unit="|")
    text = section_text([ended(report(*[hostile] * 100, unlisted=900))])
    assert text.count("\n") < MOST_ROWS + 10
    assert "and 970 more" in text
    assert "<b>" not in text
    assert len(text) < 20_000


def test_the_section_shows_the_newest_benchmark_of_each_target_and_why_there_is_none() -> None:
    old, new = ended(report(EQUAL), id="1"), ended(report(SLOWER), id="2")
    other = ended(None, id="3", target="adreno", state=DeviceJobState.ENDED, end=JobEnd.NO_DEVICE)
    running = ended(None, id="4", target="mali", state=DeviceJobState.LEASED)
    broken = ended(None, id="5", target="board")
    text = section_text([old, new, other, running, broken])
    assert text.count("**Benchmark of") == 3
    assert "+5.0 %" in text
    assert "no result. No lab claimed the test within a day, so there is no result." in text
    assert "no result. The report of the lab could not be read." in text
    assert report_of(replace(new, outcome="{}")) is None
    # A benchmark of one test replaces none of all tests, and one that runs hides nothing.
    of_test = replace(new.few_tests, tests=("t.py::test_a", "t.py::test_b"))
    again = ended(None, id="6", state=DeviceJobState.LEASED)
    text = section_text([old, new, replace(old, id="7", few_tests=of_test), again])
    assert text.count("**Benchmark of") == 2
    first, second = (part.partition("**:")[0] for part in text.split("**Benchmark of")[1:])
    assert first.endswith("on `example-lab/hexagon-v73`: `t.py::test_a`, `t.py::test_b`")
    assert second.endswith("on `example-lab/hexagon-v73`")
    assert report_of(new_job(outcome=report(EQUAL).text)) is None
