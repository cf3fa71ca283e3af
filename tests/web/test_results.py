"""A lab asks for the outcome of its runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from nightjar_formats.model import Claims, RunKey

from bot.results.state import Run, RunState
from handlers.results.listing import RunWithCheck
from tests.web.conftest import Site
from tests.web.test_api import conforms, described

SHA = "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"
PATH = "/api/v1/repos/octocat/compiler/results/runs"
TEMPLATE = "/api/v1/repos/{owner}/{repo}/results/runs"
STORED = Run(
    RunKey("octocat/compiler", "example-lab", "adreno", SHA, "run-1"),
    "etag",
    RunState.STORED,
    "",
    1_795_000_000.25,
    claims=Claims("operators", 2, 1, 4),
)
REFUSED = Run(
    RunKey("octocat/compiler", "example-lab", "adreno", SHA, "run-2"),
    "etag",
    RunState.REFUSED,
    "<b>why</b> @octocat",
    0,
)


CHECK = "https://github.com/octocat/compiler/runs/7"


def numbered(count: int, target: str = "adreno") -> list[RunWithCheck]:
    keys = [replace(STORED.key, target=target, run_id=f"run-{number}") for number in range(count)]
    return [RunWithCheck(replace(STORED, key=key), "") for key in keys]


async def page(site: Site, query: str = "") -> dict[str, Any]:
    status, headers, body = await site.get(PATH + query)
    assert status == 200, body
    conforms(await described(site), "get", TEMPLATE, status, headers["Content-Type"].partition(";")[0], body)
    parsed: dict[str, Any] = json.loads(body)
    return parsed


async def test_a_run_is_shown_with_its_outcome(site: Site) -> None:
    site.runs += [RunWithCheck(STORED, CHECK), RunWithCheck(REFUSED, "")]
    stored, refused = (await page(site))["runs"]
    assert stored == {
        "lab": "example-lab",
        "target": "adreno",
        "sha": SHA,
        "run_id": "run-1",
        "suite": "operators",
        "attempt": 2,
        "shard": {"index": 1, "total": 4},
        "state": "stored",
        "reason": "",
        "received_at": "2026-11-18T11:06:40.250000Z",
        "check_run": CHECK,
    }
    assert (refused["state"], refused["reason"], refused["suite"]) == ("refused", "<b>why</b> @octocat", None)
    assert refused["check_run"] is None


async def test_filters_are_passed_on(site: Site) -> None:
    await page(site, f"?lab=example-lab&target=adreno&sha={SHA}&state=refused&limit=3")
    [received] = site.queries
    assert (received.lab, received.target, received.sha, received.state) == (
        "example-lab",
        "adreno",
        SHA,
        RunState.REFUSED,
    )
    assert received.repository == "octocat/compiler"


async def test_pages_follow_each_other_to_the_end(site: Site) -> None:
    site.runs += numbered(5)
    run_ids, query = [], "?limit=2"
    while True:
        message = await page(site, query)
        run_ids.append([run["run_id"] for run in message["runs"]])
        if message["next"] is None:
            break
        query = f"?limit=2&before={message['next']}"
    assert run_ids == [["run-0", "run-1"], ["run-2", "run-3"], ["run-4"]]


async def test_a_page_that_is_exactly_full_has_no_next_one(site: Site) -> None:
    site.runs += numbered(2)
    assert (await page(site, "?limit=2"))["next"] is None


async def test_by_default_a_page_has_fifty_runs(site: Site) -> None:
    site.runs += numbered(300)
    assert len((await page(site))["runs"]) == 50
    assert len((await page(site, "?limit=200"))["runs"]) == 200


@pytest.mark.parametrize(
    ("query", "detail"),
    [
        ("?limit=0", "limit must be"),
        ("?limit=201", "limit must be"),
        ("?limit=-1", "limit must be"),
        ("?limit=٢", "limit must be"),
        ("?limit=1&limit=2", "each once"),
        ("?state=green", "state must be one of waiting, stored, incomplete, refused"),
        ("?lab=../x", "lab must be"),
        ("?sha=0d1a26e67d", "sha must be the full SHA of a commit: 40 hexadecimal digits"),
        ("?before=run-1", "before must be"),
        (f"?before=example-lab/adreno/{SHA}/run-9", "before must be"),
        ("?labs=example-lab", "Unknown parameter labs. Available: lab, target, sha, before, state, limit"),
    ],
)
async def test_an_invalid_query_is_an_error_that_says_what_is_wrong(site: Site, query: str, detail: str) -> None:
    status, headers, body = await site.get(PATH + query)
    assert status == 400
    assert detail in json.loads(body)["detail"]
    conforms(await described(site), "get", TEMPLATE, status, headers["Content-Type"].partition(";")[0], body)


async def test_a_repository_without_results_has_no_runs(site: Site) -> None:
    status, headers, body = await site.get(PATH.replace("compiler", "other"))
    assert status == 404
    assert "accepts no results" in json.loads(body)["detail"]
    conforms(await described(site), "get", TEMPLATE, status, headers["Content-Type"].partition(";")[0], body)


async def test_a_target_with_an_at_sign_and_a_colon_is_found_and_paged(site: Site) -> None:
    site.runs += numbered(3, "rpi-4@lab:1")
    first = await page(site, "?target=rpi-4%40lab%3A1&limit=2")
    assert [run["target"] for run in first["runs"]] == ["rpi-4@lab:1"] * 2
    rest = await page(site, f"?target=rpi-4@lab:1&limit=2&before={first['next']}")
    assert len(rest["runs"]) == 1
