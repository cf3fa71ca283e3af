"""Permanent failures: the person is always notified, with the reason or with an ID that finds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.model.apps import DEFAULT_PERMISSIONS
from tests.conversations.town import Town
from tests.conversations.town import town as start_town

PULL = "/repos/{owner}/{repo}/pulls/{pull_number}"
RUNS = "/repos/{owner}/{repo}/actions/runs"
ROLE = "/repos/{owner}/{repo}/collaborators/{username}/permission"
STATUS = "/repos/{owner}/{repo}/statuses/{sha}"
REACT = "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"
COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"


async def test_an_unexpected_fault_is_answered_with_the_delivery_id(town: Town) -> None:
    """The fault itself is only logged, under that ID."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    elsewhere = {"Link": '<http://elsewhere.example/next>; rel="next"'}
    empty = '{"total_count": 0, "workflow_runs": []}'
    town.github.faults.add("GET", RUNS, status=200, text=empty, headers=elsewhere, times=None)
    comment = pull.comment("hubot", "@ci rerun\n@ci help")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    (answer,) = town.answers(pull)
    delivery = town.github.webhooks.find("issue_comment", "created")[0]
    assert answer.count(f"`{delivery.guid}`") == 1
    assert "😕 `@ci rerun`: Something went wrong on my side." in answer
    assert "elsewhere.example" not in answer


async def test_a_refusal_by_github_is_quoted_in_the_answer(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    town.github.faults.add("GET", PULL, status=451, message="blocked for @octocat's sake", times=None)
    comment = pull.comment("hubot", "@ci help")
    await town.quiet()
    assert pull.reactions(comment) == ["confused"]
    assert "GitHub refused this: `blocked for @octocat's sake`." in town.answers(pull)[0]


async def test_a_typo_gets_no_answer_if_the_role_of_its_author_cannot_be_read(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    town.github.faults.add("GET", ROLE, status=403, message="Resource not accessible by integration", times=None)
    typo, command = pull.comment("reader", "@ci rnu"), pull.comment("triager", "@ci help")
    await town.quiet()
    assert (pull.reactions(typo), pull.reactions(command)) == ([], ["confused"])
    (answer,) = town.answers(pull)
    assert "GitHub denied this: the App needs a permission that it doesn't have." in answer


async def test_one_commands_failure_does_not_stop_the_others(town: Town) -> None:
    """The failed command gets 😕 with the reason; the others' effects are applied."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    await town.quiet()
    town.github.faults.add("POST", STATUS, status=422, message="Validation Failed", times=None)
    comment = pull.comment("hubot", "@ci skip slow tests\n@ci rerun\n@ci run slow tests")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert run.attempt == 2
    (answer,) = town.answers(pull)
    lines = [line for line in answer.splitlines() if line.startswith("- ")]
    assert [line.startswith("- 😕") for line in lines] == [False, False, True]
    assert "GitHub refused this: `Validation Failed`." in answer


async def test_a_command_whose_planning_fails_does_not_stop_the_others(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    town.github.faults.add("GET", "/repos/{owner}/{repo}/actions/runs", status=422, message="No", times=None)
    comment = pull.comment("hubot", "@ci rerun\n@ci help")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    (answer,) = town.answers(pull)
    assert "😕 `@ci rerun`: GitHub refused this: `No`." in answer
    assert "- `@ci help`: Put each command" in answer


async def test_a_missing_permission_is_named(tmp_path: Path) -> None:
    permissions = {**DEFAULT_PERMISSIONS, "actions": "read"}
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", permissions=permissions) as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
        comment = pull.comment("hubot", "@ci rerun")
        await town.quiet()
        assert pull.reactions(comment) == ["eyes", "confused"]
        assert "*Actions: write*" in town.answers(pull)[0]


async def test_a_permission_that_the_status_needs_is_named(tmp_path: Path) -> None:
    permissions = {**DEFAULT_PERMISSIONS, "statuses": "read"}
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", permissions=permissions) as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        comment = pull.comment("hubot", "@ci run slow tests")
        await town.quiet()
        assert pull.reactions(comment) == ["eyes", "confused"]
        assert "the App needs *Commit statuses: write*" in town.answers(pull)[0]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_each_write_that_github_refuses_once_happens_once(town: Town, moment: str) -> None:
    """It is refused before or after it took effect; people see each thing once."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    faults = [
        town.github.faults.add("POST", route, drop="after" if moment == "after" else "before")
        for route in (REACT, STATUS, COMMENTS)
    ]
    comment = pull.comment("hubot", "@ci run slow tests\n@ci help")
    await town.quiet()
    assert [fault.hits for fault in faults] == [1, 1, 1]
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert len(town.answers(pull)) == 1
    # Off at the opening, then on: never the same twice.
    assert len(town.repo.all_statuses(pull.head_sha)) == 2


async def test_a_comment_waits_while_github_fails_and_is_answered_once(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    await town.quiet()
    broken = town.github.faults.add("GET", "/repos/{owner}/{repo}/actions/runs", status=502, times=4)
    comment = pull.comment("hubot", "@ci rerun\n@ci help")
    await town.quiet()
    assert broken.hits == 4
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert (run.attempt, len(town.answers(pull))) == (2, 1)
