"""All formats alike:

detected by content, consistent with each other, and never anything but Refused for bad content.
"""

import gzip
import io
import json
from collections import defaultdict, deque
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.limits import MAX_CASES
from nightjar_formats.model import BAD, Case
from nightjar_formats.readers import ALIASES, FORMATS, format_of, guess, read
from nightjar_formats.readers.texts import DESCRIPTIONS
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.runs.identity import Resolver
from nightjar_formats.runs.offline_check import check_files

from tests.results.formats.samples import (
    DATA,
    MOST_SECONDS,
    cases,
    cases_of,
    cost_of,
    damaged,
    plain,
    refusal,
    samples_in_folders,
)

SAMPLES = {
    "pytest/kinds.junit.xml": "junit",
    "tvm/night-2/te.xml": "junit",
    "tvm/formats/te_ir.xunit1.xml": "junit",
    "executorch/operators.junit.xml.gz": "junit",
    "pytest/died.reportlog.jsonl": "pytest-reportlog",
    "pytest/kinds.reportlog.jsonl.gz": "pytest-reportlog",
    "pytest/loadgroup.reportlog.jsonl": "pytest-reportlog",
    "tvm/formats/te_ir.reportlog.jsonl.gz": "pytest-reportlog",
    "pytest/kinds.pytest-json-report.json": "pytest-json-report",
    "executorch/operators.pytest-json-report.json.zst": "pytest-json-report",
    "executorch/operators.csv": "executorch-csv",
    "pytest/kinds.ctrf.json.gz": "ctrf",
    "go/kinds-1.19.jsonl": "go-test-json",
    "go/kinds-1.27.jsonl": "go-test-json",
    "go/device-1.19.jsonl": "go-test-json",
    "go/merged-1.19.jsonl": "go-test-json",
    "rust/kinds-1.95.jsonl": "libtest-json",
    "rust/merged-1.95.jsonl": "libtest-json",
    "rust/nextest.jsonl": "libtest-json",
    "dotnet/xunit-v1.xml": "xunit-net",
    "dotnet/xunit-v2.xml": "xunit-net",
    "dotnet/xunit-v3.xml": "xunit-net",
    "dotnet/nunit-3.xml": "nunit3",
    "dotnet/vstest.trx": "trx",
    "dotnet/mstest.trx": "trx",
    "tap/perl.tap": "tap",
    "tap/prove.tap": "tap",
    "tap/prove-timer.tap": "tap",
    "tap/check-bad.tap": "tap",
    "tap/node24.tap": "tap",
    "tap/bats.tap": "tap",
    "ktap/ktap-1.log": "ktap",
    "ktap/kunit-console.log": "ktap",
    "ktap/kselftest.log": "ktap",
    "ktap/kselftest-plain.log": "ktap",
    "ktap/kunit-tabs.log": "ktap",
}
SAMPLES |= samples_in_folders(FORMATS.keys() - set(SAMPLES.values()))
"""Reports of the real tools, each with its format. Another format has those in the folder with its name."""
Seen = tuple[str, str, bool]
"""A test's status, trouble and whether it is flaky."""


def folded(path: str, files: list[str]) -> dict[str, Seen]:
    """Return what a report says about each test, under its ID in a repository with these files.

    Several cases of one test are attempts: the first bad one counts, and an additional good one makes it flaky.
    """
    resolver = Resolver(files)
    attempts: dict[str, list[Case]] = defaultdict(list)
    for case in cases(path):
        attempts[resolver.resolve(case)[0]].append(case)
    stated = {}
    for test, all_of_it in attempts.items():
        bad = [case for case in all_of_it if case.status in BAD]
        case = (bad or all_of_it)[0]
        stated[test] = (case.status.value, case.trouble.value, case.flaky or (not bad and len(all_of_it) > 1))
    return stated


def test_every_format_has_a_sample_and_a_description() -> None:
    missing = [f"tests/data/results/{name}/" for name in FORMATS.keys() - set(SAMPLES.values())]
    assert missing == [], "add reports of the real tool to these folders"
    assert DESCRIPTIONS.keys() == FORMATS.keys()


@pytest.mark.parametrize("path", SAMPLES)
def test_the_content_identifies_the_format(path: str) -> None:
    content = plain(path)
    assert guess(content[:16384]) == SAMPLES[path]
    assert guess(b"\xef\xbb\xbf\r\n" + content[:300]) == SAMPLES[path]
    assert cases(path) == cases_of(content, SAMPLES[path])


@pytest.mark.parametrize("path", [path for path in SAMPLES if not path.startswith(("tvm", "executorch"))])
def test_a_labs_check_reads_each_format_and_names_it(path: str) -> None:
    [report] = check_files([DATA / path]).files
    assert (report.format, report.problem) == (SAMPLES[path], "")
    assert report.cases


@pytest.mark.parametrize(
    ("head", "form"),
    [
        ('<?xml version="1.0"?><testsuites/>'.encode("utf-16"), "junit"),
        (b'\n  <testsuite name="a">', "junit"),
        (b'<!-- a --><?a b?>\n<t:TestRun xmlns:t="a">', "trx"),
        (b'<?xml version="1.0" encoding="utf-16"?><TestRun/>', "trx"),
        ('<?xml version="1.0" encoding="utf-16"?><TestRun/>'.encode("utf-16"), "trx"),
        (b"<test-results>", "nunit3"),
        (b"<coverage/>", "junit"),
        (b"a log line\nTAP version 13\n", "tap"),
        (b"1..0 # SKIP no device\n", "tap"),
        (b"starting\nnot ok 1 - a\n", "tap"),
        (b"[    0.060000] TAP version 14\n", "ktap"),
        (b"TAP version 14\n1..1\n    # a: EXPECTATION FAILED at lib/a.c:29\n", "ktap"),
        (b"TAP version 13\n1..1\n# selftests: net: a\n", "ktap"),
        (b'{"results": {"tool": {"name": "jest"}, "summary": {', "ctrf"),
        (b'{"environment": {"reportFormat": "x"}, "root": "/", "tests": [', "pytest-json-report"),
        (b'{"created": 1.5, "duration": 2, "exitcode": 0, "root"', "pytest-json-report"),
        (b'{"nodeid": "", "outcome": "passed", "$report_type": "CollectReport"}\n{', "pytest-reportlog"),
        (b'"Test ID","Result"\r\n', "executorch-csv"),
        (b"Result,Test ID\n", "executorch-csv"),
        (b'{"reportFormat": 1}', "ctrf"),
        *((b'{"results": {"%s": 1}}' % key, "ctrf") for key in (b"tool", b"summary", b"tests")),
        (b'{"root": "/", "collectors": []}', "pytest-json-report"),
        (b'{"created": 1.5, "exitcode": 0}', "pytest-json-report"),
        (b'{"machine_info": {"machine": "x", "python_implementation": "y"}}', "pytest-benchmark-json"),
        (b'{"context": {"num_cpus": 1, "executable": "x"}}', "google-benchmark-json"),
        (b'{"commit_hash": "a", "env_name": "x", "params": {}}', "asv-json"),
        (b'{"environment": {"os": "posix", "zephyr_version": "x"}}', "twister-json"),
        (b'{\n  "results": [\n    {"command": "x"}', "hyperfine-json"),
        (b'a log\n{"Action": "run", "Time": "x"}\n', "go-test-json"),
        (b'{"type": "suite", "event": "started"}\n', "libtest-json"),
        (b'{"reason": "benchmark-complete", "report_directory": "x"}\n', "criterion-json"),
        (b"KTAP version 1\n", "ktap"),
        (b"<6>[    1.0] KTAP version 1\n", "ktap"),
        (b"a log\nTAP version 13\n", "tap"),
        (b"1..2\n", "tap"),
        *((b"<%s>" % root, "xunit-net") for root in (b"assemblies", b"assembly")),
        *((b"<%s>" % root, "nunit3") for root in (b"test-run", b"test-suite", b"test-results")),
        (b"<TestRun>", "trx"),
        (b"a log\n<?xml version='1.0'?>\n<TestRun>", "trx"),
        (b"<testsuites>", "junit"),
        (b"<other>", "junit"),
    ],
)
def test_the_beginning_is_enough_to_identify_a_format(head: bytes, form: str) -> None:
    assert format_of(io.BytesIO(head), "report") == form


@pytest.mark.parametrize("head", [b"", b"{", b"{}", b"[1]", b"Test ID,Flow\n", b"\0\xff"])
def test_the_refusal_of_unknown_content_names_the_formats(head: bytes) -> None:
    with pytest.raises(
        Refused, match="none of the formats junit, pytest-reportlog, pytest-json-report, executorch-csv, ctrf"
    ):
        guess(head)


@pytest.mark.parametrize(
    ("head", "members"),
    [
        (b'{"created": 1}', "'created'"),
        (b'{"results": {"other": 1}}', "'results'"),
        (b'{"machine_info": {"machine": "x"}}', "'machine_info'"),
        (b'{"type": "suite"}', "'type'"),
        (b'{"Action": "run", "other": 1}', "'Action', 'other'"),
        (b'{"reason": "x", "report_directory": "y"}', "'reason', 'report_directory'"),
    ],
)
def test_some_members_of_a_format_are_not_enough(head: bytes, members: str) -> None:
    with pytest.raises(Refused) as refusal:
        guess(head)
    assert str(refusal.value) == (
        f"this is JSON of another tool, with the members {members}, which is not read: write JUnit, for which most "
        "tools have an option"
    )


@pytest.mark.parametrize(
    ("alias", "path"),
    [
        ("xunit", "dotnet/xunit-v2.xml"),
        ("xunit", "dotnet/xunit-v3.xml"),
        ("nunit", "dotnet/nunit-3.xml"),
        ("gotest", "go/kinds-1.27.jsonl"),
        ("libtest", "rust/kinds-1.95.jsonl"),
    ],
)
def test_each_further_name_of_a_format_reads_like_the_formats_own(alias: str, path: str) -> None:
    raw = (DATA / path).read_bytes()
    format_name = ALIASES[alias]
    assert guess(raw) == format_name
    assert list(read(io.BytesIO(raw), path, alias)) == list(read(io.BytesIO(raw), path, format_name))
    assert format_name in FORMATS
    assert alias not in FORMATS


def test_a_refusal_names_the_file_once() -> None:
    assert refusal(b"a log").startswith("report: The content is in none of the formats")
    assert refusal(b"").startswith("report is empty")
    assert refusal(b"<a/>", "xml") == f'report: unknown format "xml"; available: {", ".join(FORMATS)}'


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("path", ["pytest/kinds.junit.xml", "pytest/died.reportlog.jsonl", "executorch/operators.csv",
                                  "pytest/kinds.pytest-json-report.json", "pytest/kinds.ctrf.json.gz"])  # fmt: skip
def test_a_wrong_name_of_the_format_is_refused(form: str, path: str) -> None:
    if form != SAMPLES[path]:
        assert "report: " in refusal(plain(path), form)


def test_the_number_of_cases_in_a_file_is_limited() -> None:
    content = b"<testsuite>" + b'<testcase name="a"/>' * (MAX_CASES + 1) + b"</testsuite>"
    with pytest.raises(TooMuch, match=r"te\.xml has more than 500,000 test cases"):
        deque(read(io.BytesIO(content), "te.xml"), maxlen=0)


TVM_FILES = sorted({case.path for case in cases("tvm/formats/te_ir.pytest-json-report.json")})


def test_the_formats_of_tvm_agree() -> None:
    """Except for what xunit1 lacks: a test whose last attempt crashed with its worker and was never rerun."""
    log = folded("tvm/formats/te_ir.reportlog.jsonl.gz", TVM_FILES)
    assert log == folded("tvm/formats/te_ir.pytest-json-report.json", TVM_FILES)
    vanished = "tests/python/ir/test_ir_container.py::test_map_save_load_json"
    assert log.pop(vanished) == ("errored", "crash", False)
    assert folded("tvm/formats/te_ir.xunit1.xml", TVM_FILES) == log
    assert len(log) == 69


def test_the_formats_of_pytest_agree_on_each_kind_of_ending() -> None:
    """Except for what xunit1 lacks: a pass that should have been a failure."""
    files = ["tests/test_kinds.py", "tests/test_broken_import.py", "tests/test_skipped_module.py"]
    log = folded("pytest/kinds.reportlog.jsonl.gz", files)
    assert log == folded("pytest/kinds.pytest-json-report.json", files)
    junit = folded("pytest/kinds.junit.xml", files)
    assert log.pop("tests/test_kinds.py::test_xpasses") == ("xpassed", "", False)
    assert junit.pop("tests/test_kinds.py::test_xpasses") == ("passed", "", False)
    assert junit == log
    assert [test for test, seen in log.items() if seen[2]] == [
        "tests/test_kinds.py::test_becomes_good",
        "tests/test_kinds.py::test_setup_becomes_good",
    ]


def test_the_formats_of_pytest_agree_on_crashes() -> None:
    """Except for what xunit1 lacks: an attempt that crashed with its worker before a good one."""
    files = ["tests/test_crashes.py"]
    log = folded("pytest/crash.reportlog.jsonl", files)
    assert log == folded("pytest/crash.pytest-json-report.json", files)
    assert log.pop("tests/test_crashes.py::test_crashes_once") == ("passed", "", True)
    junit = folded("pytest/crash.junit.xml", files)
    assert junit.pop("tests/test_crashes.py::test_crashes_once") == ("passed", "", False)
    assert junit == log


def test_the_formats_of_executorch_agree() -> None:
    """The CSV has neither paths nor tests that pytest skipped itself; JUnit has no stage of a failure."""
    installed = "etv/lib/python3.11/site-packages/executorch/"
    files = sorted(
        {case.path.removeprefix(installed) for case in cases("executorch/operators.pytest-json-report.json.zst")}
    )
    report = folded("executorch/operators.pytest-json-report.json.zst", files)
    junit = folded("executorch/operators.junit.xml.gz", files)
    assert {test: seen[0] for test, seen in report.items()} == {test: seen[0] for test, seen in junit.items()}
    assert all(test.startswith("backends/test/suite/operators/") for test in report)
    by_name = {test.partition("::")[2]: seen for test, seen in report.items()}
    rows = folded("executorch/operators.csv", files)
    assert {name: by_name[name] for name in rows} == rows
    assert {by_name[name][0] for name in set(by_name) - set(rows)} == {"skipped"}
    assert len(rows) == 99
    measures = {case.name: case.measures for case in cases("executorch/operators.pytest-json-report.json.zst")}
    assert {case.name: case.measures for case in cases("executorch/operators.csv")} == {
        name: measures[name] for name in rows
    }


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_damaged_report_is_read_or_refused(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(["pytest/died.reportlog.jsonl", "pytest/kinds.pytest-json-report.json",
                                      "executorch/operators.csv", "pytest/kinds.ctrf.json.gz",
                                      "go/kinds-1.27.jsonl", "rust/kinds-1.95.jsonl", "dotnet/vstest.trx",
                                      "dotnet/nunit-3.xml", "dotnet/xunit-v2.xml", "tap/node24.tap",
                                      "ktap/kselftest.log"]))  # fmt: skip
    content = data.draw(damaged(WHOLE[path]))
    with suppress(Refused):
        cases_of(content, SAMPLES[path])


WHOLE = {path: plain(path)[:20_000] for path in SAMPLES}


@pytest.mark.parametrize("form", FORMATS)
@settings(deadline=None, max_examples=40)
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_read_or_refused(form: str, content: bytes) -> None:
    with suppress(Refused):
        cases_of(content, form)
    with suppress(Refused):
        cases_of(content)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None, max_examples=60)
@given(ANY_JSON, st.integers(1, 3))
def test_any_json_is_skipped_as_python_reads_it(value: object, copies: int) -> None:
    written = json.dumps(value)
    report = f'{{"created": 1, "environment": {written}, "root": "", "tests": [{{"nodeid": "a.py::b", "x": {written}, '
    report += '"outcome": "passed"}]}'
    (case,) = cases_of(report)
    assert case.nodeid == "a.py::b"
    line = f'{{"$report_type": "X", "y": {written}}}\n'
    assert len(cases_of(line * copies, "pytest-reportlog")) == 1  # the session has no end


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=50), st.integers(0, 200))
def test_texts_are_complete_wherever_the_chunks_end(text: str, filling: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    report = {"created": 1, "root": "", "environment": "x" * (65_400 + filling), "tests": [{"nodeid": "a::" + text}]}
    content = json.dumps(report | {"tests": [{"nodeid": "a::" + text, "outcome": "passed"}]}, ensure_ascii=False)
    (case,) = cases_of(content, "pytest-json-report")
    assert case.nodeid == "a::" + text


HOSTILE = {
    "one long text": (b'{"created": 1, "root": "', b"x" * (1 << 20), 100, b""),
    "deep nesting": (b'{"created": 1, "root": ', b"[" * (1 << 20), 4, b""),
    "long number": (b'{"created": 1, "root": ', b"9" * (1 << 20), 30, b""),
    "many backslashes": (b'{"created": 1, "root": "', b"\\" * (1 << 20), 30, b""),
    "one entry of many": (
        b'{"created": 1, "root": 1, "tests": [{"metadata": {"subtests": [',
        b"{}," * 300_000,
        10,
        b"",
    ),
    "space": (b'{"created": 1, "root": 1', b" " * (1 << 20), 60, b""),
    "a deep line": (b'{"$report_type": "SessionStart"}\n', b"[" * 60_000 + b"\n", 1, b""),
    "a long line": (b'{"$report_type": "SessionStart", "x": [', b"{}," * 300_000, 2, b"]}"),
    "wide lines": (
        b'{"$report_type": "SessionStart"}\n',
        b'{"$report_type":"x","y":[' + b"{}," * 21_000 + b"1]}\n",
        100,
        b"]\n",
    ),
    "many open tests": (b"", b'{"$report_type": "TestReport", "nodeid": "%d", "when": "setup"}\n', 300_000, b""),
    "a long field": (b'Test ID,Result\n"', b"x\n" * (1 << 19), 30, b""),
    "a wide row": (b"Test ID,Result\n", b"," * (1 << 20), 30, b""),
}


READ = {"a deep line", "wide lines"}
"""A line that is no JSON is passed over, and then the session has no end."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_costs_neither_time_nor_memory(name: str, tmp_path: Path) -> None:
    begin, piece, times, end = HOSTILE[name]
    with (tmp_path / "hostile").open("wb") as file:
        file.write(begin)
        for index in range(times):
            file.write(piece % index if b"%d" in piece else piece)
        file.write(end)
    cost = cost_of(tmp_path / "hostile")
    assert cost.output.startswith("taken: 1" if name in READ else ("TooMuch", "Refused", "EndsEarly"))
    assert cost.seconds < MOST_SECONDS
    assert cost.megabytes < 100


def test_memory_does_not_grow_with_the_number_of_tests(tmp_path: Path) -> None:
    entry = (DATA / "pytest/crash.pytest-json-report.json").read_text()
    tests = entry[entry.index('"tests": [') + 10 : entry.rindex("]}")]
    for count in (1, 10_000):
        with gzip.open(tmp_path / f"{count}.json.gz", "wt", 1) as file:
            file.write('{"created": 1, "root": "/", "tests": [' + ",".join([tests] * count) + "]}")
    little, much = (cost_of(tmp_path / f"{count}.json.gz", "pytest-json-report") for count in (1, 10_000))
    assert (little.output, much.output) == ("taken: 4", "taken: 40000")
    assert much.megabytes - little.megabytes < 8
