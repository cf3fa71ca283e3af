"""Pages of a suite with many tests: what is done for each test is done once, and the rest for what a page shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import overload

import pytest

from bot.results.store.grid.grid import Grid, grid_of
from bot.results.store.grid.rows import GridRange
from bot.results.store.store import ResultsStore
from bot.results.store.tables.cells import TestGroups
from bot.results.store.tables.names import all_names
from handlers.dashboard.grid import rows
from handlers.dashboard.grid.rows import MOST_ROWS, Folders, ListedRows, RowFilter, rows_of
from handlers.dashboard.run import causes
from tests.handlers.dashboard.nightly_runs import NOW
from tests.handlers.dashboard.site import dashboard_site
from tests.results.uploads import LAB, REPOSITORY, SUITE, TARGET, Upload, sha

COMMITS = 14
FILES, TESTS = 30, 900
FULL_TARGET = f"{LAB}/{TARGET}"


class CountedNames(Sequence[str]):
    """Names that count how often they are read one after the other."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.walks = 0

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self.names[index]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        self.walks += 1
        return iter(self.names)


def nested(number: int) -> str:
    return f"tests/test_{number % FILES}.py::test_case[{number}]"


def flat(number: int) -> str:
    return f"test_case_{number:04}"


def outcome(number: int, commit: int) -> str:
    """Return how a test ends at a commit."""
    return "failed" if (number + commit) % 97 == 0 else "passed"


@pytest.fixture(params=[nested, flat], ids=["folders", "tests"])
def names(request: pytest.FixtureRequest) -> list[str]:
    return [request.param(number) for number in range(TESTS)]


@pytest.fixture
def store(tmp_path: Path, names: list[str]) -> Iterator[ResultsStore]:
    store = ResultsStore(f"sqlite:///{tmp_path}/nightjar.db", clock=lambda: NOW)
    store.open()
    for commit in range(1, COMMITS + 1):
        count = TESTS if commit == COMMITS else TESTS - 10
        tests = {name: outcome(number, commit) for number, name in enumerate(names[:count])}
        upload = Upload(commit, tests)
        store.put(upload.run, upload.columns)
    yield store
    store.close()


def grid_in(store: ResultsStore) -> tuple[Grid, GridRange]:
    grid_range = GridRange(REPOSITORY, LAB, TARGET, SUITE, COMMITS)
    return store.read(grid_of, grid_range), grid_range


def listed(
    grid: Grid, grid_range: GridRange, names: Sequence[str], folders: Folders, folder: str = "", first_row: int = 0
) -> ListedRows:
    row_filter = RowFilter(FULL_TARGET, SUITE, folder, None, "")
    return rows_of(grid, lambda _: names, row_filter, grid_range, NOW, first_row, folders)


def test_a_folder_is_searched_once_however_often_it_is_shown(store: ResultsStore) -> None:
    grid, grid_range = grid_in(store)
    names, folders = CountedNames(store.read(all_names, grid.lines[0].row)), Folders()
    first = listed(grid, grid_range, names, folders)
    walks = names.walks
    assert walks > 0
    assert listed(grid, grid_range, names, folders) == first
    assert names.walks == walks
    listed(grid, grid_range, names, folders, folder="tests/test_3.py::")
    assert names.walks > walks, "another folder"


def test_only_the_tests_of_listed_rows_are_counted(
    store: ResultsStore, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = list[int]()

    class RecordedGroups(TestGroups):
        def __init__(self, groups: Sequence[Sequence[int]]) -> None:
            counted.append(sum(map(len, groups)))
            super().__init__(groups)

    monkeypatch.setattr(rows, "TestGroups", RecordedGroups)
    grid, grid_range = grid_in(store)
    page = listed(grid, grid_range, store.read(all_names, grid.lines[0].row), Folders())
    below = tuple(row.folder for row in page.rows)
    assert len(below) <= MOST_ROWS
    assert counted == [sum(name.startswith(below) for name in names)]


def test_all_rows_are_on_one_of_the_pages(store: ResultsStore, names: list[str]) -> None:
    grid, grid_range = grid_in(store)
    stored, folders = store.read(all_names, grid.lines[0].row), Folders()
    pages = [listed(grid, grid_range, stored, folders, first_row=first) for first in range(0, TESTS, MOST_ROWS)]
    children = [row.folder for page in pages for row in page.rows]
    expected = {name.partition("::")[0] + "::" if "::" in name else name for name in names}
    assert children == sorted(expected)
    assert {len(page.rows) + page.unlisted for page in pages} == {len(expected)}
    cells_of = {row.folder: [cell.words for cell in row.cells] for page in pages for row in page.rows}
    for child in ("test_case_0083", "test_case_0896"):
        if child in cells_of:
            place = int(child.rpartition("_")[2])
            failed = [outcome(place, commit) == "failed" for commit in range(COMMITS, 0, -1)]
            exists = [place < TESTS - 10 or commit == COMMITS for commit in range(COMMITS, 0, -1)]
            assert ["fail" in words for words in cells_of[child]] == [
                fails and has for fails, has in zip(failed, exists, strict=True)
            ]


@pytest.mark.asyncio
async def test_the_cause_of_a_message_is_searched_once(tmp_path: Path) -> None:
    def fill(store: ResultsStore) -> None:
        upload = Upload(1, {nested(number): "failed" if number % 3 else "passed" for number in range(TESTS)})
        store.put(upload.run, upload.columns)

    causes._cause_of.cache_clear()
    labs = f"        {LAB}: {{targets: [{TARGET}]}}\n"
    config = f"repositories:\n  {REPOSITORY}:\n    results:\n      bucket: device-results\n      labs:\n{labs}"
    async with dashboard_site(tmp_path, config=config, filled=fill) as site:
        status, page = await site.json(f"/api/v1/repos/{REPOSITORY}/runs/{LAB}/{TARGET}/{sha(1)}/1")
    assert (status, page["causes"][0]["count"]) == (200, TESTS * 2 // 3)
    assert causes._cause_of.cache_info().misses == 1
