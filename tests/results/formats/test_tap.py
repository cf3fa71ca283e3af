"""TAP as various tools write it, with the differences between their reports."""

from __future__ import annotations

import pytest
from nightjar_formats.limits import MAX_NESTED, MAX_RAW_NAME, MAX_TEXT_HEAD, MAX_TEXT_TAIL
from nightjar_formats.model import Status, Trouble
from nightjar_formats.readers.tap.diagnostics import MAX_LINES, read_diagnostics
from nightjar_formats.refused import TooMuch

from tests.results.formats.corpus import as_lines, reports, written_beside, written_down
from tests.results.formats.samples import cases, cases_of, one, refusal

FORMAT = "tap"
REPORTS = reports("tap")


def statuses(report: str) -> list[tuple[str, str]]:
    return [(case.nodeid, case.status.value) for case in cases_of(report, FORMAT)]


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_gives_the_cases_in_the_file_next_to_it(report: str) -> None:
    assert written_down(report) == written_beside(report)


def test_there_are_reports_of_many_tools() -> None:
    assert len(REPORTS) >= 13


@pytest.mark.parametrize(
    ("line", "name", "status"),
    [
        ("ok 1 - adds", "adds", Status.PASSED),
        ("ok 1 adds", "adds", Status.PASSED),
        ("ok 1", "test 1", Status.PASSED),
        ("ok - adds", "adds", Status.PASSED),
        ("ok adds", "adds", Status.PASSED),
        ("ok", "test 1", Status.PASSED),
        ("not ok", "test 1", Status.FAILED),
        ("not ok 7 - adds", "adds", Status.FAILED),
        ("not ok 7", "test 7", Status.FAILED),
        ("ok 1 - - adds", "- adds", Status.PASSED),
        ("ok 1 -adds", "-adds", Status.PASSED),
        ("ok 1 - adds # SKIP no device", "adds", Status.SKIPPED),
        ("ok 1 - adds # skipped: no device", "adds", Status.SKIPPED),
        ("not ok 1 - adds # SKIP no device", "adds", Status.SKIPPED),
        ("ok 1 # skip no device", "test 1", Status.SKIPPED),
        ("not ok 1 - adds # TODO later", "adds", Status.XFAILED),
        ("ok 1 - adds # todo", "adds", Status.XPASSED),
        ("ok 1 - adds # in C#", "adds # in C#", Status.PASSED),
        ("ok 1 - adds in C#", "adds in C#", Status.PASSED),
        (r"ok 1 - adds \# SKIP is part of the name", "adds # SKIP is part of the name", Status.PASSED),
        (r"ok 1 - a \\ b \c", r"a \ b \c", Status.PASSED),
        ("ok 1 - adds # SKIPPY", "adds", Status.SKIPPED),
        ("ok 1 - adds # TODOS", "adds # TODOS", Status.PASSED),
        ("ok 1 - größe ✓", "größe ✓", Status.PASSED),
        ("ok 12345678901 - adds", "12345678901 - adds", Status.PASSED),
    ],
)
def test_a_result_is_read(line: str, name: str, status: Status) -> None:
    case = one(f"{line}\r\n", FORMAT)
    assert (case.name, case.nodeid, case.status) == (name, name, status)


@pytest.mark.parametrize("line", ["okay", "ok1", "not okay 1", "NOT OK 1", "nok 1", "not  ok 1", "# ok 1"])
def test_other_lines_are_ignored(line: str) -> None:
    assert statuses(f"1..1\n{line}\nok 1 - a\n") == [("a", "passed")]


@pytest.mark.parametrize(
    ("line", "name", "seconds"),
    [
        ("ok 1 - adds # time=12.5ms", "adds", 0.0125),
        ("ok 1 - adds # time=2s", "adds", 2.0),
        ("ok 1 adds in 34ms", "adds", 0.034),
        ("ok 1 adds in 3sec # skip later", "adds", 3.0),
        ("ok 1 - boots in time", "boots in time", None),
        ("ok 1 - adds # time=later", "adds # time=later", None),
        ("ok 1 - adds\n  ---\n  duration_ms: 5\n  ...", "adds", 0.005),
        ("ok 1 - adds\n  ---\n  duration_ms: -5\n  ...", "adds", None),
    ],
)
def test_a_duration_is_not_part_of_the_name(line: str, name: str, seconds: float | None) -> None:
    case = one(f"1..1\n{line}\n")
    assert (case.name, case.seconds) == (name, seconds)


def test_indentation_decides_whose_subtest_a_result_is() -> None:
    report = "1..2\n    ok 1 - a\n        ok 1 - c\n    ok 2 - b\nok 1 - x\n    ok 1 - a\nok 2 - y\n"
    assert statuses(report) == [
        ("x::a", "passed"),
        ("x::b::c", "passed"),
        ("x::b", "passed"),
        ("x", "passed"),
        ("y::a", "passed"),
        ("y", "passed"),
    ]


def test_the_name_of_a_test_may_come_before_its_subtests_at_its_own_indentation_or_at_theirs() -> None:
    outside = "# Subtest: x\n    # Subtest: y\n        ok 1 - a\n        1..1\n    ok 1 - y\n    1..1\nok 1 - x\n1..1\n"
    within = (
        "    # Subtest: x\n    1..1\n        # Subtest: y\n        1..1\n        ok 1 - a\n    ok 1 - y\nok 1 - x\n"
    )
    assert statuses(outside) == statuses(within) == [("x::y::a", "passed"), ("x::y", "passed"), ("x", "passed")]


@pytest.mark.parametrize(
    "end",
    ["", "        ok 1 - c\n", "        ok 1 - c\n        not ok 2 - d\n  ---\n    message: cut o"],
)
def test_a_truncated_report_says_which_tests_did_not_end(end: str) -> None:
    report = f"1..3\nok 1 - a\n# Subtest: x\n    1..3\n    ok 1 - b\n    # Subtest: y\n{end}"
    lines = as_lines(cases_of(report))
    assert "errored crash | x |  |  | The process ended while this test ran\n" in lines
    assert "errored crash | x::(plan) |  |  | 3 tests were planned and " in lines
    assert "errored crash | (plan) |  |  | 3 tests were planned and 2 ran: the process ended early\n" in lines
    assert ("errored crash | x::y |" in lines) == bool(end)


def test_a_plan_may_be_at_the_end_and_reports_may_follow_each_other() -> None:
    report = "ok 1 - a\nok 2 - b\n1..2\nok 1 - c\n1..1\n1..1\nok 1 - d\nTAP version 13\n1..2\nok 1 - e\n"
    read_cases = cases_of(report)
    assert [case.name for case in read_cases] == ["a", "b", "c", "d", "e", "(plan)"]
    assert read_cases[-1].trouble is Trouble.CRASH


def test_a_bail_out_is_one_case() -> None:
    assert statuses("1..9\nok 1 - a\nBail out! no device\n") == [("a", "passed"), ("(bail out)", "errored")]
    assert cases_of("1..9\nBail out! no device\n")[0].message == "no device"


def test_a_report_without_a_test_says_why() -> None:
    case = one("1..0 # SKIP no device\n")
    assert (case.status, case.message) == (Status.SKIPPED, "no device")


def test_prove_names_the_file_of_each_test() -> None:
    first = "t/a.t .. \nok 1 - adds\n1..1\nok\nt/sub/b.t ... \n1..1\nnot ok 1 - adds\nFailed 1/1 subtests \n"
    assert statuses(f"{first}t/c.t .. skipped: no device\n") == [
        ("t/a.t::adds", "passed"),
        ("t/sub/b.t::adds", "failed"),
        ("t/c.t::(all tests)", "skipped"),
    ]


def test_comments_and_a_block_after_a_failure_say_why() -> None:
    comments = "#   Failed test 'a'\n#   at t/a.t line 5.\n#          got: '2'\n#     expected: '3'\n"
    failed, good = cases_of(f"not ok 1 - a\n{comments}ok 2 - b\n# c\n")
    assert (failed.path, failed.line, failed.message) == ("t/a.t", 5, "got: '2' expected: '3'")
    assert "Failed test 'a'" in failed.text
    assert (good.message, good.text) == ("", "")


def test_the_text_of_a_failure_is_its_comments_its_block_and_its_lines_without_empty_ends() -> None:
    case = one("not ok 1 - a\n# got X\n#\n  ---\n  found: X\n\n  ...\n  expected X\n")
    assert case.text == " got X\nfound: X\nexpected X"


def test_an_unfinished_block_loses_no_result() -> None:
    assert statuses("not ok 1 - a\n  ---\n  message: b\nok 2 - c\n") == [("a", "failed"), ("c", "passed")]
    assert one("not ok 1 - a\n  ---\n  message: b\n    ok 2 - c\n").message == "b"


@pytest.mark.parametrize(
    ("block", "message", "place"),
    [
        ("message: a", "a", ("", None)),
        ("message: 'it''s'", "it's", ("", None)),
        ("message: '", "'", ("", None)),
        ("message: ''", "", ("", None)),
        ("message: 'a\"", "'a\"", ("", None)),
        ('error: "a \\"b\\""', 'a "b"', ("", None)),
        ("error: |-\n  a\n  b\nmessage: c", "c", ("", None)),
        ("error: |-\n  a\n\n  b", "a b", ("", None)),
        ("error: |-\n" + "  a\n" * (MAX_LINES + 1), " ".join("a" * MAX_LINES), ("", None)),
        ("expected: 3\nactual: 2", "expected 3, got 2", ("", None)),
        ("found: 2\nexpected: |\n  3", "expected 3, got 2", ("", None)),
        ("at:\n  file: a.js\n  line: 12\n  column: 3\nmessage: b", "b", ("a.js", 12)),
        ("location: '/a/b.js:5:1'", "", ("/a/b.js", 5)),
        ("at: Test.<anonymous> (/a/b.js:5:12)", "", ("/a/b.js", 5)),
        ("at: file:///a/b.mjs:5:12", "", ("/a/b.mjs", 5)),
        ("file: a.pl\nline: nonsense", "", ("a.pl", None)),
        ("line: 5", "", ("", None)),
        ("other:\n  message: no\n  file: no\nmessage: a", "a", ("", None)),
        ("- a\n- b", "", ("", None)),
        ("", "", ("", None)),
    ],
)
def test_a_block_gives_message_and_location(block: str, message: str, place: tuple[str, int | None]) -> None:
    diagnostics = read_diagnostics(block)
    assert (diagnostics.message, (diagnostics.path, diagnostics.line)) == (message, place)


def test_a_location_is_not_part_of_an_id() -> None:
    assert {case.nodeid for case in cases("tap/node20.tap")} > {"fails", "a suite # with a hash::is bad"}


def test_other_content_is_refused() -> None:
    assert "no line is a plan or a result" in refusal("a log\nof no test\n", FORMAT)


def test_names_nesting_and_texts_are_limited() -> None:
    assert "characters" in refusal(f"ok 1 - {'a' * (MAX_RAW_NAME + 1)}\n", FORMAT, TooMuch)
    assert "characters" in refusal(f"# Subtest: {'a' * 9_000}\n    ok 1 - {'b' * 9_000}\n", FORMAT, TooMuch)
    deep = "".join(" " * indent + "ok 1\n" for indent in range(MAX_NESTED + 2))
    assert "nested tests" in refusal(deep, FORMAT, TooMuch)
    long = one("not ok 1 - a\n" + "# 0123456789\n" * 100_000)
    assert len(long.text) <= MAX_TEXT_HEAD + MAX_TEXT_TAIL
    assert [case.name for case in cases_of(f"1..1\nok 1 - {'a' * 9_000}\n{'b' * 200_000} ok\nok 2\n")][1:] == ["test 2"]


def test_results_that_wait_for_a_name_keep_their_texts() -> None:
    results = "".join(f"    not ok {n} - a{n}\n    # {'x' * 2_000}\n" for n in range(20))
    read_cases = cases_of(f"{results}not ok 1 - b\n")
    assert [case.nodeid for case in read_cases] == [*(f"b::a{n}" for n in range(20)), "b"]
    assert all(case.text for case in read_cases[:20])


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ("1..1\n", "1 test was planned and 0 ran: the process ended early"),
        ("1..2\nok 1 - a\n", "2 tests were planned and 1 ran: the process ended early"),
    ],
)
def test_a_report_says_how_many_planned_tests_are_missing(report: str, message: str) -> None:
    assert f"| {message}\n" in as_lines(cases_of(report))
