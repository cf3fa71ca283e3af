"""What the bot reports for groups of a merge queue that requires its checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.app.registration import PERMISSIONS
from handlers.operate.search import DeliverySearch, find_deliveries
from sandbox import PullRequest
from tests.conversations.merges import merge_town, ready, says
from tests.conversations.town import Town

PAGES = "https://ci.example.org"
ALSO = "    skip_ci: {}\n    lint: {}\n    slow_tests: {branches: [%s]}\n"


async def queued(here: Town) -> PullRequest:
    """Put a pull request into the merge queue."""
    here.repo.classic_queues.add("main")
    pull = ready(here)
    assert await says(here, pull, "@ci merge") == "eyes +1"
    assert pull.queued is not None
    return pull


@pytest.mark.parametrize(
    ("branches", "slow"),
    [
        ("main", "Off: a merge group runs them only if `slow_tests: branches` matches its branch"),
        ('"gh-readonly-queue/*"', "On: the branch gh-readonly-queue/main/pr-1-"),
    ],
)
async def test_checks_that_a_queue_may_require_are_reported_on_its_groups(
    tmp_path: Path, branches: str, slow: str
) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", also=ALSO % branches) as here:
        sha = (await queued(here)).test_in_queue()
        await here.quiet()
        said = {one.context: (one.state, one.description) for one in here.repo.statuses(sha)}
        assert said["ci/skip"] == ("success", "CI runs: the merge queue tests each merge group")
        assert said["ci/slow-tests"][0] == "success"
        assert (said["ci/slow-tests"][1] or "").startswith(slow)
        (run,) = here.repo.check_runs(sha, "nightjar/lint")
        assert (run.conclusion, run.title) == ("success", "A merge group has no title")


async def test_details_of_a_group_link_the_story_of_its_pull_request(tmp_path: Path) -> None:
    also = f"{ALSO % 'main'}public_url: {PAGES}\n"
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", also=also) as here:
        pull = await queued(here)
        sha = pull.test_in_queue()
        await here.quiet()
        path = f"/r/octocat/compiler/pulls/{pull.number}"
        (run,) = here.repo.check_runs(sha, "nightjar/lint")
        details = {run.details_url, *(one.target_url for one in here.repo.statuses(sha))}
        assert details == {f"{PAGES}{path}"}
        _, _, story = await here.ask(f"/api/v1/repos{path.removeprefix('/r')}")
        newest = story["deliveries"][0]
        assert (newest["event"], newest["what"]) == (
            "merge_group.checks_requested",
            "The merge queue asked for the checks of its group",
        )
        assert {effect["sha"] for plan in newest["plans"] for effect in plan["effects"]} == {sha}
        search = DeliverySearch(repository="octocat/compiler", number=pull.number)
        found = await find_deliveries(here.bot.engine.journal, here.bot.engine.records, search, None)
        assert [one.guid for one in found.records] == [one["guid"] for one in story["deliveries"]], (
            "the operators' page shows it too"
        )


async def test_disabled_features_report_nothing_on_groups(tmp_path: Path) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", also="    slow_tests: false\n") as here:
        sha = (await queued(here)).test_in_queue()
        await here.quiet()
        assert here.repo.statuses(sha) == []
        assert here.repo.check_runs(sha) == []


async def test_an_app_without_the_permission_gets_no_merge_group_events(tmp_path: Path) -> None:
    permissions = {name: access for name, access in PERMISSIONS.items() if name != "merge_queues"}
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", permissions=permissions) as here:
        sha = (await queued(here)).test_in_queue()
        await here.quiet()
        assert here.repo.statuses(sha) == []
