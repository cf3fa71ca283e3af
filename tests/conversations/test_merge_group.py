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


async def queued(town: Town) -> PullRequest:
    """Put a pull request into the merge queue."""
    town.repo.classic_queues.add("main")
    pull = ready(town)
    assert await says(town, pull, "@ci merge") == "eyes +1"
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
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", also=ALSO % branches) as town:
        sha = (await queued(town)).test_in_queue()
        await town.quiet()
        statuses = {status.context: (status.state, status.description) for status in town.repo.statuses(sha)}
        assert statuses["ci/skip"] == ("success", "CI runs: the merge queue tests each merge group")
        assert statuses["ci/slow-tests"][0] == "success"
        assert (statuses["ci/slow-tests"][1] or "").startswith(slow)
        (run,) = town.repo.check_runs(sha, "nightjar/lint")
        assert (run.conclusion, run.title) == ("success", "A merge group has no title")


async def test_details_of_a_group_link_the_story_of_its_pull_request(tmp_path: Path) -> None:
    also = f"{ALSO % 'main'}public_url: {PAGES}\n"
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", also=also) as town:
        pull = await queued(town)
        sha = pull.test_in_queue()
        await town.quiet()
        path = f"/r/octocat/compiler/pulls/{pull.number}"
        (run,) = town.repo.check_runs(sha, "nightjar/lint")
        details = {run.details_url, *(status.target_url for status in town.repo.statuses(sha))}
        assert details == {f"{PAGES}{path}"}
        _, _, story = await town.ask(f"/api/v1/repos{path.removeprefix('/r')}")
        newest = story["deliveries"][0]
        assert (newest["event"], newest["what"]) == (
            "merge_group.checks_requested",
            "The merge queue asked for the checks of its group",
        )
        assert {effect["sha"] for plan in newest["plans"] for effect in plan["effects"]} == {sha}
        search = DeliverySearch(repository="octocat/compiler", number=pull.number)
        page = await find_deliveries(town.bot.engine.journal, town.bot.engine.records, search, None)
        assert [record.guid for record in page.records] == [delivery["guid"] for delivery in story["deliveries"]], (
            "the operators' page shows it too"
        )


async def test_disabled_features_report_nothing_on_groups(tmp_path: Path) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", also="    slow_tests: false\n") as town:
        sha = (await queued(town)).test_in_queue()
        await town.quiet()
        assert town.repo.statuses(sha) == []
        assert town.repo.check_runs(sha) == []


async def test_an_app_without_the_permission_gets_no_merge_group_events(tmp_path: Path) -> None:
    permissions = {name: access for name, access in PERMISSIONS.items() if name != "merge_queues"}
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", permissions=permissions) as town:
        sha = (await queued(town)).test_in_queue()
        await town.quiet()
        assert town.repo.statuses(sha) == []
