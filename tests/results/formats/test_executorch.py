"""ExecuTorch's CSV: the rows of one test are one case with its stage, and a truncated row is refused."""

import csv
import io
from contextlib import suppress
from typing import Any

import pytest
from nightjar_formats.limits import MAX_RAW_NAME, MAX_ROW_BYTES
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers.executorch import MAX_SUBTESTS, MEASURES
from nightjar_formats.refused import Refused, TooMuch

from tests.results.formats.samples import cases, cases_of, one, plain, refusal

SAMPLE = plain("executorch/operators.csv").decode()
COLUMNS = SAMPLE.partition("\n")[0].strip().split(",")


def row(test: str = "test_linear[xnnpack]", result: str = "Pass", detail: str = "", **columns: Any) -> dict[str, Any]:
    stated = {"Test ID": test, "Test Case": test.partition("[")[0], "Subtest": 0, "Flow": "xnnpack", "Params": ""}
    return stated | {"Result": result, "Result Detail": detail} | columns


def table(*rows: dict[str, Any], columns: list[str] = COLUMNS, end: str = "\r\n") -> str:
    written = io.StringIO(newline="")
    writer = csv.DictWriter(written, columns, lineterminator=end, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def test_the_columns_are_those_of_the_suite() -> None:
    assert len(COLUMNS) == 22
    assert {measure.column for measure in MEASURES} < set(COLUMNS)


def test_every_test_of_the_real_report_is_read_once() -> None:
    rows = list(csv.DictReader(io.StringIO(SAMPLE, newline="")))
    stated = cases("executorch/operators.csv")
    assert len(rows) == 103
    assert [case.name for case in stated] == list(dict.fromkeys(row["Test ID"] for row in rows))
    assert all(not case.flaky and not case.path and not case.nodeid for case in stated)


def test_measures_are_stored_with_their_unit() -> None:
    stated = {case.name: case.measures for case in cases("executorch/operators.csv")}
    assert stated["test_add_dtype[xnnpack_static_int8_per_channel-float32]"] == {
        "flow": "xnnpack_static_int8_per_channel",
        "quantize_seconds": 1.355,
        "lower_seconds": 0.981,
        "delegated_nodes": 7,
        "undelegated_nodes": 0,
        "pte_bytes": 2000,
        "output_0_error_max": 0,
        "output_0_error_mae": 0,
        "output_0_snr_db": "inf",
    }


@pytest.mark.parametrize(
    ("result", "detail", "status", "trouble"),
    [
        ("Pass", "", Status.PASSED, Trouble.NONE),
        ("Skip", "", Status.SKIPPED, Trouble.NONE),
        ("Fail", "Quantization Failed", Status.FAILED, Trouble.QUANTIZE),
        ("Fail", "Lowering Failed", Status.FAILED, Trouble.LOWER),
        ("Fail", "PTE Load Failed", Status.FAILED, Trouble.LOAD),
        ("Fail", "PTE Run Failed", Status.FAILED, Trouble.RUN),
        ("Fail", "Output Mismatch", Status.FAILED, Trouble.OUTPUT),
        ("Fail", "Unknown Failure", Status.FAILED, Trouble.NONE),
        ("Fail", "Process Crash", Status.ERRORED, Trouble.CRASH),
        ("Success (Undelegated)", "", Status.PASSED, Trouble.NONE),
        ("Skipped", "", Status.SKIPPED, Trouble.NONE),
        ("Fail (Lowering)", "", Status.FAILED, Trouble.LOWER),
        ("Fail (Other)", "", Status.FAILED, Trouble.NONE),
    ],
)
def test_the_stage_of_a_failure_is_stored(result: str, detail: str, status: Status, trouble: Trouble) -> None:
    case = one(table(row(result=result, detail=detail)))
    assert (case.status, case.trouble) == (status, trouble)


def test_the_error_may_contain_lines_and_quotes() -> None:
    case = one(table(row(result="Fail", detail="Output Mismatch", Error='Output 0 does not match,\nmax "0.731"')))
    assert case.message == 'Output Mismatch: Output 0 does not match, max "0.731"'
    assert case.text == 'Output 0 does not match,\nmax "0.731"'


def test_a_skip_keeps_its_reason() -> None:
    assert one(table(row(result="Skip", Error="unsupported dtype"))).message == "unsupported dtype"


def test_windows_line_endings_are_accepted() -> None:
    for end in ("\n", "\r\n", "\r\r\n"):
        stated = cases_of(table(row("test_a"), row("test_b", result="Fail", Error="one\r\r\ntwo"), end=end))
        assert [case.name for case in stated] == ["test_a", "test_b"]
        assert stated[1].message == "one two"


def test_the_rows_of_a_test_are_combined() -> None:
    rows = [row(), row(result="Fail", detail="PTE Run Failed", Subtest=1), row("test_other")]
    first, second = cases_of(table(*rows))
    assert (first.status, first.trouble, first.flaky) == (Status.FAILED, Trouble.RUN, False)
    assert second.status is Status.PASSED
    assert one(table(row(), row(Subtest=1), row(Subtest=2))).flaky is False
    assert one(table(row(), row(result="Skip", Subtest=1))).status is Status.SKIPPED


def test_rows_that_start_over_are_a_rerun() -> None:
    bad = [row(), row(result="Fail", Subtest=1)]
    good = [row(), row(Subtest=1)]
    flaky = one(table(*bad, *good))
    assert (flaky.status, flaky.flaky) == (Status.PASSED, True)
    assert flaky.measures == {"flow": "xnnpack", "subtests": 2}
    still = one(table(*bad, *bad))
    assert (still.status, still.flaky) == (Status.FAILED, False)
    assert one(table(*good, *good)).flaky is False


def test_columns_may_be_missing_or_in_another_order() -> None:
    older = ["Result", "Flow", "Test ID", "Error"]
    stated = cases_of(table(row(), row("test_b", result="Fail"), columns=older))
    assert [case.status for case in stated] == [Status.PASSED, Status.FAILED]
    assert "the first line must name the columns, including Test ID and Result" in refusal(
        table(columns=["Test ID", "Flow"]), "executorch-csv"
    )


def test_operators_are_ignored() -> None:
    harmful = "{'a': " * 5000 + "__import__('os')" + "}" * 5000
    assert one(table(row(**{"Delegated Ops": harmful}))).status is Status.PASSED


@pytest.mark.parametrize("line", [2, 40, 104])
def test_a_truncated_row_is_named(line: int) -> None:
    lines = SAMPLE.splitlines(keepends=True)
    test = lines[line - 1].partition(",")[0]
    cut = "".join(lines[: line - 1]) + lines[line - 1][: len(test) + 12]
    assert f"executorch-csv: the row of line {line} ({test}) is cut off" in refusal(cut)


def test_a_row_truncated_inside_its_error_is_named() -> None:
    content = table(row("test_a"), row("test_b", result="Fail", Error="one\ntwo"))
    assert "the row of line 3 is cut off" in refusal(content[:-6])


def test_the_cases_before_the_truncation_are_given() -> None:
    content = table(row("test_a"), row("test_b"), row("test_c"))
    assert "line 4 (test_c)" in refusal(content[:-20])


def test_an_error_names_its_line() -> None:
    assert "the row of line 2 has 23 fields, but the first line names 22" in refusal(table(row()).rstrip() + ",x\r\n")
    assert 'the row of line 2 has the result "Maybe"' in refusal(table(row(result="Maybe")))
    assert "the row of line 3 (ÿ) is cut off" in refusal(table(row()).encode() + b"\xff")
    assert "line 2 is not CSV" in refusal(table(row("a")).replace("a,", "a\rb,"))


def test_a_byte_order_mark_is_not_part_of_the_first_column() -> None:
    assert one("\ufeff" + table(row())).name == "test_linear[xnnpack]"


def test_lengths_and_counts_are_limited() -> None:
    assert "characters" in refusal(table(row("x" * (MAX_RAW_NAME + 1))), kind=TooMuch)
    assert "more than 1 MiB" in refusal(table() + "x" * (MAX_ROW_BYTES + 1), kind=TooMuch)
    assert "more than 1 MiB" in refusal(table() + '"x\n",' * (MAX_ROW_BYTES // 4), kind=TooMuch)
    assert "more than 131,072 characters" in refusal(table() + '"' + "x\n" * 100_000, kind=TooMuch)
    many = table(*(row(Subtest=index) for index in range(MAX_SUBTESTS + 1)))
    assert "test_linear[xnnpack] has more than 1000 rows" in refusal(many, kind=TooMuch)


def test_invalid_numbers_do_no_harm() -> None:
    for number in ("", "None", "1,5", "0x10", "9" * 400, "1e999", "-inf", "NaN", "{}"):
        with suppress(Refused):
            assert isinstance(one(table(row(**dict.fromkeys(COLUMNS[7:21], number)))), Case)
