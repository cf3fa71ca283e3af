"""`/r/{owner}/{repo}/labs`: which lab is late, how complete and how fast each one is, and whom to ask."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.handlers.dashboard.site import CONFIG, DashboardSite, dashboard_site
from tests.results.plans import plans_seen

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
    assert "Incomplete" not in html, "runs without usable results count too"
    assert "@example-lab-ci" in html
    _, _, text = await site.get(f"{API}?format=csv")
    assert [row["lab"] for row in csv.DictReader(io.StringIO(text))] == ["hubot-lab", "example-lab"]


async def test_a_lab_with_a_late_target_is_late_as_on_the_first_page(tmp_path: Path) -> None:
    config = CONFIG.replace("[hexagon-v73, adreno]", "[hexagon-v73, adreno, mali]")
    async with dashboard_site(tmp_path, config=config) as own:
        _, page = await own.json(API)
        late = {lab["lab"]: (lab["stale"], lab["late_targets"]) for lab in page["labs"]}
        assert late == {"hubot-lab": (True, {}), "example-lab": (False, {"mali": None})}
        assert "".join(part["text"] for part in page["answer"]) == (
            "2 of 2 labs are late: hubot-lab has not reported for 3 days, example-lab/mali has never reported."
        )
        assert "mali is late" in (await own.get(PAGE))[2]
        assert "example-lab/mali" in (await own.get("/"))[2]
        _, _, text = await own.get(f"{API}?format=csv")
        assert [row["late_targets"] for row in csv.DictReader(io.StringIO(text))] == ["", "mali"]


async def test_a_repository_without_labs_or_results_says_so(site: DashboardSite) -> None:
    assert "accepts no results" in (await site.get("/r/octocat/docs/labs"))[2]
    _, _, page = await site.get("/r/octocat/new/labs")
    assert "1 of 1 lab is late: " in page
    assert "has never reported" in page
    assert (await site.get("/r/octocat/secret/labs"))[0] == 404


async def test_one_page_has_the_labs_of_all_repositories_that_the_reader_may_see(site: DashboardSite) -> None:
    status, page = await site.json("/api/v1/labs")
    assert status == 200
    labs = [(lab["repository"], lab["lab"], lab["stale"]) for lab in page["labs"]]
    # Nobody is signed in, so the private repository is missing.
    assert sorted(labs) == [
        ("octocat/compiler", "example-lab", False),
        ("octocat/compiler", "hubot-lab", True),
        ("octocat/new", "example-lab", True),
    ]
    assert labs[-1] == ("octocat/compiler", "example-lab", False)
    _, own = await site.json(API)
    assert [lab for lab in page["labs"] if lab["repository"] == "octocat/compiler"] == own["labs"]
    stated = "".join(part["text"] for part in page["answer"])
    assert stated == "2 of 3 labs are late: hubot-lab has not reported for 3 days, example-lab has never reported."
    _, _, html = await site.get("/labs")
    assert "/r/octocat/new/labs/example-lab" in html
    assert "octocat/secret" not in html
    assert 'href="/labs"' in (await site.get("/"))[2]
    _, _, text = await site.get("/api/v1/labs?format=csv")
    assert [(row["repository"], row["lab"]) for row in csv.DictReader(io.StringIO(text))] == [
        (repository, lab) for repository, lab, _ in labs
    ]


async def test_labs_of_many_repositories_are_on_several_pages_of_as_many_statements_each(tmp_path: Path) -> None:
    names = [f"octocat/compiler-{number}" for number in range(9)]
    labs = "results: {bucket: device-results, labs: {example-lab: {targets: [%s]}}}"
    targets = ", ".join(f"board-{number}" for number in range(15))
    config = "repositories:\n" + "".join(f"  {name}:\n    nightly:\n    {labs % targets}\n" for name in names)
    counts = []
    async with dashboard_site(tmp_path, config=config, public=frozenset(names), filled=lambda _: None) as site:
        for number, repositories in ((1, names[:4]), (2, names[4:8]), (3, names[8:]), (4, [])):
            with plans_seen() as plans:
                _, page = await site.json(f"/api/v1/labs?page={number}")
            assert ([lab["repository"] for lab in page["labs"]], page["pages"]) == (repositories, 3)
            counts.append(plans.statements)
        assert "4 of 4 labs on this page are late: " in (await site.get("/labs"))[2]
        _, _, text = await site.get("/api/v1/labs?format=csv")
        assert text.count("\n") == 10
    assert counts[0] == counts[1] == counts[2]
