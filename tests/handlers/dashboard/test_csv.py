"""Pages with a table are available as CSV, with the numbers of their JSON."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from tests.handlers.dashboard.site import DashboardSite

pytestmark = pytest.mark.asyncio(loop_scope="session")
API, PAGES = "/api/v1/repos/octocat/compiler", "/r/octocat/compiler"


async def rows_of(site: DashboardSite, address: str) -> list[dict[str, str]]:
    status, headers, text = await site.get(f"{address}{'&' if '?' in address else '?'}format=csv")
    assert (status, headers["Content-Type"]) == (200, "text/csv; charset=utf-8"), text
    name = address.partition("?")[0].rpartition("/")[2]
    assert headers["Content-Disposition"].startswith('attachment; filename="'), name
    return list(csv.DictReader(io.StringIO(text)))


def written(cell: Any) -> str:
    """Return how CSV shows a JSON value; times are compared by their first 19 characters."""
    return "" if cell is None else str(cell)[:19]


async def test_the_overview_has_a_row_for_each_target(site: DashboardSite) -> None:
    rows = await rows_of(site, "/api/v1/repos")
    _, page = await site.json("/api/v1/repos")
    assert [row["repository"] for row in rows if not row["target"]] == ["octocat/docs"]
    (compiler,) = [repository for repository in page["repositories"] if repository["repository"] == "octocat/compiler"]
    target_rows = [row for row in rows if row["repository"] == "octocat/compiler"]
    assert len(target_rows) == len(compiler["targets"]) == 3
    for row, target in zip(target_rows, compiler["targets"], strict=True):
        assert row["target"] == f"{target['lab']}/{target['target']}"
        for column in ("received_at", "sha", "failing", "stale"):
            assert row[column][:19] == written(target[column])
        assert (row["nightly_sha"], row["nightly_behind"]) == (compiler["nightly"]["sha"], "3")
    assert "secret" not in str(rows)


async def test_the_grid_has_a_row_for_each_cell(site: DashboardSite) -> None:
    for query in ("", "?target=example-lab/hexagon-v73", "?q=softmax"):
        rows = await rows_of(site, f"{API}/grid{query}")
        _, page = await site.json(f"{API}/grid{query}")
        cells = [
            (row["target"], row["folder"], commit["sha"], cell["state"], str(cell["failed"]))
            for row in page["rows"]
            for commit, cell in zip(page["commits"], row["cells"], strict=True)
        ]
        assert cells
        assert [(row["target"], row["folder"], row["sha"], row["state"], row["failed"]) for row in rows] == cells


async def test_a_lab_has_a_row_for_each_target(site: DashboardSite) -> None:
    rows = await rows_of(site, f"{API}/labs/example-lab")
    targets = (await site.json(f"{API}/labs/example-lab"))[1]["targets"]
    assert [row["target"] for row in rows] == [target["target"] for target in targets]
    for row, target in zip(rows, targets, strict=True):
        assert (row["sha"], row["state"]) == (target["newest"]["sha"], target["newest"]["state"])
        for column in ("tier", "seconds_p90", "infra", "infra_of", "missing", "expected"):
            assert row[column] == written(target[column])
    (new,) = await rows_of(site, "/api/v1/repos/octocat/new/labs/example-lab")
    assert (new["sha"], new["stale"]) == ("", "True")


async def test_the_nightly_branch_has_a_row_for_each_move(site: DashboardSite) -> None:
    rows = await rows_of(site, f"{API}/nightly")
    moves = (await site.json(f"{API}/nightly"))[1]["moves"]
    assert len(rows) == len(moves) == 14
    assert [(row["sha"], row["commits"], row["why"]) for row in rows] == [
        (move["sha"], written(move["commits"]), move["why"]) for move in moves
    ]
    assert (await site.get("/api/v1/repos/octocat/secret/nightly?format=csv"))[0] == 401
    assert (await site.get(f"{API}/nightly?format=xml"))[0] == 400


async def test_a_test_has_a_row_for_each_commit(site: DashboardSite) -> None:
    (row,) = (await site.json(f"{API}/grid?q=softmax&target=example-lab/hexagon-v73"))[1]["rows"][:1]
    address = f"{API}/tests?id={row['folder']}"
    rows = await rows_of(site, address)
    targets = (await site.json(address))[1]["targets"]
    assert [(row["target"], row["sha"], row["state"]) for row in rows] == [
        (f"{target['lab']}/{target['target']}", commit["sha"], commit["cell"]["state"])
        for target in targets
        for commit in target["runs"]
    ]


@pytest.mark.parametrize("page", ["/", PAGES, f"{PAGES}/labs/example-lab", f"{PAGES}/nightly"])
async def test_each_of_these_pages_links_its_csv(site: DashboardSite, page: str) -> None:
    assert 'format=csv">as CSV</a>' in (await site.get(page))[2]
