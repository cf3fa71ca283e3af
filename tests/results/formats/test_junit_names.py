"""What a test of a JUnit report is called: the same in each run, and another one for each test."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from io import BytesIO
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.columns.collect import collect, read_names
from nightjar_formats.model import Status
from nightjar_formats.readers import junit
from nightjar_formats.readers.junit.names import is_absolute, stable_name
from nightjar_formats.runs.advice import CaseAdvice
from nightjar_formats.runs.identity import Resolver

from bot.results.compare.renames import search_renames
from tests.results.formats.samples import DATA

FILES = ("tests/test_dma.py", "tests/test_dma.cpp", "tests/dma.test.js", "tests/DmaTest.php", "src/dma.cpp")


def ids(report: bytes | str, files: Iterable[str] | None = FILES) -> list[str]:
    """Return the IDs of a report's tests as the server stores them."""
    raw = report.encode() if isinstance(report, str) else report
    resolver = Resolver(files)
    return list(read_names(collect(junit.read_runs(BytesIO(raw)), resolver.resolve, resolver.head_of).names))


def stored(name: str) -> list[str]:
    return ids((DATA / "junit" / name).read_bytes())


def test_tests_with_a_class_that_names_nothing_are_named_by_their_suites() -> None:
    assert stored("node-20.xml") == ["add::works", "sub::works"]


def test_an_error_outside_of_tests_has_one_name_on_all_days() -> None:
    name = "tests/test_dma.py::setUpClass (tests.test_dma.TestDma)"
    assert stored("unittest-error-holder.xml") == stored("unittest-error-holder-next-day.xml") == [name]


@pytest.mark.parametrize("parts", ["", "<skipped type='pytest.skip' message='m'/>", "<failure message='m'/>"])
@pytest.mark.parametrize(
    ("name", "expected"),
    [("test_copy@gpu0", "test_copy"), ("test_copy[a]@gpu0", "test_copy[a]"), ("test_copy[a@b]", "test_copy[a@b]")],
)
def test_the_group_of_xdist_is_no_part_of_a_name(name: str, expected: str, parts: str) -> None:
    case = f'<testcase classname="tests.test_dma" name="{name}" time="0.1">{parts}</testcase>'
    assert ids(f'<testsuites><testsuite name="pytest">{case}</testsuite></testsuites>') == [
        f"tests/test_dma.py::{expected}"
    ]
    assert ids(f'<testsuites><testsuite name="another tool">{case}</testsuite></testsuites>') == [
        f"tests/test_dma.py::{name}"
    ]


def test_a_class_that_is_a_file_of_the_repository_is_named_by_its_path_there() -> None:
    assert stored("doctest-absolute-path.xml") == ["tests/test_dma.cpp::copies"]


@pytest.mark.parametrize(
    ("suite", "case", "expected"),
    [
        ('name="s"', 'class="DmaTest" name="copies"', "DmaTest::copies"),
        ('name="s"', 'class="Other" classname="DmaTest" name="copies"', "DmaTest::copies"),
        ('name="s" file="/srv/job-7/tests/DmaTest.php"', 'class="DmaTest" name="a"', "tests/DmaTest.php::DmaTest::a"),
        ('name="s" file="/srv/job-7/tests/dma.test.js"', 'name="copies"', "tests/dma.test.js::s::copies"),
        ('file="/srv/job-7/tests/dma.test.js"', 'classname="test" name="a"', "tests/dma.test.js::a"),
        ('file="/srv/tests/dma.test.js"', 'class="A" name="a" file="tests/DmaTest.php"', "tests/DmaTest.php::A::a"),
        ('name="s"', 'classname="test" name="a" file="file:///srv/job-7/tests/dma.test.js"', "tests/dma.test.js::s::a"),
        ('name=""', 'classname="test" name="a"', "test::a"),
        ('name="test"', 'classname="test" name="a"', "test::a"),
        ('name="/srv/job-7/tests/test_dma.cpp"', 'name="a"', "tests/test_dma.cpp::a"),
        ('name="C:\\job-7\\tests\\test_dma.cpp"', 'name="a"', "tests/test_dma.cpp::a"),
        ('name="s"', 'classname="/srv/job-7/build/generated.cpp" name="a"', "generated.cpp::a"),
        ('name="s"', 'classname="tests/dma.test.js" name="a"', "tests/dma.test.js::a"),
        ('name="s"', 'classname="dma.test.js" name="a"', "dma.test.js::a"),
        ('name="/users/42"', 'name="answers"', "/users/42::answers"),
        ('name="s"', 'classname="/users/42" name="answers"', "/users/42::answers"),
        ('name="dma"', 'name="dma"', "dma"),
    ],
)  # fmt: skip
def test_a_test_is_named_by_its_class_its_suites_and_its_file(suite: str, case: str, expected: str) -> None:
    document = f'<testsuites><testsuite {suite}><testcase {case} time="0.1"/></testsuite></testsuites>'
    assert ids(document) == [expected]
    assert ids(document.replace("/></testsuite>", "><failure/></testcase></testsuite>")) == [expected]


def test_a_file_of_the_suite_is_the_place_of_its_tests() -> None:
    document = '<testsuite name="s" file="tests/dma.test.js"><testcase classname="c" name="a" line="7"/></testsuite>'
    [case] = junit.read(BytesIO(document.encode()))
    assert (case.path, case.line) == ("tests/dma.test.js", 7)


@pytest.mark.parametrize("name", ["tests/dma.test.js", "tests/test_dma.cpp"])
def test_a_class_that_is_a_path_is_the_place_of_its_tests(name: str) -> None:
    [case] = junit.read(BytesIO(f'<testsuite><testcase classname="{name}" name="a"/></testsuite>'.encode()))
    assert Resolver(FILES).resolve(case) == (f"{name}::a", name)


@pytest.mark.parametrize(
    "stamp",
    [
        "-20261120051000", "_20261120_051000", " 2026-11-20", " 2026-11-20T05:10:00.123+00:00",
        " (2026-11-20 05:10:00)",
        ".1795152400", "-1795152400123", " at Fri Nov 20 05:10:00 2026", " Fri, 20 Nov 2026 05:10:00 GMT", "-20261120",
        "[05:10:00]", "-20261120T051000Z",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["nightly", "tests.test_dma.TestDma", "run 7"])
def test_a_time_stamp_is_no_part_of_a_suites_name(name: str, stamp: str) -> None:
    assert stable_name(name + stamp) == name


@pytest.mark.parametrize(
    "name", ["conv2d 1024x1024", "int8", "v1.2.3", "shape 2026", "IEC 60068-2-14", "120000 samples", ""]
)
def test_a_number_is_a_part_of_a_suites_name(name: str) -> None:
    assert stable_name(name) == name


@pytest.mark.parametrize(("name", "host", "stable"), [
    ("rack1", "rack1", ""), ("dma@rack1", "rack1", "dma"), ("rack1.dma", "rack1", "dma"),
    ("dma (rack-1.lab)", "rack-1.lab", "dma"),
    ("tracks", "rack", "tracks"), ("dma", "", "dma"),
])  # fmt: skip
def test_the_name_of_the_host_is_no_part_of_a_suites_name(name: str, host: str, stable: str) -> None:
    assert stable_name(name, host) == stable


@pytest.mark.parametrize(("path", "expected"), [
    ("/srv/lab/a.cpp", True), ("C:\\lab\\a.cpp", True), ("C:/lab", True),
    ("file:///lab/a.js", True), ("/home/lab", True),
    ("\\\\server\\share\\a.cpp", True), ("/lab/a.cpp", True), ("/users/42", False), ("/", False), ("", False),
    ("a/b.cpp", False), ("./a.cpp", False), ("GET /srv", False), ("a:b", False), ("f", False), ("/a.cpp", False),
])  # fmt: skip
def test_an_absolute_path_is_distinguished_from_other_names(path: str, expected: bool) -> None:
    assert is_absolute(path) is expected


# The same tests, written by one machine at one time and by another at another.

TEST = st.tuples(
    st.sampled_from(["", "test", "DmaTest", "tests.test_dma", "{root}/tests/test_dma.cpp"]), st.sampled_from("abc")
)
SUITE = st.tuples(
    st.sampled_from(
        ["{root}/tests/test_dma.cpp", "nightly-{compact}", "nightly {iso}", "{host}", "{host}.dma", "dma", ""]
    ),
    st.sampled_from(["", "{root}/tests/dma.test.js"]),
    st.lists(TEST, min_size=1, max_size=4),
)
MACHINE = (
    st.sampled_from(["rack1", "node-17.lab"]),
    st.sampled_from(["/srv/job-1/compiler", "/home/hubot/w/c", "C:\\w\\c"]),
)
TIME = st.integers(1_704_067_200, 1_893_456_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
OUTCOMES = ["", "failure", "error", "skipped", "pytest.skip", "pytest.xfail", "setup", "flakyFailure"]


@st.composite
def reported(draw: st.DrawFn, suites: list[tuple[str, str, list[tuple[str, str]]]]) -> bytes:
    """Write a report of these suites, in any order, with any outcomes, at any time and on any machine."""
    host, root = (draw(part) for part in MACHINE)
    moment = draw(TIME)
    values = {
        "host": host,
        "root": root,
        "compact": f"{moment:%Y%m%d%H%M%S}",
        "iso": moment.isoformat(timespec="seconds"),
    }
    document = ElementTree.Element("testsuites", time=str(draw(st.integers(0, 9))))
    for name, file, tests in draw(st.permutations(suites)):
        suite = ElementTree.SubElement(
            document, "testsuite", hostname=host, timestamp=values["iso"], name=name.format_map(values)
        )
        if file:
            suite.set("file", file.format_map(values))
        for classname, test in draw(st.permutations(tests)):
            case = ElementTree.SubElement(suite, "testcase", name=test, classname=classname.format_map(values))
            if draw(st.booleans()):
                case.set("time", draw(st.sampled_from(["0.1", "1,234.5", ""])))
            if draw(st.booleans()):
                case.set("status", "run")
            add_outcome(case, draw(st.sampled_from(OUTCOMES)))
    return ElementTree.tostring(document)


def add_outcome(case: ElementTree.Element, outcome: str) -> None:
    if outcome.startswith("pytest."):
        ElementTree.SubElement(case, "skipped", type=outcome, message="no board")
    elif outcome == "setup":
        ElementTree.SubElement(case, "error", message='failed on setup with "no board"')
    elif outcome:
        ElementTree.SubElement(case, outcome, message="DMA stuck").text = "DMA stuck"


@settings(deadline=None, max_examples=300)
@given(st.data(), st.lists(SUITE, min_size=1, max_size=3))
def test_ids_depend_on_no_outcome_time_order_or_machine(
    data: st.DataObject, suites: list[tuple[str, str, list[tuple[str, str]]]]
) -> None:
    first, second = (data.draw(reported(suites)) for _ in range(2))
    assert sorted(ids(first)) == sorted(ids(second))
    assert not any(part in test for test in ids(first) for part in ("rack1", "node-17", "job-1", "hubot", "C:"))


# What else belongs to the class


@pytest.mark.parametrize(
    "name",
    [
        "opens(com.ex.Device@1b2c3d4e)[1]", "[I@5e91993f", "Mock for Device, hashCode: 1234567", "run_20261120051000",
        "at 2026-11-20T05:10:07",
        "Test$$Lambda$14@3f99bd52",
    ],
)  # fmt: skip
def test_a_name_that_differs_in_every_run_gets_advice(name: str) -> None:
    document = f'<testsuite><testcase classname="a.Test" name="{name}" time="1"/></testsuite>'
    advice = CaseAdvice()
    for case in junit.read(BytesIO(document.encode())):
        advice.resolve(case)
    assert any("differs in every run" in warning for warning in advice.warnings("junit"))


@pytest.mark.parametrize(
    "name",
    [
        "mail(hubot@example.org)",
        "node@20",
        "a@b",
        "rpi-4@lab",
        "parse[2026-11-20]",
        "at[2000-01-01T00:00:00]",
        "t@deadbeef",
    ],
)
def test_a_name_that_stays_gets_no_such_advice(name: str) -> None:
    document = f'<testsuite><testcase classname="a.Test" name="{name}" time="1"/></testsuite>'
    advice = CaseAdvice()
    for case in junit.read(BytesIO(document.encode())):
        advice.resolve(case)
    assert not any("differs in every run" in warning for warning in advice.warnings("junit"))


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        ("1,234.567", 1234.567),
        ("12,345", 12345.0),
        ("1.234,567", 1234.567),
        ("0,25", 0.25),
        ("0,250", 0.25),
        ("1,5", 1.5),
        ("x,y", None),
        (",", None),
    ],
)
def test_groups_of_digits_in_a_duration_are_read(time: str, seconds: float | None) -> None:
    [case] = junit.read(BytesIO(f'<testsuite><testcase classname="c" name="a" time="{time}"/></testsuite>'.encode()))
    assert case.seconds == seconds


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ('<skipped message="TEST_CASE tagged with !mayfail"/><failure message="1==2"/>', Status.XFAILED),
        ('<failure message="1==2"/><skipped message="TEST_CASE tagged with !mayfail"/>', Status.XFAILED),
        ('<skipped>should_fail</skipped><error message="no device"/>', Status.XFAILED),
        ('<skipped type="todo" message="later"/><failure message="1 == 2"/>', Status.XFAILED),
        ('<skipped type="XFAIL" message="expected failure: 1 != 2"/>', Status.XFAILED),
        ('<skipped message="no board"/><failure message="1==2"/>', Status.FAILED),
        ('<skipped message="a test that may fail"/>', Status.SKIPPED),
    ],
)
def test_a_failure_that_the_report_allows_is_an_expected_one(parts: str, status: Status) -> None:
    document = f'<testsuite><testcase classname="c" name="a">{parts}</testcase></testsuite>'
    assert [case.status for case in junit.read(BytesIO(document.encode()))] == [status]


# IDs that are others than before carry their history over


@pytest.mark.parametrize(
    ("old_form", "new_form"),
    [
        ("test::{}", "dma::{}"),  # a class that names nothing
        ("dma copies::{}", "tests/dma.test.js::dma copies::{}"),  # the file of a suite
        ("root.DmaTest::{}", "DmaTest::{}"),  # the attribute `class`
        ("/srv/job/build/generated.cpp::{}", "generated.cpp::{}"),  # an absolute path
        ("nightly-20261120051000::{}", "nightly::{}"),  # a time stamp
    ],
)
def test_tests_with_another_form_of_their_ids_are_found_as_renamed(old_form: str, new_form: str) -> None:
    names = [f"copies_{letter}{letter}" for letter in "abcdefghijkl"]
    renamed = {old_form.format(name): new_form.format(name) for name in names}
    assert search_renames(renamed.keys(), renamed.values()) == renamed
