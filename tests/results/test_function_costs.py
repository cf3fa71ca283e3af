"""What each test function costs and catches: computed from runs, and again here from the list of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.results.store.lists.function_costs import FunctionName, function_costs, function_of
from bot.results.store.store import ResultsStore
from tests.results.uploads import REPOSITORY, Upload
from tests.tables import with_tables

ADD, CONV = "te/test_ops.py::test_add", "te/test_ops.py::TestConv::test_conv"
SLOW, GTEST = "te/test_ops.py::test_ssd", "gtest.Matmul/0"
ONE, TWO = f"{CONV}[1]", f"{CONV}[2-x::y]"
SECONDS = {ADD: 1.0, ONE: 20.0, TWO: 40.0, SLOW: 600.0, GTEST: 30.0}
ALL = dict.fromkeys(SECONDS, "passed")


def nightly(commit: int, target: str = "adreno", **failed: str) -> Upload:
    tests = {**ALL, **dict.fromkeys(failed.values(), "failed")}
    return Upload(commit, tests, seconds=SECONDS, target=target)


def of_pull(commit: int, pull: int, target: str = "adreno", **failed: str) -> Upload:
    tests = {**ALL, SLOW: "skipped", **dict.fromkeys(failed.values(), "failed")}
    return Upload(commit, tests, seconds=SECONDS, target=target, mainline=False, pull_request=pull)


def test_costs_are_averages_over_pull_requests_and_catches_are_what_main_did_not_know(tmp_path: Path) -> None:
    store = ResultsStore(with_tables(f"sqlite:///{tmp_path}/nightjar.db"))
    store.open()
    for upload in (
        nightly(10),
        nightly(10, target="hexagon"),
        nightly(10, target="idle"),
        of_pull(11, 1, a=ONE, b=TWO),  # two parameters, one pull request
        of_pull(12, 1, a=ONE),  # and its next head
        of_pull(12, 1, target="hexagon", a=ADD),
        nightly(20, a=ADD, b=SLOW),
        of_pull(21, 2, a=ADD),  # main failed already
        nightly(30),
        of_pull(31, 3, a=ADD),
        of_pull(32, 4),
        nightly(40, a=SLOW),
        nightly(50, a=SLOW),
        of_pull(5, 9, a=GTEST),  # too long ago
        nightly(60),
    ):
        assert store.put(upload.run, upload.columns)
    measured = store.read(function_costs, REPOSITORY, 9_000.0)
    store.close()
    assert measured.pulls == 4
    # One of four pull requests ran on hexagon, none on the third target.
    share = 1.0 + 0.25
    costs: dict[str, object] = {
        str(function): (
            cost.seconds / share,
            cost.pull_seconds / share,
            sorted(cost.failed_pulls),
            sorted(cost.caught),
            cost.breaks,
        )
        for function, cost in measured.costs.items()
    }
    assert costs == {
        ADD: (pytest.approx(1, rel=0.04), pytest.approx(1, rel=0.04), [1, 2, 3], [1, 3], 1),
        CONV: (pytest.approx(60, rel=0.04), pytest.approx(60, rel=0.04), [1], [1], 0),
        SLOW: (pytest.approx(600, rel=0.04), 0.0, [], [], 2),
        GTEST: (pytest.approx(30, rel=0.04), pytest.approx(30, rel=0.04), [], [], 0),
    }


def test_costs_and_catches_follow_a_test_to_its_new_name(tmp_path: Path) -> None:
    new = f"{SLOW}_model"
    names = {SLOW: new}
    seconds = {**SECONDS, new: 600.0}

    def upload(commit: int, name: str, status: str, pull: int | None = None) -> Upload:
        tests = {ADD: "passed", name: status}
        return Upload(commit, tests, seconds=seconds, mainline=pull is None, pull_request=pull)

    store = ResultsStore(
        with_tables(f"sqlite:///{tmp_path}/nightjar.db"),
        renames=lambda removed, _: {name: names[name] for name in removed if name in names},
    )
    store.open()
    for run in (
        upload(10, SLOW, "passed"),
        upload(11, SLOW, "failed", pull=1),
        upload(20, SLOW, "failed"),
        upload(30, new, "failed"),  # it failed before, under its old name
        upload(40, new, "passed"),
        upload(41, SLOW, "failed", pull=2),  # based on a commit from before the rename
        upload(42, new, "failed", pull=3),
    ):
        assert store.put(run.run, run.columns)
    measured = store.read(function_costs, REPOSITORY, 9_000.0)
    store.close()
    assert {str(function) for function in measured.costs} == {ADD, new}
    cost = measured.costs[function_of(new)]
    assert [cost.seconds, cost.pull_seconds] == pytest.approx([600, 600], rel=0.04)
    assert (cost.failed_pulls, cost.caught, cost.breaks) == ({1, 2, 3}, {1, 2, 3}, 1)


def test_the_function_of_a_test_has_no_parameters() -> None:
    assert function_of(TWO) == FunctionName("te/test_ops.py", "TestConv::test_conv")
    assert function_of(GTEST) == FunctionName(GTEST)
    assert function_of("te/test_ops.py") == FunctionName("te/test_ops.py")
