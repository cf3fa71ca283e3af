"""What tools and tests measured is read from each format that has measurements."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from itertools import pairwise

import pytest
from nightjar_formats.columns.collect import collect, merge
from nightjar_formats.limits import MAX_MEASUREMENTS, MAX_SAMPLES
from nightjar_formats.measurements import Better, Measurement, measurement_text, read_measurement
from nightjar_formats.model import Case, Status
from nightjar_formats.readers import FORMATS, read
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.runs.identity import Resolver

from bot.core.untrusted import wire
from tests.results.formats.samples import cases, cases_of, one, refusal

LOWER, HIGHER = Better.LOWER, Better.HIGHER


def measured(path: str) -> dict[str, dict[str, tuple[float, str, str, int]]]:
    """Return the value, unit, direction and number of samples of each measurement of a report, by test and name."""
    return {
        case.nodeid or case.name: {
            name: (value, unit, str(better), len(samples)) for name, value, unit, better, samples in case.measurements
        }
        for case in cases(path)
    }


def test_pytest_benchmark_measures_the_tests_of_other_reports() -> None:
    assert measured("pytest-benchmark-json/pytest-benchmark-5.3.1.json") == {
        f"tests/test_kernels.py::test_dot[{size}]": {
            "latency": (latency, "s", "lower", 5),
            "flops": (2.0 * size, "", "", 0),
        }
        for size, latency in LATENCIES.items()
    }
    first = cases("pytest-benchmark-json/pytest-benchmark-5.3.1.json")[0]
    assert (first.path, first.name, first.status) == ("tests/test_kernels.py", "test_dot[64]", Status.PASSED)


def test_a_fast_test_of_pytest_benchmark_has_more_rounds_than_are_read() -> None:
    rounds = ", ".join(f"{number}e-9" for number in range(200_000))
    stats = f'{{"median": 7e-9, "rounds": 200000, "data": [{rounds}]}}'
    machine = '"machine_info": {"machine": "x86_64", "python_implementation": "CPython"}'
    first, second = (f'{{"fullname": "a.py::{name}", "stats": {stats}}}' for name in "bc")
    cases = cases_of(f'{{{machine}, "benchmarks": [{first}, {second}]}}')
    for latency in [measurement for case in cases for measurement in case.measurements]:
        assert (latency.value, latency.unit) == (7e-9, "s"), "the median of all rounds, as pytest-benchmark says"
        steps = {round(1e9 * (late - early)) for early, late in pairwise(latency.samples)}
        assert len(steps) == 1, "some rounds, evenly chosen"
        assert MAX_SAMPLES / 2 <= len(latency.samples) <= MAX_SAMPLES
    assert [case.name for case in cases] == ["b", "c"]


def test_a_benchmark_with_too_many_values_is_refused_with_the_remedy() -> None:
    samples = ", ".join(["1e-6"] * 70_000)
    row = f'"results": {{"time_dot": [[1e-6], [], [[{samples}]]]}}'
    asv = f'{{"version": 2, "result_columns": ["result", "params", "samples"], {row}}}'
    assert refusal(asv, "asv-json") == (
        "report: asv-json: one entry has more than 65,536 values or 4,194,304 characters in the 64 KiB after byte "
        "393213: record fewer runs or samples of it, or less output"
    )
    result = f'{{"command": "true", "median": 2e-6, "times": [{samples}]}}'
    (latency,) = one(f'{{"results": [{result}]}}', "hyperfine-json").measurements
    assert (latency.value, set(latency.samples)) == (2e-6, {1e-6}), "the median of all runs, as hyperfine says"
    assert MAX_SAMPLES / 2 <= len(latency.samples) <= MAX_SAMPLES


LATENCIES = {64: 3.874800313496962e-06, 256: 1.4589700003853068e-05}


def test_google_benchmark_has_repetitions_counters_and_errors() -> None:
    report = measured("google-benchmark-json/benchmark-1.7.1.json")
    assert report["BM_Matmul/64/min_time:0.010"] == {
        "latency": (2.5737368416638640e-01, "us", "lower", 0),
        "cpu_time": (7.1385318171518039e-02, "us", "lower", 0),
        "throughput": (7.1723431808458681e09, "B/s", "higher", 0),
        "flops": (4.6172614877826536e03, "", "", 0),
    }
    assert report["BM_Conv/min_time:0.010/repeats:3"]["latency"] == (1.5158093744256660, "ns", "lower", 3)
    broken = cases("google-benchmark-json/benchmark-1.7.1.json")[-1]
    assert (broken.status, broken.message, broken.measurements) == (Status.FAILED, "no device", ())
    aggregates = '{"context": {}, "benchmarks": [{"run_name": "a", "run_type": "aggregate", "aggregate_name": "median",'
    medians = one(aggregates + '"real_time": 5, "cpu_time": NaN, "time_unit": "ms"}]}', "google-benchmark-json")
    assert medians.measurements == (Measurement("latency", 5, "ms", LOWER),)
    own = one('{"context": {}, "benchmarks": [{"name": "a", "real_time": 5, "latency": 7}]}', "google-benchmark-json")
    assert own.measurements == (Measurement("latency", 5, "ns", LOWER),)


def test_hyperfine_go_asv_and_criterion_are_read() -> None:
    assert measured("hyperfine-json/hyperfine-1.15.json")["sleep short"] == {
        "latency": (0.015758505000000003, "s", "lower", 5),
        "cpu_time": (0.0013058, "s", "lower", 0),
        "system_time": (0.0, "s", "lower", 0),
    }
    assert measured("go-bench/go-1.19.log") == {
        "example.com/kernels::BenchmarkMatmul": {
            "latency": ((19.43 + 24.24) / 2, "ns", "lower", 2),
            "throughput": ((3293.88 + 2640.26) / 2, "MB/s", "higher", 2),
            "accuracy": (0.93, "", "", 2),
            "memory": (0.0, "B", "lower", 2),
            "allocations": (0.0, "count", "lower", 2),
        },
        "example.com/kernels::BenchmarkConv/same": {"latency": ((6.41 + 8.11) / 2, "ns", "lower", 2)},
        "example.com/kernels::BenchmarkConv/valid": {"latency": ((7.31 + 5.31) / 2, "ns", "lower", 2)},
    }
    assert measured("go/bench-1.27.jsonl")["example.com/octocat/compiler/calc::BenchmarkAdd"] == {
        "latency": (1.595, "ns", "lower", 0)
    }
    asv = measured("asv-json/asv-0.6.6.json")
    assert asv["kernels.Dense.time_dot(64, 'relu')"] == {"latency": (3.452099917922169e-06, "s", "lower", 0)}
    assert asv["kernels.Dense.track_error(64, 'relu')"] == {"value": (8.0, "", "", 0)}
    assert asv["kernels.peakmem_list"] == {"peak_memory": (24723456.0, "B", "lower", 0)}
    failed = {case.name for case in cases("asv-json/asv-0.6.6.json") if case.status is Status.FAILED}
    assert failed == {"kernels.Dense.track_error(64, 'none')", "kernels.Dense.track_error(256, 'none')"}
    printed = {
        "dense/dot/64": 85.76641686169557,
        "dense/dot/1024": 2015.9826598608192,
        "text/parse": 1106.7809749373434,
        "text/wait": 4126015.769230769,
        "text/upper case": 59.771527299040244,
    }
    criterion = {name: read["latency"] for name, read in measured("criterion-json/criterion-0.3.6.jsonl").items()}
    assert {name: read[1:] for name, read in criterion.items()} == dict.fromkeys(printed, ("ns", "lower", 10))
    # The median of the samples, as Criterion says.
    assert {name: read[0] for name, read in criterion.items()} == pytest.approx(printed, rel=1e-12)


def test_criterion_and_libtest_print_times_in_units_that_change() -> None:
    criterion = measured("cargo-bench/criterion-0.3.6.log")
    assert criterion == {
        "dense/dot/64": {
            "latency": (144.52, "ns", "lower", 0),
            "throughput": (3.2994 * 2**30, "B/s", "higher", 0),
        },
        "dense/dot/4096": {
            "latency": (13865.0, "ns", "lower", 0),
            "throughput": (2.2010 * 2**30, "B/s", "higher", 0),
        },
        "relu 1024 (in place: no)": {"latency": (495.34, "ns", "lower", 0)},
        "a benchmark whose name is longer than the column": {"latency": (5.9875, "ns", "lower", 0)},
    }
    bencher = measured("cargo-bench/criterion-bencher-0.3.6.log")
    assert bencher.keys() == criterion.keys()
    assert bencher["dense/dot/4096"] == {"latency": (11895.0, "ns", "lower", 0)}
    of_libtest = {
        "bench_dot": {"latency": (10599.14, "ns", "lower", 0), "throughput": (3091e6, "B/s", "higher", 0)},
        "inner::bench_add": {"latency": (1.15, "ns", "lower", 0)},
    }
    assert measured("cargo-bench/libtest-1.95.log") == of_libtest
    events = measured("rust/bench-1.95.jsonl")
    assert [sorted(events[name]) for name in of_libtest] == [["latency", "throughput"], ["latency"]]
    assert events["inner::bench_add"] == {"latency": (4.076334919599196, "ns", "lower", 0)}
    with pytest.raises(Refused, match="run cargo bench"):
        cases_of("test a ... ok\n", "cargo-bench")


@pytest.mark.parametrize(
    ("unit", "rate", "number", "of_rate", "own"),
    [
        ("ps", "elem/s", 1e-3, 1.0, "elem/s"),
        ("us", "Kelem/s", 1e3, 1e3, "elem/s"),
        ("ms", "MiB/s", 1e6, 2.0**20, "B/s"),
        ("s", "Gb/s", 1e9, 1e9, "b/s"),
        ("cycles", "rows/s", 1.0, 1.0, "rows/s"),
    ],
)
def test_each_unit_of_criterion_is_converted(unit: str, rate: str, number: float, of_rate: float, own: str) -> None:
    lines = f"a  time:   [1.0 {unit} 2.0 {unit} 3.0 {unit}]\n   thrpt:  [1.0 {rate} 2.0 {rate} 3.0 {rate}]\n"
    assert one(lines).measurements == (
        Measurement("latency", 2 * number, "ns" if unit != "cycles" else unit, LOWER),
        Measurement("throughput", 2 * of_rate, own, HIGHER),
    )


def test_twister_has_cases_and_what_its_suites_recorded() -> None:
    report = measured("twister-json/twister-4.1.json")
    assert report["benchmark.kernel.latency(thread.yield.preemptive.ctx.k_to_k, Context switch via k_yield)"] == {
        "cycles": (292.0, "cycles", "lower", 0),
        "latency": (1738.0, "ns", "lower", 0),
    }
    assert report["benchmark.kernel.latency"] == {
        "used_ram": (8452.0, "B", "lower", 0),
        "used_rom": (31244.0, "B", "lower", 0),
    }
    assert report["benchmark.net.throughput(512 bytes)"] == {"throughput": (3021.7, "", "", 0)}
    assert report["benchmark.kernel.passes(second_pass, none)"] == {
        "metrics.cycles": (3977.0, "", "", 0),
        "metrics.stack": (512.0, "", "", 0),
    }
    [_, failed, skipped] = [case for case in cases("twister-json/twister-4.1.json") if case.classname == "kernel.fifo"]
    assert (failed.name, failed.status, failed.seconds) == ("kernel.fifo.loop", Status.FAILED, 0.02)
    assert (failed.message, "Assertion failed at fifo.c:41" in failed.text) == ("Testsuite failed", True)
    assert (skipped.status, skipped.message) == (Status.SKIPPED, "ztest skip")
    [built] = [case for case in cases("twister-json/twister-4.1.json") if case.name == "kernel.tickless"]
    assert (built.status, built.message) == (Status.SKIPPED, "Test was built only")
    assert [measurement.name for measurement in built.measurements] == ["used_ram"]
    own_names = [case.name for case in cases("twister-json/twister-4.1.json")]
    assert len(own_names) == len(set(own_names)), "a suite and its only test case are one test"


def test_merged_records_of_different_lengths_have_no_labels() -> None:
    recording = '{"op": ["conv", "dense"], "cycles": ["5", "7", "9"], "odd": [null, {"a": 1}]}'
    suites = f'"testsuites": [{{"name": "s", "recording": [{recording}]}}]'
    suite = f'{{"environment": {{"os": "a", "zephyr_version": "b"}}, {suites}}}'
    assert one(suite).measurements == (
        Measurement("cycles", 7, "cycles", LOWER, (5, 7, 9)),
        Measurement("odd.a", 1),
    )


def test_executorch_measures_delegation_time_error_and_size() -> None:
    csv = measured("executorch/operators.csv")
    row = csv["test_add_dtype[xnnpack-float32]"]
    assert row == {
        "lowering_time": (row["lowering_time"][0], "s", "lower", 0),
        "delegated_nodes": (1.0, "nodes", "higher", 0),
        "undelegated_nodes": (0.0, "nodes", "lower", 0),
        "size": (1600.0, "B", "lower", 0),
        "max_abs_error": (0.0, "", "lower", 0),
        "mean_abs_error": (0.0, "", "lower", 0),
    }, "the signal-to-noise ratio of equal outputs is infinite, and no measurement"
    header = "Test ID,Result,Output 0 SNR,Output 1 SNR,Output 1 Error Max\n"
    assert one(f"{header}a,Fail,4.210,-inf,0.5\n").measurements == (
        Measurement("snr", 4.21, "dB", HIGHER),
        Measurement("output_1_max_abs_error", 0.5, "", LOWER),
    )
    report = measured("executorch/operators.pytest-json-report.json.zst")
    by_name = {name.rpartition("::")[2]: test for name, test in report.items()}
    assert {name: by_name[name] for name in csv} == csv


EXACT = Measurement("latency", 0.1 + 0.2, "ms", LOWER, (1e-308, 0.1, 5e300))
PROPERTY = measurement_text(EXACT)
REPORTS = {
    "junit": '<testsuite><testcase classname="a" name="b" time="1"><properties>'
    f'<property name="measurement.latency" value="{PROPERTY}"/><property name="device" value="x"/></properties>'
    '</testcase><testcase classname="a" name="c" time="1"/></testsuite>',
    "pytest-reportlog": "".join(
        json.dumps({"$report_type": "TestReport", "nodeid": nodeid, "when": phase, "outcome": "passed"} | extra) + "\n"
        for nodeid, extra in (("a.py::b", {"user_properties": [["measurement.latency", PROPERTY]]}), ("a.py::c", {}))
        for phase in ("setup", "call", "teardown")
    )
    + '{"$report_type": "SessionFinish", "exitstatus": 0}\n',
    "pytest-json-report": json.dumps(
        {
            "created": 1,
            "root": "",
            "tests": [
                {"nodeid": "a.py::b", "outcome": "passed", "user_properties": [{"measurement.latency": PROPERTY}]},
                {"nodeid": "a.py::c", "outcome": "passed"},
            ],
        }
    ),
}


@pytest.mark.parametrize("form", REPORTS)
def test_a_property_of_a_test_is_a_measurement_bit_by_bit(form: str) -> None:
    assert [case.measurements for case in cases_of(REPORTS[form])] == [(EXACT,), ()]
    for text, message in (
        ("nan ms", "latency of .*b is NaN, which is not a number"),
        ("fast", "the measurement latency of .*b is .*fast.*: write VALUE UNIT"),
        ("1 ms upper", "write VALUE UNIT"),
        ("1 ms lower 1,2 3", "write VALUE UNIT"),
        ("1 ms lower inf", "sample 1 of the measurement latency of .*b is infinity"),
        ("1 ms lower " + "1," * MAX_SAMPLES + "1", "501 samples, and 500 are allowed"),
    ):
        with pytest.raises(Exception, match=message):
            cases_of(REPORTS[form].replace(PROPERTY, text))
    assert "has the name" in refusal(REPORTS[form].replace("measurement.latency", "measurement.a name"))


def test_texts_of_measurements_leave_out_what_is_empty() -> None:
    for measurement, text in (
        (Measurement("a", 2), "2.0"),
        (Measurement("a", 2, "ms"), "2.0 ms"),
        (Measurement("a", 2, "", HIGHER), "2.0 - higher"),
        (Measurement("a", 2, samples=(1, 3)), "2.0 - none 1.0,3.0"),
    ):
        assert measurement_text(measurement) == text
        assert read_measurement("t", "a", text) == measurement


def test_a_run_has_the_measurements_of_all_its_files() -> None:
    """They survive the way from the process that reads them, and two files of one test complement each other."""
    resolver = Resolver(frozenset({"a.py"}))
    other = REPORTS["pytest-reportlog"].replace("measurement.latency", "measurement.size")
    files = [
        collect(read(io.BytesIO(content.encode()), "report"), resolver.resolve)
        for content in (REPORTS["pytest-reportlog"], other, REPORTS["pytest-json-report"].replace(PROPERTY, "7"))
    ]
    columns = wire.read_answer(wire.answer_of(merge(files)))
    assert columns.measurements == {hash("a.py::b"): (EXACT, EXACT._replace(name="size"))}
    retried = [Case("b", Status.PASSED, measurements=(EXACT,)), Case("b", Status.FAILED)]
    assert collect(retried, resolver.resolve).measurements == {hash(resolver.resolve(retried[0])[0]): (EXACT,)}


def test_the_measurements_of_a_file_and_of_a_test_are_limited() -> None:
    properties = "".join(f'<property name="measurement.m{n}" value="1"/>' for n in range(MAX_MEASUREMENTS + 2))
    text = refusal(REPORTS["junit"].replace("<properties>", f"<properties>{properties}"), "junit", TooMuch)
    assert text == "report: line 1: a test has more than 64 measurements"
    rows = ",".join(f'{{"command": "c{number}", "memory_usage_byte": [{"1," * 60_000}1]}}' for number in range(9))
    text = refusal(f'{{"results": [{rows}]}}', "hyperfine-json", TooMuch)
    assert "more than 500,000 measurements and samples" in text


@pytest.mark.parametrize("form", [form for form in FORMATS if form.endswith(("-bench", "-json"))])
def test_reports_without_benchmarks_are_refused_or_empty(form: str) -> None:
    for content in ("{}", '{"benchmarks": null, "results": null}', '{"benchmarks": [1, {}], "results": {"a": 1}}'):
        with suppress(Refused):
            assert cases_of(content, form) == []
