"""Cases read in runs equal those of expat: the same cases, the same refusals, in time linear in the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nightjar_formats.columns.collect import collect
from nightjar_formats.limits import MAX_CASES, MAX_SECONDS
from nightjar_formats.model import Case
from nightjar_formats.readers import junit, read_runs
from nightjar_formats.readers.junit import plain
from nightjar_formats.readers.junit.case_runs import CaseRun, one_by_one, seconds_of
from nightjar_formats.readers.junit.document import Part, SuiteElement, cases
from nightjar_formats.readers.junit.outcomes import place
from nightjar_formats.refused import Refused
from nightjar_formats.runs.identity import Resolver

from tests.steps import assert_linear

PLAIN = '<testcase classname="tests.test_add" name="test_add[{}]" time="0.{}" />'
SKIP = (
    '<testcase classname="tests.test_add" name="skips[{}]">'
    '<skipped type="pytest.skip" message="{}">{}</skipped></testcase>'
)
SKIPPED = '<testcase name="a" classname="b"><skipped message="runtime filter"/></testcase>'
XFAIL = '<testcase name="a" classname="b"><skipped type="pytest.xfail" message="known"/></testcase>'
PIECES = (
    *(PLAIN.format(number, number) for number in range(4)),
    '<testcase name="kernel.poll" classname="kernel"/>',
    '\n  <testcase name="a b" classname="kernel" time="1e-05">\n  </testcase>',
    '<testcase classname="a" name="b" time="1.2.3"/>',
    '<testcase classname="a" name="b" time="-1"/>',
    '<testcase classname="a" name=""/>',
    '<testcase classname="" name="b"/>',
    '<testcase classname="a" name="a &lt; b &amp; c"/>',
    '<testcase classname="a" name="a\nb"/>',
    '<testcase classname="a" name="a < b"/>',
    '<testcase classname="a" name="&nbsp;"/>',
    '<testcase classname="a" name="\N{LATIN SMALL LETTER E WITH ACUTE}\N{NO-BREAK SPACE}" time="0.5"/>',
    '<testcase classname="a" name="b" time="0.5" file="a.py" line="3"/>',
    '<testcase classname="a" name="b" name="c"/>',
    '<testcase classname="a"  name="b"/>',
    f'<testcase classname="a" name="{"n" * 1100}"/>',
    '<testcase classname="a" name="fails"><failure message="no">text</failure></testcase>',
    '<testcase classname="a" name="fails"><failure>'
    '<![CDATA[ <testcase classname="a" name="b"/> ]]></failure></testcase>',
    '<testcase classname="a" name="passes"><system-out>text</system-out></testcase>',
    '<testcase classname="a" name="talks" time="0.1"><system-out><![CDATA[a <b> ]] & ]] > c]]></system-out>\n'
    "</testcase>",
    '<testcase classname="a" name="talks too"><system-out>a &lt; b</system-out><system-err>c\n</system-err></testcase>',
    '<testcase classname="a" name="broken"><system-out>a & b</system-out></testcase>',
    '<testcase classname="a" name="broken too"><system-out>a ]]> b</system-out></testcase>',
    '<testcase classname="a" name="crossed"><system-out>a</system-err></testcase>',
    '<testcase classname="a" name="fails"><system-out>a</system-out><failure message="no"/></testcase>',
    '<testcase classname="a" name="has"> <properties> <property name="a" value="b"/></properties> </testcase>',
    '<testcase classname="a" name="has none"><properties/></testcase>',
    '<testcase classname="a" name="has a text"><properties><property name="a" value="<"/></properties></testcase>',
    *(SKIP.format(number, "no GPU", "tests/test_add.py:3: no GPU") for number in range(2)),
    SKIP.format(2, "collection skipped", "('a.py', 3, 'Skipped: why')"),
    SKIP.format(3, " ", "why"),
    SKIP.format(4, "a &gt; b", "why"),
    SKIP.format(5, "no GPU", "a ]]> b"),
    SKIP.format(6, "no GPU", "a &amp; b"),
    SKIPPED,
    '<testcase name="a" classname="b"><skipped/></testcase>',
    XFAIL,
    "<!-- ",
    ' <testcase classname="a" name="in a comment"/> -->',
    "<system-out><![CDATA[ ",
    ' <testcase classname="a" name="in text"/> ]]></system-out>',
    '<testsuite name="inner">',
    '<testsuite name="inner" file="b.py">',
    '<testsuite name="pytest">',
    "</testsuite>",
    "<properties>",
    "</properties>",
    "</testsuites>",
    "text & more",
    "\r\n",
)
documents = st.tuples(st.sampled_from(("pytest", "kernel", "AllTests")), st.lists(st.sampled_from(PIECES), max_size=12))


def document_of(suite: str, pieces: Sequence[str]) -> bytes:
    inside = "".join(pieces)
    opened = inside.count("<testsuite ") - inside.count("</testsuite>") + 1
    return f'<testsuites>\n<testsuite name="{suite}">{inside}{"</testsuite>" * opened}</testsuites>\n'.encode()


def by_expat_alone(document: bytes) -> bytes:
    """Return a document with the same meaning, in which nothing looks like a plain case."""
    return document.replace(b"<testcase ", b"<testcase\t")


def outcome(document: bytes) -> tuple[list[Case], str]:
    read_cases = []
    try:
        for case in junit.read(BytesIO(document)):
            read_cases.append(case._replace(text=case.text.replace("\t", " ")))
    except Refused as refused:
        return read_cases, f"{type(refused).__name__}: {refused}"
    return read_cases, ""


def runs_of(document: bytes) -> list[CaseRun]:
    return [run for run in junit.read_runs(BytesIO(document)) if isinstance(run, CaseRun)]


@given(documents)
def test_cases_read_in_runs_equal_those_of_expat(made: tuple[str, list[str]]) -> None:
    document = document_of(*made)
    assert not runs_of_expat(document)
    read_cases, refusal = outcome(document)
    by_expat, refusal_by_expat = outcome(by_expat_alone(document))
    assert refusal == refusal_by_expat
    if not refusal:  # otherwise cases of the chunk may be missing, and none of them is stored
        assert read_cases == by_expat


def test_suites_share_the_templates_of_their_cases_unless_they_name_files() -> None:
    calls: list[str] = []

    def make(attributes: dict[str, str], parts: Sequence[Part], suite: SuiteElement) -> Case:
        calls.append(suite.path)
        return plain.case(attributes, parts, suite)

    suites = [f'<testsuite name="{number}">{PIECES[4]}{SKIPPED}</testsuite>' for number in range(50)]
    suites.append(f'<testsuite name="50" file="b.py">{PIECES[4]}</testsuite>')
    read_cases = [*one_by_one(cases(BytesIO(f"<testsuites>{''.join(suites)}</testsuites>".encode()), lambda _: make))]
    assert len(read_cases) == 101
    assert calls == ["0", "0", "50"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), (str(MAX_SECONDS), MAX_SECONDS), (str(MAX_SECONDS + 1), None), ("-0.1", None), ("1.2.3", None)],
)
def test_a_duration_has_limits(text: str, seconds: float | None) -> None:
    assert seconds_of[text] == seconds


def runs_of_expat(document: bytes) -> list[CaseRun]:
    try:
        return runs_of(by_expat_alone(document))
    except Refused:
        return []


@given(documents)
@example(("pytest", [XFAIL, SKIPPED]))  # attempts at one test, of which the second adds no reason
@example(("pytest", [SKIPPED, XFAIL]))
def test_runs_fold_to_the_same_columns_as_their_cases(made: tuple[str, list[str]]) -> None:
    document = document_of(*made)
    resolver = Resolver(["tests/test_add.py"])
    try:
        one_by_one = collect(junit.read(BytesIO(document)), resolver.resolve)
    except Refused:
        return
    together = collect(junit.read_runs(BytesIO(document)), resolver.resolve, resolver.head_of)
    assert together == one_by_one
    assert list(together.tests) == list(one_by_one.tests)
    assert list(together.whys) == list(one_by_one.whys)


@pytest.mark.parametrize("piece", PIECES[:6])
def test_plain_cases_are_read_in_one_run(piece: str) -> None:
    (run,) = runs_of(document_of("pytest", [piece] * 9))
    assert len(run.names) == 9


def test_a_case_of_another_kind_ends_a_run() -> None:
    pieces = [PIECES[0], PIECES[1], PIECES[19], SKIP.format(1, "no GPU", ""), SKIP.format(2, "no CPU", "")]
    assert [len(run.names) for run in runs_of(document_of("pytest", pieces))] == [2, 2]


def test_the_line_and_column_of_a_fault_after_a_run_are_those_of_the_file() -> None:
    for between in ("", "\n", "\n   "):
        for behind in ("<", "\n\n <", "<a></b>"):
            document = document_of("pytest", [PLAIN.format(1, 1), between, PLAIN.format(2, 2), behind])
            assert outcome(document)[1] == outcome(by_expat_alone(document))[1] != ""


def test_a_file_with_too_many_plain_cases_is_refused() -> None:
    case = '<testcase classname="a" name="b"/>'
    document = document_of("pytest", [case * (MAX_CASES + 1)])
    with pytest.raises(Refused, match="has more than 500,000 test cases"):
        for _ in read_runs(BytesIO(document), "junit.xml"):
            pass


@pytest.mark.parametrize("piece", [PIECES[10], PIECES[15], PIECES[21], PIECES[33]])
def test_other_cases_take_steps_in_proportion_to_their_number(piece: str) -> None:
    def prepared(size: int) -> Callable[[], object]:
        document = document_of("kernel", [piece, PIECES[0]] * size)
        return lambda: outcome(document)

    # Texts of several chunks: within one chunk, each search would count as if it scanned all of it.
    assert_linear(prepared, 2_000)


@pytest.mark.parametrize("earlier", [SKIPPED, XFAIL], ids=["skipped", "xfailed"])
def test_a_test_that_passed_after_it_was_skipped_has_no_reason(earlier: str) -> None:
    document = document_of("pytest", [earlier, '<testcase name="a" classname="b"/>'])
    columns = collect(junit.read(BytesIO(document)), Resolver([]).resolve)
    assert (len(columns.tests), columns.reasons) == (1, {})


def test_a_file_and_a_line_are_each_read_without_the_other() -> None:
    attributes: list[dict[str, str]] = [{}, {"file": "a.cpp"}, {"line": "3"}, {"file": "a.cpp", "line": "3"}]
    assert [place(some) for some in attributes] == [("", None), ("a.cpp", None), ("", 3), ("a.cpp", 3)]
    assert place({"file": "a.cpp", "line": "3"}, 0) == ("a.cpp", 4)
