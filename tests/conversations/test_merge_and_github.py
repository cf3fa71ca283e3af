"""`@ci merge when green` where a single response of GitHub suggests a wrong decision: to merge, or to give up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conversations.merges import BODY, approve, merge_town, report, says
from tests.conversations.town import Town

WHEN_GREEN = "@ci merge when green"
MERGE = "/repos/{owner}/{repo}/pulls/{pull_number}/merge"


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


@pytest.mark.parametrize("keys", ["", 'required: ["test"]', 'required: ["*"]'])
async def test_a_job_skipped_by_the_attempt_before_a_rerun_is_waited_for(tmp_path: Path, keys: str) -> None:
    """`test` needs `build`, so it has no new check run before `build` has passed."""
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", keys) as town:
        pull = town.repo.open_pull_request("hubot", "Faster", BODY)
        run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"build": "failure", "test": "skipped"})
        approve(pull)
        town.github.clock.advance(seconds=1)
        await says(town, pull, "@ci rerun")
        page = f"{town.github.url}/octocat/compiler/runs/{run.jobs[1].id}"
        assert f"[`test`](<{page}>) is still running" in await says(town, pull, WHEN_GREEN)
        run.start()
        town.github.clock.advance(seconds=60)
        run.finish_job("build", "success")
        await town.quiet()
        assert pull.state == "open"
        run.add_job("test")
        run.start()
        await town.quiet()
        assert pull.state == "open"
        run.finish("success")
        await town.quiet()
        assert pull.merged_at


async def test_the_end_of_a_workflow_run_merges_what_its_last_job_did_not(tmp_path: Path) -> None:
    """Until the workflow run ends, it may begin more jobs."""
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", "") as town:
        pull = town.repo.open_pull_request("hubot", "Faster", BODY)
        run = town.repo.add_workflow_run(pull.head_sha, "CI", jobs={"build": None})
        approve(pull)
        run.finish_job("build", "success")
        assert "`CI`](<" in await says(town, pull, WHEN_GREEN)
        assert pull.state == "open"
        run.finish("success")
        await town.quiet()
        assert pull.merged_at


async def test_it_merges_although_another_merge_was_faster(town: Town) -> None:
    """GitHub refuses a merge while the base moves, and shows nothing that blocks it."""
    pull = town.repo.open_pull_request("hubot", "Faster", BODY)
    approve(pull)
    report(town, pull, "pending")
    await says(town, pull, WHEN_GREEN)
    message = "Base branch was modified. Review and try the merge again."
    fault = town.github.faults.add("PUT", MERGE, status=405, message=message)
    report(town, pull)
    await town.quiet()
    assert fault.hits == 1
    assert pull.merged_at
    assert len(town.answers(pull)) == 1


@pytest.mark.parametrize("linked", [False, True], ids=["304 without Link", "304 with Link"])
async def test_a_request_for_changes_after_a_full_page_of_reviews_prevents_the_merge(town: Town, linked: bool) -> None:
    """GitHub answers 304 for the first page, because an ETag doesn't depend on the pages behind."""
    town.github.links_unchanged_pages = linked
    pull = town.repo.open_pull_request("somebody", "Faster", BODY, fork=True)
    for _ in range(99):
        pull.review("reader", "A comment.")
    approve(pull)
    report(town, pull, "pending")
    assert (await says(town, pull, WHEN_GREEN)).startswith("eyes +1\n")
    pull.review("hubot", "Not yet.", "CHANGES_REQUESTED")
    report(town, pull)
    await town.quiet()
    assert pull.state == "open"
    assert "`hubot` [requested changes](" in town.answers(pull)[-1]
