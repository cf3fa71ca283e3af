"""A test that app.yaml quarantines: every place that shows its failure says so, and nobody gets a message."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.bucket import World
from tests.conversations.lab import LAB, TARGET, TEST_FILE, LabTown, junit, lab_town
from tests.conversations.town import REPOSITORY

ITEM = {"owner": "octocat", "reason": "Old firmware", "issue": "https://example.org/12", "until": "2999-12-31"}
MUL = f"{TEST_FILE}::test_mul"
FEATURES = f"regressions: {{to: [issue]}}\n    quarantine: {json.dumps([{'test': MUL} | ITEM])}"


@pytest.fixture
async def place(tmp_path: Path, aws_world: World) -> AsyncIterator[LabTown]:
    async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world, features=FEATURES) as place:
        yield place


async def test_every_place_that_shows_a_failure_says_that_its_test_is_quarantined(place: LabTown) -> None:
    shas = []
    for mul in ("passed", "AssertionError: 3 != 4", "AssertionError: 3 != 4"):
        shas.append(place.nightly_run())
        place.upload(shas[-1], {"ops.xml": junit(test_add="passed", test_mul=mul)})
        await place.settle()
    first, second, third = shas
    check = place.check(second)
    assert (check.conclusion, check.title) == ("neutral", "1 failure quarantined · 1 passed")
    # Counted once, although it is both confirmed and still failing.
    assert place.check(third).title == "1 failure quarantined · 1 passed"
    assert "[Old firmware](https://example.org/12)" in str(check.summary)
    assert place.town.repo.issues == {}

    failures = await query_api(place, f"results/failures?lab={LAB}&target={TARGET}")
    assert [(failure["test"], failure["quarantine"]) for failure in failures["failures"]] == [(MUL, ITEM)]
    run = await query_api(place, f"runs/{LAB}/{TARGET}/{second}/run-2")
    assert run["check"]["title"] == check.title
    compared = await query_api(place, f"compare?target={LAB}/{TARGET}&base={first}&head={third}")
    assert {name: count for name, count in compared["counts"].items() if count} == {"quarantined": 1}
    grid = await query_api(place, "grid")
    cells = [cell for row in grid["rows"] for cell in row["cells"]]
    assert (max(cell["failed"] for cell in cells), max(cell["new"] for cell in cells)) == (1, 0)


async def query_api(place: LabTown, path: str) -> Any:
    """Ask the API about the repository."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{place.town.url}/api/v1/repos/{REPOSITORY}/{path}") as response,
    ):
        assert response.status == 200, await response.text()
        return await response.json()
