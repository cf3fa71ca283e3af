"""Flows and suites that run in this process: what is loaded, what cannot be, and the result of each case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from nightjar_lab.suite import texts
from nightjar_lab.suite.case import CaseData, SuiteCase, TestSuite
from nightjar_lab.suite.listing import ListedFlow
from nightjar_lab.suite.local_cases import LocalCase, LocalMatrix, cases_of, skip_reason
from nightjar_lab.suite.matrix import MatrixSelection
from nightjar_lab.suite.matrix_run import MatrixRun
from nightjar_lab.suite.outcome import SuiteOutcome
from nightjar_lab.suite.result import SuiteResult

from tests.lab.suite.toys import FLOW, INT8, SUITE, data

TOYS = "tests.lab.suite.toys"


def suite_of(*cases: SuiteCase) -> TestSuite:
    return TestSuite.of("toys", list(cases))


def test_a_matrix_of_this_process_has_what_can_be_loaded_and_names_the_rest() -> None:
    selection = MatrixSelection((f"{TOYS}:FLOW", f"{TOYS}:make_flow", f"{TOYS}:TOYS"), (), (f"{TOYS}:SUITE",))
    matrix = LocalMatrix(selection)
    assert matrix.runs == [(FLOW, SUITE), (FLOW, SUITE)]
    [unavailable] = matrix.unavailable
    assert (unavailable.name, unavailable.kind, unavailable.backend) == (f"{TOYS}:TOYS", "flow", "")
    assert unavailable.reason.startswith("AttributeError: ")
    matrix = LocalMatrix(MatrixSelection((f"{TOYS}:INT8",), (), (f"{TOYS}:FLOW", f"{TOYS}:SUITE")))
    assert matrix.runs == [(INT8, SUITE)]
    reason = texts.NOT_ONE.format(value=f"{TOYS}:FLOW", kind="TestSuite", found="Flow")
    assert matrix.unavailable == (ListedFlow(f"{TOYS}:FLOW", "suite", reason=reason),)


def test_a_case_has_an_id_and_a_result_and_keeps_what_was_raised() -> None:
    def broken(_model: object, _data: CaseData) -> object:
        raise KeyError("mul")

    suite = suite_of(SuiteCase("add", lambda _seed: data(), params={"n": "2"}))
    [case] = cases_of(FLOW, suite)
    [known] = cases_of(replace(FLOW, lower=broken, known_failing={"add": "it is new"}), suite)
    assert (case.test_id, LocalCase(FLOW, suite, "none").test_id) == ("add[toy-2]", "none[toy]")
    result, nothing = case.run()
    assert (result.test_id, result.outcome, nothing) == ("add[toy-2]", SuiteOutcome.PASS, None)
    failed, error = known.run()
    assert (failed.outcome, failed.error.startswith("it is new: ")) == (SuiteOutcome.KNOWN_FAILURE, True)
    assert isinstance(error, KeyError)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, GeneratorExit])
def test_an_interruption_ends_the_process(raised: type[BaseException]) -> None:
    def interrupted(_seed: int) -> CaseData:
        raise raised

    with pytest.raises(raised):
        LocalCase(FLOW, suite_of(SuiteCase("a", interrupted)), "a").run()


def test_why_a_case_was_skipped() -> None:
    result = SuiteResult("a[toy]", "a", "toy", SuiteOutcome.PASS)
    outcomes = [outcome for outcome in SuiteOutcome if outcome.detail]
    for outcome in outcomes:
        assert skip_reason(replace(result, outcome=outcome)) == outcome.detail
        assert skip_reason(replace(result, outcome=outcome, error="no SDK")) == f"{outcome.detail}: no SDK"


def test_a_matrix_names_the_run_that_cannot_begin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    matrix = MatrixRun((ListedFlow("qnn", "flow", reason="no SDK"),))
    Path("other.jsonl").write_text("not ours\n")
    options = dict.fromkeys(("shard", "sha", "report", "upload", "summary", "limit", "fresh"))
    options |= {"flows": ["toy"], "suites": ["toys"], "backends": [], "patterns": (), "as_json": True}
    options |= {"jsonl": Path("other.jsonl"), "timeout": 60, "memory": 1024, "jobs": 1}
    flow, suite = ListedFlow(f"{TOYS}:FLOW", "flow", "lists"), ListedFlow(f"{TOYS}:SUITE", "suite")
    matrix.run(options, flow, suite)
    name = texts.MATRIX_ROW.format(suite=suite.name, flow=flow.name)
    [unavailable, (run, reason)] = matrix.not_run
    assert (unavailable, run) == (("qnn", "no SDK"), name)
    assert (matrix.faults, matrix.rows) == ([texts.FAILED_RUN.format(run=name, reason=reason)], [])
