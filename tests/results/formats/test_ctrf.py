"""CTRF: one entry per test, with its attempts inside."""

import json
from typing import Any

import pytest
from nightjar_formats.limits import MAX_RAW_NAME
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.refused import Refused, TooMuch

from tests.results.formats.samples import cases, cases_of, one, refusal


def a_test(status: str = "passed", **members: Any) -> dict[str, Any]:
    return {"name": "user can log in", "status": status, "duration": 1500} | members


def report(*tests: Any, **members: Any) -> str:
    results = {"tool": {"name": "example"}, "summary": {"tests": 99, "passed": 99}, "tests": list(tests)}
    return json.dumps({"reportFormat": "CTRF", "specVersion": "1.0.0", "results": results} | members)


def test_each_kind_of_ending_is_read_as_far_as_ctrf_has_it() -> None:
    log = {case.nodeid: (case.status, case.trouble, case.flaky) for case in cases("pytest/kinds.reportlog.jsonl.gz")}
    stated = {case.nodeid: (case.status, case.trouble, case.flaky) for case in cases("pytest/kinds.ctrf.json.gz")}
    assert log["tests/test_kinds.py::test_xpasses"] == (Status.XPASSED, Trouble.NONE, False)
    assert stated["tests/test_kinds.py::test_xpasses"] == (Status.PASSED, Trouble.NONE, False)
    left_out = {"tests/test_kinds.py::test_xpasses", "tests/test_broken_import.py", "tests/test_skipped_module.py"}
    assert {test: seen for test, seen in stated.items() if test not in left_out} == {
        test: seen for test, seen in log.items() if test not in left_out
    }


def test_a_pytest_case_is_named_as_by_pytest() -> None:
    cuda = next(case for case in cases("pytest/kinds.ctrf.json.gz") if "cuda" in case.name)
    assert cuda.nodeid == "tests/test_kinds.py::TestInside::test_targets[cuda]"
    assert (cuda.name, cuda.path) == ("test_targets[cuda]", "tests/test_kinds.py")
    assert cuda.message == "AssertionError: no device assert 'cuda' != 'cuda'"
    assert "tests/test_kinds.py:20: AssertionError" in cuda.text


@pytest.mark.parametrize(
    ("status", "raw", "message", "stated", "says"),
    [
        ("passed", None, None, (Status.PASSED, Trouble.NONE), ""),
        ("failed", None, "no route", (Status.FAILED, Trouble.NONE), "no route"),
        ("failed", "timedOut", "5 s", (Status.FAILED, Trouble.TIMEOUT), "5 s"),
        ("failed", "setup_failed", "x", (Status.ERRORED, Trouble.SETUP), "x"),
        ("failed", "teardown_failed", "x", (Status.ERRORED, Trouble.TEARDOWN), "x"),
        ("skipped", None, "no GPU", (Status.SKIPPED, Trouble.NONE), "no GPU"),
        ("skipped", "xfailed", "#1234", (Status.XFAILED, Trouble.NONE), "#1234"),
        ("pending", None, None, (Status.SKIPPED, Trouble.NONE), "pending"),
        ("other", "inconclusive", "no oracle", (Status.SKIPPED, Trouble.NONE), "other (inconclusive): no oracle"),
    ],
)
def test_each_status_is_read(
    status: str, raw: str | None, message: str | None, stated: tuple[Status, Trouble], says: str
) -> None:
    case = one(report(a_test(status, rawStatus=raw, message=message, trace="at x.js:1")))
    assert ((case.status, case.trouble), case.message) == (stated, says)
    assert bool(case.text) == (status == "failed")


@pytest.mark.parametrize(
    ("members", "flaky"),
    [
        ({}, False),
        ({"retries": 0}, False),
        ({"flaky": True}, True),
        ({"retries": 1}, True),
        ({"flaky": True, "retries": 1, "retryAttempts": [{"status": "failed"}, {"status": "passed"}]}, True),
        ({"retries": 1, "retryAttempts": [{"status": "passed"}, {"status": "passed"}]}, False),
        ({"flaky": "yes", "retries": "many", "retryAttempts": "none"}, False),
    ],
)
def test_a_pass_after_a_failure_is_flaky(members: dict[str, Any], flaky: bool) -> None:
    assert one(report(a_test(**members))).flaky is flaky
    assert one(report(a_test("failed", **members))).flaky is False


def test_durations_are_milliseconds() -> None:
    assert one(report(a_test())).seconds == 1.5
    for duration in (-1, None, "soon", 1e18):
        assert one(report(a_test(duration=duration))).seconds is None


def test_a_test_with_a_file_has_a_node_id() -> None:
    case = one(
        report(a_test(filePath="tests/auth.test.js", line=42, suite=["tests/auth.test.js", "Authentication", "Log in"]))
    )
    assert case.nodeid == "tests/auth.test.js::Authentication::Log in::user can log in"
    assert (case.name, case.path, case.line) == ("user can log in", "tests/auth.test.js", 42)


def test_a_test_without_a_file_has_its_suites_as_classname() -> None:
    case = one(report(a_test(suite=["Authentication", "Log in"])))
    assert (case.nodeid, case.classname, case.name) == ("", "Authentication.Log in", "user can log in")
    assert one(report(a_test(suite="Authentication"))).classname == "Authentication"


def test_a_missing_field_is_named() -> None:
    assert "there is no list `results.tests`" in refusal('{"reportFormat": "CTRF", "results": {"tool": {}}}')
    assert refusal(report(a_test("fine"))) == (
        'report: ctrf: user can log in has the status "fine"; expected passed, failed, skipped, pending or other'
    )
    assert "expected an object" in refusal('{"reportFormat": "CTRF", "results": []}')
    assert "the file ends too early" in refusal(report(a_test())[:-3])
    assert "characters" in refusal(report(a_test(name="x" * (MAX_RAW_NAME + 1))), kind=TooMuch)
    assert "characters" in refusal(report(a_test(filePath="x", suite=["y" * (MAX_RAW_NAME - 1)])), kind=TooMuch)


def test_wrong_types_are_refused_or_ignored() -> None:
    values: list[Any] = [None, 1, True, "x", [], {}, [[]], [{"status": []}]]
    keys = (
        *a_test(),
        "rawStatus",
        "suite",
        "filePath",
        "line",
        "flaky",
        "retries",
        "retryAttempts",
        "message",
        "trace",
    )
    for value in values:
        for key in keys:
            try:
                stated = cases_of(report(a_test("failed") | {key: value}))
            except Refused:
                continue
            assert all(isinstance(case, Case) for case in stated)
