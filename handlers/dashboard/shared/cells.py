"""Decide the state of each cell of a grid, and describe it in words. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache

from nightjar_formats.columns import BAD_CODES, CODES, FLAKY, STATUS_BITS
from nightjar_formats.model import Status
from pydantic import BaseModel, Field

from bot.results.compare.failure_class import FailureClass, class_of_failure
from bot.results.compare.target_health import STALE_SECONDS
from bot.results.store.grid.grid import GridPoint
from bot.results.store.grid.rows import GridLine
from bot.results.store.tables.cells import KNOWN, UNCOMPARED, CellCounts
from handlers.dashboard.shared import texts


class CellState(StrEnum):
    """The states of a cell; `cell_markup.SHAPES` gives each its shape."""

    NEW = "new-failure"
    STILL = "still-failing"
    UNJUDGED = "failing-uncompared"
    """It fails, and there is no earlier run to compare with: nobody knows whether that is new."""
    KNOWN = "known-failure"
    """It fails, and a quarantine or the known flakiness of the test explains that."""
    FLAKY = "flaky"
    PASS = "passed"  # noqa: S105 (a status)
    SKIPPED = "skipped"
    INFRA = "infra"
    PART = "incomplete"
    MISSING = "missing"
    WAIT = "waiting"
    ABSENT = "absent"
    """The test was not part of the run."""
    NONE = "not-run"
    """No result was expected."""


FAILING = (CellState.NEW, CellState.STILL, CellState.UNJUDGED)
STATE_OF_FAILURE = {
    FailureClass.NEW: CellState.NEW,
    FailureClass.UNJUDGED: CellState.UNJUDGED,
    FailureClass.QUARANTINED: CellState.KNOWN,
    FailureClass.KNOWN_FLAKY: CellState.KNOWN,
    FailureClass.STILL_FAILING: CellState.STILL,
    FailureClass.UNUSABLE: CellState.INFRA,
}
MOST_WRITTEN_OUT = 999
"""The most failures of which a cell says how many are new: longer numbers do not fit into it."""
ONE_SIDED = ("device_only", "simulator_only")
"""Counts of failures that pass on the other one of a simulator and its device."""
COUNTED = ("passed", "failed", "new", "known", "flaky", "skipped")
COUNT_OF_STATE = {
    CellState.NEW: "new",
    CellState.STILL: "failing",
    CellState.UNJUDGED: "failing",
    CellState.KNOWN: "known",
    CellState.FLAKY: "flaky",
    CellState.PASS: "passed",
    CellState.SKIPPED: "skipped",
}
"""The count of a cell that a grid shows; other states have none."""
WORST_FIRST = (
    CellState.NEW,
    CellState.INFRA,
    CellState.PART,
    CellState.STILL,
    CellState.UNJUDGED,
    CellState.KNOWN,
    CellState.FLAKY,
    CellState.PASS,
)
"""The order in which a state wins where one cell joins several suites."""


class GridCell(BaseModel, extra="forbid"):
    """One row at one commit.

    `failed` includes the `new` and the `known` failures, of which none is both. A flaky test counts in `flaky` and in
    one other.
    """

    state: CellState
    passed: int = 0
    failed: int = 0
    new: int = Field(default=0, description="Tests that failed here and not at the previous nightly commit.")
    known: int = Field(default=0, description="Failures that a quarantine or the flakiness of the test explains.")
    flaky: int = 0
    skipped: int = 0
    device_only: int = Field(
        default=0, description="Unexplained failures that pass on a simulator of the target (`simulates` in app.yaml)."
    )
    simulator_only: int = Field(
        default=0, description="Unexplained failures that pass on the device that the target simulates."
    )
    run_id: str = Field(default="", description="The ID of a run of this commit; empty if there is none.")
    reason: str = Field(default="", description="If the state is `infra`: why there are no usable results.")

    @property
    def words(self) -> str:
        """Describe the cell in words, for screen readers."""
        counts = (self.passed, self.failing, self.new, self.known, self.flaky, self.skipped)
        return texts.cell_words(self.state, *counts, self.device_only, self.simulator_only)

    @property
    def failing(self) -> int:
        """Return the number of failures that nothing explains."""
        return self.failed - self.known

    @property
    def count(self) -> str:
        """Return the count that belongs to the state, empty if the state has none or it is 0."""
        if self.state is CellState.NEW and self.new < self.failing <= MOST_WRITTEN_OUT:
            return texts.NEW_OF_FAILING.format(new=self.new, failing=self.failing)
        number: int = getattr(self, COUNT_OF_STATE[self.state]) if self.state in COUNT_OF_STATE else 0
        return texts.compact(number) if number else ""


def counted_cell(point: GridPoint, counts: CellCounts, one_sided: Sequence[int] | None = None) -> GridCell:
    """Return the cell of a point, or of some of its tests, from their counts.

    `one_sided` are the numbers of their `ONE_SIDED` failures; None for those of the whole point.
    """
    run_id = point.run.key.run_id
    if point.infra:
        return GridCell(state=CellState.INFRA, run_id=run_id, reason=point.infra)
    state = CellState.PART if not point.complete else _state(counts, has_baseline=point.has_baseline)
    # A new failure is certain however much of the run is still missing.
    if counts.new:
        state = CellState.NEW
    if one_sided is None:
        one_sided = [getattr(point.one_sided, name).count(1) for name in ONE_SIDED]
    device_only, simulator_only = one_sided
    return GridCell(
        state=state,
        passed=counts.passed,
        failed=counts.failed,
        new=counts.new,
        known=counts.known,
        flaky=counts.flaky,
        skipped=counts.skipped,
        device_only=device_only,
        simulator_only=simulator_only,
        run_id=run_id,
    )


def _state(counts: CellCounts, *, has_baseline: bool) -> CellState:
    if counts.failing:
        return CellState.STILL if has_baseline else CellState.UNJUDGED
    if counts.known:
        return CellState.KNOWN
    if counts.flaky:
        return CellState.FLAKY
    if counts.passed:
        return CellState.PASS
    return CellState.SKIPPED if counts.skipped else CellState.ABSENT


@lru_cache(4096)
def test_cell(
    run_id: str, infra: str, earlier: int | None, current: int, one_sided: tuple[int, int], *, complete: bool
) -> GridCell:
    """Return the cell of one test from its status bytes; `earlier` is None if there is no earlier result.

    `one_sided` says for each of the `ONE_SIDED` kinds whether its failure is of that kind, as 0 or 1.

    Most tests of a run share a few cells, so cells are cached: callers must not change them.
    """
    if infra:
        return GridCell(state=CellState.INFRA, run_id=run_id, reason=infra)
    state = state_of_test(earlier, current, complete=complete)
    bad = state in FAILING or state is CellState.KNOWN
    return GridCell(
        state=state,
        passed=int(state in (CellState.PASS, CellState.FLAKY)),
        failed=int(bad),
        new=int(state is CellState.NEW),
        known=int(state is CellState.KNOWN),
        flaky=int(state is CellState.FLAKY or (bad and current & FLAKY > 0)),
        skipped=int(state is CellState.SKIPPED),
        **dict(zip(ONE_SIDED, one_sided, strict=True)),
        run_id=run_id,
    )


def state_of_test(earlier: int | None, current: int, *, complete: bool) -> CellState:
    """Return the state of a test in a run with usable results, from its status bytes (as in `test_cell`)."""
    code, is_flaky = current & STATUS_BITS, bool(current & FLAKY)
    if not code:
        return CellState.ABSENT if complete else CellState.PART
    if code in BAD_CODES:
        failed_before = None if earlier is None or earlier == UNCOMPARED else earlier & STATUS_BITS in BAD_CODES
        explained = earlier == KNOWN
        failure_class = class_of_failure(failed_before=failed_before, also_passed=is_flaky, explained=explained)
        return STATE_OF_FAILURE[failure_class]
    if is_flaky:
        return CellState.FLAKY
    return CellState.SKIPPED if code == CODES[Status.SKIPPED] else CellState.PASS


def no_cell(line: GridLine, committed_at: float, moment: float, *, expected: bool) -> GridCell:
    """Return the cell of a commit without results: missing, still awaited, or not expected at all.

    Nothing is expected of a commit before the first result of the line.
    """
    if not expected or line.first is None or committed_at < line.first:
        return GridCell(state=CellState.NONE)
    return GridCell(state=CellState.WAIT if moment - committed_at < STALE_SECONDS else CellState.MISSING)


def joined_cell(cells: Iterable[GridCell]) -> GridCell:
    """Join the cells of several suites at one commit: the worst state, and the sums of all counts."""
    all_cells = list(cells)
    tested = [cell for cell in all_cells if cell.run_id]
    if not tested:
        states = {cell.state for cell in all_cells}
        order = (CellState.MISSING, CellState.WAIT, CellState.NONE)
        return GridCell(state=next((state for state in order if state in states), CellState.NONE))
    states = {cell.state for cell in tested}
    if any(cell.state is CellState.MISSING for cell in all_cells):
        # A suite that never arrived must not hide behind the green ones.
        states.add(CellState.PART)
    state = next((candidate for candidate in WORST_FIRST if candidate in states), CellState.SKIPPED)
    worst = next((cell for cell in tested if cell.state is state), tested[-1])
    sums = {name: sum(getattr(cell, name) for cell in tested) for name in (*COUNTED, *ONE_SIDED)}
    return GridCell(state=state, run_id=worst.run_id, reason=worst.reason, **sums)
