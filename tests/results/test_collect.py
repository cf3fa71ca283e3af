"""Cases in files become one verdict per test."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import pytest
from nightjar_formats.columns import duration, is_flaky, status_of
from nightjar_formats.columns.collect import IN_ID, Columns, Reason, collect, merge, read_names, split
from nightjar_formats.columns.text_packs import unpacked
from nightjar_formats.limits import MAX_MESSAGE, MAX_TESTS, MAX_TEXT_HEAD, MAX_TEXT_TAIL
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers import junit
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.runs.identity import Resolver

from tests.results.uploads import resolve

PASSED, FAILED, ERRORED = Status.PASSED, Status.FAILED, Status.ERRORED
SKIPPED, XFAILED, XPASSED = Status.SKIPPED, Status.XFAILED, Status.XPASSED
ID = "tests/test_add.py::test_add[llvm]"
SEVERITY = [FAILED, ERRORED, XPASSED, PASSED, XFAILED, SKIPPED]


def case(status: Status, *, message: str = "", seconds: float | None = 0.5, flaky: bool = False) -> Case:
    return Case("test_add[llvm]", status, nodeid=ID, message=message, seconds=seconds, flaky=flaky, attempt=True)


def verdict(columns: Columns) -> tuple[Status | None, bool]:
    byte, _ = split(columns.tests[hash(ID)])
    return status_of(byte), is_flaky(byte)


def why(columns: Columns, test_id: str = ID) -> Reason:
    return list(columns.whys)[columns.reasons[hash(test_id)]]


@pytest.mark.parametrize(
    ("attempts", "status", "flaky"),
    [
        ([PASSED], PASSED, False),
        ([PASSED, PASSED], PASSED, True),
        ([PASSED, PASSED, PASSED], PASSED, True),
        ([PASSED, PASSED, FAILED], FAILED, False),
        ([FAILED, PASSED], FAILED, False),
        ([FAILED, ERRORED], FAILED, False),
        ([ERRORED, FAILED], ERRORED, False),
        ([PASSED, XPASSED], XPASSED, True),
        ([SKIPPED, SKIPPED], SKIPPED, False),
        ([SKIPPED, PASSED], PASSED, False),
        ([PASSED, SKIPPED], PASSED, False),
        ([SKIPPED, FAILED], FAILED, False),
    ],
)
def test_several_cases_of_one_test_in_a_file_are_attempts(attempts: list[Status], status: Status, flaky: bool) -> None:
    assert verdict(collect(map(case, attempts), resolve)) == (status, flaky)


@pytest.mark.parametrize("first_status", SEVERITY)
@pytest.mark.parametrize("second_status", SEVERITY)
def test_of_two_tests_with_the_same_name_in_a_file_the_worse_counts_and_neither_is_flaky(
    first_status: Status, second_status: Status
) -> None:
    cases = [case(status, message=str(status))._replace(attempt=False) for status in (first_status, second_status)]
    worse = min(first_status, second_status, key=SEVERITY.index)
    columns = collect(cases, resolve)
    assert verdict(columns) == (worse, False)
    assert why(columns).message == str(worse)


@pytest.mark.parametrize(
    ("suite", "flaky"),
    [
        ('name="pytest"', True),
        ('xsi:noNamespaceSchemaLocation="https://maven.apache.org/surefire/surefire-test-report.xsd"', False),
        ('name="jest"', False),
    ],
)
def test_a_repeated_name_in_junit_is_another_attempt_only_for_pytest(suite: str, flaky: bool) -> None:
    twice = '<testcase classname="AddTest" name="adds" time="0.1"/>' * 2
    schema = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    columns = collect(
        junit.read(BytesIO(f"<testsuite {schema} {suite}>{twice}</testsuite>".encode())), Resolver(None).resolve
    )
    assert [is_flaky(split(packed)[0]) for packed in columns.tests.values()] == [flaky]


def test_the_reason_comes_from_the_first_failed_attempt() -> None:
    attempts = [case(PASSED), case(FAILED, message="the first"), case(ERRORED, message="the second"), case(PASSED)]
    assert why(collect(attempts, resolve)).message == "the first"


def test_the_longest_attempt_is_the_duration() -> None:
    columns = collect([case(FAILED, seconds=0.004), case(FAILED, seconds=0.011), case(FAILED, seconds=None)], resolve)
    assert duration(split(columns.tests[hash(ID)])[1]) == pytest.approx(0.011)


def test_a_test_that_the_file_itself_calls_flaky_is_flaky() -> None:
    assert verdict(collect([case(PASSED, flaky=True)], resolve)) == (PASSED, True)


@pytest.mark.parametrize("first_status", SEVERITY)
@pytest.mark.parametrize("second_status", SEVERITY)
def test_of_two_files_of_a_run_the_worse_status_counts_and_nothing_is_flaky(
    first_status: Status, second_status: Status
) -> None:
    files = [
        collect([case(first_status, message="one")], resolve),
        collect([case(second_status, message="other")], resolve),
    ]
    worse = min(first_status, second_status, key=SEVERITY.index)
    columns = merge(files)
    assert verdict(columns) == (worse, False)
    assert why(columns).message == ("one" if worse is first_status else "other")


def test_files_of_a_run_keep_the_flakiness_and_texts_of_their_tests() -> None:
    first = collect([Case("a", FAILED, nodeid="a.py::a", text="one")], resolve)
    second = collect([Case("b", FAILED, nodeid="b.py::b", text="two"), case(PASSED, flaky=True)], resolve)
    columns = merge([first, second, collect([case(PASSED)], resolve)])
    assert len(columns) == 3
    assert list(read_names(columns.names)) == ["a.py::a", "b.py::b", ID]
    assert verdict(columns) == (PASSED, True)
    assert text_of(columns, "a.py::a") == "one"
    assert text_of(columns, "b.py::b") == "two"


def test_an_outvoted_verdict_is_removed_with_its_reason() -> None:
    skipped = collect([case(SKIPPED, message="no device")], resolve)
    assert hash(ID) not in merge([skipped, collect([case(PASSED)], resolve)]).reasons


def test_no_file_gives_no_test() -> None:
    assert len(merge([])) == 0


def text_of(columns: Columns, test_id: str) -> str:
    texts = [text for pack in columns.packs for text in unpacked(pack.blob)]
    return texts[why(columns, test_id).text - 1].decode()


def test_a_failure_keeps_its_location_and_its_text() -> None:
    failure = Case("t", FAILED, nodeid="t/a.py::t", line=7, trouble=Trouble.SETUP, message="m", text="trace")
    columns = collect([failure], lambda _: ("t/a.py::t", "t/a.py"))
    assert why(columns, "t/a.py::t")._replace(text=0) == Reason(Trouble.SETUP, "m", 0, IN_ID, 7, "")
    assert text_of(columns, "t/a.py::t") == "trace"


def test_a_text_is_stored_once_with_only_its_head_and_tail() -> None:
    text = "a" * MAX_TEXT_HEAD + "b" * 5_000 + "c" * MAX_TEXT_TAIL
    columns = collect([Case(name, FAILED, nodeid=name, text=text) for name in ("one", "two")], resolve)
    assert len(columns.texts) == 1
    text_stored = text_of(columns, "two")
    assert text_stored.startswith("a" * MAX_TEXT_HEAD + "\n")
    assert text_stored.endswith("\n" + "c" * MAX_TEXT_TAIL)
    assert "5,000 characters left out" in text_stored


def test_a_message_is_truncated() -> None:
    assert why(collect([case(FAILED, message="é" * 5_000)], resolve)).message == "é" * (MAX_MESSAGE - 1) + "…"


def test_passed_tests_store_no_reason_and_skips_with_the_same_reason_share_it() -> None:
    cases = [
        Case(str(n), SKIPPED if n % 2 else PASSED, nodeid=f"t.py::{n}", message="no gpu" * (n % 2)) for n in range(9)
    ]
    columns = collect(cases, resolve)
    assert len(columns.whys) == 1
    assert set(columns.reasons) == {hash(f"t.py::{n}") for n in range(9) if n % 2}


def test_measures_of_a_passed_test_are_stored() -> None:
    columns = collect([Case("t", PASSED, nodeid=ID, measures={"snr": float("inf"), "delegated": 3})], resolve)
    assert why(columns).measures == '{"delegated":3,"snr":Infinity}'


def test_an_id_is_one_line_whatever_the_format() -> None:
    columns = collect([Case("t", PASSED, nodeid="a.py::t[\n]"), case(PASSED)], resolve)
    assert list(read_names(columns.names)) == ["a.py::t[\\n]", ID]


def test_a_refusal_by_the_reader_is_passed_on() -> None:
    def cases() -> Iterator[Case]:
        yield case(PASSED)
        raise Refused("te.xml ends too early")

    with pytest.raises(Refused, match="too early"):
        collect(cases(), resolve)


def test_names_beyond_one_batch_of_cases_are_complete() -> None:
    cases = [Case(str(n % 9_000), PASSED, nodeid=f"t.py::{n % 9_000}", attempt=True) for n in range(9_500)]
    columns = collect(cases, resolve)
    assert list(read_names(columns.names)) == [f"t.py::{n}" for n in range(9_000)]
    assert len(columns) == 9_000
    assert sum(is_flaky(split(packed)[0]) for packed in columns.tests.values()) == 500


def test_the_number_of_tests_in_a_run_is_limited_whatever_the_number_of_files() -> None:
    with pytest.raises(TooMuch, match="more than 1,000,000 tests together; upload the run in shards"):
        merge([Columns(tests=dict.fromkeys(range(MAX_TESTS), 1)), Columns(tests={-1: 1})])


@pytest.mark.parametrize("count", [0, 1, 4_096, 8_192])
def test_any_number_of_cases_is_folded(count: int) -> None:
    assert len(collect((Case("t", PASSED, nodeid=f"t.py::{n}") for n in range(count)), resolve)) == count


def test_a_failure_is_located_in_the_file_that_it_names_and_its_test_stays_the_same() -> None:
    files = ["tests/test_ops.py", "tests/helper.py"]
    line = '<testcase classname="tests.test_ops" name="test_add">{}</testcase>'
    places = {}
    for failure in ("", '<failure file="/home/lab/tests/helper.py" line="7"/>', '<failure file="/usr/x.py" line="8"/>'):
        content = f"<testsuite>{line.format(failure)}</testsuite>"
        columns = collect(junit.read(BytesIO(content.encode())), Resolver(files).resolve)
        assert list(read_names(columns.names)) == ["tests/test_ops.py::test_add"]
        places[failure] = [(reason.path, reason.line) for reason in columns.whys]
    assert list(places.values()) == [[], [("tests/helper.py", 7)], [("", None)]]
