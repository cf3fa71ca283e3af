"""The work of reading a report: twice as much input needs twice the work, whatever it contains."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from nightjar_formats.model import RunKey
from nightjar_formats.readers import read
from nightjar_formats.refused import Refused
from nightjar_formats.runs.manifest import read_manifest

from handlers.ci_reports.zips import read_zip
from tests.results.uploads import ABOUT, sha
from tests.steps import assert_linear

CASE = '<testcase classname="tests.test_a" name="test_{}"><failure message="a">b</failure></testcase>'
ENTRY = {"nodeid": "tests/test_a.py::test_a", "outcome": "failed", "call": {"duration": 1, "longrepr": "E a"}}
REPORT: dict[str, object] = {"created": 1.0, "exitcode": 1, "root": "/", "summary": {}}
LINE = json.dumps({"$report_type": "TestReport", "when": "call", "duration": 0.1, **ENTRY})


def junit(inside: str) -> bytes:
    return f'<testsuite name="pytest"><testcase name="a">{inside}</testcase></testsuite>'.encode()


def of_go(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps({"Package": "a", **event}).encode() + b"\n" for event in events)


def of_rust(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps({"type": "test", **event}).encode() + b"\n" for event in events)


GO: dict[str, Callable[[int], bytes]] = {
    "tests of Go that never end": lambda n: of_go(*({"Action": "run", "Test": f"T{i}"} for i in range(n))),
    "a test of Go's output": lambda n: of_go(*[{"Action": "output", "Test": "T", "Output": "    a.go:1: b\n"}] * n),
    "ends of a test of Go's": lambda n: of_go({"Action": "output", "Test": "T", "Output": "--- PASS: T (" * n}),
    "slashes of Go": lambda n: of_go({"Action": "fail", "Test": "/" * n}),
    "packages of Go": lambda n: of_go(*({"Action": "fail", "Package": f"p{i}"} for i in range(n))),
    "output of a package of Go": lambda n: of_go(
        {"Action": "output", "Output": "FAIL a [build failed]\n# \n" * n}, {"Action": "fail"}
    ),
    "lines before Go's": lambda n: b"{\n[\n" * n + of_go({"Action": "pass"}),
}
RUST: dict[str, Callable[[int], bytes]] = {
    "tests of Rust that never end": lambda n: of_rust(*({"event": "started", "name": f"t{i}"} for i in range(n))),
    "suites of Rust that never end": lambda n: of_rust(
        *({"type": kind, "event": "started", "name": f"a$t{i}"} for i in range(n) for kind in ("suite", "test"))
    ),
    "panics": lambda n: of_rust({"event": "failed", "name": "a", "stdout": "panicked at 'a', " * n}),
    "panics with a place": lambda n: of_rust({"event": "failed", "name": "a", "stdout": "panicked at a:1:" * n}),
    "documentation tests": lambda n: of_rust({"event": "ok", "name": "a.rs - " + "(line 1" * n + ")"}),
    "attempts": lambda n: of_rust({"event": "ok", "name": "a$" + "#1" * n + "@stress-" * n}),
    "torn lines": lambda n: of_rust({"event": "ok", "name": "a"}) + b'x{ "type": "' * n,
}


def trx(results: str) -> bytes:
    return f"<TestRun><Results>{results}</Results></TestRun>".encode()


DOTNET: dict[str, Callable[[int], bytes]] = {
    "tests of xunit.net": lambda n: (
        "<assembly>" + '<test name="A.a" type="A" result="Fail"><message>a</message></test>' * n + "</assembly>"
    ).encode(),
    "suites of NUnit that never end": lambda n: b"<test-run>" + b'<test-suite result="Failed">' * n,
    "assertions of NUnit": lambda n: (
        ('<test-run><test-case name="a" result="Failed">' + "<assertion><message>a</message></assertion>" * n).encode()
        + b"</test-case></test-run>"
    ),
    "results of TRX": lambda n: trx(
        "".join(f'<UnitTestResult testId="{i}" testName="a" outcome="Failed"/>' for i in range(n))
    ),
    "results of one test of TRX": lambda n: trx('<UnitTestResult testId="a" testName="a" outcome="Passed"/>' * n),
    "definitions of TRX": lambda n: trx(
        "".join(f'<UnitTest id="{i}"><TestMethod className="a"/></UnitTest>' for i in range(n))
    ),
    "frames": lambda n: trx(
        f'<UnitTestResult testName="a" outcome="Failed"><StackTrace>{" in a:line 1" * n}</StackTrace></UnitTestResult>'
    ),
    "parts of frames": lambda n: trx(
        f'<UnitTestResult testName="a" outcome="Failed"><StackTrace>{" in " * n}</StackTrace></UnitTestResult>'
    ),
}

TAP: dict[str, Callable[[int], bytes]] = {
    "results of TAP": lambda n: b"1..1\n" + b"not ok 1 - a # TODO b\n# c\n  ---\n  message: d\n  ...\n" * n,
    "subtests of TAP without a name": lambda n: b"1..1\n" + b"    ok 1 - a\n" * n + b"ok 1 - b\n",
    "levels of TAP": lambda n: b"1..1\n" + b"".join(b" " * (i % 60) + b"ok 1 - a\n" for i in range(n)),
    "levels of TAP that end at once": lambda n: b"1..1\n" + (b"          ok 1 - a\n    ok 2 - b\nok 1 - c\n" * n),
    "a block of TAP that never ends": lambda n: b"not ok 1\n  ---\n" + b"  message: |\n    a\n" * n,
    "comments of TAP": lambda n: b"not ok 1\n" + b"#   at a line 1 at b\n" * n,
    "plans of TAP": lambda n: b"1..9\n" * n,
    "hashes of TAP": lambda n: b"ok 1 " + b"# time=1ms" * n + b"# SKIP" * n + b"\\#" * n,
    "spaces of TAP": lambda n: b"ok 1" + b" " * n + b"#" + b" " * n + b"SKIP" + b" " * n + b"\n" + b" " * n + b"ok",
    "keys of a block": lambda n: b"not ok 1\n  ---\n  at:\n" + b"    file: a\n    line: 1\n" * n + b"  ...\n",
    "indented lines of TAP": lambda n: b"not ok 1\n" + b"  a\n" * n + b"not ok 2\n" * n,
    "descriptions of Check": lambda n: b"not ok 1 - " + b"a.c:" * n + b"Failure: " * n + b" - ERROR:" * n,
    "durations of TAP": lambda n: b"ok 1 - " + b"(0.01s) [" * n + b" 1 elapsed]\n" + b"ok 2 # took (" * n,
    "prefixes of lines": lambda n: b"1..1\n" + b"[05:10:01] " * n + b"\n" + b"[    0.01] <6>" * n + b"\n" + b"\t" * n,
    "results behind a hash": lambda n: b"KTAP version 1\n# selftests: a: b\n" + b"# ok 1 c\n" * n + b"# " * n,
    "summaries": lambda n: b"not ok 1\n" + b"# tests 2\n" * n + b"# Looks like you " * n + b"\n# " + b"Error" * n,
    "other text": lambda n: b"=== RUN" * n + b"\n" + b"PASS: " * n + b"\n" + b"[" * n,
    "other JSON": lambda n: b'{"a": {"b": ' * n,
    "names of prove": lambda n: b"ok 1\n" + b"a.t .." * n + b"\n" + b"a.t ..\n" * n,
    "names of subtests": lambda n: b"ok 1\n" + b"# Subtest: a\n    # Subtest: b\n" * n,
    "hashes of KTAP": lambda n: b"KTAP version 1\n" + b"# " * n + b"1..1\n" + b"# " * n + b"ok 1 a\n",
    "a log of KTAP": lambda n: b"KTAP version 1\n" + b"# a.c:1:b:c FAILED at a:1\n" * n + b"not ok 1 a\n",
    "failures in a log of KTAP": lambda n: (
        b"KTAP version 1\n" + b"EXPECTATION FAILED at a:1\n" * n + b"not ok 1 a\n" + b"a.c:1:" * n + b"\nnot ok 2\n"
    ),
    "consoles": lambda n: b"KTAP version 1\n" + b"[ 1.1]" * n + b"\n" + b"[    1.1] ok 1 a\n" * n,
}
REPORTS: dict[str, Callable[[int], bytes]] = {
    "cases": lambda n: ("<testsuite>" + "".join(map(CASE.format, range(n))) + "</testsuite>").encode(),
    "properties": lambda n: junit("<properties>" + '<property name="a" value="b"/>' * n + "</properties>"),
    "failures": lambda n: junit('<failure message="a">b</failure>' * n),
    "entities": lambda n: junit("<failure>" + "&lt;" * n + "</failure>"),
    "comments": lambda n: junit("<!-- a -->" * n),
    "sections of text": lambda n: junit("<failure>" + "<![CDATA[a]]>" * n + "</failure>"),
    "colors": lambda n: junit("<failure>" + "#x1B[" * n + "</failure>"),
    "suites that never end": lambda n: b"<testsuite>" * n,
    "lines of a log": lambda n: f"{LINE}\n".encode() * n,
    "tests that never end": lambda n: b"".join(
        json.dumps(
            {"$report_type": "TestReport", "nodeid": f"a.py::t{i}", "when": "setup", "outcome": "passed"}
        ).encode()
        + b"\n"
        for i in range(n)
    ),
    "entries of JSON": lambda n: json.dumps({**REPORT, "tests": [ENTRY] * n}).encode(),
    "backslashes": lambda n: json.dumps({**REPORT, "tests": [{**ENTRY, "call": {"longrepr": "\\" * n}}]}).encode(),
    "digits": lambda n: json.dumps({**REPORT, "tests": []}).encode()[:-1] + b', "a": ' + b"1" * n + b"}",
    "no numbers": lambda n: json.dumps({**REPORT, "tests": []}).encode()[:-1] + b', "a": [' + b"NaN," * n + b"1]}",
    "rows": lambda n: b"Test ID,Test Case,Flow,Result\n" + b"a,b,c,Pass\n" * n,
    "quotes": lambda n: b"Test ID,Test Case,Flow,Result\n" + b'"' * n,
    **GO,
    **RUST,
    **DOTNET,
    **TAP,
    "members of gzip": lambda n: (
        gzip.compress(b"<testsuite>") + gzip.compress(b" ") * n + gzip.compress(b"</testsuite>")
    ),
}


@pytest.mark.parametrize("report", REPORTS)
def test_a_reader_of_reports_is_linear(report: str) -> None:
    def make(size: int) -> Callable[[], object]:
        content = REPORTS[report](size)

        def run() -> object:
            with suppress(Refused):
                return list(read(io.BytesIO(content), "a"))
            return None

        return run

    assert_linear(make, 150, memory=True)


def test_the_reader_of_archives_is_linear() -> None:
    def make(size: int) -> Callable[[], object]:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for index in range(size):
                archive.writestr(f"{index}/a.xml", "<testsuite/>")
        return lambda: list(read_zip(file, lambda name: name.endswith(".xml"), lambda _, stream: stream.read()))

    assert_linear(make, 60)


@pytest.mark.parametrize("fault", [{"name": "a/b"}, {"bytes": -1}, {}])
def test_the_reader_of_manifests_is_linear(fault: dict[str, object]) -> None:
    key = RunKey(ABOUT.repository, ABOUT.lab, ABOUT.target, sha(1), "1")

    def make(size: int) -> Callable[[], object]:
        files = [{"name": f"{index}.xml", "bytes": 1, "sha256": "0" * 64, **fault} for index in range(size)]
        raw = json.dumps({"schema": 1, "sha": sha(1), "suite": "operators", "files": files}).encode()

        def run() -> object:
            with suppress(Refused):
                return read_manifest(raw, key)
            return None

        return run

    assert_linear(make, 120)
