"""pytest-reportlog: attempts are folded, phases are summed, and a crash differs from an end."""

import json
from typing import Any

import pytest
from nightjar_formats.limits import MAX_JSON_DEPTH, MAX_OPEN_TESTS, MAX_RAW_NAME, MAX_STRING_BYTES
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers.json.lines import SHORT_BYTES
from nightjar_formats.readers.pytest.phases import collection_case
from nightjar_formats.refused import Refused, TooMuch

from tests.results.formats.samples import cases, cases_of, one, plain, refusal

NODEID = "tests/test_a.py::TestB::test_c[llvm]"
START: dict[str, Any] = {"pytest_version": "9.2.0", "$report_type": "SessionStart"}
FINISH: dict[str, Any] = {"exitstatus": 0, "$report_type": "SessionFinish"}


def phase(phase_name: str, outcome: str = "passed", **members: Any) -> dict[str, Any]:
    location = ["tests/test_a.py", 27, "TestB.test_c[llvm]"]
    stated = {
        "nodeid": NODEID,
        "location": location,
        "when": phase_name,
        "outcome": outcome,
        "longrepr": None,
        "duration": 0.5,
    }
    return stated | {"$report_type": "TestReport"} | members


def subtest(outcome: str, label: str, **members: Any) -> dict[str, Any]:
    return phase("call", outcome, **members) | {"$report_type": "SubTestReport", "_subtest.context": {"msg": label}}


def failure(message: str) -> dict[str, Any]:
    entry = {"data": {"lines": [f"E   {message}"], "reprfileloc": {"path": "a.py", "lineno": 29, "message": message}}}
    return {"reprcrash": {"message": message}, "reprtraceback": {"reprentries": [entry]}}


def log(*lines: dict[str, Any], end: bool = True) -> str:
    return "".join(json.dumps(line) + "\n" for line in (START, *lines, *([FINISH] if end else [])))


def one_of(*lines: dict[str, Any], end: bool = True) -> Case:
    return one(log(*lines, end=end))


def test_each_kind_of_ending_is_read() -> None:
    stated = {
        case.name: (case.status.value, case.trouble.value, case.flaky)
        for case in cases("pytest/kinds.reportlog.jsonl.gz")
    }
    assert stated == {
        "test_passes": ("passed", "", False),
        "test_targets[llvm]": ("passed", "", False),
        "test_targets[cuda]": ("failed", "", False),
        "test_targets[a::b[c]/d\\n]": ("passed", "", False),
        "test_skipped_by_mark": ("skipped", "", False),
        "test_skips_itself": ("skipped", "", False),
        "test_xfails": ("xfailed", "", False),
        "test_xpasses": ("xpassed", "", False),
        "test_xpasses_strictly": ("failed", "", False),
        "test_setup_errors": ("errored", "setup", False),
        "test_teardown_errors": ("errored", "teardown", False),
        "test_fails_and_teardown_errors": ("failed", "", False),
        "test_becomes_good": ("passed", "", True),
        "test_stays_bad": ("failed", "", False),
        "test_setup_becomes_good": ("passed", "", True),
        "test_subtests": ("failed", "", False),
        "test_subtests_pass": ("passed", "", False),
        "tests/test_broken_import.py": ("errored", "collection", False),
        "tests/test_skipped_module.py": ("skipped", "collection", False),
    }


def test_a_case_has_its_location_and_its_texts() -> None:
    stated = {case.name: case for case in cases("pytest/kinds.reportlog.jsonl.gz")}
    cuda = stated["test_targets[cuda]"]
    assert (cuda.nodeid, cuda.path) == ("tests/test_kinds.py::TestInside::test_targets[cuda]", "tests/test_kinds.py")
    assert cuda.line == 18  # the decorator's line
    assert cuda.message == "AssertionError: no device assert 'cuda' != 'cuda'"
    assert "tests/test_kinds.py:20: AssertionError" in cuda.text
    assert stated["test_stays_bad"].message == "AssertionError: always red assert False"
    assert stated["test_skipped_by_mark"].message == "needs a Hexagon board"
    assert stated["test_xfails"].message == "known: 1234"
    assert stated["test_subtests"].message == "[second] AssertionError: second is bad assert False"
    assert stated["tests/test_broken_import.py"].message == "ModuleNotFoundError: No module named 'no_such_module'"
    assert stated["tests/test_skipped_module.py"].message == "no GPU"


def test_the_duration_is_the_sum_of_the_phases() -> None:
    assert one_of(phase("setup"), phase("call"), phase("teardown", duration=0.25)).seconds == 1.25
    assert (
        one_of(phase("setup", duration=None), phase("call", duration=-1), phase("teardown", duration="x")).seconds
        is None
    )


def test_a_crashed_worker_is_an_error_of_its_running_test() -> None:
    stated = {case.name: case for case in cases("pytest/crash.reportlog.jsonl")}
    assert stated["test_crashes"].status is Status.ERRORED
    assert stated["test_crashes"].trouble is Trouble.CRASH
    assert stated["test_crashes"].message == "worker 'gw3' crashed while running 'tests/test_crashes.py::test_crashes'"
    assert (stated["test_crashes_once"].status, stated["test_crashes_once"].flaky) == (Status.PASSED, True)
    assert stated["test_before"].status is stated["test_after"].status is Status.PASSED


def test_a_test_whose_rerun_never_came_has_not_passed() -> None:
    last = [case for case in cases("tvm/formats/te_ir.reportlog.jsonl.gz") if case.name == "test_map_save_load_json"]
    assert [(case.status, case.trouble) for case in last] == [(Status.ERRORED, Trouble.CRASH)]
    assert (
        one_of(phase("setup"), phase("call", "rerun", longrepr=failure("bad")), phase("teardown")).status
        is Status.FAILED
    )


def test_the_test_in_which_a_process_crashed_is_errored() -> None:
    first, died = cases("pytest/died.reportlog.jsonl")
    assert (first.name, first.status) == ("test_before", Status.PASSED)
    assert (died.name, died.status, died.trouble) == ("test_crashes_once", Status.ERRORED, Trouble.CRASH)
    assert died.line == 11
    assert died.message == "The process ended while this test ran"


@pytest.mark.parametrize("cut", [1, 2, 40, 150, 250, 400, 600, 1000])
def test_a_truncated_log_is_read_up_to_its_end(cut: int) -> None:
    report = log(phase("setup"), phase("call"), phase("teardown"), phase("setup", nodeid="tests/test_a.py::test_d"))
    stated = {case.nodeid: (case.status, case.trouble) for case in cases_of(report[: len(report) - cut])}
    assert set(stated.values()) & {(Status.ERRORED, Trouble.CRASH)}
    if cut < 300:
        assert stated[NODEID] == (Status.PASSED, Trouble.NONE)


def test_a_process_that_crashed_between_tests_is_a_case_too() -> None:
    passed, itself = cases_of(log(phase("setup"), phase("call"), phase("teardown"), end=False))
    assert passed.status is Status.PASSED
    assert (itself.nodeid, itself.status, itself.trouble) == ("pytest::internal", Status.ERRORED, Trouble.CRASH)
    assert "the process died" in itself.message


def test_a_second_session_in_one_log_must_end_as_well() -> None:
    assert [case.nodeid for case in cases_of(log() + log(end=False))] == ["pytest::internal"]
    assert cases_of(log() + log()) == []


def test_an_internal_error_of_pytest_is_a_case() -> None:
    itself = one(log(FINISH | {"exitstatus": 3}, end=False))
    assert (itself.nodeid, itself.status, itself.trouble) == ("pytest::internal", Status.ERRORED, Trouble.INTERNAL)


def test_tests_of_several_workers_may_mix() -> None:
    second = {"nodeid": "tests/test_a.py::test_d"}
    stated = cases_of(
        log(
            phase("setup"),
            phase("setup", **second),
            phase("call"),
            phase("call", "failed", **second),
            phase("teardown"),
        )
        + log(phase("teardown", **second))
    )
    assert [(case.name, case.status) for case in stated] == [("test_c[llvm]", Status.PASSED), ("test_d", Status.FAILED)]


def test_a_failed_subtest_fails_a_test_reported_as_passed() -> None:
    stated = {case.name: (case.status.value, case.message) for case in cases("pytest/parts.reportlog.jsonl")}
    assert stated == {
        "test_first_part_fails": ("failed", "[first] AssertionError: first is bad assert False"),
        "test_last_part_fails": ("failed", "[second] AssertionError: second is bad assert False"),
        "test_parts_pass": ("passed", ""),
    }


def test_the_subtests_of_an_attempt_do_not_count_for_the_next() -> None:
    bad = subtest("failed", "x", longrepr=failure("bad"))
    case = one_of(
        bad, phase("setup"), phase("call", "rerun"), phase("teardown"), phase("setup"), phase("call"), phase("teardown")
    )
    assert (case.status, case.flaky) == (Status.PASSED, True)


def test_a_timeout_is_distinguished_from_a_failure() -> None:
    message = "Failed: Timeout (>1200.0s) from pytest-timeout."
    case = one_of(phase("setup"), phase("call", "failed", longrepr=failure(message)), phase("teardown"))
    assert (case.status, case.trouble) == (Status.FAILED, Trouble.TIMEOUT)


def test_a_test_marked_not_to_run_is_an_expected_failure() -> None:
    case = one_of(phase("setup", "skipped", wasxfail="reason: [NOTRUN] hangs"), phase("teardown"))
    assert (case.status, case.message) == (Status.XFAILED, "reason: [NOTRUN] hangs")


def test_long_texts_keep_head_and_tail() -> None:
    text = "begin " + "x" * 5_000_000 + " end"
    case = one_of(phase("setup"), phase("call", "failed", longrepr=text), phase("teardown"))
    assert case.text.startswith("begin")
    assert case.text.endswith("end")
    assert len(case.text) < 20_000


def test_what_python_writes_beyond_json_is_read() -> None:
    lines = log(
        phase("setup"),
        phase("call", user_properties=[["snr", float("nan")], ["NaN", float("-inf")]]),
        phase("teardown"),
    )
    assert "NaN" in lines
    assert one(lines).status is Status.PASSED
    assert one("\ufeff" + lines).status is Status.PASSED
    surrogate = one_of(phase("setup"), phase("call", "failed", longrepr="\ud800 \0 \x1b[31mred"), phase("teardown"))
    assert surrogate.message.endswith("red")
    surrogate.text.encode()


def test_a_line_that_is_not_json_is_named() -> None:
    good, bad = log(phase("setup")), '{"$report_type": "TestReport", oops}\n'
    assert "line 1 is not JSON" in refusal(bad + bad, "pytest-reportlog")
    assert refusal(good + "[]\n").startswith("report: pytest-reportlog: line 4 must be one JSON object")
    assert "line 4 has no $report_type" in refusal(good + '{"x": 1}\n')


@pytest.mark.parametrize("bad", [b"1e99999999999999999999", b"99999999999999999"])
def test_an_unknown_kind_of_line_is_refused_even_if_it_is_a_number(bad: bytes) -> None:
    assert "pytest-reportlog" in refusal(log().encode() + b'{"$report_type": ' + bad + b"}\n" + log().encode())


def test_lengths_depths_and_counts_are_limited() -> None:
    assert "characters" in refusal(log(phase("setup", nodeid="x" * (MAX_RAW_NAME + 1))), kind=TooMuch)
    assert "a string is longer" in refusal(
        log(phase("setup", longrepr="x" * (MAX_STRING_BYTES + 200_000))), kind=TooMuch
    )
    deep = "[" * (MAX_JSON_DEPTH + 1) + "1, " * SHORT_BYTES
    assert "line 3: objects and arrays are nested deeper" in refusal(log() + deep, kind=TooMuch)
    open_tests = [phase("setup", nodeid=f"tests/test_a.py::test_{index}") for index in range(MAX_OPEN_TESTS + 1)]
    assert "are in progress" in refusal(log(*open_tests), kind=TooMuch)
    parts = [["x" * 10_000] * 500] * 2
    entries = [{"data": {"lines": lines}} for lines in parts]
    assert "one entry has more" in refusal(
        log(phase("call", longrepr={"reprtraceback": {"reprentries": entries}})), kind=TooMuch
    )


def test_wrong_types_are_refused_or_ignored() -> None:
    values: list[Any] = [None, 1, True, "x", [], {}, [[]], {"x": []}]
    for value in values:
        for key in phase("call"):
            try:
                stated = cases_of(log(phase("setup"), phase("call") | {key: value}, phase("teardown")))
            except Refused:
                continue
            assert all(isinstance(case, Case) for case in stated)


def test_the_real_log_gives_every_test_once() -> None:
    stated = cases("tvm/formats/te_ir.reportlog.jsonl.gz")
    seen = {
        json.loads(line)["nodeid"]
        for line in plain("tvm/formats/te_ir.reportlog.jsonl.gz").splitlines()
        if b"nodeid" in line
    }
    assert len(stated) == len(seen) == 70
    assert {case.nodeid for case in stated} == seen


@pytest.mark.parametrize("padding", [0, SHORT_BYTES - 10, SHORT_BYTES, 5 * SHORT_BYTES])
def test_a_long_line_gives_the_same_as_a_short_one(padding: int) -> None:
    filled = {"sections": [["Captured stdout call", "x" * padding]], "user_properties": [["snr", float("nan")]]}
    report = log(phase("setup"), phase("call", "failed", longrepr=failure("bad"), **filled), phase("teardown"))
    case = one(report)
    assert (case.status, case.message, case.line) == (Status.FAILED, "bad", 28)
    lines = report.splitlines(keepends=True)
    torn = lines[2][: len(lines[2]) - 30]
    assert [case.trouble for case in cases_of("".join(lines[:2]) + torn)] == [Trouble.CRASH]
    for broken in (torn + "\n", lines[2][:-1] + "{}\n"):
        content = "".join(lines[:2]) + broken + "".join(lines[3:])
        if len(broken) < SHORT_BYTES:
            assert one(content).trouble is Trouble.CRASH
        else:
            assert "line 3" in refusal(content)


def test_a_file_that_could_not_be_collected_is_one_case_of_the_file() -> None:
    assert collection_case("tests/test_a.py", "passed", "") is None
    assert collection_case("tests/test_a.py::TestB", "failed", "E   NameError: x\n") == Case(
        "tests/test_a.py",
        Status.ERRORED,
        path="tests/test_a.py",
        nodeid="tests/test_a.py",
        trouble=Trouble.COLLECTION,
        message="NameError: x",
        text="E   NameError: x\n",
    )
    assert collection_case("tests/test_a.py::TestB", "skipped", "Skipped: no device") == Case(
        "tests/test_a.py",
        Status.SKIPPED,
        path="tests/test_a.py",
        nodeid="tests/test_a.py",
        trouble=Trouble.COLLECTION,
        message="no device",
    )
