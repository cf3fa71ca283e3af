"""A report of another tool is refused with that tool's own switch for a format that is read."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.results.formats.samples import refusal

STEP = {"keyword": "Feature", "name": "a", "uri": "a.feature", "elements": []}
JSON: dict[str, tuple[object, str]] = {
    "jest": ({"numFailedTestSuites": 0, "numTotalTests": 2, "testResults": []}, "jest-junit"),
    "vitest": ({"numTotalTestSuites": 1, "numFailedTests": 0, "numTotalTests": 2}, "--reporter=junit"),
    "mocha": ({"stats": {"suites": 1, "tests": 2, "passes": 1, "pending": 0}, "tests": []}, "mocha --reporter xunit"),
    "mochawesome": ({"stats": {"suites": 1, "testsRegistered": 2}, "results": []}, "mocha --reporter xunit"),
    "playwright": ({"config": {"configFile": "a", "forbidOnly": False, "fullyParallel": True}}, "--reporter=junit"),
    "cucumber": ([STEP], "--format junit"),
    "behave": ([{"elements": [], "keyword": "Feature", "location": "a:1", "status": "passed"}], "--junit"),
    "cucumber messages": ({"meta": {"protocolVersion": "1", "implementation": {}}}, "--format junit"),
    "allure": ({"uuid": "1", "historyId": "2", "name": "a", "status": "passed"}, "Allure"),
    "rspec": ({"version": "3", "examples": [], "summary": {}, "summary_line": "1 example"}, "RspecJunitFormatter"),
    "googletest": ({"tests": 2, "failures": 0, "disabled": 0, "testsuites": []}, "--gtest_output=xml"),
    "golangci-lint": ({"Issues": [], "Report": {}}, "--output.junit-xml.path"),
    "robot": ({"generator": "Robot 7", "generated": "", "rpa": False, "suite": {}}, "robot --xunit"),
    "ctest": ({"backtraceGraph": {}, "kind": "ctestInfo", "tests": []}, "--output-junit"),
    "kunit.py": ({"arch": "um", "sub_groups": [], "test_cases": []}, "--raw_output"),
    "newman": ({"collection": {}, "environment": {}, "run": {}}, "--reporters junit"),
    "dart": ({"protocolVersion": "0.1.1", "runnerVersion": None, "type": "start", "time": 0}, "tojunit"),
    "bazel": ({"id": {"started": {}}, "started": {"uuid": "1"}}, "bazel-testlogs"),
    "cargo": ({"reason": "compiler-artifact", "package_id": "a"}, "--format json"),
    "pytest-json": ({"report": {"environment": {}, "tests": [], "summary": {}}}, "--junitxml"),
    "sarif": ({"$schema": "a", "version": "2.1.0", "runs": []}, "no results of tests"),
    "unknown": ({"checks": [], "outcome": "good"}, "with the members 'checks', 'outcome'"),
}
TEXT = {
    "pytest": ("===== test session starts =====\nplatform linux\n", "--junitxml"),
    "pytest -q": ("..F\n=== 1 failed, 2 passed in 0.12s ===\n", "--junitxml"),
    "unittest -v": ("test_a (tests.test_a.ATest.test_a) ... ok\n", "xmlrunner"),
    "unittest": ("..F\n-----\nRan 3 tests in 0.001s\n\nFAILED (failures=1)\n", "xmlrunner"),
    "ctest": ("Test project /build\n    Start 1: a\n1/1 Test #1: a ....   Passed    0.01 sec\n", "--output-junit"),
    "go test": ("ok  \texample.com/octocat/a\t0.012s\n?   \texample.com/octocat/b\t[no test files]\n", "go test -json"),
    "go test -v": ("=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n", "go test -json"),
    "cargo test": ("\nrunning 2 tests\ntest a::b ... ok\n\ntest result: ok. 2 passed\n", "--format json"),
    "googletest": ("[==========] Running 2 tests from 1 test suite.\n[ RUN      ] A.b\n", "--gtest_output=xml"),
    "cmocka": ("[==========] tests: Running 2 test(s).\n[ RUN      ] a\n", "CMOCKA_MESSAGE_OUTPUT"),
    "doctest": ('[doctest] doctest version is "2.4.11"\n', "--reporters=junit"),
    "catch2": ("Randomness seeded to: 1\n====\nAll tests passed (3 assertions in 1 test case)\n", "--reporter JUnit"),
    "boost": ("Running 3 test cases...\n\n*** No errors detected\n", "--log_format=JUNIT"),
    "check": ("Running suite(s): A\n100%: Checks: 3, Failures: 0, Errors: 0\n", "CK_TAP_LOG_FILE_NAME"),
    "unity": ("a.c:12:test_a:PASS\n-----\n1 Tests 0 Failures 0 Ignored\nOK\n", "stylize_as_junit.py"),
    "prove": ("t/a.t .. ok\nt/b.t .. ok\nAll tests successful.\nResult: PASS\n", "prove -v"),
    "prove --timer": ("[02:48:24] t/a.t .. ok      131 ms ( 0.00 usr  0.00 sys = 0.05 CPU)\n", "prove -v"),
    "maven": ("[INFO] Scanning for projects...\n[INFO] Tests run: 3, Failures: 0\n", "surefire-reports"),
    "gradle": ("> Task :test\n\nBUILD SUCCESSFUL in 1s\n", "build/test-results"),
    "dotnet": ("Passed!  - Failed:     0, Passed:     3\n", "--logger trx"),
    "jest": ("PASS src/a.test.js\nTest Suites: 1 passed, 1 total\n", "jest-junit"),
    "vitest": (" RUN  v1.2.3 /a\n\n Test Files  1 passed (1)\n", "--reporter=junit"),
    "playwright": ("Running 3 tests using 1 worker\n", "--reporter=junit"),
    "node": ("\u2714 adds (4.01ms)\n\u2139 tests 2\n", "--test-reporter=tap"),
    "mocha": ("  dma\n    \u2713 copies\n\n  1 passing (5ms)\n", "mocha --reporter xunit"),
    "rspec": ("..\n\nFinished in 0.01 seconds\n3 examples, 0 failures\n", "RspecJunitFormatter"),
    "phpunit": ("PHPUnit 10.5.1 by Sebastian Bergmann and contributors.\n", "--log-junit"),
    "lit": ("-- Testing: 3 tests, 2 workers --\nPASS: TVM :: a.ll (1 of 3)\n", "--xunit-xml-output"),
    "meson": ("1/2 dma        OK              0.01s\n2/2 irq   FAIL   0.02s   exit status 1\n", "testlog.junit.xml"),
    "automake": ("PASS: dma.tap 1 - copies\n# TOTAL: 1\n", ".log files"),
    "automake, a test without an ending": ("FAIL: dma 1 - copies\nPASS: dma 2 - moves\n", ".log files"),
    "robot": ("Copies    | PASS |\n------\n", "robot --xunit"),
    "bazel": ("//dma:test    PASSED in 0.1s\n", "bazel-testlogs"),
    "subunit": ("test: a\nsuccess: a\n", "subunit2junitxml"),
    "pytest-html": ("<!DOCTYPE html>\n<html><body>by <a>pytest-html</a></body></html>", "--junitxml"),
    "a page of Robot Framework": ("<!DOCTYPE html>\n<html><meta content='Robot Framework 7'></html>", "robot --xunit"),
    "lcov": ("TN:\nSF:/a/b.c\nDA:1,2\n", "no results of tests"),
}


@pytest.mark.parametrize("tool", JSON)
def test_the_json_of_another_tool_is_refused_with_its_switch(tool: str) -> None:
    value, remedy = JSON[tool]
    for indent in (None, 2):
        refused = refusal(json.dumps(value, indent=indent))
        assert "is not read" in refused
        assert remedy in refused
    assert refusal(gzip.compress(json.dumps(value).encode("utf-16"))) == refused


@pytest.mark.parametrize("tool", TEXT)
def test_the_text_of_another_tool_is_refused_with_its_switch(tool: str) -> None:
    text, remedy = TEXT[tool]
    for content in (text, text.replace("\n", "\r\n"), f"a line before\n{text}" if "<" not in text else text):
        refused = refusal(content)
        assert remedy in refused


def test_subunit_is_refused_with_its_converter() -> None:
    assert "subunit2junitxml" in refusal(b"\xb3\x29\x01\x40")


# `refusal` finds texts whose values are missing by the word "None", so no member may be called that.
@given(
    st.dictionaries(
        st.text(max_size=10).filter(lambda name: "None" not in name),
        st.none() | st.integers(),
        min_size=1,
        max_size=10,
    )
)
def test_any_other_json_is_refused_and_names_its_members(value: dict[str, object]) -> None:
    assert "JSON" in refusal(json.dumps({"x": 1, **value}))
