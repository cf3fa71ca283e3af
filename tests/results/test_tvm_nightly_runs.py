"""Two nightly runs and a broken lab of Apache TVM: our reports equal a count by the standard library's XML reader."""

import gzip
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from nightjar_formats.columns import is_flaky, status_of
from nightjar_formats.columns.collect import Reason, collect, read_names, split
from nightjar_formats.model import SeenTest
from nightjar_formats.readers import junit
from nightjar_formats.runs.identity import Resolver
from nightjar_formats.runs.texts import MASS_COLLECTION

from bot.results.compare.diff import Comparison, compare

DATA = Path(__file__).parent.parent / "data" / "results" / "tvm"
SUITES = ("arith", "ir", "target", "te", "tirx-transform")
NIGHTLY_RUNS = [("night-1", suite) for suite in SUITES] + [("night-2", suite) for suite in (*SUITES, "relax")]
GOOD = {"passed", "xfailed", "xpassed"}

# passed, failed, errored, skipped, xfailed; as counted by hand
TOTALS = {
    ("night-1", "arith"): (188, 1, 2, 1, 8),
    ("night-1", "ir"): (38, 0, 7, 0, 0),
    ("night-1", "target"): (10, 0, 5, 0, 0),
    ("night-1", "te"): (63, 1, 0, 0, 0),
    ("night-1", "tirx-transform"): (139, 0, 4, 0, 3),
    ("night-2", "arith"): (1033, 0, 0, 4, 26),
    ("night-2", "ir"): (59, 0, 5, 0, 0),
    ("night-2", "target"): (138, 0, 0, 13, 0),
    ("night-2", "te"): (62, 0, 3, 0, 0),
    ("night-2", "tirx-transform"): (337, 0, 1, 0, 8),
    ("night-2", "relax"): (189, 0, 22, 122, 2),
}
# new failures, still failing, fixed, new, removed, precluded, newly skipped
CHANGES = {
    "arith": (0, 0, 3, 865, 0, 0, 0),
    "ir": (5, 0, 1, 35, 6, 9, 0),
    "target": (0, 0, 4, 141, 1, 0, 0),
    "te": (3, 0, 1, 1, 0, 0, 0),
    "tirx-transform": (1, 0, 4, 208, 4, 0, 0),
}


def opened(nightly_run: str, suite: str) -> BinaryIO:
    plain = DATA / nightly_run / f"{suite}.xml"
    return plain.open("rb") if plain.exists() else cast("BinaryIO", gzip.open(f"{plain}.gz"))


# The count by the standard library: none of our code up to the next line of this kind.


@cache
def counted(nightly_run: str, suite: str) -> dict[str, str]:
    """Read a report's tests: ID to status; a test whose process died has the status `crashed`."""
    with opened(nightly_run, suite) as file:
        cases = list(ElementTree.parse(file).iter("testcase"))
    return {id_of(case): status(case) for case in cases if "name" in case.keys()}  # noqa: SIM118


def id_of(case: ElementTree.Element) -> str:
    dotted = [part for part in (case.get("classname") or case.attrib["name"]).split(".") if part]
    module = next((i + 1 for i, part in enumerate(dotted) if part.startswith("test_")), 0)
    location = ["/".join(dotted[:module]) + ".py", *dotted[module:]] if module else dotted
    return "::".join([*location, case.attrib["name"]] if case.get("classname") else location)


def status(case: ElementTree.Element) -> str:
    for child in case:
        if child.tag == "failure":
            return "failed"
        if child.tag == "error":
            return "crashed" if "crashed while running" in child.get("message", "") else "errored"
        if child.tag == "skipped":
            return "xfailed" if child.get("type") == "pytest.xfail" else "skipped"
    return "passed"


def file_of(test: str) -> str:
    return test.split("::")[0]


def changed(baseline: dict[str, str], current: dict[str, str]) -> dict[str, set[str]]:
    """Sort the tests by what happened to them between two nightly runs."""
    bad = {"failed", "errored", "crashed"}
    died = {file_of(test) for test in current if current[test] == "crashed"}
    unread = {test for test in current if "::" not in test and current[test] == "errored"}
    missing = set(baseline) - set(current)
    read_again = {
        test for test in missing if "::" not in test and any(file_of(other_test) == test for other_test in current)
    }
    unknown = {test for test in missing if file_of(test) in died | unread} - read_again
    recovered = missing & {"pytest::internal"}
    return {
        "new_failures": {test for test in current if current[test] in bad and baseline.get(test) not in bad},
        "still_failing": {test for test in current if current[test] in bad and baseline.get(test) in bad},
        "fixed": {test for test in current if current[test] in GOOD and baseline.get(test) in bad}
        | read_again
        | recovered,
        "new": set(current) - set(baseline),
        "removed": missing - read_again - unknown - recovered,
        "precluded": unknown,
        "newly_skipped": {
            test for test in current if current[test] == "skipped" and baseline.get(test, "skipped") != "skipped"
        },
    }


# Our own count.


@cache
def resolver() -> Resolver:
    files = {file_of(test) for nightly_run, suite in NIGHTLY_RUNS for test in counted(nightly_run, suite)} - {"pytest"}
    untested_files = {
        "python/tvm/te/tag.py",
        "tests/python/te/__init__.py",
        "tests/python/conftest.py",
        "src/ir/module.cc",
    }
    return Resolver(
        files | untested_files | {f"tests/python/{nightly_run}/conftest.py" for nightly_run, _ in NIGHTLY_RUNS}
    )


@cache
def read(nightly_run: str, suite: str) -> dict[str, SeenTest]:
    with opened(nightly_run, suite) as file:
        columns = collect(junit.read(file), resolver().resolve)
    whys, names = list(columns.whys), list(read_names(columns.names))
    tests = dict(zip(names, columns.tests.values(), strict=True))
    return dict(
        seen_of(tests, {test: whys[columns.reasons[key]] for test in names if (key := hash(test)) in columns.reasons})
    )


def seen_of(tests: dict[str, int], reasons: dict[str, Reason]) -> Iterator[tuple[str, SeenTest]]:
    for test, packed in tests.items():
        byte, reason = split(packed)[0], reasons.get(test)
        status = status_of(byte)
        assert status is not None
        yield (
            test,
            SeenTest(status, is_flaky(byte), reason.trouble, reason.message)
            if reason
            else SeenTest(status, is_flaky(byte)),
        )


def between_runs(suite: str) -> Comparison:
    return compare(read("night-2", suite), read("night-1", suite), exit_status=None)


@pytest.mark.parametrize(("nightly_run", "suite"), NIGHTLY_RUNS)
def test_each_test_of_a_run_has_the_id_and_status_that_the_standard_library_counts(
    nightly_run: str, suite: str
) -> None:
    words = {test: "errored" if word == "crashed" else word for test, word in counted(nightly_run, suite).items()}
    assert {test: seen.status.value for test, seen in read(nightly_run, suite).items()} == words


@pytest.mark.parametrize(("nightly_run", "suite"), NIGHTLY_RUNS)
def test_the_totals_of_a_run_equal_those_that_were_counted_independently(nightly_run: str, suite: str) -> None:
    counts = compare(read(nightly_run, suite), None, exit_status=1).counts
    totals = (counts.passed, counts.failed, counts.errored, counts.skipped, counts.xfailed)
    assert (totals, counts.xpassed, counts.flaky) == (TOTALS[nightly_run, suite], 0, 0)


@pytest.mark.parametrize("suite", SUITES)
def test_the_changes_between_the_runs_equal_those_that_the_standard_library_counts(suite: str) -> None:
    expected = changed(counted("night-1", suite), counted("night-2", suite))
    assert {name: set(getattr(between_runs(suite), name)) for name in expected} == expected


@pytest.mark.parametrize("suite", SUITES)
def test_the_changes_equal_the_numbers_that_were_counted_by_hand(suite: str) -> None:
    got = between_runs(suite)
    changes = (got.new_failures, got.still_failing, got.fixed, got.new, got.removed, got.precluded, got.newly_skipped)
    assert tuple(len(tests) for tests in changes) == CHANGES[suite]
    assert (got.renamed, got.flaky) == ((), ())


@pytest.mark.parametrize(("nightly_run", "suite"), NIGHTLY_RUNS)
def test_no_run_is_the_labs_fault_or_a_mass_failure(nightly_run: str, suite: str) -> None:
    baseline = read("night-1", suite) if (nightly_run, suite) in NIGHTLY_RUNS[len(SUITES) : -1] else None
    comparison = compare(read(nightly_run, suite), baseline, exit_status=1)
    assert (comparison.infra, comparison.mass) == ("", False)


def test_a_file_that_could_be_collected_again_is_fixed_and_a_renamed_one_is_removed() -> None:
    assert between_runs("ir").fixed == ("tests/python/ir/test_roundtrip_runtime_module.py",)
    assert "tests/python/ir/test_name_supply.py" in between_runs("ir").removed


def test_the_fate_of_tests_lost_with_a_crashed_worker_is_unknown() -> None:
    assert {test.partition("::")[0] for test in between_runs("ir").precluded} == {
        "tests/python/ir/test_node_reflection.py"
    }


def test_a_killed_run_reports_no_missing_test_as_removed() -> None:
    got = compare(read("night-2", "ir"), read("night-1", "ir"), exit_status=137)
    assert (len(got.removed), len(got.precluded), got.fixed) == (0, 15, between_runs("ir").fixed)


@pytest.mark.parametrize(("suite", "files"), [("ir", 10), ("te", 4)])
@pytest.mark.parametrize("baseline", [None, "night-1", "night-2"])
def test_the_broken_lab_is_reported_as_the_labs_fault_without_new_failures(
    suite: str, files: int, baseline: str | None
) -> None:
    current = read("broken-lab", suite)
    comparison = compare(current, read(baseline, suite) if baseline else None, exit_status=2)
    assert comparison.infra == MASS_COLLECTION.format(broken=files, files=files)
    assert "the lab's installation" in comparison.infra
    assert (comparison.new_failures, comparison.new, comparison.removed, comparison.fixed, comparison.mass) == (
        (),
        (),
        (),
        (),
        False,
    )
    assert len(comparison.failing) == comparison.counts.errored == len(counted("broken-lab", suite)) == files
