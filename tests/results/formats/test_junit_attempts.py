"""Attempts in JUnit: the cases of one test in one suite of pytest, and no others."""

from __future__ import annotations

from io import BytesIO
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.columns import is_flaky, status_of
from nightjar_formats.columns.collect import Columns, collect, merge, read_names, split
from nightjar_formats.readers import junit
from nightjar_formats.runs.identity import Resolver

from tests.results.formats.samples import DATA

OUTCOMES = {
    "passed": "",
    "failed": '<failure message="DMA stuck">DMA stuck</failure>',
    "errored": '<error message="no device">no device</error>',
    "skipped": '<skipped type="pytest.skip" message="no board">t.py:1: no board</skipped>',
    "xfailed": '<skipped type="pytest.xfail" message="known"/>',
}


def columns_of(report: bytes) -> Columns:
    """Fold a report as the server does, with runs of plain cases at once."""
    resolver = Resolver(None)
    return collect(junit.read_runs(BytesIO(report)), resolver.resolve, resolver.head_of)


def outcomes_of(columns: Columns) -> dict[str, tuple[str, bool]]:
    """Return the status of each test, and whether it is flaky."""
    packed = (split(number)[0] for number in columns.tests.values())
    return {
        name: (str(status_of(byte)), is_flaky(byte))
        for name, byte in zip(read_names(columns.names), packed, strict=True)
    }


def stored(report: str) -> dict[str, tuple[str, bool]]:
    return outcomes_of(columns_of((DATA / "junit" / report).read_bytes()))


def test_one_test_in_two_merged_reports_of_pytest_is_not_flaky() -> None:
    assert stored("pytest-two-configurations-good.xml") == {
        "tests.test_dma::test_copy": ("passed", False),
        "tests.test_dma::test_fill": ("passed", False),
    }


def test_one_test_that_fails_in_two_merged_reports_of_pytest_fails() -> None:
    assert stored("pytest-two-configurations-bad.xml")["tests.test_dma::test_copy"] == ("failed", False)


def test_a_case_of_unity_on_two_boards_is_not_flaky_and_its_lines_count_from_one() -> None:
    report = (DATA / "junit" / "pytest-embedded-two-boards.xml").read_bytes()
    assert outcomes_of(columns_of(report)) == {"adc oneshot": ("passed", False)}
    assert {case.line for case in junit.read(BytesIO(report))} == {12}


def test_a_case_of_pytest_beside_cases_of_unity_keeps_its_attempts_and_its_lines() -> None:
    case = '<testcase classname="tests.test_adc" name="test_adc" file="tests/test_adc.py" line="11" is_unity_case="0"/>'
    report = f'<testsuite name="pytest">{case * 2}</testsuite>'.encode()
    assert outcomes_of(columns_of(report)) == {"tests/test_adc.py::test_adc": ("passed", True)}
    assert {case.line for case in junit.read(BytesIO(report))} == {12}


@pytest.mark.parametrize("first", [*OUTCOMES])
def test_whether_a_suite_is_pytests_does_not_depend_on_its_first_case(first: str) -> None:
    cases = (
        f'<testcase classname="t" name="first">{OUTCOMES[first]}</testcase>' + '<testcase classname="t" name="a"/>' * 2
    )
    assert outcomes_of(columns_of(f'<testsuite name="shard-1">{cases}</testsuite>'.encode()))["t::a"] == (
        "passed",
        False,
    )


CASES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([*OUTCOMES])), max_size=8)
SUITES = st.lists(st.tuples(st.sampled_from(["pytest", "jest"]), CASES), min_size=1, max_size=4)


def suite_of(name: str, cases: list[tuple[str, str]]) -> str:
    written = (
        f'<testcase classname="t" name={quoteattr(test)} time="0.1">{OUTCOMES[outcome]}</testcase>'
        for test, outcome in cases
    )
    return f'<testsuite name="{name}">{"".join(written)}</testsuite>'


@settings(deadline=None)
@given(SUITES)
def test_suites_in_one_report_give_what_the_same_suites_in_reports_of_their_own_give(
    suites: list[tuple[str, list[tuple[str, str]]]],
) -> None:
    written = [suite_of(*suite) for suite in suites]
    together = columns_of(f"<testsuites>{''.join(written)}</testsuites>".encode())
    apart = merge([columns_of(suite.encode()) for suite in written])
    assert outcomes_of(together) == outcomes_of(apart)
