"""`/r/{owner}/{repo}/labs/{lab}`: a lab's last results, its latency, and its problems."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from handlers.dashboard.shared.percentiles import percentile
from tests.handlers.dashboard.nightly_runs import sha
from tests.handlers.dashboard.site import CONFIG, DashboardSite, dashboard_site

pytestmark = pytest.mark.asyncio(loop_scope="session")
API, PAGES = "/api/v1/repos/octocat/compiler/labs", "/r/octocat/compiler/labs"
HOUR, DAY = 3600.0, 86400.0


async def test_each_target_has_its_last_result_its_latency_and_its_missed_nightly_runs(site: DashboardSite) -> None:
    status, lab = await site.json(f"{API}/example-lab")
    assert status == 200
    hexagon, adreno = lab["targets"]
    assert (hexagon["target"], hexagon["newest"]["sha"], hexagon["stale"]) == ("hexagon-v73", sha(13), False)
    assert (hexagon["results"], hexagon["seconds_p50"], hexagon["seconds_p90"]) == (28, 5 * HOUR, 5 * HOUR)
    assert (hexagon["missing"], hexagon["expected"]) == (0, 14)
    assert (adreno["infra"], adreno["infra_of"]) == (1, 26)
    assert lab["quota"] == {"runs": 0, "runs_per_day": 1000, "megabytes": 0.0, "megabytes_per_day": 5000}
    assert lab["contacts"] == ["@example-lab-ci"]


async def test_a_target_that_stopped_has_missed_nightly_runs(site: DashboardSite) -> None:
    (board,) = (await site.json(f"{API}/hubot-lab"))[1]["targets"]
    assert board["stale"] is True
    # It sent results for commits 2 to 10; commits 12 and 13 are less than 36 hours old.
    assert (board["missing"], board["expected"]) == (1, 10)
    assert [commit["sha"] for commit in board["missing_commits"]] == [sha(11)]
    assert "stale, over 36 h" in (await site.get(f"{PAGES}/hubot-lab"))[2]


async def test_it_links_the_badge_of_each_target(site: DashboardSite) -> None:
    _, _, page = await site.get(f"{PAGES}/hubot-lab")
    badge = "/r/octocat/compiler/badge/hubot-lab/rpi-5%40rack%3A2.svg"
    assert f'href="{badge}"' in page
    assert "hubot-lab/rpi-5@rack:2" in (await site.get(badge))[2]
    assert "has the address of these pages" in page


async def test_with_a_public_address_a_badge_can_be_copied_into_a_readme(tmp_path: Path) -> None:
    config = f"public_url: https://ci.example.org/\n{CONFIG}"
    async with dashboard_site(tmp_path, config=config, filled=lambda _: None) as site:
        _, _, page = await site.get(f"{PAGES}/example-lab")
    pages = "https://ci.example.org/r/octocat/compiler"
    markdown = f"[![example-lab/adreno]({pages}/badge/example-lab/adreno.svg)]({pages}?target=example-lab%2Fadreno)"
    assert markdown in page
    assert "has the address of these pages" not in page


async def test_a_refused_upload_is_listed_with_its_reason(site: DashboardSite) -> None:
    status, _, page = await site.get(f"{PAGES}/hubot-lab")
    assert status == 200
    assert "te.xml is not what the manifest says: its SHA-256 is another one".replace(".", ".<wbr>") in page
    assert f"/runs/hubot-lab/rpi-5%40rack%3A2/{sha(13)}/runtime-run-2" in page


async def test_a_lab_without_results_says_what_to_do(site: DashboardSite) -> None:
    _, _, page = await site.get("/r/octocat/new/labs/example-lab")
    assert "nightjar-lab upload" in page
    assert "no results yet" in page


@pytest.mark.parametrize("path", ["compiler/labs/other-lab", "docs/labs/example-lab", "secret/labs/example-lab"])
async def test_other_labs_and_private_ones_are_not_found(site: DashboardSite, path: str) -> None:
    assert (await site.get(f"/r/octocat/{path}"))[0] == 404


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, None),
        ([3.0], 0.9, None),
        ([1.0, 2.0, 3.0, 4.0], 0.5, None),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 0.5, 3.0),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 0.0, 1.0),
        ([float(n) for n in range(1, 11)], 0.9, 9.0),
    ],
)
async def test_a_percentile_is_one_of_five_or_more_values(
    values: list[float], share: float, expected: float | None
) -> None:
    assert percentile(values, share) == expected


async def test_two_weeks_are_not_enough_for_promotion(site: DashboardSite) -> None:
    adreno = (await site.json(f"{API}/example-lab"))[1]["targets"][1]["promotion"]
    assert (adreno["tier"], "history" in adreno["lacking"], "runs" in adreno["lacking"]) == (2, True, True)
    assert (adreno["days"], adreno["seconds_p90"], adreno["unsteady_of"]) == (13, 4 * HOUR, 24)
    page = (await site.get(f"{PAGES}/example-lab"))[2]
    visible_text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("Ready for a better tier?")[2]))
    # A month, latency, infra rate and false-alarm rate of each target.
    assert "hexagon-v73 3 of 3 13 days 4 h p90 0.0 % 0 of 28 results 10.7 % 3 of 28 results not yet" in visible_text
    assert "adreno 3 of 3 13 days 4 h p90 3.8 % 1 of 26 results 0.0 % 0 of 24 results not yet" in visible_text
    assert "less than 30 days of nightly runs, fewer than 20 nightly runs" in page
