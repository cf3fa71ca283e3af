"""The reports can be read: as ExecuTorch's columns, by the server's reader, by people on GitHub."""

from __future__ import annotations

import ast
import csv
import io
import json
import math
from pathlib import Path

import pytest
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers import executorch
from nightjar_lab.suite.columns import COLUMNS
from nightjar_lab.suite.csv_report import ReportInvalid, csv_text, read_report
from nightjar_lab.suite.outcome import DETAILS, SuiteOutcome, SuiteStage
from nightjar_lab.suite.report_diff import compare_reports
from nightjar_lab.suite.result import OutputError, SuiteResult, record_of, result_of
from nightjar_lab.suite.summary import MOST_ROWS, MatrixRow, code_span, matrix_summary, percentage, summary_text

from tests.gfm import Page, rendered
from tests.lab.suite.hostile import CONTROLS
from tests.results.formats.samples import plain

HEADER = ",".join(COLUMNS)
STATED = f"""{HEADER}
test_linear_basic_arm_ethos_u55_int8,test_linear_basic,0,arm_ethos_u55,"{{""dtype"": ""torch.float32""}}",Fail,Output Mismatch,True,0.412,2.031,3,0,{{'aten::linear': 1}},{{}},3.424,0.731,0.112,4.210,,,,Output 0 does not match | max 0.731
test_lstm_bidirectional_arm_ethos_u55_int8,test_lstm_bidirectional,0,arm_ethos_u55,"{{""dtype"": ""torch.float16""}}",Fail,Lowering Failed,False,,,,,,,,,,,,,,"Unsupported op aten.lstm.input
see log"
test_linear_basic_arm_ethos_u55_int8_f16,test_linear_basic,0,arm_ethos_u55,"{{""dtype"": ""torch.float16""}}",Pass,,True,,,,,,,,,,,,,,
"""  # noqa: E501
"""Rows in ExecuTorch's encoding, with what its sample lacks: parameters, errors of several lines, a mismatch."""


def result_from(row: dict[str, str]) -> SuiteResult:
    """Return the result described by a row from ExecuTorch."""
    words = row["Result"], row["Result Detail"]
    outcome = next(
        known_outcome for known_outcome in SuiteOutcome if (known_outcome.result, known_outcome.detail) == words
    )
    outputs = [
        OutputError(*(float(row[f"Output {number} {name}"]) for name in ("Error Max", "Error MAE", "SNR")))
        for number in (0, 1)
        if row[f"Output {number} SNR"]
    ]
    return SuiteResult(
        row["Test ID"],
        row["Test Case"],
        row["Flow"],
        outcome,
        error=row["Error"],
        subtest=int(row["Subtest"]),
        params=json.loads(row["Params"] or "{}"),
        delegated=row["Delegated"] == "True",
        quantize_seconds=float(row["Quantize Time (s)"]) if row["Quantize Time (s)"] else None,
        lower_seconds=float(row["Lower Time (s)"]) if row["Lower Time (s)"] else None,
        delegated_nodes=int(row["Delegated Nodes"]) if row["Delegated Nodes"] else None,
        undelegated_nodes=int(row["Undelegated Nodes"]) if row["Undelegated Nodes"] else None,
        delegated_ops=ast.literal_eval(row["Delegated Ops"]) if row["Delegated Ops"] else None,
        undelegated_ops=ast.literal_eval(row["Undelegated Ops"]) if row["Undelegated Ops"] else None,
        size_bytes=round(float(row["PTE Size (Kb)"]) * 1000) if row["PTE Size (Kb)"] else None,
        outputs=tuple(outputs),
    )


def result(case: str, outcome: SuiteOutcome = SuiteOutcome.PASS, **values: object) -> SuiteResult:
    return SuiteResult(f"{case}[toy]", case, "toy", outcome, **values)  # type: ignore[arg-type]


def read(*results: SuiteResult) -> list[Case]:
    return list(executorch.read(io.BytesIO(csv_text(results).encode())))


@pytest.mark.parametrize("text", [plain("executorch/operators.csv").decode(), STATED], ids=["real rows", "other rows"])
def test_rows_of_executorch_are_reproduced_column_by_column(text: str) -> None:
    rows = list(csv.DictReader(io.StringIO(text.replace("\r\n", "\n"), newline="")))
    written = csv_text(map(result_from, rows))
    assert list(csv.DictReader(io.StringIO(written, newline=""))) == rows
    assert written.replace("\r\n", "\n") == text.replace("\r\n", "\n")
    # The JSONL file has the same.
    assert csv_text(result_of(json.loads(json.dumps(record_of(result_from(row))))) for row in rows) == written


def test_the_servers_reader_knows_every_outcome() -> None:
    cases = read(*(result(outcome.name, outcome, error="why") for outcome in SuiteOutcome))
    assert {case.name: (case.status, case.trouble) for case in cases} == {
        f"{outcome.name}[toy]": seen
        for outcome, seen in {
            SuiteOutcome.PASS: (Status.PASSED, Trouble.NONE),
            SuiteOutcome.SKIP: (Status.SKIPPED, Trouble.NONE),
            SuiteOutcome.KNOWN_FAILURE: (Status.XFAILED, Trouble.NONE),
            SuiteOutcome.UNEXPECTED_PASS: (Status.XPASSED, Trouble.NONE),
            SuiteOutcome.CASE_INVALID: (Status.SKIPPED, Trouble.NONE),
            SuiteOutcome.REFERENCE_FAILED: (Status.SKIPPED, Trouble.NONE),
            SuiteOutcome.QUANTIZE_FAILED: (Status.FAILED, Trouble.QUANTIZE),
            SuiteOutcome.LOWER_FAILED: (Status.FAILED, Trouble.LOWER),
            SuiteOutcome.LOAD_FAILED: (Status.FAILED, Trouble.LOAD),
            SuiteOutcome.RUN_FAILED: (Status.FAILED, Trouble.RUN),
            SuiteOutcome.OUTPUT_MISMATCH: (Status.FAILED, Trouble.OUTPUT),
            SuiteOutcome.CRASH: (Status.ERRORED, Trouble.CRASH),
            SuiteOutcome.TIMEOUT: (Status.FAILED, Trouble.TIMEOUT),
            SuiteOutcome.OUT_OF_MEMORY: (Status.ERRORED, Trouble.CRASH),
            SuiteOutcome.UNKNOWN: (Status.FAILED, Trouble.NONE),
        }.items()
    }
    messages = {case.name: case.message for case in cases}
    assert messages["TIMEOUT[toy]"] == "Timeout: why"
    assert messages["CASE_INVALID[toy]"] == "Case Invalid: why"
    assert set(DETAILS) == set(SuiteOutcome)


def test_names_and_errors_with_control_characters_stay_in_one_row_each() -> None:
    cases = read(result(CONTROLS, SuiteOutcome.CRASH, error=CONTROLS), result('a",\r\nb', error="\r\n\x00"))
    assert len(cases) == 2
    assert "\\x1b" in cases[0].name
    assert "\\u202e" in cases[0].name


def test_a_long_error_keeps_its_head_and_tail() -> None:
    (row,) = read_report(csv_text([result("a", SuiteOutcome.RUN_FAILED, error="a" * 300 + "b" * 300)]))
    assert row.error == "a" * 200 + "..." + "b" * 200
    (row,) = read_report(csv_text([result("a", SuiteOutcome.RUN_FAILED, error="a" * 400)]))
    assert row.error == "a" * 400


def test_two_outputs_are_reported_and_infinite_errors_too() -> None:
    many = tuple(OutputError(math.inf, math.nan, -math.inf) for _ in range(3))
    row = next(csv.DictReader(io.StringIO(csv_text([result("a", outputs=many)]))))
    assert (row["Output 1 Error Max"], row["Output 1 Error MAE"], row["Output 1 SNR"]) == ("inf", "nan", "-inf")
    record = json.loads(json.dumps(record_of(result("a", outputs=many)), allow_nan=False))
    assert len(result_of(record).outputs) == 3


def test_a_summary_of_nothing_divides_by_nothing() -> None:
    text = summary_text([result("a", SuiteOutcome.SKIP, params={"dtype": "int8"})], flow="toy", suite="toys")
    assert "**Pass**: 0/0 (-)" in text
    assert "| ` int8 ` | 0 | 0 | 1 | - |" in text
    assert "WARNING" not in summary_text([], flow="toy", suite="toys")
    assert percentage(1, 3) == "33.3 %"


def test_a_summary_lists_a_limited_number_of_failures_and_counts_the_rest() -> None:
    failures = [result(f"case {number}", SuiteOutcome.LOWER_FAILED) for number in range(MOST_ROWS + 7)]
    text = summary_text(failures, flow="toy", suite="toys")
    assert text.count("Lowering Failed |") == MOST_ROWS + 1
    assert "7 more are in the CSV report." in text


def test_a_summary_warns_of_crashes_missing_cases_and_workers() -> None:
    text = summary_text(
        [result("a", SuiteOutcome.CRASH, stage=SuiteStage.LOAD, error="SIGSEGV")],
        flow="toy",
        suite="toys",
        missing=2,
        notices=["it aborts", "it aborts"],
    )
    warning = text.partition("\n\n- **Pass**")[0]
    assert "> [!WARNING]\n> - No result for 2 cases" in warning
    assert "crashed in 1 case." in warning
    assert "` it aborts ` (2)" in warning
    assert "| Process Crash | load |" in text


SUMMARIES = Path(__file__).with_name("summaries.txt")


def test_the_summaries_of_a_run_and_of_a_matrix_are_written_as_the_file_beside_says() -> None:
    results = [
        result(
            str(outcome.value), outcome, error=f"{outcome.value} | why", params={"dtype": ("f16", "f32")[number % 2]}
        )
        for number, outcome in enumerate(SuiteOutcome)
    ]
    results += [
        result("add", delegated=True, delegated_nodes=3, undelegated_nodes=1, params={"dtype": "f16", "shape": "2x2"}),
        result("mul", delegated=False, delegated_nodes=0, undelegated_nodes=4),
        result("lstm", SuiteOutcome.LOWER_FAILED, stage=SuiteStage.LOWER, error="no lstm", delegated=True),
    ]
    run = summary_text(results, flow="toy", suite="toys", missing=3, notices=["slow `pool`", "late", "late"])
    rows = [
        MatrixRow("tvm", "int8", "toy", "toys", results, missing=2),
        MatrixRow("xnnpack", "", "other", "toys", [result("sub")], missing=1),
        MatrixRow("tvm", "", "idle", "toys", []),
    ]
    matrix = matrix_summary(rows, [("qnn", "no SDK"), ("vulkan", "no | device")])
    assert f"{run}\n====\n\n{matrix}" == SUMMARIES.read_text()
    assert "Not run" not in matrix_summary(rows[1:2])


HOSTILE = [
    "@octocat #1 https://example.com <img src=x> <!-- **b** [a](http://example.com) ~~c~~ :tada:",
    "`` ` ``` @octocat",
    "a | b \\| c \\\\| @octocat |",
    "``|`` @octocat \\",
    "\n\n# title\n- @octocat\n",
    CONTROLS.replace("\ud800", ""),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_in_a_summary_has_no_effect(text: str) -> None:
    results = [result(text, SuiteOutcome.RUN_FAILED, error=text, params={text: text})]
    page = Page(rendered(summary_text(results, flow=text, suite=text, notices=[text]), raw_html=True))
    assert page.links == set()
    assert page.tags <= {
        "h1", "h2", "p", "ul", "li", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "blockquote",
    }  # fmt: skip
    assert "@" not in page.speech
    assert "octocat" not in page.speech


def test_a_cell_is_truncated_before_it_is_quoted() -> None:
    assert code_span("`" * 5000).count("`") < 1000
    assert code_span(" \n") == ""


def test_two_reports_are_compared() -> None:
    failed, mismatch = SuiteOutcome.LOWER_FAILED, SuiteOutcome.OUTPUT_MISMATCH
    earlier = [result("a", failed), result("b"), result("c", failed), result("d"), result("e"), result("f", failed)]
    later = [
        result("a"), result("b", failed), result("c", mismatch), result("d", SuiteOutcome.SKIP), result("f", failed),
        result("g", failed), result("h"),
    ]  # fmt: skip
    comparison = compare_reports(read_report(csv_text(earlier)), read_report(csv_text(later)))
    assert comparison.new_failures == ("b[toy]", "g[toy]")
    assert comparison.fixed == ("a[toy]",)
    assert comparison.stage_changed == (("c[toy]", "Lowering Failed", "Output Mismatch"),)
    assert comparison.newly_skipped == ("d[toy]",)
    assert comparison.new_tests == ("g[toy]", "h[toy]")
    assert comparison.removed == ("e[toy]",)
    assert (comparison.still_failing, comparison.earlier, comparison.later) == (2, 6, 7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it has no column Test ID, Result"),
        ("Test ID,Name\n", "it has no column Result"),
        ("Test ID,Result,Error\na,Pass\n", "line 2 is cut off"),
        ('Test ID,Result\n"a', "it is not CSV"),
    ],
)
def test_content_that_is_no_report_is_refused(text: str, words: str) -> None:
    with pytest.raises(ReportInvalid, match=words):
        read_report(text)


def test_reports_of_executorch_can_be_compared() -> None:
    rows = read_report(plain("executorch/operators.csv").decode())
    comparison = compare_reports(rows, rows)
    assert comparison.new_failures == ()
    assert comparison.still_failing == 8
