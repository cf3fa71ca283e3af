"""KTAP: KUnit and kselftest, as files and as a console's log."""

from __future__ import annotations

import pytest
from nightjar_formats.limits import MAX_RAW_NAME
from nightjar_formats.model import Status, Trouble
from nightjar_formats.refused import TooMuch

from tests.results.formats.corpus import as_lines, reports, written_beside, written_down
from tests.results.formats.samples import cases, cases_of, one, plain, refusal

FORMAT = "ktap"
REPORTS = reports("ktap")


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_gives_the_cases_in_the_file_next_to_it(report: str) -> None:
    assert written_down(report) == written_beside(report)


def test_there_are_reports_of_kunit_and_kselftest() -> None:
    assert len(REPORTS) >= 4


@pytest.mark.parametrize(
    ("line", "status", "trouble", "message"),
    [
        ("ok 1 a", Status.PASSED, Trouble.NONE, ""),
        ("ok 1 - a", Status.PASSED, Trouble.NONE, ""),
        ("not ok 1 a", Status.FAILED, Trouble.NONE, ""),
        ("ok 1 a # SKIP no device", Status.SKIPPED, Trouble.NONE, "no device"),
        ("not ok 1 a # SKIP no device", Status.SKIPPED, Trouble.NONE, "no device"),
        ("ok 1 a # XFAIL later", Status.XFAILED, Trouble.NONE, "later"),
        ("not ok 1 a # XFAIL", Status.XFAILED, Trouble.NONE, ""),
        ("not ok 1 a # TODO later", Status.XFAILED, Trouble.NONE, "later"),
        ("not ok 1 a # TIMEOUT 45 seconds", Status.FAILED, Trouble.TIMEOUT, "45 seconds"),
        ("ok 1 a # TIMEOUT", Status.PASSED, Trouble.NONE, ""),
        ("not ok 1 a # ERROR no memory", Status.ERRORED, Trouble.NONE, "no memory"),
        ("not ok 1 a # exit=1", Status.FAILED, Trouble.NONE, "exit=1"),
        ("ok 1 a # UNKNOWN b", Status.PASSED, Trouble.NONE, "UNKNOWN b"),
        ("ok 1 # SKIP a", Status.SKIPPED, Trouble.NONE, ""),
    ],
)
def test_a_result_is_read(line: str, status: Status, trouble: Trouble, message: str) -> None:
    case = one(f"KTAP version 1\n{line}\n")
    assert (case.name, case.status, case.trouble, case.message) == ("a", status, trouble, message)


@pytest.mark.parametrize(
    "prefix", ["[    0.060000] ", "[12345.123456] ", "<6>[    0.060000] ", "[    0.060000][   T77] ", "[ 0.1] [  C1] "]
)
def test_the_console_prefix_of_a_line_is_removed(prefix: str) -> None:
    report = plain("ktap/ktap-1.log").decode()
    console = "".join(f"{prefix}{line}\n" for line in report.splitlines())
    expected = [(case.nodeid, case.status) for case in cases_of(report)]
    assert [(case.nodeid, case.status) for case in cases_of(console)] == expected


def test_subtests_are_behind_a_hash_once_a_test_announces_ktap() -> None:
    log = "# ok it is a line of a log\n# ok 7 is one too\n"
    report = f"TAP version 13\n1..2\n# selftests: a: b\n{log}ok 1 selftests: a: b\n# selftests: a: c\n"
    report += "# TAP version 13\n# 1..1\n# ok 1 d\nok 2 selftests: a: c\n"
    assert [case.nodeid for case in cases_of(report)] == [
        "selftests: a: b",
        "selftests: a: c::d",
        "selftests: a: c",
    ]


def test_subtests_of_subtests_are_behind_two_hashes() -> None:
    report = "TAP version 13\n# selftests: a: b\n# KTAP version 1\n# # KTAP version 1\n# # 1..1\n# # ok 1 d\n# ok 1 c\n"
    assert [case.nodeid for case in cases_of(f"{report}ok 1 selftests: a: b\n")] == [
        "selftests: a: b::c::d",
        "selftests: a: b::c",
        "selftests: a: b",
    ]


def test_a_failure_has_the_lines_since_the_previous_result() -> None:
    failed = {case.name: case for case in cases("ktap/kunit-console.log")}["example_failing_test"]
    assert (failed.path, failed.line) == ("lib/kunit/kunit-example-test.c", 29)
    assert failed.message == "Expected 1 + 1 == 3, but 1 + 1 == 2 (0x2)"
    assert "initializing" not in failed.text
    assert "Expected true, but is false" in failed.text


def test_a_failure_of_the_kselftest_harness_has_its_location() -> None:
    failed = {case.name: case for case in cases("ktap/kselftest.log")}["global.mode_strict_support"]
    assert (failed.path, failed.line, failed.message) == ("seccomp_bpf.c", 281, "Expected 0 (0) == ret (-1)")


def test_a_crashed_kernel_leaves_its_running_test_errored() -> None:
    lines = as_lines(
        cases_of("KTAP version 1\n1..2\n    KTAP version 1\n    # Subtest: a\n    1..2\n    ok 1 b\nBUG\n")
    )
    assert lines == (
        "passed | a::b\n"
        "errored crash | a::(plan) |  |  | 2 tests were planned and 1 ran: the process ended early\n"
        "errored crash | a |  |  | The process ended while this test ran\n"
        "errored crash | (plan) |  |  | 2 tests were planned and 1 ran: the process ended early\n"
    )


def test_a_test_that_bails_out_says_why() -> None:
    read_cases = cases_of(
        "TAP version 13\n# selftests: a: b\n# 1..2\n# Bail out! no device\nnot ok 1 selftests: a: b # exit=1\n"
    )
    assert [(case.nodeid, case.message) for case in read_cases] == [
        ("selftests: a: b::(bail out)", "no device"),
        ("selftests: a: b", "exit=1"),
    ]


def test_several_reports_of_one_boot_are_read() -> None:
    assert [case.nodeid for case in cases_of("KTAP version 1\n1..1\nok 1 a\n" * 2)] == ["a", "a"]


def test_other_content_is_refused_and_names_are_limited() -> None:
    assert "no line is a plan or a result" in refusal("[    0.060000] Linux\n", FORMAT)
    assert "characters" in refusal(f"KTAP version 1\nok 1 {'a' * (MAX_RAW_NAME + 1)}\n", FORMAT, TooMuch)
