"""`@ci run slow tests`, with the whole bot, and what CI gets when it asks."""

from __future__ import annotations

from typing import Any

import aiohttp

from sandbox import PullRequest
from tests.conversations.town import Town

OFF = "Off: nobody requested them. To turn on, comment: @ci run slow tests"
ON = "On: requested by hubot. To turn off, comment: @ci skip slow tests"


async def decision(town: Town, pull: PullRequest) -> Any:
    url = f"{town.url}/api/v1/repos/octocat/compiler/pulls/{pull.number}/decision"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 200
        return await response.json()


def status_description(town: Town, pull: PullRequest) -> str | None:
    status = town.repo.status(pull.head_sha, "ci/slow-tests")
    return status.description if status and status.state == "success" else None


async def test_once_switched_on_they_stay_on_and_ci_is_notified(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    assert status_description(town, pull) == OFF
    answer = await decision(town, pull)
    assert (answer["sha"], answer["run_slow_tests"]) == (pull.head_sha, {"value": False, "reason": OFF})
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "success")
    comment = pull.comment("hubot", "@ci run slow tests")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert run.attempt == 2
    (answer,) = town.answers(pull)
    assert f"CI had already finished on `{pull.head_sha[:7]}`, so I'm restarting it with slow tests: `CI`." in answer
    pull.push()
    await town.quiet()
    assert status_description(town, pull) == ON
    answer = await decision(town, pull)
    assert (answer["sha"], answer["run_slow_tests"]) == (pull.head_sha, {"value": True, "reason": ON})


async def test_a_level_raises_a_pull_request_further_than_slow_tests(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    assert (await decision(town, pull))["level"] == "pull-request"
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "success")
    pull.comment("hubot", "@ci run slow tests")
    await town.quiet()
    assert ((await decision(town, pull))["level"], run.attempt) == ("main", 2)
    run.finish("success")
    pull.comment("hubot", "@ci run level nightly")
    await town.quiet()
    description = "On, level nightly: requested by hubot. To turn off, comment: @ci skip slow tests"
    assert status_description(town, pull) == description
    answer = await decision(town, pull)
    assert (answer["level"], answer["run_slow_tests"]) == ("nightly", {"value": True, "reason": description})
    assert run.attempt == 3
    # The last command of a comment counts, and a lower level restarts nothing.
    pull.comment("hubot", "@ci run level release\n@ci run level main")
    await town.quiet()
    assert ((await decision(town, pull))["level"], run.attempt) == ("main", 3)
    pull.comment("hubot", "@ci skip slow tests")
    await town.quiet()
    assert (await decision(town, pull))["level"] == "pull-request"
    pull.comment("hubot", "@ci run level")
    await town.quiet()
    assert "Name a level, as in `@ci run level nightly`." in town.answers(pull)[-1]
    assert "`pull-request`, `main`, `nightly`, `release`" in town.answers(pull)[-1]


async def test_requested_in_the_description_they_are_on_from_the_first_commit(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "Speeds up matmul.\n\n@ci run slow tests")
    await town.quiet()
    assert status_description(town, pull) == ON
    assert town.answers(pull) == []


async def test_a_failure_of_github_at_the_opening_leaves_no_wrong_status(town: Town) -> None:
    """The first status is refused and tried again, perhaps after the command in the description was carried out."""
    town.github.faults.add("POST", "/repos/{owner}/{repo}/statuses/{sha}", status=502)
    pull = town.repo.open_pull_request("hubot", "Faster", "@ci run slow tests")
    await town.quiet()
    assert status_description(town, pull) == ON


async def test_a_command_added_to_a_review_later_counts_as_the_newest(town: Town) -> None:
    """GitHub says when a review was submitted, but not when it was edited."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    review = pull.review("octocat", "Looks right.")
    town.github.clock.advance(seconds=60)
    pull.comment("hubot", "@ci skip slow tests")
    await town.quiet()
    town.github.clock.advance(seconds=60)
    pull.edit_review(review, "Looks right.\n\n@ci run slow tests")
    await town.quiet()
    assert (status_description(town, pull) or "").startswith("On: requested by octocat.")
