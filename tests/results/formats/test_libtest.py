"""libtest's JSON lines: of Rust 1.95 and of cargo-nextest, complete, mixed with other lines, and truncated."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from nightjar_formats.limits import MAX_RAW_NAME
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers import libtest
from nightjar_formats.refused import TooMuch

from tests.results.formats.corpus import reports, written_beside, written_down
from tests.results.formats.samples import cases, cases_of, one, refusal

FORMAT = "libtest-json"


def event(event_name: str, name: str = "tests::adds", kind: str = "test", **members: Any) -> str:
    return json.dumps({"type": kind, "event": event_name, "name": name, **members}) + "\n"


def suite(count: int = 1) -> str:
    return json.dumps({"type": "suite", "event": "started", "test_count": count}) + "\n"


@pytest.mark.parametrize("report", reports("rust"))
def test_a_report_gives_the_cases_in_the_file_next_to_it(report: str) -> None:
    assert written_down(report) == written_beside(report)


@pytest.mark.parametrize(
    ("event_name", "status"),
    [
        ("ok", Status.PASSED),
        ("failed", Status.FAILED),
        ("ignored", Status.SKIPPED),
        ("allowed_failure", Status.XFAILED),
    ],
)
def test_each_event_has_its_status(event_name: str, status: Status) -> None:
    assert one(suite() + event("started") + event("timeout") + event(event_name)).status is status


def test_a_benchmark_passes() -> None:
    assert one(event("", kind="bench", median=5, deviation=1)).status is Status.PASSED


@pytest.mark.parametrize(
    ("output", "message", "place"),
    [
        ("\nthread 'a' panicked at src/a.rs:5:9:\nno device\nnote: x\n", "no device", ("src/a.rs", 5)),
        ("\nthread 'a' (77) panicked at src/a.rs:5:9:\nno\n", "no", ("src/a.rs", 5)),
        ("thread 'a' panicked at 'no device', src/a.rs:5:9\nnote: x", "no device", ("src/a.rs", 5)),
        ("thread 'a' panicked at 'left: 1,\n right: 2', src/a.rs:5:9\n", "left: 1, right: 2", ("src/a.rs", 5)),
        ("Error: no route\n", "Error: no route", ("", None)),
        ("", "", ("", None)),
    ],
)
def test_a_failure_has_the_message_and_the_location_of_its_panic(
    output: str, message: str, place: tuple[str, int | None]
) -> None:
    case = one(suite() + event("failed", stdout=output))
    assert (case.message, (case.path, case.line)) == (message, place)
    assert case.nodeid == "tests::adds"


@pytest.mark.parametrize(("value", "seconds"), [(0.25, 0.25), ("0.25s", 0.25), (None, None), (-1, None), ("x", None)])
def test_a_duration_is_a_number_or_as_in_older_versions_a_text(value: object, seconds: float | None) -> None:
    assert one(event("ok", exec_time=value)).seconds == seconds


def test_a_test_that_is_too_slow_timed_out() -> None:
    case = one(event("failed", reason="time limit exceeded"))
    assert (case.trouble, case.message) == (Trouble.TIMEOUT, "time limit exceeded")


def test_the_line_of_a_binary_separates_tests_with_the_same_name() -> None:
    apart = {case.nodeid for case in cases("rust/merged-1.95.jsonl")}
    assert {"src/lib.rs::tests::adds", "tests/integration.rs::adds"} < apart


def test_the_line_of_a_documentation_test_is_not_part_of_its_id() -> None:
    case = one(event("ok", "src/lib.rs - add::inner (line 17) - compile"))
    assert (case.nodeid, case.path, case.line) == (
        "src/lib.rs::add::inner - compile (doctest)",
        "src/lib.rs",
        17,
    )


def test_nextest_names_the_binary_and_marks_a_rerun() -> None:
    by_id = {case.nodeid: case for case in cases("rust/nextest.jsonl")}
    flaky, slow = by_id["compiler::compiler::tests::flaky"], by_id["compiler::compiler::tests::slow"]
    assert (flaky.status, flaky.flaky) == (Status.PASSED, True)
    assert (slow.status, slow.flaky, slow.trouble) == (Status.FAILED, False, Trouble.TIMEOUT)


def test_a_crashed_binary_leaves_its_running_test_errored_even_before_the_next_binary() -> None:
    report = suite(1) + event("started", "a") + suite(1) + event("started", "b") + event("ok", "b")
    assert [(case.nodeid, case.trouble) for case in cases_of(report)] == [("a", Trouble.CRASH), ("b", Trouble.NONE)]


def test_a_report_truncated_between_tests_says_how_many_are_missing() -> None:
    lost = cases_of(suite(3) + event("started") + event("ok"))[-1]
    assert (lost.nodeid, lost.status, lost.trouble) == ("libtest::internal", Status.ERRORED, Trouble.CRASH)
    assert "after 1 of 3 tests" in lost.message


def test_lines_of_other_processes_are_removed_even_before_an_event_on_the_same_line() -> None:
    report = "adb: device offline\n{no JSON}\n" + suite(2) + event("ok", "a")
    torn = 'printed { "type": "test", "event": "ok", "name": "b" }\n'
    assert [case.nodeid for case in cases_of(report + torn)] == ["a", "b"]
    assert len(cases_of(suite(0) + 'printed { "type": "test", "eve\n')) == 0


@pytest.mark.parametrize("value", [None, 5, [], {}, "", 1e400])
def test_values_of_any_type_are_accepted(value: object) -> None:
    started = json.dumps({"type": "suite", "event": "started", "test_count": value}) + "\n"
    report = started + event("ok", exec_time=value, stdout=value, message=value, reason=value)
    assert cases_of(report + json.dumps({"type": "test", "event": value, "name": value}), FORMAT)


def test_content_without_events_is_refused() -> None:
    assert "no line is an event of libtest" in refusal(b"running 1 test\ntest a ... ok\n{}\n", FORMAT)


def test_names_and_unfinished_tests_are_limited() -> None:
    def read(report: str) -> list[Case]:
        return list(libtest.read(BytesIO(report.encode()), most_unfinished=10_000))

    assert "characters" in refusal(event("started", "t" * (MAX_RAW_NAME + 1)), FORMAT, TooMuch)
    assert len(read("".join(event("started", str(n)) + event("ok", str(n)) for n in range(150)))) == 150
    assert len(read("".join(suite(1) + event("started", str(n)) for n in range(150)))) == 150
    with pytest.raises(TooMuch, match="tests in progress"):
        read("".join(event("started", str(n)) for n in range(150)))
