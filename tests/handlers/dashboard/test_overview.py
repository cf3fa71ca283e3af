"""`/`: the first page that people see."""

from __future__ import annotations

import pytest

from handlers.dashboard.overview.page import branch_of_nightly
from tests.handlers.dashboard.site import DashboardSite

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_each_target_has_its_last_result_and_its_failures(site: DashboardSite) -> None:
    status, _, page = await site.get("/")
    assert status == 200
    assert "octocat/compiler" in page
    assert "stale, over 36 h" in page
    assert "no results yet" in page
    _, answered = await site.json("/api/v1/repos")
    (compiler,) = [
        repository for repository in answered["repositories"] if repository["repository"] == "octocat/compiler"
    ]
    by_target = {target["target"]: target for target in compiler["targets"]}
    assert (by_target["hexagon-v73"]["failing"], by_target["hexagon-v73"]["stale"]) == (6, False)
    assert by_target["rpi-5@rack:2"]["stale"] is True
    assert "■ 6 tests" in page


async def test_a_private_repository_is_not_named(site: DashboardSite) -> None:
    _, _, page = await site.get("/")
    assert "secret" not in page
    assert "secret" not in str(await site.json("/api/v1/repos"))


async def test_a_branch_is_behind_by_the_commits_that_are_newer_than_its_own() -> None:
    scanned = [{"sha": "c" * 40}, {"sha": "b" * 40}]
    record = {"branch": "nightly", "sha": "b" * 40, "moved_at": "", "trouble": "", "why": "", "why_not_newer": scanned}
    assert branch_of_nightly(record).behind == 1
    assert branch_of_nightly({**record, "sha": "a" * 40}).behind == 2
