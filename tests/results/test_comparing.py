"""What a suite's run is compared with, and what two consecutive runs confirm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nightjar_formats.model import SeenTest, Status

from bot.core.aliases import Aliases
from bot.results.report.compared import compared_with, compared_with_any, exit_status, with_confirmed
from bot.results.state import Run
from tests.results.reported import BASE, a_run, a_suite


@pytest.mark.parametrize(
    ("runs", "status"),
    [
        ([], None),
        ([a_run()], None),
        ([a_run(exit_status=1)], 1),
        ([a_run(exit_status=3), a_run("b", exit_status=0)], 0),
        ([a_run(exit_status=0), a_run("b", shard_index=2, exit_status=1)], 1),
        ([a_run(exit_status=9), a_run("b", shard_index=2, exit_status=-9)], -9),
        ([a_run(exit_status=2), a_run("b", shard_index=2, exit_status=1), a_run("c", shard_index=3)], 2),
    ],
)
def test_the_exit_status_is_the_worst_among_the_last_runs_of_each_shard(runs: list[Run], status: int | None) -> None:
    assert exit_status(replace(a_suite(), runs=tuple(runs))) == status


def test_a_failure_is_confirmed_under_its_new_name() -> None:
    def nightly_run(status: Status, folder: str) -> dict[str, SeenTest]:
        return {f"{folder}/test_tile.py::test_{n}": SeenTest(status if n == 7 else Status.PASSED) for n in range(20)}

    earlier, baseline_tests = nightly_run(Status.PASSED, "tests"), nightly_run(Status.FAILED, "tests/moved")
    suite = a_suite(seen=nightly_run(Status.FAILED, "tests/again"))
    confirmed_suite = with_confirmed(suite, compared_with(suite, BASE, baseline_tests), baseline_tests, earlier)
    assert confirmed_suite.comparison.still_failing == ("tests/again/test_tile.py::test_7",)
    assert confirmed_suite.confirmed == {"tests/again/test_tile.py::test_7"}


@pytest.mark.parametrize(("status", "confirmed"), [(Status.PASSED, {"test_new"}), (Status.FAILED, set[str]())])
def test_a_failure_is_confirmed_once_although_its_test_was_renamed_meanwhile(
    status: Status, confirmed: set[str]
) -> None:
    others = {"test_other": SeenTest(Status.PASSED)}
    earlier = others | {"test_old": SeenTest(status)}
    baseline_tests = others | {"test_new": SeenTest(Status.FAILED)}
    suite = a_suite(seen=baseline_tests)
    compared = compared_with(suite, BASE, baseline_tests)
    aliases = Aliases([("test_old", "test_new")])
    assert with_confirmed(suite, compared, baseline_tests, earlier, aliases).confirmed == confirmed


def test_mass_failures_are_confirmed_like_any_failure() -> None:
    def nightly_run(status: Status) -> dict[str, SeenTest]:
        return {f"a::{n}": SeenTest(status if n < 30 else Status.PASSED) for n in range(100)}

    earlier, baseline_tests = nightly_run(Status.PASSED), nightly_run(Status.FAILED)
    suite = a_suite(seen=baseline_tests)
    confirmed_suite = with_confirmed(suite, compared_with(suite, BASE, baseline_tests), baseline_tests, earlier)
    assert len(confirmed_suite.confirmed) == 30


def test_a_suite_is_compared_with_a_commit_that_a_person_chose_if_that_has_usable_results() -> None:
    passed, failed = SeenTest(Status.PASSED), SeenTest(Status.FAILED)
    suite = a_suite(seen={"a": failed, "b": passed, "c": passed})
    base = {"a": passed, "b": failed, "c": passed}
    compared = compared_with_any(suite, BASE, base)
    assert compared == compared_with(suite, BASE, base)
    assert (compared.baseline, compared.comparison.new_failures, compared.comparison.fixed) == (BASE, ("a",), ("b",))
    without = compared_with_any(suite, BASE, {})
    assert (without.baseline, without.comparison.has_baseline, without.comparison.infra) == (None, False, "")
    skipped = compared_with_any(suite, BASE, dict.fromkeys("abc", SeenTest(Status.SKIPPED)))
    assert (skipped.baseline, skipped.comparison.has_baseline) == (None, False)
    assert skipped.comparison.infra.startswith("its results at the base are unusable: ")
    renamed = compared_with_any(suite, BASE, {"old": passed, "b": passed}, Aliases([("old", "a")]))
    assert renamed.comparison.new_failures == ("a",)
    incomplete = replace(suite, missing_shards=(2,), shard_total=2)
    assert compared_with_any(suite, BASE, {**base, "d": passed}).comparison.removed == ("d",)
    assert compared_with_any(incomplete, BASE, {**base, "d": passed}).comparison.removed == ()
