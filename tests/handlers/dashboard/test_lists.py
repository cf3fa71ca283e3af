"""`/r/{owner}/{repo}/flaky`, `/slow` and `/skipped`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from nightjar_formats.columns.collect import collect
from nightjar_formats.model import Case, Status

from bot.results.store.store import ResultsStore
from tests.handlers.dashboard.nightly_runs import ADRENO, FLAKY, HEXAGON, NIGHTLY_RUNS, Sent, sha
from tests.handlers.dashboard.site import DashboardSite, dashboard_site

pytestmark = pytest.mark.asyncio(loop_scope="session")

API = "/api/v1/repos/octocat/compiler"
ON_HEXAGON, ON_ADRENO, ON_BOARD = "example-lab/hexagon-v73", "example-lab/adreno", "hubot-lab/rpi-5@rack:2"


async def test_a_flaky_test_is_listed_with_the_commits_that_prove_it(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}/flaky")
    (flaky,) = answered["tests"]
    assert (flaky["test"], flaky["target"], flaky["suite"]) == (FLAKY, ON_HEXAGON, "runtime")
    assert [proof["sha"] for proof in flaky["proofs"]] == [sha(11), sha(8), sha(3)]
    assert (flaky["proved"], flaky["failed"], flaky["runs"], flaky["explains"]) == (3, 2, NIGHTLY_RUNS, True)
    status, _, page = await site.get("/r/octocat/compiler/flaky")
    assert status == 200
    for number in (3, 8, 11):
        assert f"/r/octocat/compiler/runs/example-lab/hexagon-v73/{sha(number)}/runtime-run-1" in page


async def test_flaky_tests_are_filtered(site: DashboardSite) -> None:
    assert (await site.json(f"{API}/flaky?q=RPC_3&target={ON_HEXAGON}"))[1]["total"] == 1
    assert (await site.json(f"{API}/flaky?q=softmax"))[1]["total"] == 0
    assert (await site.json(f"{API}/flaky?days=1"))[1]["total"] == 0
    _, _, page = await site.get(f"/r/octocat/compiler/flaky?target={ON_ADRENO}")
    assert f"No test of {ON_ADRENO} was flaky in the last 30 days" in page
    assert "was flaky in the last 1 day." in (await site.get("/r/octocat/compiler/flaky?days=1"))[2]
    _, _, page = await site.get("/r/octocat/compiler/flaky?q=softmax")
    assert "No test matches" in page


async def test_a_skipped_test_says_where_and_since_when(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}/skipped?q=conv2d[bfloat16-16x64]")
    (test,) = answered["tests"]
    assert [skip["target"] for skip in test["skipped"]] == [ON_ADRENO, ON_HEXAGON]
    assert {skip["since"] for skip in test["skipped"]} == {sha(0)}
    assert {skip["reason"] for skip in test["skipped"]} == {"needs 8 GB of memory"}
    assert test["runs_on"] == []
    assert answered["idle_total"] == 1
    assert answered["idle"][0]["skipped_on"] == [ON_ADRENO, ON_HEXAGON]
    _, _, page = await site.get("/r/octocat/compiler/skipped")
    assert "needs 8 GB of memory" in page
    assert "nowhere" in page


async def test_a_test_that_runs_elsewhere_is_not_idle(site: DashboardSite) -> None:
    _, answered = await site.json(f"{API}/skipped?q=device_api_1")
    (test,) = answered["tests"]
    assert [skip["target"] for skip in test["skipped"]] == [ON_BOARD]
    assert test["runs_on"] == [ON_ADRENO, ON_HEXAGON]
    assert answered["idle_total"] == 0


async def test_each_list_is_available_as_csv(site: DashboardSite) -> None:
    for page in ("flaky", "slow", "skipped"):
        status, headers, text = await site.get(f"{API}/{page}?format=csv")
        assert (status, headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
        rows = list(csv.DictReader(io.StringIO(text)))
        assert rows
        assert all(row["test"].startswith("tests/") for row in rows)


async def test_without_results_the_pages_say_what_to_do(site: DashboardSite) -> None:
    for page in ("flaky", "slow", "skipped"):
        assert "No lab has uploaded usable results" in (await site.get(f"/r/octocat/new/{page}"))[2]
        assert "accepts no results" in (await site.get(f"/r/octocat/docs/{page}"))[2]
        assert (await site.get(f"/r/octocat/secret/{page}"))[0] == 404


class Timed(NamedTuple):
    name: str
    seconds: float | None
    status: Status = Status.PASSED


def send(store: ResultsStore, number: int, tests: list[Timed], target: tuple[str, str] = HEXAGON) -> None:
    """Store a nightly run of these tests."""
    sent = Sent(number, target, "operators", ())

    def cases() -> Iterator[Case]:
        for test in tests:
            message = "needs a device" if test.status is Status.SKIPPED else ""
            yield Case(test.name, test.status, nodeid=test.name, seconds=test.seconds, message=message)

    store.put(sent.run, collect(cases(), lambda case: (case.nodeid, case.path)))


HOSTILE = '=HYPERLINK("https://evil.example")<script>alert(1)</script>\ud800\'"><img src=x>'


async def test_slow_tests_and_the_time_saved_by_a_limit(tmp_path: Path) -> None:
    def fill(store: ResultsStore) -> None:
        fast = [Timed(f"test_fast_{n}", 0.5) for n in range(30)]
        for number in range(6):
            old = [Timed("test_slow", 500.0 if number < 3 else 30.0), Timed(HOSTILE, 60.0)]
            sometimes = Timed("test_sometimes", 15.0, Status.FAILED if number in (1, 2) else Status.PASSED)
            skipped = Timed(
                "test_skipped", 0.0 if number == 5 else 12.0, Status.SKIPPED if number == 5 else Status.PASSED
            )
            send(store, number, [*fast, *old, sometimes, skipped])

    async with dashboard_site(tmp_path, filled=fill) as site:
        _, answered = await site.json(f"{API}/slow")
        cut_offs = {entry["seconds"]: entry for entry in answered["cut_offs"]}
        assert [cut_offs[seconds]["tests"] for seconds in (10, 20, 40, 50, 70, 100)] == [4, 2, 1, 1, 0, 0]
        assert cut_offs[50]["minutes_saved"] == pytest.approx(1.0, rel=0.03)
        assert [entry["test"] for entry in answered["tests"][:4]] == [
            HOSTILE,
            "test_slow",
            "test_sometimes",
            "test_skipped",
        ]
        assert answered["tests"][1]["seconds"] == pytest.approx(30.0, rel=0.03)
        assert (answered["tests"][2]["failed"], answered["tests"][2]["runs"]) == (2, 6)
        assert answered["tests"][3]["seconds"] == pytest.approx(12.0, rel=0.03)
        status, _, page = await site.get("/r/octocat/compiler/slow")
        assert status == 200
        assert "<script>alert" not in page
        _, _, text = await site.get(f"{API}/slow?format=csv")
        (hostile,) = [row for row in csv.DictReader(io.StringIO(text)) if "HYPERLINK" in row["test"]]
        assert hostile["test"].startswith("'=")
        assert (await site.json(f"{API}/slow?q=SOME"))[1]["total"] == 1


async def test_a_test_that_ran_within_the_week_is_not_idle(tmp_path: Path) -> None:
    def ended(skipped: bool) -> Status:
        return Status.SKIPPED if skipped else Status.PASSED

    def fill(store: ResultsStore) -> None:
        for number in range(NIGHTLY_RUNS):
            tests = [
                Timed("test_ok", 1.0),
                Timed("test_until_lately", 1.0, ended(number >= 11)),
                Timed("test_until_long_ago", 1.0, ended(number >= 4)),
                *([Timed("test_added_lately", 1.0, Status.SKIPPED)] if number >= 11 else []),
            ]
            send(store, number, tests)
        send(store, 2, [Timed("test_silent", 1.0), Timed("test_ok", 1.0)], ADRENO)

    async with dashboard_site(tmp_path, filled=fill) as site:
        _, answered = await site.json(f"{API}/skipped")
        assert [(test["test"], test["skipped_on"], test["silent"]) for test in answered["idle"]] == [
            ("test_silent", [], [ON_ADRENO]),
            ("test_until_long_ago", [ON_HEXAGON], []),
        ]
        since = {test["test"]: test["skipped"][0]["since"] for test in answered["tests"]}
        assert since == {"test_added_lately": sha(11), "test_until_lately": sha(11), "test_until_long_ago": sha(4)}


async def test_nothing_is_idle_for_a_week_while_there_are_results_of_a_day(tmp_path: Path) -> None:
    def fill(store: ResultsStore) -> None:
        send(store, NIGHTLY_RUNS - 1, [Timed("test_ok", 1.0), Timed("test_skipped", 1.0, Status.SKIPPED)])

    async with dashboard_site(tmp_path, filled=fill) as site:
        _, answered = await site.json(f"{API}/skipped")
        assert (answered["idle"], answered["total"]) == ([], 1)
