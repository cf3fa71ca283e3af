"""`/r/{owner}/{repo}/labs`: which lab is late, how complete and how fast each one is, and whom to ask."""

from __future__ import annotations

import csv
import io

import pytest

from tests.handlers.dashboard.site import DashboardSite

pytestmark = pytest.mark.asyncio(loop_scope="session")
API, PAGE = "/api/v1/repos/octocat/compiler/labs", "/r/octocat/compiler/labs"
HOUR = 3600.0


async def test_late_labs_come_first_with_their_uptime_their_latency_and_whom_to_ask(site: DashboardSite) -> None:
    status, page = await site.json(API)
    assert status == 200
    late, example = page["labs"]
    assert "".join(part["text"] for part in page["answer"]) == (
        "1 of 2 labs is late: hubot-lab has not reported for 3 days."
    )
    assert page["answer"][2]["href"] == "/r/octocat/compiler/labs/hubot-lab"
    # It sent results for commits 2 to 10; commit 11 is missing, and 12 and 13 are less than 36 hours old.
    assert (late["lab"], late["stale"], late["missing"], late["runs"]) == ("hubot-lab", True, 1, 10)
    # Two targets at 14 commits: one run has no usable results, and the newest one still waits for a shard.
    assert [example[name] for name in ("runs", "complete", "incomplete", "missing")] == [27, 26, 1, 0]
    assert example["uptime"] == 26 / 27
    assert (example["seconds_p50"], example["seconds_p90"]) == (5 * HOUR, 5 * HOUR)
    assert example["contacts"] == ["@example-lab-ci"]
    _, _, html = await site.get(PAGE)
    assert "@example-lab-ci" in html
    _, _, text = await site.get(f"{API}?format=csv")
    assert [row["lab"] for row in csv.DictReader(io.StringIO(text))] == ["hubot-lab", "example-lab"]


async def test_a_repository_without_labs_or_results_says_so(site: DashboardSite) -> None:
    assert "accepts no results" in (await site.get("/r/octocat/docs/labs"))[2]
    _, _, page = await site.get("/r/octocat/new/labs")
    assert "1 of 1 lab is late: " in page
    assert "has not reported yet" in page
    assert (await site.get("/r/octocat/secret/labs"))[0] == 404
