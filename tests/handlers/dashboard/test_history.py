"""`/r/{owner}/{repo}/tests?id=…`: one test from commit to commit."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from nightjar_formats.columns.collect import collect

from bot.results.compare.flaky import WINDOW
from bot.results.store.store import ResultsStore
from bot.web.page_filters import duration
from handlers.dashboard.shared.chart import duration_chart
from tests.handlers.dashboard.nightly_runs import FLAKY, HEXAGON, NOW, SOFTMAX, Sent, committed_at, sha
from tests.handlers.dashboard.site import CONFIG, DashboardSite, dashboard_site

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def history(site: DashboardSite, test: str, target: str = "") -> list[Any]:
    query = f"?id={quote(test, safe='')}" + (f"&target={target}" if target else "")
    status, _, _ = await site.get(f"/r/octocat/compiler/tests{query}")
    assert status == 200
    _, answered = await site.json(f"/api/v1/repos/octocat/compiler/tests{query}")
    targets: list[Any] = answered["targets"]
    return targets


async def test_it_says_since_when_a_test_fails_and_where_else(site: DashboardSite) -> None:
    adreno, hexagon = await history(site, SOFTMAX)
    assert hexagon["failing"]["since"] == sha(10)
    assert hexagon["failing"]["last_passed_at"] == sha(9)
    assert hexagon["failing"]["also_on"] == ["example-lab/adreno"]
    assert [run["cell"]["state"] for run in hexagon["runs"]][:5] == [*["still-failing"] * 3, "new-failure", "passed"]
    assert adreno["failing"]["since"] == sha(13)
    _, _, page = await site.get(f"/r/octocat/compiler/tests?id={quote(SOFTMAX, safe='')}")
    assert "Contributor: to reproduce it, run <code>pytest " in page
    assert hexagon["reproduce"].startswith("pytest 'tests/python/operators/test_softmax.py")
    assert hexagon["first_seen"] == sha(0)


async def test_a_single_target_can_be_shown(site: DashboardSite) -> None:
    (adreno,) = await history(site, SOFTMAX, "example-lab/adreno")
    assert adreno["target"] == "adreno"


async def test_flakiness_names_the_commits_that_prove_it(site: DashboardSite) -> None:
    (hexagon,) = await history(site, FLAKY, "example-lab/hexagon-v73")
    assert hexagon["flakiness"]["proofs"] == [sha(11), sha(8), sha(3)]
    _, _, page = await site.get(f"/r/octocat/compiler/tests?id={quote(FLAKY, safe='')}")
    assert "◆ Flaky" in page


async def test_it_links_the_source_where_it_fails_and_a_new_issue_about_it(site: DashboardSite) -> None:
    (hexagon,) = await history(site, SOFTMAX, "example-lab/hexagon-v73")
    place = "tests/python/operators/test_softmax.py"
    blob = f"https://github.com/octocat/compiler/blob/{sha(13)}/{place}"
    line = hexagon["source"]["line"]
    assert hexagon["source"] == {"path": place, "line": line, "url": f"{blob}#L{line}"}
    assert hexagon["failing"]["message"].startswith("AssertionError: Not equal to tolerance")
    assert hexagon["issue_url"].startswith("https://github.com/octocat/compiler/issues/new?title=Failing+test")
    (flaky,) = await history(site, FLAKY, "example-lab/hexagon-v73")
    assert "title=Flaky+test" in flaky["issue_url"]
    assert flaky["source"]["line"] is None
    _, _, page = await site.get(f"/r/octocat/compiler/tests?id={quote(FLAKY, safe='')}")
    assert f'/runs/example-lab/hexagon-v73/{sha(11)}/runtime-run-1">' in page.split("Proof:")[1]


async def test_its_durations_are_a_chart_with_a_text_alternative(site: DashboardSite) -> None:
    (hexagon,) = await history(site, SOFTMAX, "example-lab/hexagon-v73")
    seconds = [run["seconds"] for run in hexagon["runs"]]
    assert all(seconds)
    assert seconds[0] > seconds[-1]
    _, _, page = await site.get(f"/r/octocat/compiler/tests?id={quote(SOFTMAX, safe='')}")
    assert 'role="img"' in page
    assert "Duration over 14 nightly commits" in page
    assert f"{duration(seconds[-1])} in the oldest run (left), {duration(seconds[0])} in the newest;" in page


@pytest.mark.parametrize(
    ("query", "status"),
    [("?id=nothing", 404), ("", 400), ("?id=a&target=x", 400), ("?id=%00", 400), ("?id=a&b=1", 400)],
)
async def test_an_unknown_test_is_not_found(site: DashboardSite, query: str, status: int) -> None:
    assert (await site.get(f"/r/octocat/compiler/tests{query}"))[0] == status


async def test_an_unknown_test_leads_to_the_results_of_the_repository(site: DashboardSite) -> None:
    _, _, page = await site.get("/r/octocat/compiler/tests?id=nothing")
    assert "has nothing at this address: the name may be wrong" in page
    assert '<a href="/r/octocat/compiler">All results of octocat/compiler</a>' in page
    _, _, page = await site.get("/r/octocat/secret/tests?id=nothing")
    assert "the repository may not be public" in page
    assert "secret" not in page


async def test_a_chart_needs_two_commits_and_stays_inside_its_frame() -> None:
    assert duration_chart([("a", 1.0, False)]) is None
    chart = duration_chart([("a", 0.0, False), ("b", 2.0, True), ("c", 1.0, False)])
    assert chart is not None
    assert all(0 <= point.x <= chart.width and 0 <= point.y <= chart.base for point in chart.points)
    assert (chart.longest, chart.shortest, chart.median) == (2.0, 0.0, 1.0)
    assert duration_chart([("a", 0.0, False), ("b", 0.0, False)]) is None


async def test_nightly_commits_without_a_result_are_shown_as_missing(site: DashboardSite) -> None:
    test = "tests/python/operators/test_softmax.py::test_softmax[float16-16x64]"
    _, grid = await site.json(f"/api/v1/repos/octocat/compiler/grid?target=example-lab/adreno&q={quote(test)}")
    [row] = grid["rows"]
    for query in ("", "&target=example-lab/adreno"):
        _, answered = await site.json(f"/api/v1/repos/octocat/compiler/tests?id={quote(test)}{query}")
        [adreno] = [target for target in answered["targets"] if target["target"] == "adreno"]
        assert [commit["sha"] for commit in adreno["runs"]] == [commit["sha"] for commit in grid["commits"]]
        states = [commit["cell"]["state"] for commit in adreno["runs"]]
        assert states == [cell["state"] for cell in row["cells"]]
        assert states.count("missing") == 2


QUERIES = ("status=failing", "status=skipped", "q=softmax", "q=runtime&target=example-lab/adreno")


async def test_its_cells_are_those_of_the_grid(site: DashboardSite) -> None:
    """The grid reads whole columns, this page reads changes; incomplete runs and broken devices are among the runs."""
    states = await compared_with_the_grid(site)
    assert states >= {"passed", "new-failure", "still-failing", "skipped", "infra", "incomplete"}


async def compared_with_the_grid(site: DashboardSite) -> set[str]:
    """Compare the cells of tests with those of the grid, and return their states."""
    api = "/api/v1/repos/octocat/compiler"
    grids = [(await site.json(f"{api}/grid?{query}"))[1] for query in QUERIES]
    commits = [commit["sha"] for commit in grids[0]["commits"]]
    compared = set[str]()
    for row in [row for grid in grids for row in grid["rows"][:20]]:
        _, page = await site.json(f"{api}/tests?id={quote(row['folder'])}&target={row['target']}")
        (target,) = [candidate for candidate in page["targets"] if candidate["suite"] == row["suite"]]
        cells = {commit["sha"]: commit["cell"] for commit in target["runs"] if commit["name"] == row["folder"]}
        for commit, cell in zip(commits, row["cells"], strict=True):
            if commit in cells and cell["run_id"]:
                assert cells[commit] == cell, (row["folder"], commit)
                compared.add(cell["state"])
    return compared


QUARANTINE = f"""
    quarantine:
      - test: "{SOFTMAX}"
        targets: [example-lab/hexagon-v73]
        owner: octocat
        reason: Times out on <old> firmware
        issue: https://github.com/octocat/compiler/issues/12
        until: "{{until}}"
  octocat/secret:
"""


async def test_a_quarantine_is_shown_with_owner_reason_and_last_day(tmp_path: Path) -> None:
    today = f"{datetime.fromtimestamp(NOW, UTC):%Y-%m-%d}"
    config = CONFIG.replace("\n  octocat/secret:\n", QUARANTINE.format(until=today))
    async with dashboard_site(tmp_path, config=config) as quarantined:
        adreno, hexagon = await history(quarantined, SOFTMAX)
        assert adreno["quarantine"] is None
        assert hexagon["quarantine"] == {
            "owner": "octocat",
            "reason": "Times out on <old> firmware",
            "issue": "https://github.com/octocat/compiler/issues/12",
            "until": today,
        }
        assert [run["cell"]["state"] for run in hexagon["runs"]][:5] == [*["known-failure"] * 4, "passed"]
        await compared_with_the_grid(quarantined)
        _, _, page = await quarantined.get(f"/r/octocat/compiler/tests?id={quote(SOFTMAX, safe='')}")
        assert page.count("◐ Quarantined") == 1
        assert f"until {today} (owner: octocat):" in page
        assert ">Times out on &lt;old&gt; firmware</a>" in page
        assert page.count("new issue on GitHub") == page.count("Mute this test") == 1


async def test_a_quarantine_that_has_ended_is_not_shown(tmp_path: Path) -> None:
    yesterday = f"{datetime.fromtimestamp(NOW - 86400, UTC):%Y-%m-%d}"
    config = CONFIG.replace("\n  octocat/secret:\n", QUARANTINE.format(until=yesterday))
    async with dashboard_site(tmp_path, config=config) as site:
        assert [target["quarantine"] for target in await history(site, SOFTMAX)] == [None, None]


async def test_a_test_that_was_removed_long_ago_still_has_its_history(tmp_path: Path) -> None:
    removed, stays = "tests/test_a.py::test_removed", "tests/test_a.py::test_stays"

    def fill(store: ResultsStore) -> None:
        for number in range(WINDOW + 5):
            tests = (removed, stays) if number < 3 else (stays,)
            sent = Sent(number, HEXAGON, "operators", tests, {removed: "it differs"} if number == 2 else {})
            store.put(sent.run, collect(sent.cases(), lambda case: (case.nodeid, case.path)))

    async with dashboard_site(tmp_path, filled=fill, moment=committed_at(WINDOW + 5)) as site:
        status, page = await site.json(f"/api/v1/repos/octocat/compiler/tests?id={removed}")
        assert status == 200
        (target,) = page["targets"]
        assert {commit["cell"]["state"] for commit in target["runs"]} == {"absent"}
        assert (target["first_seen"], target["failing"]["since"]) == (sha(0), sha(2))
        assert target["reproduce"] == f"pytest {removed}"
        assert page["answer"][0]["text"] == "The newest nightly runs do not have this test"
        _, _, markup = await site.get(f"/r/octocat/compiler/tests?id={removed}")
        assert "■ Failed when it last ran</strong>, since" in markup
        assert "new issue on GitHub" not in markup


async def test_what_ran_on_a_target_that_left_app_yaml_is_old_and_its_lab_not_late(tmp_path: Path) -> None:
    config = CONFIG.replace("[hexagon-v73, adreno]", "[hexagon-v73]")
    async with dashboard_site(tmp_path, config=config, moment=NOW + 3 * 86_400) as site:
        status, page = await site.json(f"/api/v1/repos/octocat/compiler/tests?id={quote(SOFTMAX, safe='')}")
        assert status == 200
        assert {target["target"]: target["configured"] for target in page["targets"]} == {
            "hexagon-v73": True,
            "adreno": False,
        }
        assert "".join(part["text"] for part in page["answer"]) == (
            "Unknown on example-lab/hexagon-v73: no report for over 36 hours; failed when it last ran on "
            "example-lab/hexagon-v73; no longer in app.yaml: example-lab/adreno."
        )
        _, _, markup = await site.get(
            f"/r/octocat/compiler/tests?id={quote(SOFTMAX, safe='')}&target=example-lab/adreno"
        )
        assert "no longer in app.yaml</span>" in markup
        assert "stale, over 36 h" not in markup
        assert "■ Failed when it last ran</strong>, since" in markup
        assert "new issue on GitHub" not in markup
