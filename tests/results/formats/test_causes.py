"""What a failure says about its cause: its message, or a line of its text."""

from __future__ import annotations

from io import BytesIO
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.columns import status_of
from nightjar_formats.columns.collect import Columns, collect, merge, read_names, split
from nightjar_formats.limits import MAX_MESSAGE
from nightjar_formats.model import Case, SeenTest, Status
from nightjar_formats.readers import junit
from nightjar_formats.readers.causes import (
    cause,
    cause_line,
    distinguishing_line,
    failure_cause,
    names_cause,
    says_nothing,
)
from nightjar_formats.runs.identity import Resolver
from nightjar_formats.runs.infra import infra

from tests.results.formats.samples import DATA

WRONG = [
    "timeout",
    "shape",
    "dtype",
    "nan",
    "stride",
    "alignment",
    "overflow",
    "sign",
    "order",
    "bounds",
    "leak",
    "sync",
]
GENERIC = [
    "failure", "Failed", "FAILED", "Test failed", "Test case failed.", "Assertion failed", "1 assertion(s) failed.",
    "AssertionError", "java.lang.AssertionError", "org.opentest4j.AssertionFailedError", "assert False", "null", "",
    "AssertionError: False is not true", "exited with error code 1", "Error: unexpected exception",
    "See log for details", "contains 2 failed subtests", "Command failed", "Test execution failed: exit status 1",
    "unknown error", "!!",
]  # fmt: skip
NAMING = [
    "DMA stuck",
    "no device",
    "1 == 2",
    "Timeout",
    "SEGFAULT",
    "/ by zero",
    "x is null",
    "expected: <1> but was: <2>",
]
TEXTS = {
    "Boost": "ASSERTION FAILURE:\n- file   : dma.cpp\n- line   : 7\n- message: check WHY has failed\n",
    "Go": "=== RUN   TestDma\n    dma_test.go:12: wrong WHY\n--- FAIL: TestDma (0.00s)\n",
    "testify": "    dma_test.go:12: \n\tError Trace:\t/src/dma_test.go:12\n\tError:      \tNot equal: \n\t    WHY\n",
    "unittest": 'Traceback (most recent call last):\n  File "/srv/a.py", line 3, in test\n    f()\nOSError: WHY\n',
    "a bare assert": (
        'Traceback (most recent call last):\n  File "a.py", line 3, in t\n    assert WHY\nAssertionError\n'
    ),
    "pytest": "def test_a():\n>       f()\nE       OSError: WHY\n\nt/test_a.py:3: OSError",
    "pytest's bare assert": (
        "def test_a():\n>       assert WHY\nE       assert False\n\nt/test_a.py:3: AssertionError"
    ),
    "Java": "java.lang.IllegalStateException: WHY\n\tat com.ex.DmaTest.copies(DmaTest.java:12)\n",
    "Catch2": "FAILED:\n  CHECK( WHY )\nat c.cpp:5\n",
    "GoogleTest": "/src/a_test.cc:22\nExpected equality of these values:\n  WHY\n    Which is: 3\n",
    "bats": "(in test file t.bats, line 5)\n  `[ WHY ]' failed\n",
    "Rust": "running 1 test\ntest tests::a ... FAILED\n\nthread 'a' panicked: WHY\n",
    "Criterion": "dma.c:12: Assertion failed: WHY\n",
}


def text_of(tool: str, reason: str) -> str:
    return TEXTS[tool].replace("WHY", reason)


def report(message: str, texts: list[str]) -> bytes:
    root = ElementTree.Element("testsuite", name="kernels")
    for number, text in enumerate(texts):
        case = ElementTree.SubElement(root, "testcase", classname="dma", name=f"t{number}", time="0.1")
        failure = ElementTree.SubElement(case, "failure")
        if message:
            failure.set("message", message)
        failure.text = text
    ElementTree.SubElement(root, "testcase", classname="dma", name="fine", time="0.1")
    return ElementTree.tostring(root)


def merged(*reports: bytes) -> Columns:
    return merge([collect(junit.read_runs(BytesIO(raw)), Resolver(None).resolve) for raw in reports])


def seen(columns: Columns) -> dict[str, SeenTest]:
    whys = list(columns.whys)
    tests = {}
    for name, (key, packed) in zip(read_names(columns.names), columns.tests.items(), strict=True):
        status = status_of(split(packed)[0])
        assert status is not None
        tests[name] = SeenTest(status, message=whys[columns.reasons[key]].message if key in columns.reasons else "")
    return tests


def messages(tests: dict[str, SeenTest]) -> list[str]:
    return [test.message for test in tests.values() if test.status is Status.FAILED]


@pytest.mark.parametrize("message", GENERIC)
def test_a_generic_message_says_nothing(message: str) -> None:
    assert says_nothing(message)
    assert cause(message, "wrong timeout") == "wrong timeout"
    assert cause(message, "") == message


@pytest.mark.parametrize("message", NAMING)
def test_a_message_that_names_a_cause_stays(message: str) -> None:
    assert not says_nothing(message)
    assert cause(message, "some text") == message


@pytest.mark.parametrize("name", ["boost-one-message.xml", "gotestsum-one-message.xml"])
def test_tests_with_one_generic_message_fail_for_the_reasons_in_their_texts(name: str) -> None:
    tests = seen(merged((DATA / "junit" / name).read_bytes()))
    assert infra(tests, None, exit_status=1) == ""
    assert all(reason in message for reason, message in zip(WRONG, messages(tests), strict=True))


@pytest.mark.parametrize("tool", TEXTS)
@pytest.mark.parametrize("message", ["failure", "Test failed", "", "a message of an unknown tool"])
def test_the_texts_of_each_tool_distinguish_failures_with_one_message(tool: str, message: str) -> None:
    tests = seen(merged(report(message, [text_of(tool, f"{reason}_ok") for reason in WRONG])))
    assert infra(tests, None, exit_status=1) == ""
    assert all(f"{reason}_ok" in message_ for reason, message_ in zip(WRONG, messages(tests), strict=True))


@pytest.mark.parametrize("tool", TEXTS)
@pytest.mark.parametrize("message", ["failure", "Test failed", "", "a message of an unknown tool"])
def test_one_cause_in_all_texts_is_a_problem_of_the_lab(tool: str, message: str) -> None:
    tests = seen(merged(report(message, [text_of(tool, "cannot_open_the_board") for _ in WRONG])))
    assert "12 of the 13 tests that ran failed for the same reason" in infra(tests, None, exit_status=1)


def test_one_message_in_reports_of_one_test_each_has_one_reason_for_each() -> None:
    tests = seen(
        merged(*(report("of an unknown tool", [f"wrong {reason}"]).replace(b"t0", reason.encode()) for reason in WRONG))
    )
    assert infra(tests, None, exit_status=1) == ""
    assert messages(tests) == [f"of an unknown tool: wrong {reason}" for reason in WRONG]


def test_a_message_that_the_text_repeats_stays_as_it_is() -> None:
    tests = seen(merged(report("no device", [f"starts {reason}\nOSError: no device" for reason in WRONG])))
    assert set(messages(tests)) == {"no device"}
    assert "same reason" in infra(tests, None, exit_status=1)


@pytest.mark.parametrize(
    "message", ["Failed", "Assert.True() Failure Expected: True Actual: False", "expected: <1> but was: <2>"]
)
def test_a_message_without_a_cause_and_without_a_text_is_no_common_cause(message: str) -> None:
    assert not names_cause(message)
    assert infra(seen(merged(report(message, ["" for _ in WRONG]))), None, exit_status=1) == ""


def test_the_output_of_a_test_without_a_text_says_why_it_failed() -> None:
    log = "[==========] Running 1 test from 1 test suite.\nstarts\na.c:3: error: DMA stuck\nends\n"
    case = f'<testcase name="a" classname="a" status="fail"><failure message="Failed"/><system-out>{log}</system-out>'
    document = f"<testsuite>{case}</testcase></testsuite>"
    [read] = junit.read(BytesIO(document.encode()))
    assert read.message == "a.c:3: error: DMA stuck"


def test_the_first_of_several_failures_that_says_anything_is_the_message() -> None:
    failures = '<failure message="Failed"/><failure message="DMA stuck"/>'
    document = f'<testsuite><testcase classname="c" name="a">{failures}</testcase></testsuite>'
    [read] = junit.read(BytesIO(document.encode()))
    assert read.message == "DMA stuck (and 1 more)"


def test_other_formats_get_the_line_of_the_text_too() -> None:
    case = Case("a", Status.FAILED, nodeid="t.py::a", message="Failed", text="wrong timeout\n")
    columns = collect([case], Resolver(None).resolve)
    assert [failure.message for failure in columns.whys] == ["wrong timeout"]


@pytest.mark.parametrize("place", ["gpio_test.go:12:", "/srv/job-4711/a.py:3:", "C:\\lab\\a.cpp(5):", "src/a.cc:3:14:"])
def test_the_place_of_a_failure_is_no_part_of_its_cause(place: str) -> None:
    assert failure_cause(f"{place} no device") == failure_cause("dma_test.go:1: no device")
    assert failure_cause(f"{place} no device") != failure_cause(f"{place} no driver")


@pytest.mark.parametrize(
    ("message", "text", "line"),
    [
        ("", "no device", ""),
        ("Failed", "", ""),
        ("Failed", "Failed\nno device", ""),
        ("Failed: no device", "lost the device\n", "lost the device"),
        ("No Device", "there is no device\n", ""),
        ("there is no device", "NO DEVICE\n", ""),
        ("Failed", "\n \n", ""),
        ("Failed", "no DEVICE  of the lab\n", "no DEVICE  of the lab"),
        ("x" * MAX_MESSAGE, f"why\n{'X' * (MAX_MESSAGE // 2)}", ""),
        ("x" * MAX_MESSAGE, f"why\n{'X' * (MAX_MESSAGE // 2 - 1)}", "why"),
    ],
)
def test_the_line_that_says_something_else_than_the_message(message: str, text: str, line: str) -> None:
    assert distinguishing_line(message, text) == line


WORDS = st.text(st.sampled_from("bcdghjklq"), min_size=3, max_size=8)


@settings(deadline=None)
@given(st.sampled_from(GENERIC), st.sampled_from([*TEXTS]), WORDS, WORDS)
def test_a_generic_message_never_joins_two_causes(
    message: str, tool: str, first_reason: str, second_reason: str
) -> None:
    first, second = (cause(message, text_of(tool, reason)) for reason in (first_reason, second_reason))
    assert (failure_cause(first) == failure_cause(second)) == (first_reason == second_reason)


@settings(deadline=None, max_examples=300)
@given(st.text(), st.text(max_size=2000))
def test_any_text_has_at_most_one_line_as_its_cause(message: str, text: str) -> None:
    line = cause_line(text)
    assert len(line) <= MAX_MESSAGE
    assert not line or len(line.splitlines()) == 1
    assert cause(message, text) in (message, line)
