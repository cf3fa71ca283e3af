"""JUnit reports in every dialect, from the corpus and from a generator."""

from __future__ import annotations

import gzip
from collections import Counter
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, cast
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.limits import MAX_MESSAGE, MAX_RAW_NAME, MAX_TEXT_HEAD, MAX_TEXT_TAIL
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers import junit
from nightjar_formats.readers.junit.names import PLACEHOLDERS
from nightjar_formats.refused import TooMuch

from tests.results.formats.junit_corpus import FOLDER, normal_form

REPORTS = sorted(FOLDER.glob("*.xml"))
RESULTS = FOLDER.parent
REAL = sorted(path for path in RESULTS.rglob("*.xml*") if path.parent.name not in (FOLDER.name, "dotnet"))


def read(document: str) -> list[Case]:
    return list(junit.read(BytesIO(document.encode())))


def opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: path.stem)
def test_a_report_gives_the_cases_in_the_file_next_to_it(report: Path) -> None:
    with report.open("rb") as stream:
        assert normal_form(junit.read(stream)) == report.with_suffix(".txt").read_text()


def test_there_are_real_reports_to_compare_with_another_reader() -> None:
    assert len(REAL) > 10
    assert len(REPORTS) >= 25


@pytest.mark.parametrize("report", REAL, ids=lambda path: "-".join(path.relative_to(RESULTS).parts))
def test_a_real_report_has_the_statuses_that_another_reader_finds(report: Path) -> None:
    with opened(report) as stream:
        read_cases = Counter((case.classname, case.name, case.status.value) for case in junit.read(stream))
    with opened(report) as stream:
        tests = [case for case in ElementTree.parse(stream).iter("testcase") if case.get("name")]
    assert read_cases == Counter((case.get("classname"), case.get("name"), independent_status(case)) for case in tests)


def independent_status(case: ElementTree.Element) -> str:
    """Read pytest's status in another way: from the names of all elements together."""
    if case.find("failure") is not None:
        return "failed"
    if case.find("error") is not None:
        return "errored"
    skipped = case.find("skipped")
    if skipped is None:
        return "passed"
    return "xfailed" if skipped.get("type") == "pytest.xfail" else "skipped"


def test_the_crashed_test_is_named_and_has_no_setup_error() -> None:
    with (RESULTS / "tvm" / "night-2" / "te.xml").open("rb") as stream:
        errored = {case.name: case for case in junit.read(stream) if case.status is Status.ERRORED}
    assert set(errored) == {"test_with", "test_tensor_reduce", "test_scan_multi_out"}
    assert {case.trouble for case in errored.values()} == {Trouble.CRASH}
    assert (
        errored["test_with"].message == "worker 'gw0' crashed while running 'tests/python/te/test_te_tag.py::test_with'"
    )


def test_a_reports_own_counts_are_ignored() -> None:
    cases = read(
        '<testsuites tests="9"><testsuite tests="many" failures="5"><testcase name="a"/></testsuite></testsuites>'
    )
    assert [case.status for case in cases] == [Status.PASSED]


@pytest.mark.parametrize("document", ["<testsuites/>", "<testsuite name='pytest' tests='0'></testsuite>"])
def test_a_report_without_tests_is_read_as_such(document: str) -> None:
    assert read(document) == []


@pytest.mark.parametrize(
    ("line", "stated"),
    [("0", 1), ("41", 42), ("-1", None), ("x", None), ("1e400", None), ("99999999999", None), ("", None)],
)
def test_pytests_lines_count_from_zero_and_ours_from_one(line: str, stated: int | None) -> None:
    document = f'<testsuite name="pytest"><testcase classname="t" name="a" file="t.py" line="{line}"/></testsuite>'
    assert [(case.path, case.line) for case in read(document)] == [("t.py", stated)]


def failing(text: str, message: str = "no") -> Case:
    root = ElementTree.Element("testsuite", name="pytest")
    failure = ElementTree.SubElement(ElementTree.SubElement(root, "testcase", classname="c", name="t"), "failure")
    failure.set("message", message)
    failure.text = text
    (case,) = junit.read(BytesIO(ElementTree.tostring(root)))
    return case


@pytest.mark.parametrize("size", [MAX_TEXT_HEAD + MAX_TEXT_TAIL, 200_000, 3_000_000])
def test_a_long_text_keeps_its_head_and_its_tail_and_says_how_much_is_missing(size: int) -> None:
    text = "".join(f"line {number}\n" for number in range(size // 6))[:size].strip("\n")
    remaining = failing(text).text
    assert len(remaining) <= MAX_TEXT_HEAD + MAX_TEXT_TAIL
    head, _, rest = remaining.partition("\n[… ")
    removed, _, tail = rest.partition(" characters are left out here …]\n")
    if rest:
        assert text == head + text[len(head) : len(head) + int(removed.replace(",", ""))] + tail
    else:
        assert remaining == text
    assert len(head) > MAX_TEXT_HEAD * 0.9


def test_a_message_is_one_line_of_limited_length() -> None:
    assert failing("", "one\n  two\tthree ").message == "one two three"
    assert len(failing("", "word " * 10_000).message) == MAX_MESSAGE


def test_a_name_that_no_test_can_have_is_refused() -> None:
    just = "n" * (MAX_RAW_NAME - 1)
    assert read(f'<testsuite><testcase classname="c" name="{just}"/></testsuite>')[0].name == just
    with pytest.raises(
        TooMuch, match=r'^line 1: .* 15,001 characters; at most 15,000 are accepted \(pytest: ids=\): "c\.nnn'
    ):
        read(f'<testsuite><testcase classname="c" name="{just}n"/></testsuite>')


def test_the_number_of_failures_of_one_test_is_limited() -> None:
    failures = "".join(f'<failure message="{number}">{number}</failure>' for number in range(1000))
    (case,) = read(f'<testsuite><testcase classname="c" name="t">{failures}</testcase></testsuite>')
    assert case.message == "0 (and 63 more)"


XML_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"))
NAMES = XML_TEXT.filter(lambda text: 0 < len(text) < 100 and text not in PLACEHOLDERS)
OUTCOMES = st.sampled_from(["", "failure", "error", "skipped"])


@pytest.mark.parametrize(
    ("root", "case", "is_googletest"),
    [
        ("merged", 'status="notrun" result="suppressed"', True),
        ("AllTests", 'status="notrun"', True),
        ("merged", 'status="notrun"', False),
        ("AllTests", 'status="other"', False),
    ],
)
def test_a_disabled_test_of_googletest_is_known_by_its_result_or_by_the_root(
    root: str, case: str, is_googletest: bool
) -> None:
    document = (
        f'<testsuites name="{root}"><testsuite><testcase name="a" classname="B" {case}/></testsuite></testsuites>'
    )
    (read_case,) = read(document)
    assert (read_case.message == "disabled") is is_googletest


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(NAMES, NAMES, OUTCOMES, XML_TEXT), max_size=20),
    st.sampled_from(["utf-8", "ascii"]),
    st.sampled_from([0, 70_000]),
    st.integers(1, 1000),
)
def test_whatever_a_generator_writes_is_read_back(
    tests: list[tuple[str, str, str, str]], encoding: str, padding: int, pieces: int
) -> None:
    root = ElementTree.Element("testsuite", name="any")
    for classname, name, outcome, text in tests:
        element = ElementTree.SubElement(root, "testcase", classname=classname, name=name)
        ElementTree.SubElement(element, "system-out").text = "x" * padding
        if outcome:
            ElementTree.SubElement(element, outcome, message="no").text = text
    declared = f'<?xml version="1.0" encoding="{encoding}"?>'
    body = declared + ElementTree.tostring(root, encoding="unicode")
    stream = Dripping(body.encode(encoding, "xmlcharrefreplace"), pieces)
    read_cases = list(junit.read(cast("BinaryIO", stream)))
    statuses = {"": "passed", "failure": "failed", "error": "errored", "skipped": "skipped"}
    assert [(case.classname, case.name, case.status.value) for case in read_cases] == [
        (classname, name, statuses[outcome]) for classname, name, outcome, _ in tests
    ]
    for case, (*_, outcome, text) in zip(read_cases, tests, strict=True):
        assert case.text == (text if outcome in ("failure", "error") and text.strip() else "")


class Dripping:
    """A stream that returns less than requested, as a decompressor may."""

    def __init__(self, content: bytes, piece: int) -> None:
        self._stream = BytesIO(content)
        self._piece = piece

    def read(self, size: int) -> bytes:
        return self._stream.read(min(size, self._piece))


def test_with_an_empty_classname_the_suites_distinguish_the_tests() -> None:
    suites = "".join(f'<testsuite name="s{n}"><testcase classname="" name="works"/></testsuite>' for n in range(5))
    cases = read(f'<testsuites name="all">{suites}</testsuites>')
    assert [case.classname for case in cases] == ["s0", "s1", "s2", "s3", "s4"]


@pytest.mark.parametrize(
    ("case", "failure", "stated"),
    [
        ('file="t/test_a.py"', 'line="7"', ("t/test_a.py", 7, "")),
        ('file="t/test_a.py" line="3"', 'file="t/test_a.py" line="7"', ("t/test_a.py", 7, "")),
        ('file="t/test_a.py" line="3"', 'file="t/helper.py" line="7"', ("t/test_a.py", 7, "t/helper.py")),
        ('file="t/test_a.py" line="3"', 'file="t/helper.py"', ("t/test_a.py", None, "t/helper.py")),
        ('file="t/test_a.py" line="3"', 'line="x"', ("t/test_a.py", 3, "")),
        ("", 'file="t/test_a.py" line="7"', ("", 7, "t/test_a.py")),
    ],
)
def test_the_location_that_a_failure_names_is_its_location(
    case: str, failure: str, stated: tuple[str, int | None, str]
) -> None:
    document = (
        f'<testsuite><testcase classname="c" name="a" {case}><failure {failure}>x</failure></testcase></testsuite>'
    )
    assert [(case_.path, case_.line, case_.failure_path) for case_ in read(document)] == [stated]
