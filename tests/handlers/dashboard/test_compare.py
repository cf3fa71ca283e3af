"""`/r/{owner}/{repo}/compare`: what changed from one commit to another."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from nightjar_formats.columns.collect import collect

from bot.results.store.store import ResultsStore
from tests.handlers.dashboard.nightly_runs import FLAKY, HEXAGON, Sent, sha
from tests.handlers.dashboard.site import DashboardSite, dashboard_site

pytestmark = pytest.mark.asyncio(loop_scope="session")

COMPARE = "/r/octocat/compiler/compare"
API = "/api/v1/repos/octocat/compiler/compare"
ON_HEXAGON = "target=example-lab/hexagon-v73"


async def test_by_default_the_newest_commit_is_compared_with_the_previous_one(site: DashboardSite) -> None:
    status, _, page = await site.get(COMPARE)
    assert status == 200
    assert "from" in page
    _, answered = await site.json(API)
    assert (answered["target"], answered["base"]["sha"], answered["head"]["sha"]) == (
        "example-lab/hexagon-v73",
        sha(12),
        sha(13),
    )
    assert answered["counts"]["new-failure"] == 0
    assert answered["counts"]["still-failing"] == 6
    # Without JavaScript: each commit of the target is a choice in both lists.
    assert page.count(f'<option value="{sha(3)}">') == 2
    _, _, page = await site.get(f"{COMPARE}?base={sha(3)}")
    assert page.count(f'<option value="{sha(3)}" selected>') == 1


async def test_two_commits_of_a_target_are_compared_class_by_class(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}?{ON_HEXAGON}&base={sha(9)}&head={sha(12)[:9]}")
    assert answered["counts"]["new-failure"] == 6
    assert answered["counts"]["fixed"] == 1
    assert answered["counts"]["flaky"] == 0
    (fixed,) = [test for test in answered["tests"] if test["status"] == "fixed"]
    assert (fixed["test"], fixed["before"], fixed["now"]) == (FLAKY, "failed", "passed")
    failed = answered["tests"][0]
    assert (failed["before"], failed["now"]) == ("passed", "failed")
    assert failed["message"].startswith(("AssertionError", "IndexError"))
    _, _, page = await site.get(f"{COMPARE}?{ON_HEXAGON}&base={sha(9)}&head={sha(12)}&status=new-failure&q=SOFTMAX")
    assert "3 tests match" in page
    assert "test_gather" not in page
    assert f"https://github.com/octocat/compiler/compare/{sha(9)}...{sha(12)}" in page


async def test_a_flaky_test_is_not_a_new_failure(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}?{ON_HEXAGON}&base={sha(8)}&head={sha(9)}")
    [flaky] = answered["tests"]
    assert [flaky[name] for name in ("status", "test", "before", "now")] == ["flaky", FLAKY, "flaky", "failed"]


async def test_a_run_without_usable_results_is_not_compared(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}?target=example-lab/adreno&base={sha(6)}&head={sha(7)}")
    notes = {test["suite"]: test["note"] for test in answered["suites"]}
    assert "failed for the same reason" in notes["runtime"]
    assert notes["operators"] is None
    _, answered = await site.json(f"{API}?target=example-lab/adreno&base={sha(7)}&head={sha(8)}")
    notes = {test["suite"]: test["note"] for test in answered["suites"]}
    assert "are unusable" in notes["runtime"]
    assert answered["counts"]["fixed"] == 0


async def test_a_commit_without_results_is_named(site: DashboardSite) -> None:
    status, answered = await site.json(f"{API}?{ON_HEXAGON}&base={'0' * 40}")
    assert status == 400
    assert "no results for 0000" in answered["detail"]
    assert f"The newest commits with results: {sha(13)[:7]}, {sha(12)[:7]}," in answered["detail"]
    status, _, page = await site.get(f"{COMPARE}?{ON_HEXAGON}&base=master")
    assert status == 400
    assert "base" in page


async def test_the_rows_are_available_as_csv(site: DashboardSite) -> None:
    address = f"{API}?{ON_HEXAGON}&base={sha(9)}&head={sha(12)}"
    status, headers, text = await site.get(f"{address}&format=csv")
    assert (status, headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert headers["Content-Disposition"] == 'attachment; filename="compare.csv"'
    rows = list(csv.DictReader(io.StringIO(text)))
    _, answered = await site.json(f"{address}&format=json")
    assert [row["test"] for row in rows] == [test["test"] for test in answered["tests"]]
    assert (await site.get(f"{address}&format=xml"))[0] == 400
    assert (await site.get(f"{COMPARE}?format=csv"))[0] == 400
    _, _, page = await site.get(f"{COMPARE}?{ON_HEXAGON}")
    assert "example-lab%2Fhexagon-v73&amp;format=csv" in page


async def test_without_results_the_page_says_what_to_do(site: DashboardSite) -> None:
    _, _, page = await site.get("/r/octocat/new/compare")
    assert "nothing to compare" in page
    _, _, page = await site.get("/r/octocat/docs/compare")
    assert "accepts no results" in page
    assert (await site.get("/r/octocat/secret/compare"))[0] == 404


HOSTILE = '<script>alert(1)</script>[=HYPERLINK("https://evil.example")]::\x00\ud800\'"><img src=x>'


async def test_names_and_messages_from_a_lab_are_escaped(tmp_path: Path) -> None:
    def fill(store: ResultsStore) -> None:
        for number, failed in ((0, {}), (1, {HOSTILE: '"><svg onload=alert(1)>'})):
            tests = (HOSTILE, *(f"test_{n}" for n in range(12)))
            sent = Sent(number, HEXAGON, "<b>suite", tests, failed)
            store.put(sent.run, collect(sent.cases(), lambda case: (case.nodeid, case.path)))

    async with dashboard_site(tmp_path, filled=fill) as site:
        status, _, page = await site.get(COMPARE)
        assert status == 200
        assert "<script>alert" not in page
        assert "<svg onload" not in page
        assert "<b>suite" not in page
        status, answered = await site.json(API)
        assert status == 200
        assert answered["counts"]["new-failure"] == 1
        status, _, text = await site.get(f"{API}?format=csv")
        assert status == 200
        assert "new-failure" in text
