"""`go test -json`: events of tests and packages, as Go 1.19 and 1.27 write them, and their differences."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from nightjar_formats.limits import MAX_RAW_NAME
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers import go_test, texts
from nightjar_formats.refused import TooMuch

from tests.results.formats.corpus import as_lines, reports, written_beside, written_down
from tests.results.formats.samples import cases, cases_of, one, refusal

FORMAT = "go-test-json"
PACKAGE = "example.com/compiler/calc"
REPORTS = reports("go")


def event(action: str, test: str = "", **members: Any) -> str:
    named = {"Test": test} if test else {}
    return json.dumps({"Action": action, "Package": PACKAGE, **named, **members}) + "\n"


def output(text: str, test: str = "TestAdd", **members: Any) -> str:
    return event("output", test, Output=text, **members)


def by_id(report: str) -> dict[str, Case]:
    return {case.nodeid: case for case in cases(report)}


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_gives_the_cases_in_the_file_next_to_it(report: str) -> None:
    assert written_down(report) == written_beside(report)


def test_there_are_reports_of_two_versions() -> None:
    assert {"go/kinds-1.19.jsonl", "go/kinds-1.27.jsonl"} < set(REPORTS)


def test_both_versions_of_go_give_the_same_verdicts() -> None:
    old, new = by_id("go/kinds-1.19.jsonl"), by_id("go/kinds-1.27.jsonl")
    panics = "example.com/octocat/compiler/crash::TestPanics"
    assert {test: (case.status, case.trouble) for test, case in old.items()} == {
        test: (case.status, case.trouble) for test, case in new.items()
    }
    assert old[f"{panics}/inner"].message.startswith("panic: assignment to entry in nil map")
    assert new[panics].message.startswith("panic: assignment to entry in nil map")


def test_a_failure_has_the_message_and_the_location_that_go_printed() -> None:
    test = event("run", "TestAdd") + output("=== RUN   TestAdd\n") + output("    calc_test.go:7: a log line\n")
    test += output("    calc_test.go:9: no sum\n") + output("--- FAIL: TestAdd (1.25s)\n")
    case = one(test + event("fail", "TestAdd", Elapsed=1.25) + event("fail"))
    assert (case.status, case.message, case.seconds) == (Status.FAILED, "no sum", 1.25)
    assert (case.path, case.line) == (f"{PACKAGE}/calc_test.go", 9)
    assert case.text == "    calc_test.go:7: a log line\n    calc_test.go:9: no sum\n"


def test_an_error_wins_over_a_later_log_line_if_go_says_which_is_which() -> None:
    test = output("    a_test.go:7: no sum\n", OutputType="error") + output("    a_test.go:9: a log line\n")
    case = one(test + event("fail", "TestAdd") + event("fail"))
    assert (case.message, case.line) == ("no sum", 7)


def test_a_test_that_fails_with_a_subtest_says_so() -> None:
    report = output("    a_test.go:1: bad\n", "TestA/b/c") + event("fail", "TestA/b/c") + event("fail", "TestA/b")
    assert [case.message for case in cases_of(report + event("fail", "TestA") + event("fail"))] == [
        "bad",
        "A subtest failed",
        "A subtest failed",
    ]


@pytest.mark.parametrize(
    ("ended", "status"), [("PASS", Status.PASSED), ("FAIL", Status.FAILED), ("SKIP", Status.SKIPPED)]
)
def test_a_test_without_an_end_event_ends_as_its_output_says(ended: str, status: Status) -> None:
    """Go before 1.20, if the output does not end with a line break."""
    report = event("run", "TestAdd") + output(f"no line break--- {ended}: TestAdd (0.50s)\n") + event("fail")
    case = cases_of(report)[0]
    assert (case.status, case.seconds) == (status, 0.5)


def test_the_end_line_of_another_test_in_the_output_is_output() -> None:
    report = event("run", "TestAdd") + output("--- PASS: TestOther (0.50s)\n") + event("fail")
    assert one(report).trouble is Trouble.CRASH


def test_unfinished_tests_of_a_passed_package_have_passed() -> None:
    assert one(event("run", "BenchmarkAdd") + event("pass")).status is Status.PASSED


def test_a_benchmark_has_its_own_end() -> None:
    assert one(event("run", "BenchmarkAdd") + event("bench", "BenchmarkAdd") + event("pass")).status is Status.PASSED


def test_a_package_that_fails_without_a_test_is_a_case() -> None:
    report = output("panic: no device\n", "") + output("\tmain_test.go:9\n", "") + event("fail")
    assert as_lines(cases_of(report)) == (
        f"errored crash | {PACKAGE} |  |  | panic: no device | panic: no device … \tmain_test.go:9\n"
    )
    assert "none of its tests did" in one(event("fail")).message


def test_a_package_that_cannot_be_built_precludes_its_tests() -> None:
    """Its ID is the prefix of its tests' IDs."""
    case = by_id("go/kinds-1.27.jsonl")["example.com/octocat/compiler/broken"]
    assert (case.trouble, case.path, case.line) == (Trouble.COLLECTION, "broken/broken_test.go", 6)
    assert case.message == "The package could not be built: undefined: undefined"


def test_a_build_failure_of_an_older_go_is_read_from_its_output() -> None:
    report = event("start") + output(f"FAIL\t{PACKAGE} [setup failed]\n", "") + event("fail")
    assert one(report).trouble is Trouble.COLLECTION


def test_a_truncated_report_says_which_tests_did_not_end() -> None:
    running = event("start") + event("run", "TestA") + event("pass", "TestA") + event("run", "TestB")
    assert as_lines(cases_of(running + '{"Action":"outp')) == (
        f"passed | {PACKAGE}::TestA\nerrored crash | {PACKAGE}::TestB |  |  | The process ended while this test ran\n"
    )
    (case,) = cases_of(event("start"))
    assert (case.nodeid, case.trouble, case.message) == (PACKAGE, Trouble.CRASH, texts.GO_NO_END)


def test_two_runs_of_a_test_are_two_cases() -> None:
    assert [case.nodeid for case in cases("go/count-1.19.jsonl")].count(
        "example.com/octocat/compiler/calc::TestAdd"
    ) == 2


def test_lines_of_other_processes_are_left_out() -> None:
    report = "adb: device offline\n{not JSON}\n[1]\n" + event("run", "TestA") + "\n{}\n" + event("pass", "TestA")
    assert [case.status for case in cases_of(report + event("pass"))] == [Status.PASSED]
    assert one("warning\n" + event("skip", "TestA", Time="2026") + event("pass")).status is Status.SKIPPED


@pytest.mark.parametrize("value", [None, 5, [], {}, "", "nonsense", float("nan"), -1])
def test_values_of_any_type_are_accepted(value: object) -> None:
    fields: dict[str, Any] = dict.fromkeys(("Output", "Elapsed", "OutputType", "FailedBuild", "ImportPath"), value)
    report = event("output", "TestA", **fields) + event("pass", "TestA", **fields) + event("build-output", **fields)
    assert one(report + event("pass", **fields)).status is Status.PASSED


def test_content_without_events_is_refused() -> None:
    assert "no line is an event of `go test -json`" in refusal(b"{}\n[]\nok\n", FORMAT)
    assert "no line is an event of `go test -json`" in refusal('{"Action": 1}', FORMAT)


def test_names_and_unfinished_tests_are_limited() -> None:
    assert "characters" in refusal(event("run", "T" * (MAX_RAW_NAME + 1)), FORMAT, TooMuch)


def test_the_number_of_unfinished_tests_is_limited() -> None:
    def read(report: str) -> list[Case]:
        return list(go_test.read(BytesIO(report.encode()), most_unfinished=10_000))

    ended = "".join(output("x" * 5_000, f"Test{n}") + event("pass", f"Test{n}") for n in range(9))
    assert len(read(ended + event("pass"))) == 9
    with pytest.raises(TooMuch, match="the tests in progress have more than 10,000 characters"):
        read("".join(event("run", f"Test{n}") for n in range(150)))
    with pytest.raises(TooMuch, match="the tests in progress"):
        read("".join(output("x" * 5_000, f"Test{n}") for n in range(9)))
