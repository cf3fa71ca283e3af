"""What a cell says about a commit without results."""

from __future__ import annotations

import pytest
from nightjar_formats.model import TargetKey

from bot.results.compare.target_health import STALE_SECONDS
from bot.results.store.grid.rows import GridLine
from bot.results.store.tables.names import SuiteRow
from handlers.dashboard.shared.cells import CellState, no_cell

GPU = TargetKey("octocat/compiler", "example-lab", "gpu")
FIRST = 1_000_000.0
"""When the first commit of the line was made."""


@pytest.mark.parametrize(
    ("first", "committed_at", "waited", "expected", "state"),
    [
        (FIRST, FIRST + 1, STALE_SECONDS - 1, True, CellState.WAIT),
        (FIRST, FIRST + 1, STALE_SECONDS, True, CellState.MISSING),
        (FIRST, FIRST, STALE_SECONDS, True, CellState.MISSING),
        (FIRST, FIRST - 1, STALE_SECONDS, True, CellState.NONE),
        (FIRST, FIRST + 1, STALE_SECONDS, False, CellState.NONE),
        (None, FIRST + 1, STALE_SECONDS, True, CellState.NONE),
    ],
)
def test_results_are_expected_from_the_first_commit_on_and_late_after_36_hours(
    first: float | None, committed_at: float, waited: float, expected: bool, state: CellState
) -> None:
    line = GridLine(1, "operators", SuiteRow(1, 10), GPU, 1, first)
    assert no_cell(line, committed_at, committed_at + waited, expected=expected).state is state
