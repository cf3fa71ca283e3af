from itertools import product

import pytest
from nightjar_formats.model import Counts, SeenTest, Status, Trouble
from nightjar_formats.runs.infra import ONE_CAUSE_TESTS
from nightjar_formats.runs.texts import ALL_SKIPPED, CRASHED, MASS_COLLECTION, NO_TESTS, ONE_CAUSE, ONLY_CRASHES

from bot.results.compare.diff import MASS_TESTS, Comparison, absent, compare, untested
from bot.results.compare.texts import UNTESTED

A, B = "tests/test_a.py", "tests/test_b.py"
TEST = f"{A}::test_x[llvm]"
OTHER = f"{A}::test_other"
CLASSES = ("new_failures", "still_failing", "fixed", "new", "removed", "precluded", "newly_skipped")

NEW, NEW_FAILURE, STILL, FIXED = {"new"}, {"new_failures"}, {"still_failing"}, {"fixed"}
REMOVED, NEWLY_SKIPPED, NOTHING = {"removed"}, {"newly_skipped"}, set[str]()

# before: (passed, failed, errored, skipped, xfailed, xpassed, absent now)
PAIRS = {
    "passed": (NOTHING, NEW_FAILURE, NEW_FAILURE, NEWLY_SKIPPED, NOTHING, NOTHING, REMOVED),
    "failed": (FIXED, STILL, STILL, NEWLY_SKIPPED, FIXED, FIXED, REMOVED),
    "errored": (FIXED, STILL, STILL, NEWLY_SKIPPED, FIXED, FIXED, REMOVED),
    "skipped": (NOTHING, NEW_FAILURE, NEW_FAILURE, NOTHING, NOTHING, NOTHING, REMOVED),
    "xfailed": (NOTHING, NEW_FAILURE, NEW_FAILURE, NEWLY_SKIPPED, NOTHING, NOTHING, REMOVED),
    "xpassed": (NOTHING, NEW_FAILURE, NEW_FAILURE, NEWLY_SKIPPED, NOTHING, NOTHING, REMOVED),
    "absent": (NEW, NEW | NEW_FAILURE, NEW | NEW_FAILURE, NEW, NEW, NEW, NOTHING),
}
STATES = tuple(PAIRS)
EVERY_PAIR = [
    (baseline, current, PAIRS[baseline][STATES.index(current)]) for baseline, current in product(STATES, STATES)
]


def run(*tests: str, status: str = "passed", trouble: Trouble = Trouble.NONE, message: str = "") -> dict[str, SeenTest]:
    return {test: SeenTest(Status(status), False, trouble, message) for test in tests}


def many(count: int, status: str = "passed", start: int = 0, message: str = "") -> dict[str, SeenTest]:
    return run(
        *(f"{B}::test_{chr(97 + index % 26) * (1 + index // 26)}" for index in range(start, start + count)),
        status=status,
        message=message,
    )


def unread(*files: str) -> dict[str, SeenTest]:
    return run(*files, status="errored", trouble=Trouble.COLLECTION, message="ImportError: no module")


def crashed(*tests: str) -> dict[str, SeenTest]:
    return run(*tests, status="errored", trouble=Trouble.CRASH, message="worker 'gw0' crashed")


INTERNAL = run("pytest::internal", status="errored", trouble=Trouble.INTERNAL)


def compared_runs(
    current: dict[str, SeenTest], baseline: dict[str, SeenTest] | None, exit_status: int | None = 1
) -> Comparison:
    return compare(current, baseline, exit_status=exit_status)


def classes(test: str, comparison: Comparison) -> set[str]:
    return {name for name in CLASSES if test in getattr(comparison, name)}


def in_state(state: str, flaky: bool = False) -> dict[str, SeenTest]:
    tests = {} if state == "absent" else {TEST: SeenTest(Status(state), flaky)}
    return run(OTHER) | tests


@pytest.mark.parametrize(("baseline", "current", "expected"), EVERY_PAIR)
@pytest.mark.parametrize("flaky", [False, True])
def test_every_pair_of_states_has_one_class(baseline: str, current: str, expected: set[str], flaky: bool) -> None:
    comparison = compared_runs(in_state(current, flaky), in_state(baseline))
    if flaky and current in ("failed", "errored"):
        # It also passed here, so nothing says that the code is broken.
        expected = expected - {"new_failures", "still_failing"}
    assert classes(TEST, comparison) == expected
    assert (TEST in comparison.known_flaky) == (flaky and current in ("failed", "errored"))
    assert (TEST in comparison.failing) == (current in ("failed", "errored"))
    assert (TEST in comparison.flaky) == (flaky and current != "absent")
    assert classes(OTHER, comparison) == set()
    assert (comparison.has_baseline, comparison.infra, comparison.mass) == (True, "", False)


def test_without_a_baseline_only_failures_are_reported() -> None:
    comparison = compared_runs(in_state("failed", flaky=True), None)
    counts = Counts(passed=1, failed=1, flaky=1)
    assert comparison == Comparison(counts, False, failing=(TEST,), flaky=(TEST,), known_flaky=(TEST,))


def test_a_test_is_newly_flaky_if_its_baseline_does_not_report_it_as_flaky() -> None:
    assert compared_runs(in_state("passed", flaky=True), in_state("passed")).newly_flaky == (TEST,)
    assert compared_runs(in_state("passed", flaky=True), in_state("absent")).newly_flaky == (TEST,)
    assert compared_runs(in_state("passed", flaky=True), in_state("failed", flaky=True)).newly_flaky == ()
    assert compared_runs(in_state("passed"), in_state("passed", flaky=True)).newly_flaky == ()
    old_names, new_names = (
        {f"{file}::{number}": SeenTest(Status.PASSED, flaky=number == 7) for number in range(20)}
        for file in (A, "moved/test_a.py")
    )
    assert compared_runs(new_names, old_names).newly_flaky == ()


def test_each_list_is_sorted() -> None:
    names = [f"{A}::test_{letter}" for letter in "cab"]
    comparison = compared_runs(run(*names, status="failed"), run(OTHER))
    assert comparison.new_failures == comparison.new == comparison.failing == tuple(sorted(names))


def test_all_statuses_are_counted() -> None:
    current = {f"{A}::test_{status}": SeenTest(status) for status in Status} | {
        TEST: SeenTest(Status.PASSED, flaky=True)
    }
    assert compared_runs(current, None).counts == Counts(2, 1, 1, 1, 1, 1, 1)


# Files that could not be collected


def test_the_tests_of_a_file_that_could_not_be_collected_are_precluded_and_the_file_is_a_new_failure() -> None:
    comparison = compared_runs(run(f"{B}::test_y") | unread(A), run(TEST, f"{B}::test_y", f"{B}::test_z"))
    assert classes(A, comparison) == {"new_failures", "new"}
    assert classes(TEST, comparison) == {"precluded"}
    assert classes(f"{B}::test_z", comparison) == {"removed"}


def test_tests_below_a_folder_or_module_that_could_not_be_collected_are_precluded_too() -> None:
    current = run(f"{B}::test_y") | unread("tests/gpu", "tests.test_c")
    comparison = compared_runs(
        current, run(f"{B}::test_y", "tests/gpu/test_d.py::test_x", "tests.test_c.TestC::test_x")
    )
    assert comparison.precluded == ("tests.test_c.TestC::test_x", "tests/gpu/test_d.py::test_x")


def test_a_file_that_fails_at_collection_again_is_still_failing() -> None:
    assert classes(A, compared_runs(run(OTHER) | unread(A), run(OTHER) | unread(A))) == {"still_failing"}


@pytest.mark.parametrize("current", ["passed", "failed", "skipped"])
def test_a_file_is_fixed_once_its_tests_are_back_whatever_their_status(current: str) -> None:
    comparison = compared_runs(run(TEST, status=current) | run(f"{B}::test_y"), unread(A) | run(f"{B}::test_y"))
    assert classes(A, comparison) == {"fixed"}
    assert "new" in classes(TEST, comparison)


def test_a_file_that_could_not_be_collected_and_no_longer_exists_is_removed() -> None:
    assert classes(A, compared_runs(run(f"{B}::test_y"), unread(A) | run(f"{B}::test_y"))) == {"removed"}


def test_a_test_that_crashes_does_not_count_as_a_collection_error_of_its_file() -> None:
    assert classes(A, compared_runs(crashed(TEST) | run(f"{B}::test_y"), unread(A))) == {"fixed"}


def test_after_collection_errors_alone_nothing_is_removed_because_pytest_stopped() -> None:
    comparison = compared_runs(unread(A) | run("tests/test_c.py", status="skipped"), run(TEST, f"{B}::test_y"), None)
    assert comparison.precluded == (TEST, f"{B}::test_y")
    assert (comparison.new_failures, comparison.infra) == ((A,), "")


def test_skipped_tests_show_that_pytest_continued_after_a_collection_error() -> None:
    comparison = compared_runs(unread(A) | run(f"{B}::test_y", status="skipped"), run(f"{B}::test_y", f"{B}::test_z"))
    assert (comparison.removed, comparison.precluded) == ((f"{B}::test_z",), ())


def test_a_folder_is_not_fixed_by_a_file_in_it_that_cannot_be_collected() -> None:
    current = unread("tests/ir/test_c.py") | run(f"{B}::test_y")
    assert classes("tests/ir", compared_runs(current, unread("tests/ir"))) == {"removed"}
    assert classes("tests/ir", compared_runs(current | run("tests/ir/test_d.py::test_x"), unread("tests/ir"))) == {
        "fixed"
    }


# Files that were skipped completely


@pytest.mark.parametrize("trouble", [Trouble.NONE, Trouble.COLLECTION])
def test_tests_of_a_completely_skipped_file_are_newly_skipped_and_not_removed(trouble: Trouble) -> None:
    current = run(A, status="skipped", trouble=trouble) | run(f"{B}::test_y")
    baseline = run(TEST) | run(OTHER, status="failed") | run(f"{A}::test_s", status="skipped") | run(f"{B}::test_y")
    comparison = compared_runs(current, baseline)
    assert comparison.newly_skipped == (OTHER, TEST)
    assert (comparison.removed, comparison.precluded, comparison.new) == ((), (), (A,))


def test_a_skipped_file_that_runs_again_is_neither_removed_nor_fixed() -> None:
    assert classes(A, compared_runs(run(TEST), run(A, status="skipped"))) == set()


# Runs that ended early


def test_the_other_tests_of_a_file_in_which_the_process_died_are_unknown() -> None:
    comparison = compared_runs(crashed(TEST) | run(f"{B}::test_y"), run(TEST, OTHER, f"{B}::test_y", f"{B}::test_z"))
    assert (comparison.precluded, comparison.removed) == ((OTHER,), (f"{B}::test_z",))
    assert comparison.new_failures == (TEST,)


@pytest.mark.parametrize("exit_status", [-9, -1, 2, 3, 4, 124, 125, 137, 139, 0xC0000005])
def test_tests_missing_in_a_killed_run_are_unknown(exit_status: int) -> None:
    comparison = compared_runs(run(OTHER), run(TEST, OTHER), exit_status)
    assert classes(TEST, comparison) == {"precluded"}


@pytest.mark.parametrize("exit_status", [None, 0, 1, 5, 8])
def test_tests_missing_in_a_finished_run_are_removed(exit_status: int | None) -> None:
    assert classes(TEST, compared_runs(run(OTHER), run(TEST, OTHER), exit_status)) == {"removed"}


def test_a_run_that_skipped_whole_files_counts_as_finished() -> None:
    skipped = run(A, status="skipped")
    assert classes(OTHER, compared_runs(skipped, skipped | run(f"{B}::test_y"), 0)) == set()
    assert classes(f"{B}::test_y", compared_runs(skipped, run(f"{B}::test_y"), 0)) == {"removed"}


def test_an_internal_error_of_the_runner_ends_the_run_and_is_fixed_once_it_is_absent() -> None:
    assert classes(TEST, compared_runs(run(OTHER) | INTERNAL, run(TEST, OTHER))) == {"precluded"}
    assert classes("pytest::internal", compared_runs(run(OTHER), run(OTHER) | INTERNAL)) == {"fixed"}


def test_missing_failed_tests_are_either_files_that_run_again_or_removed_tests() -> None:
    failed = [A, OTHER, f"{B}::test_y", "tests/test_c.py"]
    assert absent(run(TEST), failed, exit_status=1) == ({A}, {OTHER, f"{B}::test_y", "tests/test_c.py"})
    assert absent(run(TEST) | unread(B), failed, exit_status=1) == ({A}, {OTHER, "tests/test_c.py"})
    assert absent(run(TEST), failed, exit_status=2) == ({A}, set())


def test_a_run_with_only_skipped_tests_tested_nothing() -> None:
    assert untested(run(TEST, OTHER, status="skipped")) == UNTESTED.format(skipped=2)
    assert untested(run(TEST, status="skipped") | run(OTHER)) == ""


# Renames


def test_a_renamed_test_is_compared_under_its_old_name() -> None:
    names = "abcdefghijkl"
    baseline = run(*(f"{A}::test_{name}" for name in names)) | run(f"{A}::test_a", status="failed")
    current = run(*(f"{B}::test_{name}" for name in names)) | run(f"{B}::test_b", status="failed")
    comparison = compared_runs(current | run(f"{B}::test_y"), baseline)
    assert comparison.renamed == tuple((f"{A}::test_{name}", f"{B}::test_{name}") for name in names)
    assert (comparison.fixed, comparison.new_failures) == ((f"{B}::test_a",), (f"{B}::test_b",))
    assert (comparison.new, comparison.removed) == ((f"{B}::test_y",), ())


def test_an_abandoned_search_for_renamed_tests_is_reported() -> None:
    baseline, current = (run(*(f"{file}::test_{number}" for number in range(12))) for file in (A, B))
    assert compared_runs(current, baseline).unsearched is False
    comparison = compare(current, baseline, exit_status=1, most_steps=10)
    assert comparison.unsearched
    assert (comparison.renamed, len(comparison.new), len(comparison.removed)) == ((), 12, 12)


# Runs without usable results


BEFORE = many(30)
FILES = tuple(f"tests/test_{letter}.py" for letter in "abcdefgh")


@pytest.mark.parametrize(
    ("current", "exit_status", "infra_reason"),
    [
        ({}, None, NO_TESTS),
        ({}, 0, NO_TESTS),
        ({}, 5, NO_TESTS),
        ({}, 1, CRASHED.format(status=1)),
        ({}, -11, CRASHED.format(status=-11)),
        (INTERNAL, 3, ONLY_CRASHES),
        (INTERNAL | crashed(TEST), None, ONLY_CRASHES),
        (crashed(TEST, OTHER), 1, ONLY_CRASHES),
        (many(30, "skipped"), 0, ALL_SKIPPED.format(skipped=30, good=30)),
        (unread(*FILES[:3]), 2, MASS_COLLECTION.format(broken=3, files=3)),
        (
            unread(*FILES[:6]) | run(f"{FILES[6]}::test_x", f"{FILES[7]}::test_x"),
            1,
            MASS_COLLECTION.format(broken=6, files=8),
        ),
        (many(25, "failed", message="no device") | many(5, start=25), 1, ONE_CAUSE.format(failed=25, ran=30)),
        (many(ONE_CAUSE_TESTS, "failed", message="no device"), 1, ONE_CAUSE.format(failed=10, ran=10)),
        (many(9, "failed", message="no device") | many(1, start=9), 1, ONE_CAUSE.format(failed=9, ran=10)),
    ],
)
def test_a_run_without_usable_results_is_reported_as_the_labs_fault(
    current: dict[str, SeenTest], exit_status: int | None, infra_reason: str
) -> None:
    for baseline in (BEFORE, None) if infra_reason != ALL_SKIPPED.format(skipped=30, good=30) else (BEFORE,):
        comparison = compared_runs(current, baseline, exit_status)
        assert comparison.infra == infra_reason
        assert "the lab's" in infra_reason
        assert not any(getattr(comparison, name) for name in CLASSES)
        assert not comparison.mass


@pytest.mark.parametrize(
    "current",
    [
        unread(*FILES[:2]),
        unread(*FILES[:5]) | run(f"{FILES[5]}::test_x", f"{FILES[6]}::test_x"),
        INTERNAL | run(TEST),
        crashed(TEST) | run(OTHER),
        many(24, "failed", message="no device") | many(6, start=24),
        many(30, "failed"),
        many(15, "failed", message="no device") | many(15, "failed", start=15, message="wrong result"),
        many(ONE_CAUSE_TESTS - 1, "failed", message="no device"),
        many(8, "failed", message="no device") | many(2, start=8),
        many(8, "failed", message="no device") | many(1, "failed", start=8, message="wrong result") | many(1, start=9),
        many(29, "skipped") | many(1, start=29),
    ],
)
def test_a_run_that_is_slightly_better_counts_as_usable(current: dict[str, SeenTest]) -> None:
    assert compared_runs(current, BEFORE).infra == ""


def test_a_completely_skipped_run_is_a_lab_fault_if_three_tests_passed_before() -> None:
    baseline = many(3) | many(27, "skipped", start=3)
    assert compared_runs(many(30, "skipped"), baseline).infra == ALL_SKIPPED.format(skipped=30, good=3)


@pytest.mark.parametrize("baseline", [None, many(30, "skipped"), many(2) | many(28, "skipped", start=2)])
def test_a_completely_skipped_run_is_no_lab_fault_if_it_was_so_before(baseline: dict[str, SeenTest] | None) -> None:
    assert compared_runs(many(30, "skipped"), baseline).infra == ""


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: device {} is lost",
        "worker 'gw{}' crashed while running 'tests/test_a.py::test_{}'",
        "Segmentation fault at 0x7f{}a",
        "cannot open /dev/adreno{}: busy",
        "cannot open C:\\lab\\{}",
    ],
)
def test_messages_that_differ_in_numbers_addresses_paths_and_workers_have_one_cause(message: str) -> None:
    current = {
        f"{A}::test_{index}": SeenTest(Status.FAILED, message=message.format(index, "abcdefghijkl"[index]))
        for index in range(12)
    }
    assert compared_runs(current, None).infra == ONE_CAUSE.format(failed=12, ran=12)


# Mass failures


@pytest.mark.parametrize(
    ("failed", "passed", "mass"),
    [
        (MASS_TESTS, 100, True),
        (MASS_TESTS - 1, 10, False),
        (MASS_TESTS, MASS_TESTS * 9, False),
        (MASS_TESTS, 179, True),
    ],
)
def test_this_many_new_failures_at_once_are_a_mass_failure(failed: int, passed: int, mass: bool) -> None:
    current = many(failed, "failed") | many(passed, start=failed)
    comparison = compared_runs(current, many(failed + passed))
    assert (len(comparison.new_failures), comparison.mass) == (failed, mass)
    assert not compared_runs(current, current).mass
