"""Cells as HTML, and what a list of cells says about a test."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from markupsafe import escape

from handlers.dashboard.history.model import HistoryCommit, HistoryOnTarget
from handlers.dashboard.shared import texts
from handlers.dashboard.shared.cell_markup import SHAPES, legend, row_of_cells, strip_of_cells
from handlers.dashboard.shared.cells import CellState, GridCell

REPOSITORY, TARGET, SHA = "octocat/compiler", "example-lab/gpu", "a" * 40
LINKED = GridCell(state=CellState.STILL, passed=2, failed=3, run_id="night-1")
EMPTY = GridCell(state=CellState.NONE)
ADDRESS = f"/r/octocat/compiler/runs/example-lab/gpu/{SHA}/night-1"


def test_a_cell_with_a_run_links_it_and_shows_the_count_of_its_state() -> None:
    kind, shape = SHAPES[CellState.STILL]
    opening = f'<a class="c {kind}" href="{ADDRESS}" aria-label="{LINKED.words}"><i>{shape}</i>'
    cells = [(SHA, LINKED)]
    assert row_of_cells(REPOSITORY, TARGET, cells, with_counts=True) == f"<td>{opening}3</a></td>\n"
    assert row_of_cells(REPOSITORY, TARGET, cells, with_counts=False) == f"<td>{opening}</a></td>\n"
    labeled = opening.replace(LINKED.words, f"{SHA[:7]}: {LINKED.words}")
    assert strip_of_cells(REPOSITORY, TARGET, cells) == f"<li>{labeled}</a></li>\n"


def test_a_cell_without_a_run_is_a_picture() -> None:
    kind, shape = SHAPES[CellState.NONE]
    picture = f'<span class="c {kind}" role="img" aria-label="{EMPTY.words}"><i>{shape}</i></span>'
    assert row_of_cells(REPOSITORY, TARGET, [(SHA, EMPTY)], with_counts=True) == f"<td>{picture}</td>\n"


def test_a_name_of_a_run_cannot_leave_its_attribute() -> None:
    hostile = GridCell(state=CellState.PASS, passed=1, run_id='"><script>')
    row = row_of_cells(REPOSITORY, TARGET, [(SHA, hostile)], with_counts=True)
    assert "<script>" not in row
    assert row.count('"') == 6


def test_the_legend_has_each_state_once() -> None:
    rows = str(legend()).split("</li>")
    assert rows.pop() == ""
    assert len(rows) == len(texts.LEGEND)
    for row, (state, words) in zip(rows, texts.LEGEND.items(), strict=True):
        kind, shape = SHAPES[CellState(state)]
        assert row == f'<li><span class="c {kind}" aria-hidden="true"><i>{shape}</i></span>{escape(words)}'


def history_of(*cells: GridCell, seconds: Sequence[float | None] = ()) -> HistoryOnTarget:
    """Return the test at commits `a…`, `b…` and so on, the newest first."""
    durations = [*seconds, *[None] * (len(cells) - len(seconds))]
    runs = [
        HistoryCommit(sha="abcdef"[place] * 40, committed_at=datetime(2026, 11, 20, tzinfo=UTC), cell=cell, name="t",
                      seconds=durations[place])
        for place, cell in enumerate(cells)
    ]  # fmt: skip
    fields = dict.fromkeys(("failing", "flakiness", "quarantine", "first_seen", "first_seen_at", "source"))
    names = {"lab": "example-lab", "target": "gpu", "suite": "unit", "reproduce": "", "issue_url": ""}
    return HistoryOnTarget.model_validate({**fields, **names, "runs": runs, "renamed_from": []})


PASSED = GridCell(state=CellState.PASS, passed=1, run_id="night-2")


@pytest.mark.parametrize(
    ("cells", "all_passed", "with_results"),
    [
        ([PASSED, EMPTY, PASSED], True, 2),
        ([PASSED, LINKED], False, 2),
        ([EMPTY], True, 0),
    ],
)
def test_only_commits_with_results_count(cells: list[GridCell], all_passed: bool, with_results: int) -> None:
    history = history_of(*cells)
    assert (history.all_passed, history.with_results) == (all_passed, with_results)


def test_the_runs_of_a_history_are_found_by_commit() -> None:
    history = history_of(LINKED, EMPTY, PASSED)
    assert history.run_ids == {"a" * 40: "night-1", "c" * 40: "night-2"}
    assert history.strip(REPOSITORY) == strip_of_cells(
        REPOSITORY, TARGET, zip(("c" * 40, "b" * 40, "a" * 40), (PASSED, EMPTY, LINKED), strict=True)
    )


def test_time_runs_from_left_to_right_in_the_chart_of_durations_and_failures() -> None:
    chart = history_of(LINKED, PASSED, PASSED, seconds=(4.0, None, 2.0)).chart
    assert chart is not None
    assert [(point.sha[0], point.seconds, point.bad) for point in chart.points] == [("c", 2.0, False), ("a", 4.0, True)]
    assert history_of(PASSED, PASSED, seconds=(4.0,)).chart is None
