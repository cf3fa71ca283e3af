"""The reason of a failure: the line that says why, and never a count of tests or a message that fits every failure."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.model import Status
from nightjar_formats.readers.causes import cause, cause_line, is_summary, says_nothing

from tests.results.formats.samples import cases_of, one

SUMMARIES = [
    "tests 2", "pass  3", "fail 1", "suites 2", "cancelled 0", "skipped 1", "todo 2", "duration_ms 926.795413",
    "time=12.5ms", "Looks like you failed 1 test of 3.", "Looks like you planned 3 tests but ran 2.",
    "Looks like your test exited with 255 just after 1.", "failed 1 of 3 tests", "You failed 1 test of 3",
    "Tests were run but no plan was declared and done_testing() was not seen.", "ok",
    "dma: pass:4 fail:1 skip:1 total:6",
    "Totals: pass:1 fail:0 xfail:1 xpass:0 skip:1 error:1", "3 tests passed", "All 3 tests passed", "1/3 passed",
    "not ok - tests",
]  # fmt: skip
GENERIC = [
    "failed", "Failed.", "FAIL", "Test failed", "the test has failed", "assertion failed", "exit=1", "exit status 2",
    "Exited with code 255", "returned 1", "AssertionError", "java.lang.AssertionError:", "error",
    "1 subtest failed", "",
]  # fmt: skip
SPECIFIC = [
    "Expected n == 4, but n == 3", "assertion failed: n == 4", "test failed: no device", "exit=1: no device",
    "AssertionError: 3 != 4", "3 tests wait for the board", "timeout after 5 s", "tests need a board",
]  # fmt: skip


@pytest.mark.parametrize("line", SUMMARIES)
def test_a_summary_is_no_reason(line: str) -> None:
    assert is_summary(line)
    last = f"1..2\nok 1 - a\nnot ok 2 - b\n# {line}\n"
    case = cases_of(last)[-1]
    assert (case.name, case.message, case.text) == ("b", "", "")
    case = cases_of(f"1..1\nnot ok 1 - b\n# no device\n# {line}\n")[-1]
    assert (case.message, case.text) == ("no device", " no device")


@given(st.lists(st.sampled_from(SUMMARIES), max_size=6), st.sampled_from(SPECIFIC))
def test_summaries_change_no_reason(summaries: list[str], reason: str) -> None:
    end = "".join(f"# {line}\n" for line in summaries)
    assert one(f"not ok 1 - a\n# {reason}\n{end}1..1\n") == one(f"1..1\nnot ok 1 - a\n# {reason}\n")


@pytest.mark.parametrize("message", GENERIC)
def test_a_generic_message_gives_way_to_the_text(message: str) -> None:
    assert says_nothing(message)
    assert cause(message, "a log\ncould not open /dev/dma0\nmore\n", is_log=True) == "could not open /dev/dma0"
    assert cause(message, "") == message
    assert cause(message, "tests 2\n----\n") == message


@pytest.mark.parametrize("message", SPECIFIC)
def test_a_specific_message_stays(message: str) -> None:
    assert not says_nothing(message)
    assert not is_summary(message)
    assert cause(message, "another error") == message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'Traceback (most recent call last):\n  File "a.py", line 3\n    f()\nValueError: no device\nleft over\n',
            "ValueError: no device",
        ),
        ("AssertionError: 3 != 4\n    at Context.<anonymous> (a.js:5:20)\n", "AssertionError: 3 != 4"),
        ("----\nbegin\nboard 7\nerror: no device\n", "error: no device"),
        ("starting\nboard 7\n", "starting"),
        ("java.lang.AssertionError\n\tat A.b(A.java:5)\nCaused by: no device\n", "Caused by: no device"),
        ("", ""),
    ],
)
def test_the_line_of_a_text_that_says_why(text: str, line: str) -> None:
    assert cause_line(text, is_log=True) == line


REASONS = ["no device", "wrong voltage", "not found: dma0"]


@pytest.mark.parametrize("reason", REASONS)
def test_formats_take_the_reason_from_the_text_if_the_message_says_nothing(reason: str) -> None:
    trace = f"begin\nerror: {reason}\n    at f (a.js:5:2)\n"
    test = {"name": "a", "status": "failed", "message": "failed", "trace": trace}
    ctrf = {"reportFormat": "CTRF", "results": {"tests": [test]}}
    assert one(json.dumps(ctrf)).message == f"error: {reason}"
    log = f"TAP version 13\n1..1\n# selftests: a: b\n# begin\n# error: {reason}\nnot ok 1 selftests: a: b # exit=1\n"
    assert one(log).message == f"error: {reason}"
    block = "".join(f"    {line}\n" for line in trace.splitlines())
    assert one(f"1..1\nnot ok 1 - a\n{block}").message == f"error: {reason}"
    comments = "".join(f"# {line}\n" for line in f"{trace}one\ntwo\nthree".splitlines())
    assert one(f"1..1\nnot ok 1 - a\n{comments}").message == f"error: {reason}"
    rust = json.dumps({"type": "test", "name": "a", "event": "failed", "stdout": trace})
    assert one(rust).message == f"error: {reason}"


def test_a_file_of_prove_that_died_after_its_tests_is_errored() -> None:
    died = "t/a.t .. \nok 1 - a\nDubious, test returned 255 (wstat 65280, 0xff00)\nAll 1 subtests passed \n"
    (_, case, _) = cases_of(f"{died}t/b.t .. \n1..1\nok 1 - a\nok\n")
    assert (case.nodeid, case.status, case.message) == (
        "t/a.t::(exit status)", Status.ERRORED, "test returned 255 (wstat 65280, 0xff00)",
    )  # fmt: skip


def test_prove_reports_a_bail_out_once() -> None:
    console = "t/a.t .. \n1..2\nok 1 - a\nBailout called.  Further testing stopped:  no device\nBail out!  no device\n"
    assert [case.nodeid for case in cases_of(console)] == ["t/a.t::a", "t/a.t::(bail out)"]
