"""Which tests are reported as skipped, and which required ones as not run."""

from __future__ import annotations

import json

import pytest
from nightjar_formats.model import SeenTest, Status

from bot.core.errors import UserError
from handlers.ci_reports.outcomes import BaseSuite, HeadAndBase, SuiteOutcomes
from handlers.skipped_tests.decide import NotRun, Required, SkipChanges, compare_skips, not_run, read_required
from handlers.skipped_tests.section import describe_skips

ADD, MUL, DIV = "tests/test_ops.py::test_add", "tests/test_ops.py::test_mul", "tests/test_ops.py::test_div"
FILE = "tests/test_ops.py"


def suite(*, complete: bool = True, **statuses: str) -> SuiteOutcomes:
    """Return a suite of tests of one file: `add="passed"`."""
    seen = {f"{FILE}::test_{name}": SeenTest(Status(status)) for name, status in statuses.items()}
    return SuiteOutcomes(seen, complete=complete)


def of(suite: SuiteOutcomes, test: str, status: str) -> SuiteOutcomes:
    """Return a suite with one more test, or file, with any ID."""
    return SuiteOutcomes({**suite.seen, test: SeenTest(Status(status))}, complete=suite.complete)


SKIPS: dict[str, tuple[SuiteOutcomes, SuiteOutcomes, SkipChanges]] = {
    "nothing differs": (suite(add="passed", mul="skipped"), suite(add="failed", mul="skipped"), SkipChanges()),
    "newly skipped": (suite(add="skipped"), suite(add="passed"), SkipChanges(newly_skipped=(ADD,))),
    "a failed test ran too": (suite(add="skipped"), suite(add="errored"), SkipChanges(newly_skipped=(ADD,))),
    "an expected failure ran too": (suite(add="skipped"), suite(add="xfailed"), SkipChanges(newly_skipped=(ADD,))),
    "running again": (suite(add="failed"), suite(add="skipped"), SkipChanges(running_again=(ADD,))),
    "both, sorted": (
        suite(mul="skipped", add="skipped", div="passed"),
        suite(mul="passed", add="passed", div="skipped"),
        SkipChanges(newly_skipped=(ADD, MUL), running_again=(DIV,)),
    ),
    "a test missing at the base did not run there": (
        suite(add="skipped", mul="passed"),
        suite(mul="passed"),
        SkipChanges(),
    ),
    "removed tests are not skipped": (
        suite(add="passed"),
        suite(add="passed", mul="passed", div="failed", skipped="skipped"),
        SkipChanges(removed=2),
    ),
    "a test that may still arrive is not removed": (
        suite(add="passed", complete=False),
        suite(add="passed", mul="passed"),
        SkipChanges(),
    ),
    "a file that could not be collected": (
        of(suite(), FILE, "errored"),
        suite(add="passed", mul="passed"),
        SkipChanges(removed=2),
    ),
    "a suite without tests at the base": (suite(add="skipped"), suite(), SkipChanges()),
    "a completely skipped suite": (
        suite(add="skipped", mul="skipped"),
        suite(add="passed", mul="passed"),
        SkipChanges(newly_skipped=(ADD, MUL)),
    ),
    "a completely skipped file": (
        of(suite(), FILE, "skipped"),
        suite(add="passed", mul="skipped"),
        SkipChanges(newly_skipped=(ADD,)),
    ),
    "a file that runs again": (suite(add="passed"), of(suite(), FILE, "skipped"), SkipChanges(running_again=(ADD,))),
    "a skipped module without known files": (
        of(suite(), "tests.test_ops", "skipped"),
        of(suite(), "tests.test_ops.TestAdd::test_ints", "passed"),
        SkipChanges(newly_skipped=("tests.test_ops.TestAdd::test_ints",)),
    ),
}


@pytest.mark.parametrize("case", SKIPS)
def test_tests_that_ran_at_the_base_and_are_skipped_here(case: str) -> None:
    """TVM took a test missing on `main` for one that ran there."""
    head, base, expected = SKIPS[case]
    assert compare_skips(head, base) == expected


def test_skips_without_a_difference_are_false() -> None:
    assert not SkipChanges()
    assert all((SkipChanges(newly_skipped=(ADD,)), SkipChanges(running_again=(ADD,)), SkipChanges(removed=1)))


def test_renamed_tests_are_not_removed() -> None:
    names = [f"test_case_{number}" for number in range(20)]
    base = SuiteOutcomes({f"tests/old/test_ops.py::{name}": SeenTest(Status.PASSED) for name in names})
    head = SuiteOutcomes({f"tests/new/test_ops.py::{name}": SeenTest(Status.PASSED) for name in names})
    assert compare_skips(head, base) == SkipChanges()


def outcomes(*, has_all_suites: bool = True, **suites: SuiteOutcomes) -> HeadAndBase:
    return HeadAndBase(
        "a" * 40, 0.0, suites, {"other": BaseSuite("b" * 40, "", suite())}, has_all_suites=has_all_suites
    )


REQUIRED: dict[str, tuple[list[str], SuiteOutcomes, list[NotRun]]] = {
    "it ran": ([ADD], suite(add="failed"), []),
    "it was skipped": ([ADD], suite(add="skipped"), [NotRun("ops", ADD, was_skipped=True)]),
    "it is missing": ([ADD], suite(mul="passed"), [NotRun("ops", ADD)]),
    "it may still arrive": ([ADD], suite(mul="passed", complete=False), []),
    "it was skipped in incomplete results": (
        [ADD],
        suite(add="skipped", complete=False),
        [NotRun("ops", ADD, was_skipped=True)],
    ),
    "its file was skipped": ([ADD], of(suite(), FILE, "skipped"), [NotRun("ops", ADD, was_skipped=True)]),
    "without parameters: one of them ran": (
        [ADD],
        of(of(suite(), f"{ADD}[cpu]", "passed"), f"{ADD}[gpu]", "skipped"),
        [],
    ),
    "without parameters: all were skipped": (
        [ADD],
        of(of(suite(), f"{ADD}[cpu]", "skipped"), f"{ADD}[a::b]", "skipped"),
        [NotRun("ops", ADD, was_skipped=True)],
    ),
    "with parameters that did not run": (
        [f"{ADD}[gpu]"],
        of(suite(), f"{ADD}[cpu]", "passed"),
        [NotRun("ops", f"{ADD}[gpu]")],
    ),
    "a file with one test that ran": ([FILE], suite(add="passed", mul="skipped"), []),
    "a file whose tests did not run": ([FILE], suite(add="skipped"), [NotRun("ops", FILE, was_skipped=True)]),
    "a longer name is another test": ([ADD], of(suite(), f"{ADD}_more", "passed"), [NotRun("ops", ADD)]),
}


@pytest.mark.parametrize("case", REQUIRED)
def test_required_tests_that_did_not_run(case: str) -> None:
    required, head, expected = REQUIRED[case]
    assert not_run({"ops": tuple(required)}, outcomes(ops=head)) == expected


def test_a_required_suite_without_results_is_reported_once_it_is_no_longer_expected() -> None:
    """TVM crashed with a KeyError on a suite that only one side had."""
    assert not_run({"ops": (ADD, MUL)}, outcomes(other=suite())) == [NotRun("ops", "")]
    assert not_run({"ops": (ADD, MUL)}, outcomes(other=suite(), has_all_suites=False)) == []


def test_the_file_of_required_tests_is_one_object_of_lists() -> None:
    raw = json.dumps({"ops": [ADD, MUL, ADD], "none": []}).encode()
    assert read_required(raw) == {"ops": (ADD, MUL), "none": ()}


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"", "it is not JSON"),
        (b"{", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "one object of lists"),
        (b'{"ops": "test_add"}', "one object of lists"),
        (b'{"ops": [1]}', "one object of lists"),
        (b"{}", "it lists no test"),
        (b'{"ops": []}', "it lists no test"),
    ],
)
def test_anything_else_is_an_error_and_never_an_empty_list(raw: bytes, complaint: str) -> None:
    """TVM #13368: the list had been empty in production, and nobody noticed."""
    with pytest.raises(UserError, match=complaint):
        read_required(raw)


def test_an_abandoned_search_for_renamed_tests_is_reported() -> None:
    tests = [
        {f"{FILE}::test_{name}_{number}": SeenTest(Status.PASSED) for number in range(12)} for name in ("old", "new")
    ]
    base, head = map(SuiteOutcomes, tests)
    assert compare_skips(head, base) == SkipChanges()
    assert compare_skips(head, base, most_steps=10) == SkipChanges(removed=12, unsearched=True)
    tested = HeadAndBase("a" * 40, 0.0, {"ops": head}, {"ops": BaseSuite("b" * 40, "", base)})
    text = describe_skips(tested, Required(), "", "main", most_steps=10)
    assert "`ops`: the search for renamed tests was skipped because " in text
