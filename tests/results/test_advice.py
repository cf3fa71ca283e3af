"""Advice in the report about what a lab could do better."""

from __future__ import annotations

from pathlib import Path

import pytest
from nightjar_formats.measurements import Measurement
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers import read
from nightjar_formats.readers.repairs import UNNAMED
from nightjar_formats.runs.advice import CaseAdvice
from nightjar_formats.runs.texts import NO_FILE, NO_MODULE, NO_TEST

from tests.results.formats.samples import DATA


def advice(*cases: Case, format: str = "junit") -> list[str]:
    advice = CaseAdvice()
    for case in cases:
        advice.resolve(case)
    return list(advice.warnings(format))


def case(name: str = "test_add", classname: str = "tests.test_ops", path: str = "tests/test_ops.py") -> Case:
    return Case(name, Status.PASSED, classname=classname, path=path, seconds=0.1)


def test_good_cases_need_no_advice() -> None:
    assert advice(case("test_add[float32-64-True]"), case("test_deadbeef"), case("test_sub[2f3a]")) == []


def test_a_file_without_a_test_gets_advice() -> None:
    assert advice() == [NO_TEST]


def test_xunit2_gets_the_advice_to_use_xunit1_or_reportlog() -> None:
    assert advice(case(path="")) == [NO_FILE]


def test_names_without_a_module_cannot_be_resolved() -> None:
    assert advice(case("adds", classname="Operators", path="")) == [NO_MODULE]


def test_formats_without_paths_get_no_advice_about_them() -> None:
    assert advice(case(classname="", path=""), format="executorch-csv") == []


@pytest.mark.parametrize(
    "name",
    [
        "test_op[<function add at 0x7f3ac01b2d30>]",
        "test_op[0xdeadbeef]",
        "test_op[9b74c9897bac770ffc029102a200c5de]",
        "test_op[3f2504e0-4f89-41d3-9a0c-0305e82c3301]",
        "test_op[/tmp/x81ks/model.so]",
        "test_op[pytest-of-lab/pytest-3/model]",
    ],
)
def test_names_that_change_with_every_run_are_shown(name: str) -> None:
    [warning] = advice(case(name))
    assert "tests: 1, as in" in warning
    assert name in warning


@pytest.mark.parametrize(
    "name",
    ["test_op[0x10]", "test_op[1000000000000000000000000000000000]", "test_op[0xff-64]", "test_template[/tmpl/]"],
)
def test_numbers_in_names_do_not_count_as_addresses(name: str) -> None:
    assert advice(case(name)) == []


def test_repeated_names_are_shown_and_counted() -> None:
    [warning] = advice(case("test_add"), case("test_add"), case("test_add"), case("test_sub"))
    assert warning.startswith("cases with the same name as another one, which count as one test with it: 2, as in")
    assert "tests.test_ops::test_add" in warning or "tests/test_ops.py::test_add" in warning


def test_attempts_at_one_test_need_no_other_names() -> None:
    attempt = case("test_add")._replace(attempt=True)
    teardown = attempt._replace(status=Status.ERRORED, trouble=Trouble.TEARDOWN)
    assert advice(attempt, attempt, teardown) == []


def test_tests_without_a_name_do_not_count_as_a_repeated_name() -> None:
    assert advice(case(UNNAMED), case(UNNAMED)) == []


@pytest.mark.parametrize("report", sorted((DATA / "pytest").glob("kinds.*.*[!t]")), ids=lambda path: path.name)
def test_reruns_and_errors_of_teardown_in_real_reports_do_not_count_as_repeated_names(report: Path) -> None:
    advice = CaseAdvice()
    with report.open("rb") as file:
        for test_case in read(file, report.name):
            advice.resolve(test_case)
    assert not [warning for warning in advice.warnings("junit") if "share a name" in warning]


def test_missing_durations_are_counted() -> None:
    assert advice(case(), case("test_sub")._replace(seconds=None)) == ["cases without a duration: 1 of 2"]


def test_cases_without_a_duration_by_nature_get_no_advice() -> None:
    crashed = case("test_sub")._replace(status=Status.ERRORED, seconds=None, trouble=Trouble.CRASH)
    assert advice(case(), crashed) == []
    benchmark = case("test_sub")._replace(seconds=None, measurements=(Measurement("latency", 1.23, "ms"),))
    assert advice(case(), benchmark) == []


def test_examples_are_few_and_short() -> None:
    [warning] = advice(*(case(f"test_op[{number}-0x7f3ac01b2d30-{'y' * 900}]") for number in range(50)))
    assert warning.count("0x7f3ac01b2d30") == 3
    assert len(warning) < 700
