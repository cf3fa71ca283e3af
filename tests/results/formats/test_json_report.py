"""pytest-json-report: the phases decide, and ExecuTorch's additions are read too."""

import json
from typing import Any

import pytest
from nightjar_formats.limits import MAX_JSON_DEPTH, MAX_RAW_NAME, MAX_STRING_BYTES
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers.texts import REPORT_SUBTEST_FAILED
from nightjar_formats.refused import Refused, TooMuch

from tests.results.formats.samples import cases, cases_of, one, plain, refusal

NODEID = "tests/test_a.py::TestB::test_c[xnnpack]"


def a_test(outcome: str = "passed", **phases: str) -> dict[str, Any]:
    stated = phases or {"setup": "passed", "call": outcome, "teardown": "passed"}
    parts = {phase: {"duration": 0.5, "outcome": how} for phase, how in stated.items()}
    return {"nodeid": NODEID, "lineno": 27, "outcome": outcome, **parts}


def report(*tests: Any, **members: Any) -> str:
    return json.dumps(
        {"created": 1.5, "exitcode": 1, "root": "/home/hubot", "summary": {}, "tests": list(tests)} | members
    )


def row(result: str = "Pass", detail: str = "", /, **columns: Any) -> dict[str, Any]:
    return {
        "Test ID": "test_c[xnnpack]",
        "Subtest": 0,
        "Flow": "xnnpack",
        "Result": result,
        "Result Detail": detail,
    } | columns


def with_rows(outcome: str, *rows: Any) -> Case:
    return one(report(a_test(outcome) | {"metadata": {"subtests": list(rows)}}))


def test_each_kind_of_ending_is_read() -> None:
    assert {
        case.name: (case.status.value, case.trouble.value, case.flaky)
        for case in cases("pytest/kinds.pytest-json-report.json")
    } == {
        case.name: (case.status.value, case.trouble.value, case.flaky)
        for case in cases("pytest/kinds.reportlog.jsonl.gz")
    }


def test_a_case_has_its_location_and_its_texts() -> None:
    stated = {case.name: case for case in cases("pytest/kinds.pytest-json-report.json")}
    cuda = stated["test_targets[cuda]"]
    assert (cuda.nodeid, cuda.path) == ("tests/test_kinds.py::TestInside::test_targets[cuda]", "tests/test_kinds.py")
    assert cuda.line == 18
    assert cuda.message == "AssertionError: no device assert 'cuda' != 'cuda'"
    assert "tests/test_kinds.py:20: AssertionError" in cuda.text
    assert stated["test_skipped_by_mark"].message == "needs a Hexagon board"
    assert stated["test_xfails"].message == ""
    assert stated["tests/test_skipped_module.py"].message == "no GPU"
    assert stated["tests/test_broken_import.py"].message == "ModuleNotFoundError: No module named 'no_such_module'"
    assert one(report(a_test())).seconds == 1.5


def test_a_crashed_worker_is_an_error_of_its_running_test() -> None:
    stated = {
        case.name: (case.status, case.trouble, case.flaky) for case in cases("pytest/crash.pytest-json-report.json")
    }
    assert stated == {
        "test_before": (Status.PASSED, Trouble.NONE, False),
        "test_crashes": (Status.ERRORED, Trouble.CRASH, False),
        "test_crashes_once": (Status.PASSED, Trouble.NONE, True),
        "test_after": (Status.PASSED, Trouble.NONE, False),
    }


@pytest.mark.parametrize(
    ("outcome", "phases", "stated"),
    [
        ("rerun", {"setup": "passed", "call": "passed", "teardown": "passed"}, (Status.PASSED, "", True)),
        ("rerun", {"setup": "passed", "call": "rerun", "teardown": "passed"}, (Status.FAILED, "", False)),
        ("rerun", {"setup": "rerun", "teardown": "passed"}, (Status.ERRORED, "setup", False)),
        ("rerun", {"???": "rerun"}, (Status.ERRORED, "crash", False)),
        ("failed", {"setup": "passed", "call": "passed", "???": "failed"}, (Status.ERRORED, "crash", False)),
        ("failed", {"???": "rerun", "setup": "passed", "call": "failed"}, (Status.FAILED, "", False)),
        ("error", {"setup": "passed", "call": "failed", "teardown": "failed"}, (Status.FAILED, "", False)),
        ("failed", {"setup": "passed", "call": "passed", "teardown": "passed"}, (Status.FAILED, "", False)),
        ("subtests passed", {"setup": "passed", "call": "failed", "teardown": "passed"}, (Status.FAILED, "", False)),
        ("xfailed", {"setup": "skipped", "teardown": "passed"}, (Status.XFAILED, "", False)),
        ("xpassed", {"setup": "passed", "call": "passed", "teardown": "failed"}, (Status.ERRORED, "teardown", False)),
        ("passed", {"setup": "passed"}, (Status.ERRORED, "crash", False)),
    ],
)  # fmt: skip
def test_the_phases_win_over_the_outcome(
    outcome: str, phases: dict[str, str], stated: tuple[Status, str, bool]
) -> None:
    case = one(report(a_test(outcome, **phases)))
    assert (case.status, case.trouble, case.flaky) == stated


def test_without_phases_the_outcome_counts() -> None:
    for outcome, status in {"passed": Status.PASSED, "error": Status.ERRORED, "xpassed": Status.XPASSED}.items():
        assert one(report({"nodeid": NODEID, "outcome": outcome})).status is status
    assert 'neither phases nor a known outcome, but "subtests passed"' in refusal(
        report({"nodeid": NODEID, "outcome": "subtests passed"})
    )


def test_before_pytest_9_only_the_last_subtest_is_known() -> None:
    stated = {case.name: case.status for case in cases("pytest/parts.pytest-json-report.json")}
    assert stated["test_last_part_fails"] is Status.FAILED
    assert stated["test_parts_pass"] is Status.PASSED


def test_a_failed_subtest_of_unittest_fails_its_test() -> None:
    by_name = {case.name: case for case in cases("pytest/unit.pytest-json-report.json")}
    last = by_name["test_last_part_fails"]
    assert (last.status, last.message) == (Status.FAILED, REPORT_SUBTEST_FAILED)
    assert by_name["test_parts_pass"].status is Status.PASSED
    assert "subtests" not in by_name


def test_a_failed_subtest_hidden_by_the_report_is_not_a_green_run() -> None:
    *tests, hidden = cases("pytest/unit-hidden.pytest-json-report.json")
    assert [case.status for case in tests] == [Status.PASSED] * 2
    assert (hidden.nodeid, hidden.status) == ("pytest::subtests", Status.FAILED)
    assert "a subtest failed, in one of the tests with subtests (2)" in hidden.message


def test_an_exit_status_explained_by_a_failure_hides_nothing() -> None:
    passed = a_test("subtests passed", setup="passed", call="passed", teardown="passed")
    failed = a_test("failed", setup="passed", call="failed")
    broken = {"nodeid": "tests/test_b.py", "outcome": "failed", "longrepr": "E   ImportError"}
    for content in (
        report(passed, failed, exitcode=1), report(passed, exitcode=1, collectors=[broken]), report(passed, exitcode=0),
    ):  # fmt: skip
        assert "pytest::subtests" not in {case.nodeid for case in cases_of(content)}


def test_an_internal_error_of_pytest_is_a_case() -> None:
    itself = one(report(exitcode=3))
    assert (itself.nodeid, itself.trouble) == ("pytest::internal", Trouble.INTERNAL)


@pytest.mark.parametrize(
    ("detail", "status", "trouble"),
    [
        ("Quantization Failed", Status.FAILED, Trouble.QUANTIZE),
        ("Lowering Failed", Status.FAILED, Trouble.LOWER),
        ("PTE Load Failed", Status.FAILED, Trouble.LOAD),
        ("PTE Run Failed", Status.FAILED, Trouble.RUN),
        ("Output Mismatch", Status.FAILED, Trouble.OUTPUT),
        ("Unknown Failure", Status.FAILED, Trouble.NONE),
    ],
)
def test_the_stage_of_a_failure_is_stored(detail: str, status: Status, trouble: Trouble) -> None:
    case = with_rows("failed", row(), row("Fail", detail, Subtest=1, Error="max 0.731"))
    assert (case.status, case.trouble, case.message) == (status, trouble, f"{detail}: max 0.731")


def test_a_crash_has_the_row_that_the_suite_adds() -> None:
    crashed = {
        "nodeid": f"::{NODEID}",
        "lineno": None,
        "outcome": "failed",
        "???": {"outcome": "failed", "longrepr": "gw1"},
    }
    case = one(report(crashed | {"metadata": {"subtests": [row("Fail", "Process Crash", Error="gw1 crashed")]}}))
    assert (case.status, case.trouble) == (Status.ERRORED, Trouble.CRASH)
    assert case.message == "Process Crash: gw1 crashed"


def test_an_expected_failure_stays_one_whatever_its_row_says() -> None:
    test = a_test("xfailed", setup="passed", call="skipped", teardown="passed")
    case = one(report(test | {"metadata": {"subtests": [row("Fail", "Lowering Failed")]}}))
    assert (case.status, case.trouble) == (Status.XFAILED, Trouble.NONE)


def test_measures_are_stored_with_their_unit() -> None:
    case = with_rows(
        "passed",
        row(**{
            "Quantize Time (s)": None, "Lower Time (s)": "3.146", "Delegated Nodes": 1, "Undelegated Nodes": 0,
            "Delegated Ops": {"aten::add.Tensor": 1}, "PTE Size (Kb)": "1.600",
            "Output 0 Error Max": "0.500", "Output 0 Error MAE": "0.100", "Output 0 SNR": "inf", "Output 1 SNR": "nan",
        }),
    )  # fmt: skip
    assert case.measures == {
        "flow": "xnnpack",
        "lower_seconds": 3.146,
        "delegated_nodes": 1,
        "undelegated_nodes": 0,
        "pte_bytes": 1600,
        "output_0_error_max": 0.5,
        "output_0_error_mae": 0.1,
        "output_0_snr_db": "inf",
        "output_1_snr_db": "nan",
    }


def test_the_rows_of_one_test_are_combined() -> None:
    rows = [
        row(**{"Lower Time (s)": "1.5", "PTE Size (Kb)": "2.000", "Output 0 Error Max": "0.1", "Output 0 SNR": "40.0"}),
        row(**{"Lower Time (s)": 2, "PTE Size (Kb)": "1.600", "Output 0 Error Max": "0.3", "Output 0 SNR": "inf"}),
        row(**{"Lower Time (s)": "", "PTE Size (Kb)": None, "Output 0 Error Max": "soon", "Output 0 SNR": []}),
    ]
    assert with_rows("passed", *rows).measures == {
        "flow": "xnnpack",
        "subtests": 3,
        "lower_seconds": 3.5,
        "pte_bytes": 2000,
        "output_0_error_max": 0.3,
        "output_0_snr_db": 40,
    }


def test_of_members_with_the_same_name_the_last_counts() -> None:
    twice = report(a_test()).replace(
        '"outcome": "passed", "setup"', '"outcome": "failed", "outcome": "xpassed", "setup"'
    )
    assert one(twice).status is Status.XPASSED


def test_a_missing_field_is_named() -> None:
    assert "there is no list `tests`" in refusal('{"created": 1, "exitcode": 0, "root": "/"}')
    assert "expected an array" in refusal(report(tests={}))
    assert "the file ends too early" in refusal(report(a_test())[:-20])
    assert "this is not JSON" in refusal(report(a_test()) + "{")
    for more in (" 5", "\n-", "5", "tru"):
        assert "this is not JSON" in (reason := refusal(report(a_test()) + more)), more
        assert reason.endswith("a number or a word follows its end"), more


def test_invalid_numbers_do_no_harm() -> None:
    for number in ("NaN", "-Infinity", "9" * 20, "9" * 999, "1" + "0" * 18, '"1,5"', "-1", "[]"):
        case = one(report(a_test()).replace("0.5", number).replace("27", number))
        assert (case.seconds, case.line) == (None, None)
    assert "overflow" in refusal(report(a_test()).replace("0.5", "1e999"))
    assert "more than 1000 digits" in refusal(report(a_test(), zeros=0).replace(": 0}", ": " + "9" * 100_000))


def test_json_words_inside_texts_stay_as_they_are() -> None:
    stated = a_test("failed")
    stated["call"]["longrepr"] = '"NaN" \\ -Infinity \\" NaN' * 9000
    assert "null" not in one(report(stated)).text
    assert one(report(stated)).text.startswith('"NaN" \\ -Infinity \\" NaN')


def test_lengths_and_depths_are_limited() -> None:
    assert "characters" in refusal(report({"nodeid": "x" * (MAX_RAW_NAME + 1)}), kind=TooMuch)
    assert "a string is longer" in refusal(report(environment="x" * (MAX_STRING_BYTES + 200_000)), kind=TooMuch)
    assert "are nested deeper" in refusal(
        report(environment="DEEP").replace('"DEEP"', "[" * (MAX_JSON_DEPTH + 1)), kind=TooMuch
    )
    many = a_test() | {"metadata": {"subtests": [row()] * 20_000}}
    assert "one entry has more" in refusal(report(many), kind=TooMuch)


def test_wrong_types_are_refused_or_ignored() -> None:
    values: list[Any] = [None, 1, True, "x", [], {}, [[]], {"subtests": 1}, {"subtests": [1, {}, None]}, {"outcome": 1}]
    for value in values:
        for key in (*a_test(), "metadata"):
            try:
                stated = cases_of(report(a_test() | {key: value}))
            except Refused:
                continue
            assert all(isinstance(case, Case) for case in stated)


def test_the_real_report_gives_every_test_once() -> None:
    entries = json.loads(plain("tvm/formats/te_ir.pytest-json-report.json"))["tests"]
    stated = cases("tvm/formats/te_ir.pytest-json-report.json")
    assert [case.nodeid for case in stated] == [entry["nodeid"] for entry in entries]
    assert [case.line for case in stated] == [entry["lineno"] and entry["lineno"] + 1 for entry in entries]
