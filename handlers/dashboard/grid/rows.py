"""Make the rows of a grid: targets, their suites, the folders and files of a suite, or tests.

The only I/O is to read the names of a suite's tests.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from itertools import product

from cachetools import LRUCache
from markupsafe import Markup
from nightjar_formats.columns import STATUS_BYTES, at
from nightjar_formats.model import Claims
from pydantic import BaseModel, Field

from bot.results.store.grid.grid import Grid, GridPoint
from bot.results.store.grid.rows import GridLine, GridRange, targets_in_order, targets_on_page
from bot.results.store.tables.cells import (
    TestGroups,
    both_marked,
    count_cell,
    marked_places,
    paired_column,
    seen_tests,
)
from bot.results.store.tables.names import SuiteRow
from handlers.dashboard.shared.cells import (
    FAILING,
    ONE_SIDED,
    CellState,
    GridCell,
    counted_cell,
    joined_cell,
    no_cell,
    state_of_test,
    test_cell,
)
from handlers.dashboard.shared.chart import duration_line, pass_rate_line

MOST_ROWS = 100
"""The most rows that a page lists for a suite, or for a search; the page counts the rest."""
MOST_CACHED_TESTS = 1_000_000
"""Tests of folders that a process caches: 4 MB, or 130 MB if each one is a child of its own."""
INSIDE = "::"
"""Separates a file from its classes and tests in a test's ID, as in pytest's."""
MATCHES = {
    "failing": FAILING,
    "new-failure": (CellState.NEW,),
    "still-failing": (CellState.STILL,),
    "known-failure": (CellState.KNOWN,),
    "flaky": (CellState.FLAKY,),
    "skipped": (CellState.SKIPPED,),
    "passed": (CellState.PASS, CellState.FLAKY),
}
"""The states that each value of the query's `status` stands for."""

ONE_SIDED_OF = {"fails-on-device-only": "device_only", "fails-on-simulator-only": "simulator_only"}
"""The columns of `OneSidedFailures` that other values of the query's `status` stand for."""

NamesOf = Callable[[GridLine], Sequence[str]]


class RowKind(StrEnum):
    """The kinds of rows."""

    TARGET = "target"
    SUITE = "suite"
    FOLDER = "folder"
    TEST = "test"


class GridRow(BaseModel, extra="forbid"):
    """A row: what it stands for, and a cell for each commit of the page, in that order."""

    kind: RowKind
    name: str
    target: str = Field(description="As LAB/TARGET.")
    suite: str = Field(description="Empty on a row of a whole target.")
    folder: str = Field(
        description="The common beginning of the IDs of the row's tests; the whole ID if the row is one test."
    )
    cells: list[GridCell]
    seconds: list[float | None] = Field(
        default=[],
        description="How long the run of each commit took, by the lab's clock; only on rows of targets and suites.",
    )

    @property
    def charts(self) -> Markup:
        """Return its pass rate and its duration by commit as small charts, oldest first; empty on other rows."""
        if self.kind not in (RowKind.TARGET, RowKind.SUITE):
            return Markup("")
        rates = [
            cell.passed / (cell.passed + cell.failed) if cell.passed + cell.failed else None
            for cell in reversed(self.cells)
        ]
        return pass_rate_line(rates) + duration_line(self.seconds[::-1])


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The rows to list; an empty field matches all. `text` is in lower case."""

    target: str | None
    suite: str | None
    folder: str
    status: str | None
    text: str


@dataclass(frozen=True, slots=True)
class ListedRows:
    """The listed rows, and how many more match."""

    rows: list[GridRow]
    unlisted: int = 0


def rows_of(
    grid: Grid,
    names_of: NamesOf,
    row_filter: RowFilter,
    grid_range: GridRange,
    moment: float,
    first_row: int,
    folders: Folders,
) -> ListedRows:
    """Return the rows that match a filter, of a folder from `first_row` on.

    Results are expected only of `grid_range.configured`, the targets of app.yaml.
    """
    rows = _Rows(grid, names_of, set(grid_range.configured), moment)
    if row_filter.suite and row_filter.target:
        return rows.folders(row_filter.folder, first_row, folders)
    if row_filter.target:
        return ListedRows([rows.suite(line) for line in grid.lines])
    return rows.targets(grid_range)


def failures_first(rows: Sequence[GridRow]) -> list[GridRow]:
    """Return the rows with new failures, then other rows that fail, then the others; otherwise in their order."""
    return sorted(rows, key=_rank)


def _rank(row: GridRow) -> int:
    """Return 0 for new failures in the newest results, 1 for other failures, and 2 for none."""
    newest = next((cell for cell in row.cells if cell.passed or cell.failed), None)
    if newest is None or newest.state not in FAILING:
        return 2
    return int(newest.state is not CellState.NEW)


@dataclass(frozen=True, slots=True)
class MatchingTests:
    """The places of the matching tests in the columns, by series, and how many more match."""

    places: Mapping[int, Sequence[int]]
    unlisted: int


def find_tests(newest: Grid, names_of: NamesOf, row_filter: RowFilter) -> MatchingTests:
    """Find the tests that match a filter in the newest run of their suite.

    `newest` has the newest point of each line.
    """
    places: dict[int, Sequence[int]] = {}
    matching_names: dict[SuiteRow, bytes] = {}
    remaining, unlisted = MOST_ROWS, 0
    points = {series: point for (series, _), point in newest.points.items()}
    for line in newest.lines:
        if line.series not in points:
            continue
        marks = _mark_matching(line, names_of, points[line.series], row_filter, matching_names)
        total = marks.count(1)
        unlisted += max(0, total - remaining)
        if total and remaining:
            places[line.series] = marked_places(marks, remaining)
            remaining -= len(places[line.series])
    return MatchingTests(places, unlisted)


def rows_of_tests(
    grid: Grid, names_of: NamesOf, tests: MatchingTests, configured: Sequence[str], moment: float
) -> ListedRows:
    """Return a row for each test in `tests`, with cells from `grid`, which has the series of these tests."""
    rows = _Rows(grid, names_of, set(configured), moment)
    return ListedRows(
        [row for line in grid.lines for row in rows.tests(line, tests.places.get(line.series, ()))], tests.unlisted
    )


def _mark_matching(
    line: GridLine, names_of: NamesOf, newest: GridPoint, row_filter: RowFilter, matching_names: dict[SuiteRow, bytes]
) -> bytes:
    """Return one byte for each test of a suite: 1 if it matches the filter in the newest run."""
    # Tests beyond the end of the column are absent, or are still to come.
    if side := ONE_SIDED_OF.get(row_filter.status or ""):
        matching_outcomes: bytes = getattr(newest.one_sided, side).ljust(line.row.names, b"\0")
    else:
        pairs = paired_column(newest.previous, newest.column).ljust(line.row.names, b"\0")
        matching_outcomes = pairs.translate(
            _table_of(row_filter.status or "", newest.previous is not None, newest.complete)
        )
    if not (row_filter.text or row_filter.folder):
        return matching_outcomes
    if line.row not in matching_names:
        # Names are the same on all targets of a suite, so they are searched once.
        matching_names[line.row] = bytes(
            row_filter.text in name.lower() and name.startswith(row_filter.folder) for name in names_of(line)
        )
    return both_marked(matching_outcomes, matching_names[line.row])


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a suite: the ordinals of the tests below each of its children, folders and files before tests."""

    name: str
    places: Mapping[str, Sequence[int]]

    @property
    def size(self) -> int:
        """The number of its tests, and one more."""
        return 1 + sum(map(len, self.places.values()))

    def present(self, seen: bytes) -> list[str]:
        """Return the children with a test that `seen` marks with 1."""
        if b"\0" not in seen:
            return list(self.places)
        return [child for child, places in self.places.items() if any(seen[place] for place in places)]


class Folders:
    """Caches which tests are below each child of a folder: that changes only with the names of the suite.

    One for all threads of a process.
    """

    def __init__(self) -> None:
        self._folders: LRUCache[tuple[SuiteRow, str], Folder] = LRUCache(
            MOST_CACHED_TESTS, getsizeof=lambda folder: folder.size
        )
        self._lock = threading.Lock()

    def of(self, line: GridLine, name: str, names_of: NamesOf) -> Folder:
        """Return the folder of a suite with this name; without a name, the first one with several children."""
        key = line.row, name
        with self._lock:
            cached = self._folders.get(key)
        if cached is not None:
            return cached
        names = names_of(line)
        inner = only_folder(names, name)
        places: dict[str, array[int]] = {}
        for place, child in enumerate(below_each(names, inner)):
            if child:
                places.setdefault(child, array("I")).append(place)
        ordered = sorted(places, key=lambda child: (_is_test(child, inner), child))
        folder = Folder(inner, {child: places[child] for child in ordered})
        with self._lock:
            # The cache raises ValueError for a value that is larger than itself.
            if folder.size <= MOST_CACHED_TESTS:
                self._folders[key] = folder
        return folder


class _Rows:
    def __init__(self, grid: Grid, names_of: NamesOf, configured: set[str], moment: float) -> None:
        self._grid = grid
        self._names_of = names_of
        self._configured = configured
        self._moment = moment

    def targets(self, grid_range: GridRange) -> ListedRows:
        """Return a row for each target of the page: those of app.yaml first, with or without results."""
        lines: dict[str, list[GridLine]] = {target: [] for target in targets_on_page(grid_range, self._grid.lines)}
        total = len(targets_in_order(grid_range.configured, self._grid.lines))
        for line in self._grid.lines:
            if line.target.full_name in lines:
                lines[line.target.full_name].append(line)
        rows = [self._target_row(target, target_lines) for target, target_lines in lines.items()]
        return ListedRows(rows, total - len(rows))

    def _target_row(self, target: str, lines: Sequence[GridLine]) -> GridRow:
        suite_cells = [self.suite(line).cells for line in lines]
        nothing = GridCell(state=CellState.NONE)
        cells = [
            joined_cell([cells_of_suite[column] for cells_of_suite in suite_cells]) if lines else nothing
            for column in range(len(self._grid.commits))
        ]
        # A commit without one of the suites that have times would look faster than it was.
        timed = [seconds for line in lines if any(seconds := self._seconds(line))]
        seconds = [None if None in column else sum(filter(None, column)) for column in zip(*timed, strict=True)]
        return GridRow(
            kind=RowKind.TARGET, name=target, target=target, suite="", folder="", cells=cells, seconds=seconds
        )

    def suite(self, line: GridLine) -> GridRow:
        """Return the row of a suite on one target."""
        cells = self._cells(
            line, lambda point: counted_cell(point, point.counts or count_cell(point.previous, point.column))
        )
        return GridRow(
            kind=RowKind.SUITE,
            name=line.name,
            target=line.target.full_name,
            suite=line.name,
            folder="",
            cells=cells,
            seconds=self._seconds(line),
        )

    def _seconds(self, line: GridLine) -> list[float | None]:
        return [run_seconds(point.run.claims) if point else None for point in self._points(line)]

    def folders(self, folder: str, first_row: int, folders: Folders) -> ListedRows:
        """Return the rows below a folder of one suite, from `first_row` on: folders and files first, then tests."""
        rows: list[GridRow] = []
        unlisted = 0
        for line in self._grid.lines:
            children, unlisted_children = self._rows_below(line, folders.of(line, folder, self._names_of), first_row)
            rows += children
            unlisted += unlisted_children
        return ListedRows(rows, unlisted)

    def _rows_below(self, line: GridLine, folder: Folder, first_row: int) -> tuple[list[GridRow], int]:
        points = self._points(line)
        present = folder.present(seen_tests((point.column for point in points if point), line.row.names))
        listed = present[first_row : first_row + MOST_ROWS]
        groups = TestGroups([folder.places[child] for child in listed])
        counts = [groups.count(point.previous, point.column) if point else [] for point in points]
        one_sided = [
            list(zip(*(groups.count_marked(getattr(point.one_sided, side)) for side in ONE_SIDED), strict=True))
            if point
            else []
            for point in points
        ]
        rows = []
        for number, child in enumerate(listed):
            cells = [
                counted_cell(point, point_counts[number], one_sided[column][number])
                if point
                else self._empty_cell(line, column)
                for column, (point, point_counts) in enumerate(zip(points, counts, strict=True))
            ]
            kind = RowKind.TEST if _is_test(child, folder.name) else RowKind.FOLDER
            rows.append(self._row(line, kind, child, child.removeprefix(folder.name), cells))
        return rows, len(present) - len(rows)

    def tests(self, line: GridLine, places: Sequence[int]) -> Iterator[GridRow]:
        """Yield the rows of some tests of a suite."""
        points = self._points(line)
        names = self._names_of(line) if places else ()
        for place in places:
            cells = [
                _cell_of_test(point, place) if point else self._empty_cell(line, column)
                for column, point in enumerate(points)
            ]
            yield self._row(line, RowKind.TEST, names[place], names[place], cells)

    def _row(self, line: GridLine, kind: RowKind, folder: str, name: str, cells: list[GridCell]) -> GridRow:
        return GridRow(kind=kind, name=name, target=line.target.full_name, suite=line.name, folder=folder, cells=cells)

    def _points(self, line: GridLine) -> list[GridPoint | None]:
        return [self._grid.points.get((line.series, sha)) for _, sha in self._grid.commits]

    def _cells(self, line: GridLine, cell_of: Callable[[GridPoint], GridCell]) -> list[GridCell]:
        return [
            cell_of(point) if point else self._empty_cell(line, column)
            for column, point in enumerate(self._points(line))
        ]

    def _empty_cell(self, line: GridLine, column: int) -> GridCell:
        committed_at = self._grid.commits[column][0]
        return no_cell(line, committed_at, self._moment, expected=line.target.full_name in self._configured)


def run_seconds(claims: Claims | None) -> float | None:
    """Return how long a run took by the lab's clock; None if its manifest does not say."""
    if claims is None or not (claims.started_at and claims.finished_at):
        return None
    started, finished = map(datetime.fromisoformat, (claims.started_at, claims.finished_at))
    return max(0.0, (finished - started).total_seconds())


@cache
def _table_of(status: str, has_before: bool, complete: bool) -> bytes:
    """Return a translation table for a `paired_column`: 1 for each byte that means a status, else 0.

    An empty status stands for every test that is part of the run.
    """
    states = MATCHES.get(status, set(CellState) - {CellState.ABSENT})
    pairs = product(range(STATUS_BYTES), repeat=2)
    return bytes(
        state_of_test(earlier if has_before else None, current, complete=complete) in states
        for earlier, current in pairs
    )


def _cell_of_test(point: GridPoint, place: int) -> GridCell:
    earlier = None if point.previous is None else at(point.previous, place)
    one_sided = (at(point.one_sided.device_only, place), at(point.one_sided.simulator_only, place))
    return test_cell(
        point.run.key.run_id, point.infra, earlier, at(point.column, place), one_sided, complete=point.complete
    )


def _child(name: str, folder: str) -> str:
    """Return the child of `folder` that holds the test `name`: a folder, a file or the test; empty for none."""
    if not name.startswith(folder):
        return ""
    rest = name[len(folder) :]
    if INSIDE in folder:
        # The parameters of a test may contain any text, `::` and `/` included, so they say nothing about nesting.
        rest = rest.partition("[")[0]
    file, inside, _ = rest.partition(INSIDE)
    first, deeper, _ = file.partition("/")
    if deeper and INSIDE not in folder:
        return f"{folder}{first}/"
    return f"{folder}{file}::" if inside and file else name


def _is_test(child: str, folder: str) -> bool:
    return not child.endswith(("/", "::")) or child == folder


def only_folder(names: Sequence[str], folder: str) -> str:
    """Descend while a folder has a single child that is not a test: a page with the one row `tests/` shows nothing."""
    below = [name for name in names if name.startswith(folder)]
    first, last = min(below, default=""), max(below, default="")
    # In sorted order, a prefix of the first and the last name is a prefix of all names.
    while not _is_test(child := _child(first, folder), folder) and last.startswith(child):
        folder = child
    return folder


def below_each(names: Sequence[str], folder: str) -> Iterator[str]:
    """Yield for each name the child of `folder` that contains it.

    Neighbors mostly share a child, so the child of the previous name is tried first.
    """
    child, start, has_classes = "", len(folder), INSIDE in folder
    for name in names:
        if not (child and name.startswith(child) and not _is_test(child, folder)):
            slash = -1 if has_classes or not name.startswith(folder) else name.find("/", start)
            # Most names are below a folder: a slash before the file ends.
            is_below = slash > start and name.find(INSIDE, start, slash) < 0
            child = name[: slash + 1] if is_below else _child(name, folder)
        yield child
