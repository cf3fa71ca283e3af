"""How a check run reports failures of known flaky tests."""

from __future__ import annotations

from nightjar_formats.model import Detail

from bot.results.compare.context import FailureContext
from bot.results.compare.flaky import Flakiness
from bot.results.compare.health import RunFlips, SuiteHealth
from bot.results.report.check_run import listed_failures, results_report
from bot.results.report.compared import with_flaky
from tests.results.reported import a_suite, compared, findings

TILE, MATMUL = "tests/test_tile.py::test_tile", "tests/test_matmul.py::test_matmul"
BOTH = {TILE: Detail(message="assert 1 == 2"), MATMUL: Detail(message="wrong")}


def test_a_failure_explained_by_flakiness_is_not_new_but_is_listed_with_its_rate() -> None:
    flakiness = {TILE: Flakiness(38, 2, 1, row=1), MATMUL: Flakiness(38, 2, 0, row=1)}
    content = results_report(findings((a_suite(BOTH), with_flaky(compared(*BOTH), flakiness))))
    assert content.title.startswith("1 new failure, 1 known flaky · ")
    assert "### New failures: 1" in content.summary
    assert (
        "### Known flaky, failed: 1\n\n| test | flakiness | message |\n| --- | --- | --- |\n"
        f"| `{TILE}` | failed in 2 of 38 runs, failed and passed on one commit in 1 run | `assert 1 == 2` |"
    ) in content.summary


def test_known_flaky_failures_alone_are_a_success_that_names_them() -> None:
    flakiness = dict.fromkeys(BOTH, Flakiness(5, 0, 2, row=1))
    content = results_report(findings((a_suite(BOTH), with_flaky(compared(*BOTH), flakiness))))
    assert content.conclusion == "success"
    assert content.title.startswith("2 known flaky · ")
    assert "**Success**: no new failures, but 2 failures of known flaky tests." in content.summary
    assert "| failed and passed on one commit in 2 runs |" in content.summary


def test_a_failure_explained_by_flakiness_is_not_confirmed() -> None:
    suite = compared(still_failing=tuple(sorted(BOTH)), confirmed=BOTH)
    with_known_flaky = with_flaky(suite, {TILE: Flakiness(38, 2, 1, row=2)})
    assert with_known_flaky.confirmed == {MATMUL}
    assert with_known_flaky.comparison.still_failing == (MATMUL,)
    assert with_known_flaky.comparison.known_flaky == (TILE,)


def test_a_known_flaky_failure_says_once_where_else_it_fails_and_at_which_rate() -> None:
    flakiness = {TILE: Flakiness(38, 2, 1, row=1)}
    contexts = {("operators", TILE): FailureContext(good="a" * 40, failed=3, runs=40, also_on=("example-lab/adreno",))}
    reported = findings((a_suite(BOTH), with_flaky(compared(TILE), flakiness)), contexts=contexts)
    assert listed_failures(reported) == {"operators": [TILE]}
    rate = "failed in 2 of 38 runs, failed and passed on one commit in 1 run"
    history = "last passed at `aaaaaaaaaa`; also fails on `example-lab/adreno`"
    assert f"| `{TILE}` | {rate} | `assert 1 == 2` | {history} |" in results_report(reported).summary


def test_unreliable_results_are_named_in_the_title_and_explained() -> None:
    health = SuiteHealth("c" * 40, newest=RunFlips("d" * 40, 750, 7_000), stable=2)
    unreliable = {"operators": health, "relax": health}
    content = results_report(findings((a_suite(BOTH), compared(*BOTH)), unreliable=unreliable))
    assert content.title.startswith("Unreliable results since cccccccccc · 2 new failures · ")
    assert content.summary.startswith(
        "- **Unreliable results** of `operators` since cccccccccc: 750 of 7,000 tests flipped between passed and "
        "failed, then back, in dddddddddd, the newest unstable run. Stable runs in a row since then: 2 of 5.\n\nA run "
        "is unstable if at least 10 tests and 3% of all tests flip back in it."
    )
    assert "relax" not in content.summary
    assert content.conclusion == "neutral"


def test_if_the_beginning_of_unreliable_results_is_unknown_the_title_says_so() -> None:
    health = SuiteHealth("c" * 40, older=True, newest=RunFlips("d" * 40, 10, 12))
    content = results_report(findings((a_suite(BOTH), compared(*BOTH)), unreliable={"operators": health}))
    assert content.title.startswith("Unreliable results since cccccccccc or earlier · ")
