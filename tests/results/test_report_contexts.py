"""The context of each failure in a check run: since when, the last pass, earlier failures, other targets."""

from __future__ import annotations

import pytest
from nightjar_formats.model import Counts, Detail

from bot.results.compare.context import FailureContext
from bot.results.report.check_run import MOST_ROWS, listed_failures, results_report
from bot.results.report.sentences import context_of
from tests.gfm import rendered
from tests.results.reported import a_suite, compared, findings, many

SINCE, GOOD = "c" * 40, "a" * 40
TILE, MATMUL = "tests/test_tile.py::test_tile[llvm]", "tests/test_matmul.py::test_matmul"
BOTH = {TILE: Detail(message="assert 1 == 2"), MATMUL: Detail(message="wrong")}
TARGETS = tuple(f"example-lab/board-{number}" for number in range(5))


@pytest.mark.parametrize(
    ("context", "text"),
    [
        (None, ""),
        (FailureContext(), ""),
        (FailureContext(good=GOOD, runs=40), "last passed at `aaaaaaaaaa`"),
        (FailureContext(since=SINCE, good=GOOD), "since `cccccccccc`; last passed at `aaaaaaaaaa`"),
        (FailureContext(since=SINCE), "since `cccccccccc`; never passed"),
        (FailureContext(since=SINCE, older=True), "since `cccccccccc` or earlier"),
        (FailureContext(since=SINCE, good=GOOD, older=True), "since `cccccccccc`; last passed at `aaaaaaaaaa`"),
        (
            FailureContext(good=GOOD, failed=3, runs=40),
            "last passed at `aaaaaaaaaa`; failed in 3 of 40 earlier runs",
        ),
        (FailureContext(also_on=TARGETS[:1]), "also fails on `example-lab/board-0`"),
        (
            FailureContext(also_on=TARGETS),
            "also fails on `example-lab/board-0`, `example-lab/board-1`, `example-lab/board-2` and 2 more",
        ),
    ],
)
def test_the_history_of_a_failure_is_one_line(context: FailureContext | None, text: str) -> None:
    assert context_of(context) == text


def test_the_history_is_next_to_each_failure_that_has_one() -> None:
    contexts = {
        ("operators", MATMUL): FailureContext(good=GOOD, failed=3, runs=40),
        ("operators", many("still_failing", 1)[0]): FailureContext(since=SINCE, good=GOOD),
    }
    content = results_report(findings((a_suite(BOTH), compared(*BOTH, still_failing=2)), contexts=contexts))
    assert "<th>history</th>" in rendered(content.summary)
    assert f"| `{MATMUL}` | failed | `wrong` | last passed at `aaaaaaaaaa`; failed in 3 of 40 earlier runs |" in (
        content.summary
    )
    assert f"| `{TILE}` | failed | `assert 1 == 2` |  |" in content.summary
    assert "since `cccccccccc`; last passed at `aaaaaaaaaa`" in content.text


def test_without_any_history_there_is_no_column() -> None:
    content = results_report(findings((a_suite(BOTH), compared(*BOTH, still_failing=2))))
    assert "history" not in content.summary + content.text


def test_history_is_only_read_for_listed_failures() -> None:
    still_failing = many("still_failing", 3000)
    reported = findings(
        (a_suite(BOTH), compared(*BOTH, still_failing=still_failing, confirmed=still_failing[-1:], fixed=9)),
        (a_suite(name="relax"), compared(baseline=None, failing=50, counts=Counts(failed=50))),
    )
    assert listed_failures(reported) == {
        "operators": [MATMUL, TILE, still_failing[-1], *still_failing[: MOST_ROWS - 1]],
        "relax": list(many("failing", 50)[:MOST_ROWS]),
    }
