"""xunit.net, NUnit 3 and TRX: reports of .NET's tools, by their schemas, and the limits on their cost."""

from __future__ import annotations

from io import BytesIO

import pytest
from nightjar_formats.limits import MAX_ATTRIBUTES, MAX_NESTED, MAX_RAW_NAME, MAX_TOKEN_BYTES, MAX_XML_NAMES, NotXml
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers import FORMATS, read
from nightjar_formats.readers.dotnet import trx as trx_reader
from nightjar_formats.readers.repairs import UNNAMED, Repairs
from nightjar_formats.readers.xml.walk import walk
from nightjar_formats.refused import Refused, TooMuch

from tests.results.formats.corpus import reports, written_beside, written_down
from tests.results.formats.samples import cases_of, one, plain, refusal

XUNIT, NUNIT, TRX = "xunit-net", "nunit3", "trx"
REPORTS = reports("dotnet")


def xunit(inside: str) -> str:
    return f'<assemblies><assembly name="a.dll"><collection name="c">{inside}</collection></assembly></assemblies>'


def nunit(inside: str) -> str:
    return f'<test-run id="0"><test-suite type="Assembly" name="a.dll">{inside}</test-suite></test-run>'


def trx(*results: str, definitions: str = "", namespace: str = "2010") -> str:
    begin = f'<TestRun xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/{namespace}">'
    body = f"<Results>{''.join(results)}</Results><TestDefinitions>{definitions}</TestDefinitions>"
    return f"{begin}{body}</TestRun>"


def result(outcome: str = "Passed", name: str = "Adds", content: str = "", test: str = "1") -> str:
    return f'<UnitTestResult testId="{test}" testName="{name}" outcome="{outcome}">{content}</UnitTestResult>'


def definition(classname: str, test: str = "1") -> str:
    return f'<UnitTest id="{test}"><TestMethod className="{classname}" name="x"/></UnitTest>'


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_gives_the_cases_in_the_file_next_to_it(report: str) -> None:
    assert written_down(report) == written_beside(report)


def test_there_are_reports_of_each_version() -> None:
    assert len(REPORTS) >= 6


@pytest.mark.parametrize(
    ("form", "report"),
    [
        (XUNIT, xunit('<test name="a" result="Skipped"/>')),
        (NUNIT, nunit('<test-case name="a" result="passed"/>')),
        (TRX, trx(result("Good", "a"))),
    ],
)
def test_an_unknown_status_is_refused_with_its_line_and_name(form: str, report: str) -> None:
    assert refusal(report).startswith(f"report: {form}: line 1: a has the ")


def repairs_of(report: str) -> list[str]:
    repairs = Repairs()
    assert list(read(BytesIO(report.encode()), "report", None, repairs))
    return list(repairs.sentences())


@pytest.mark.parametrize(
    "report",
    [xunit('<test result="Pass"/>'), nunit('<test-case result="Passed"/>'), trx('<UnitTestResult outcome="Passed"/>')],
)
def test_a_test_without_a_name_gets_one(report: str) -> None:
    assert one(report).name == UNNAMED
    assert repairs_of(report) == ["test cases without a name were named (unnamed) (1)"]


def test_bad_characters_and_lines_around_a_report_are_repaired() -> None:
    report = "log\n<?xml version='1.0'?>\n" + trx(result(name="a\x01&#x2;b")) + "\nDone. Passed: 1\n<- 5 s ->\n"
    assert one(report).name == "a\ufffd\ufffdb"
    assert [sentence.partition(" ")[0] for sentence in repairs_of(report)] == ["text", "characters", "text"]
    assert "not well-formed" not in refusal(trx(result()) + trx(result()))


@pytest.mark.parametrize(
    ("classname", "name", "nodeid"),
    [
        ("A.B", "A.B.C", "A.B::C"),
        ("A.B", "C", "A.B::C"),
        ("A.B", "A.Bc", "A.B::A.Bc"),
        ("A.B", "A.B.", "A.B::A.B."),
        ("A.B, C, Version=1.0.0.0", "A.B.C(x: 1, y: 2)", "A.B::C(x: 1, y: 2)"),
        ("A.B`1[[System.Int32, mscorlib]]", "C", "A.B`1[[System.Int32, mscorlib]]::C"),
        ("", "A.B.C", "A.B.C"),
    ],
)
def test_the_class_of_a_test_is_only_once_in_its_id(classname: str, name: str, nodeid: str) -> None:
    assert one(trx(result(name=name), definitions=definition(classname))).nodeid == nodeid
    assert one(xunit(f'<test name="{name}" type="{classname}" result="Pass"/>')).nodeid == nodeid


def test_a_definition_may_come_before_or_after_its_results() -> None:
    definitions_last = trx(result(test="1"), result(test="2"), definitions=definition("A", "1") + definition("B", "2"))
    definitions_first = definitions_last.replace("<Results>", f"{definition('A', '1')}{definition('B', '2')}<Results>")
    assert [case.nodeid for case in cases_of(definitions_last)] == [case.nodeid for case in cases_of(definitions_first)]


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("00:00:00.0012345", 0.0012345),
        ("01:02:03", 3723.0),
        ("1.00:00:01.5", 86401.5),
        ("999.00:00:00", None),
        ("1.5", None),
        ("", None),
        ("-00:00:01", None),
        ("\u0660\u0660:00:01", None),
    ],
)
def test_a_duration_of_trx_is_read(duration: str, seconds: float | None) -> None:
    report = trx(f'<UnitTestResult testName="a" outcome="Passed" duration="{duration}"/>')
    assert one(report).seconds == seconds


def test_a_data_row_and_its_test_are_cases() -> None:
    rows = "<InnerResults>" + result("Failed", "Adds (1,2)") + "</InnerResults>"
    assert [(case.name, case.status) for case in cases_of(trx(result("Failed", "Adds", rows)))] == [
        ("Adds (1,2)", Status.FAILED),
        ("Adds", Status.FAILED),
    ]


def test_waiting_results_of_trx_are_limited_and_lose_their_texts_first() -> None:
    def few(report: str) -> list[Case]:
        return list(trx_reader.read(BytesIO(report.encode()), Repairs(), most_unfinished=20_000))

    output = f"<Output><ErrorInfo><Message>no</Message><StackTrace>{'x' * 4_000}</StackTrace></ErrorInfo></Output>"
    results = [result("Failed", f"Adds{n}", output, test=str(n)) for n in range(20)]
    definitions = "".join(definition("A", str(n)) for n in range(20))
    read_cases = few(trx(*results, definitions=definitions))
    assert [case.message for case in read_cases] == ["no"] * 20
    assert [bool(case.text) for case in read_cases] == [True] * 2 + [False] * 18
    with pytest.raises(TooMuch, match="tests in progress"):
        few(trx(*results * 20))


@pytest.mark.parametrize(
    ("site", "label", "status", "trouble"),
    [
        ("", "", Status.FAILED, Trouble.NONE),
        ("", "Error", Status.FAILED, Trouble.NONE),
        ("", "Cancelled", Status.ERRORED, Trouble.NONE),
        ("", "Invalid", Status.ERRORED, Trouble.NONE),
        ("SetUp", "Error", Status.ERRORED, Trouble.SETUP),
        ("TearDown", "Error", Status.ERRORED, Trouble.TEARDOWN),
        ("Parent", "", Status.ERRORED, Trouble.SETUP),
    ],
)
def test_the_location_of_an_nunit_failure_is_read(site: str, label: str, status: Status, trouble: Trouble) -> None:
    attributes = f'name="a" result="Failed" label="{label}"' + (f' site="{site}"' if site else "")
    case = one(nunit(f"<test-case {attributes}><failure><message>no</message></failure></test-case>"))
    assert (case.status, case.trouble, case.message) == (status, trouble, "no")


def test_a_suite_of_nunit_that_failed_because_of_its_tests_is_no_case() -> None:
    failed = (
        '<failure><message>One or more child tests had errors</message></failure><test-case name="a" result="Failed"/>'
    )
    for site in ('site="Child"', ""):  # NUnit before 3.2 wrote no site
        assert len(cases_of(nunit(f'<test-suite name="s" result="Failed" {site}>{failed}</test-suite>'))) == 1


def test_a_warning_and_several_assertions_of_nunit_are_read() -> None:
    assertions = "<assertions>" + "<assertion><message>no</message></assertion>" * 2 + "</assertions>"
    case = one(nunit(f'<test-case name="a" result="Failed">{assertions}</test-case>'))
    assert (case.message, case.text) == ("no", "no\nno")


def test_nunit_2_is_refused_with_the_remedy() -> None:
    assert "format=nunit3" in refusal('<test-results name="a.dll"/>')


@pytest.mark.parametrize("form", [XUNIT, NUNIT, TRX])
@pytest.mark.parametrize("content", [b"<testsuites/>", b"<html/>", b"{}", b"<", b"\xff\xfe", b"<a", b"<!DOCTYPE a>"])
def test_other_formats_are_refused(form: str, content: bytes) -> None:
    assert refusal(content, form).startswith(f"report: {form}: ")


@pytest.mark.parametrize("report", REPORTS)
def test_a_truncated_report_is_refused(report: str) -> None:
    content = plain(report)
    for end in (len(content) // 2, len(content) - 10):
        assert "upload the whole file" in refusal(content[:end], kind=NotXml)


ROOTS = {XUNIT: "assemblies", NUNIT: "test-run", TRX: "TestRun"}


@pytest.mark.parametrize("form", ROOTS)
@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("<a>" * MAX_NESTED, "nested elements"),
        ("<a " + " ".join(f'a{n}="1"' for n in range(MAX_ATTRIBUTES + 1)) + "/>", "attributes of one element"),
        (f'<a b="{"x" * (3 * MAX_TOKEN_BYTES)}"/>', "a tag, attribute or comment of more than"),
        ("".join(f"<a{n}/>" for n in range(MAX_XML_NAMES + 1)) + " " * 70_000, "different names"),
    ],
)
def test_a_report_has_limits(form: str, inside: str, message: str) -> None:
    assert message in refusal(f"<{ROOTS[form]}>{inside}</{ROOTS[form]}>", form, TooMuch)


@pytest.mark.parametrize("form", ROOTS)
def test_a_doctype_is_refused(form: str) -> None:
    declared = f'<!DOCTYPE a [<!ENTITY b "c">]><{ROOTS[form]}>&b;</{ROOTS[form]}>'
    assert "DOCTYPE" in refusal(declared, form)


class Nothing:
    """A listener that creates no case."""

    def start(self, tag: str, attributes: dict[str, str]) -> None: ...

    def end(self, tag: str, text: str) -> tuple[Case, ...]:
        return ()

    def rest(self) -> tuple[Case, ...]:
        return ()


def test_elements_are_counted() -> None:
    def read_elements(count: int) -> list[Case]:
        document = BytesIO(b"<a>" + b"<b/>" * count + b"</a>")
        return list(walk(document, Repairs(), "x", {"a": ""}, frozenset(), Nothing(), most_elements=10))

    assert read_elements(9) == []
    with pytest.raises(TooMuch, match="more than 10 elements"):
        read_elements(10)


@pytest.mark.parametrize(
    "report",
    [
        xunit(f'<test name="{"a" * (MAX_RAW_NAME + 1)}" result="Pass"/>'),
        nunit(f'<test-case name="{"a" * (MAX_RAW_NAME + 1)}" result="Passed"/>'),
        trx(result(name="a" * (MAX_RAW_NAME + 1))),
        trx(result(name="a" * MAX_RAW_NAME), definitions=definition("b" * MAX_RAW_NAME)),
    ],
)
def test_the_length_of_a_name_is_limited(report: str) -> None:
    assert ": line 1: a test's name has" in refusal(report, kind=TooMuch).lower()


@pytest.mark.parametrize(
    "report",
    [
        xunit('\n<test name="a" result="Pass"/>\n<test\n name="b" result="Skipped">\n<output>o</output>\n</test>'),
        nunit('\n<test-case name="a" result="Passed"/>\n<test-case\n name="b" result="passed">\n</test-case>'),
        trx(f'\n{result(name="a")}\n<UnitTestResult\n testName="b" outcome="Good">\n<Output/>\n</UnitTestResult>'),
    ],
)
def test_a_refusal_names_the_line_in_which_the_test_begins(report: str) -> None:
    assert ": line 3: b has the " in refusal(report)


def test_the_formats_are_recognized_by_their_names() -> None:
    assert ROOTS.keys() <= FORMATS.keys()
    with pytest.raises(Refused):
        cases_of(xunit(""), NUNIT)


WALK_ROOTS = {"trx": "TestRun", "nunit3": "test-run", "xunit-net": "assemblies"}
NUNIT_2 = "<test-results> is the format of NUnit 2: write NUnit 3's, as in --result=TestResult.xml;format=nunit3"


@pytest.mark.parametrize("form", WALK_ROOTS)
def test_a_refusal_of_xml_says_where_and_why(form: str) -> None:
    root, column = WALK_ROOTS[form], len(WALK_ROOTS[form])
    another = "the root element is <{}>: this is another format"
    refusals = {
        "<testsuites/>": another.format("testsuites"),
        "<test-results/>": NUNIT_2 if form == "nunit3" else another.format("test-results"),
        f"<{root}>\n": "the file ends in line 2 before its XML does (no element found): upload the whole file",
        f"\n<{root}><a></{root}>": f"line 2, column {column + 8}: mismatched tag",
        f"<{root} a='1' a='2'/>": f"line 1, column {column + 9}: duplicate attribute",
        "{}": "line 1, column 1: not well-formed (invalid token)",
    }
    assert {content: refusal(content, form) for content in refusals} == {
        content: f"report: {form}: {text}" for content, text in refusals.items()
    }
    wide = " ".join(f"a{number}='1'" for number in range(MAX_ATTRIBUTES + 1))
    limits = {
        f"<{root}>\n" + "<a>" * MAX_NESTED: f"line 2: more than {MAX_NESTED} nested elements",
        f"<{root} {wide}/>": f"line 1: more than {MAX_ATTRIBUTES} attributes of one element",
    }
    assert {content: refusal(content, form, TooMuch) for content in limits} == {
        content: f"report: {form}: {text}" for content, text in limits.items()
    }
