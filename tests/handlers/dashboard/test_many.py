"""A thousand targets or repositories: pages stay small, and everything is on one of them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Iterator
from html import escape
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import sqlalchemy as sa

from bot.core.page_paths import history_path
from bot.results.store.store import ResultsStore
from bot.results.store.tables import runs
from handlers.dashboard.grid import page as grid
from handlers.dashboard.history.model import MOST_TIMED
from handlers.dashboard.history.page import MOST_LINES
from handlers.dashboard.overview import page as overview
from handlers.dashboard.overview.page import split_in_pages
from tests.handlers.dashboard.nightly_runs import NOW
from tests.handlers.dashboard.site import DashboardSite, dashboard_site
from tests.results.uploads import LAB, REPOSITORY, SUITE, Upload

TARGETS, REPOSITORIES, COMMITS = 1_000, 1_000, 14
MOST_BYTES = 200_000
TEST, BROKEN = f"{SUITE}/test_steady.py::test_one", f"{SUITE}/test_broken.py::test_one"
FAILING = (3, 500, 999)
"""The targets on which a test fails."""
HERE = f"/r/{REPOSITORY}"
NAMES = [REPOSITORY, *(f"example-lab/compiler-{number:04}" for number in range(1, REPOSITORIES))]


def name_of(number: int) -> str:
    return f"board-{number:04}"


def fill_targets(store: ResultsStore) -> None:
    """Store a nightly run of each target, and all runs of those on the first page; a test fails on some targets."""
    for number in range(TARGETS):
        for commit in range(1 if number < grid.MOST_TARGETS else COMMITS, COMMITS + 1):
            fails = number in FAILING and commit == COMMITS
            tests = {TEST: "passed", BROKEN: "failed" if fails else "passed"}
            uploaded_at = NOW - (COMMITS - commit + 1) * 86_400.0
            upload = Upload(commit, tests, target=name_of(number), at=uploaded_at)
            store.put(upload.run, upload.columns)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardSite]:
    """A repository with a thousand targets, and 999 without results."""
    targets = ", ".join(name_of(number) for number in range(TARGETS))
    config = (
        f"repositories:\n  {REPOSITORY}:\n    results:\n      bucket: device-results\n"
        f"      labs:\n        {LAB}: {{targets: [{targets}]}}\n"
        + "".join(f"  {name}:\n    nightly:\n" for name in NAMES[1:])
    )
    public = [name for number, name in enumerate(NAMES) if number % 10 != 1]
    async with dashboard_site(
        tmp_path_factory.mktemp("crowded"), config=config, public=public, filled=fill_targets
    ) as site:
        yield site


@contextlib.contextmanager
def columns_read() -> Iterator[list[int]]:
    """Count the status columns that are read in the block, in any thread."""
    counts: list[int] = []
    read = runs.statuses

    def counting(connection: sa.Connection, groups: Any) -> Any:
        counts.append(len(groups))
        return read(connection, groups)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "statuses", counting)
        yield counts


async def pages_from(site: DashboardSite, address: str) -> list[str]:
    """Return the page at an address, and all to which it leads by its links to the next one."""
    pages: list[str] = []
    while address:
        status, _, text = await site.get(address)
        assert status == 200, text
        assert len(text.encode()) < MOST_BYTES, address
        pages.append(text)
        link = re.search(r'<a rel="next" href="([^"]*page=[^"]*)"', text)
        address = link[1].replace("&amp;", "&") if link else ""
    return pages


@pytest.mark.asyncio(loop_scope="session")
async def test_each_target_is_on_a_page_of_the_grid(crowded: DashboardSite) -> None:
    pages = await pages_from(crowded, HERE)
    rows = [re.findall(r'<th scope="row">\s*<a [^>]*>([^<]*)', page.replace("<wbr>", "")) for page in pages]
    assert [name for page in rows for name in page] == [f"{LAB}/{name_of(number)}" for number in range(TARGETS)]
    assert max(map(len, rows)) == grid.MOST_TARGETS


@pytest.mark.asyncio(loop_scope="session")
async def test_the_grid_reads_only_the_targets_of_its_page(crowded: DashboardSite) -> None:
    _, answer = await crowded.json(f"/api/v1/repos/{REPOSITORY}/grid?page=2")
    assert (len(answer["rows"]), answer["more"], answer["pages"]) == (40, 960, 25)
    assert answer["rows"][0]["target"] == f"{LAB}/{name_of(40)}"
    assert len(answer["commits"]) == COMMITS


@pytest.mark.asyncio(loop_scope="session")
async def test_the_overview_lists_the_targets_with_failing_tests(crowded: DashboardSite) -> None:
    with columns_read() as counts:
        _, answer = await crowded.json("/api/v1/repos")
    (compiler, *_) = answer["repositories"]
    targets = {target["target"]: target["failing"] for target in compiler["targets"]}
    assert (len(targets), compiler["more_targets"]) == (overview.MOST_TARGETS, TARGETS - overview.MOST_TARGETS)
    assert {name: count for name, count in targets.items() if count} == {name_of(number): 1 for number in FAILING}
    assert sum(counts) == len(FAILING), "columns of targets on which nothing fails are not read"


@pytest.mark.asyncio(loop_scope="session")
async def test_the_page_of_a_test_has_durations_on_some_targets_and_links_those_on_others(
    crowded: DashboardSite,
) -> None:
    address = f"tests?id={BROKEN}"
    _, answer = await crowded.json(f"/api/v1/repos/{REPOSITORY}/{address}")
    assert all(run["seconds"] for target in answer["targets"] for run in target["runs"] if run["cell"]["run_id"])
    with columns_read() as counts:
        _, _, page = await crowded.get(f"{HERE}/{address}")
    assert sum(counts) < 3 * MOST_LINES, "columns of targets that are not on the page are not read"
    names = [target["target"] for target in answer["targets"]]
    links = [f'{escape(history_path(REPOSITORY, BROKEN, f"{LAB}/{name}"))}">Durations on this target' for name in names]
    assert not any(link in page for link in links[:MOST_TIMED])
    assert links[MOST_TIMED] in page
    assert names[0] == name_of(FAILING[0])


@pytest.mark.asyncio(loop_scope="session")
async def test_each_public_repository_is_on_a_page(crowded: DashboardSite) -> None:
    pages = await pages_from(crowded, "/")
    listed = [name for page in pages for name in re.findall(r'<h2 id="r\d+"><a href="/r/([^"]*)"', page)]
    assert listed == [name for number, name in enumerate(NAMES) if number % 10 != 1]


@pytest.mark.asyncio(loop_scope="session")
async def test_a_part_of_the_name_finds_repositories(crowded: DashboardSite) -> None:
    _, answer = await crowded.json("/api/v1/repos?q=COMPILER-0420")
    assert [listed["repository"] for listed in answer["repositories"]] == ["example-lab/compiler-0420"]
    status, _, page = await crowded.get("/?q=compiler-0421")
    assert (status, "compiler-0421</a>" in page, "No repository matches." in page) == (200, False, True)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_csv_file_has_all_targets_and_repositories(crowded: DashboardSite) -> None:
    async with crowded.client.get(f"{crowded.url}/api/v1/repos?format=csv") as answer:
        lines = (await answer.text()).splitlines()
    assert len(lines) == 1 + TARGETS + sum(number % 10 != 1 for number in range(1, REPOSITORIES))


@pytest.mark.parametrize(
    ("rows", "pages"),
    [
        ({}, []),
        ({"a": 41, "b": 10, "c": 9}, [["a", "b", "c"]]),
        ({"a": 41, "b": 10, "c": 10}, [["a", "b"], ["c"]]),
        ({"a": 41, "b": 41}, [["a"], ["b"]]),
    ],
)
def test_a_page_has_about_sixty_rows(rows: dict[str, int], pages: list[list[str]]) -> None:
    assert split_in_pages(rows, rows) == pages


def test_nothing_is_left_over(tmp_path: Path) -> None:
    rows = {str(number): 1 + number % 41 for number in range(500)}
    assert [name for page in split_in_pages(rows, rows) for name in page] == list(rows)
