"""Slow tests, step by step: what the status says, and what CI gets over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox import PullRequest
from tests.conversations.town import CONFIG, Town, Works
from tests.conversations.town import town as start_town

OFF = "Off: nobody requested them. To turn on, comment: @ci run slow tests"
ON = "On: requested by hubot. To turn off, comment: @ci skip slow tests"
SKIPPED = "Off: turned off by triager. To turn on, comment: @ci run slow tests"


async def decided(town: Town, pull: PullRequest) -> tuple[bool, str]:
    """Return what CI and people see on the head, after checking that both agree."""
    await town.quiet()
    status, kind, answer = await town.ask(f"/api/v1/repos/octocat/compiler/pulls/{pull.number}/decision")
    assert (status, kind, answer["sha"]) == (200, "application/json", pull.head_sha)
    commit_status = town.repo.status(pull.head_sha, "ci/slow-tests")
    assert commit_status is not None
    assert (commit_status.state, commit_status.description) == ("success", answer["run_slow_tests"]["reason"])
    assert answer["run_slow_tests"]["value"] == (commit_status.description or "").startswith("On:")
    return answer["run_slow_tests"]["value"], answer["run_slow_tests"]["reason"]


async def test_slow_tests_follow_a_pull_request_through_its_whole_life(town: Town) -> None:
    """They stay on for later pushes until `@ci skip slow tests`."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    assert await decided(town, pull) == (False, OFF)
    pull.push()
    assert await decided(town, pull) == (False, OFF)
    pull.comment("hubot", "@ci run slow tests")
    assert await decided(town, pull) == (True, ON)
    for force in (False, True):
        pull.push(force=force)
        assert await decided(town, pull) == (True, ON)
    pull.close("hubot")
    assert await decided(town, pull) == (True, ON)
    pull.reopen("hubot")
    assert await decided(town, pull) == (True, ON)
    pull.comment("triager", "@ci skip slow tests")
    assert await decided(town, pull) == (False, SKIPPED)
    pull.push()
    assert await decided(town, pull) == (False, SKIPPED)
    assert {status.state for status in town.repo.all_statuses(pull.head_sha)} == {"success"}


async def test_slow_tests_requested_in_the_description_are_turned_off_by_a_comment(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "@ci run slow tests")
    assert await decided(town, pull) == (True, ON)
    pull.comment("triager", "@ci skip slow")
    assert await decided(town, pull) == (False, SKIPPED)
    pull.edit("hubot", body="@ci run slow tests\n\nPlease look at this.")
    assert await decided(town, pull) == (False, SKIPPED)


async def test_a_pull_request_from_a_fork_has_its_own_decision(town: Town) -> None:
    pull = town.repo.open_pull_request("reader", "Faster", fork=True, branch="main-thing")
    assert await decided(town, pull) == (False, OFF)
    pull.comment("reader", "@ci run slow tests")
    pull.push()
    assert (await decided(town, pull))[0] is True


async def test_full_branches_always_run_everything(tmp_path: Path) -> None:
    """A fork's branch with such a name is not one of them."""
    config = f'{CONFIG}    slow_tests: {{branches: ["release/*"]}}\n'
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        always = (True, "On: the branch release/1.0 always runs slow tests.")
        pull = town.repo.open_pull_request("hubot", "Release", branch="release/1.0")
        assert await decided(town, pull) == always
        comment = pull.comment("hubot", "@ci skip slow tests")
        assert await decided(town, pull) == always
        assert pull.reactions(comment) == ["eyes", "confused"]
        fork = town.repo.open_pull_request("reader", "Release", branch="release/1.0", fork=True)
        assert await decided(town, fork) == (False, OFF)
        pushed = town.repo.push("release/1.0", by="hubot")
        elsewhere = town.repo.push("main", by="hubot")
        await town.quiet()
        commit_status = town.repo.status(pushed.sha, "ci/slow-tests")
        assert commit_status is not None
        assert (commit_status.state, commit_status.description) == ("success", always[1])
        assert town.repo.statuses(elsewhere.sha) == []


async def test_a_push_to_a_full_branch_sets_its_status_and_deleting_the_branch_does_no_harm(town: Town) -> None:
    pushed = town.repo.push("main", by="octocat")
    await town.quiet()
    commit_status = town.repo.status(pushed.sha, "ci/slow-tests")
    assert commit_status is not None
    assert commit_status.description == "On: the branch main always runs slow tests."
    town.repo.move("refs/heads/main", None, "octocat")
    town.repo.move("refs/tags/main", pushed.sha, "octocat")
    await town.quiet()
    assert await town.failures() == []
    assert len(town.repo.all_statuses(pushed.sha)) == 1


async def test_every_status_fits_githubs_limit(tmp_path: Path) -> None:
    """In 140 characters, the longest login must leave room for how to change the setting."""
    config = (
        f'mentions: ["@a-bot-with-the-longest-login-there-can-be"]\n{CONFIG}    slow_tests: {{branches: ["very*"]}}\n'
    )
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        login = "o" * 39
        pull = town.repo.open_pull_request(login, "Faster", fork=True)
        pull.comment(login, "@a-bot-with-the-longest-login-there-can-be run slow tests")
        await town.quiet()
        commit_status = town.repo.status(pull.head_sha, "ci/slow-tests")
        assert commit_status is not None
        assert f"requested by {login}. To turn off, comment: @a-bot-with" in (commit_status.description or "")
        long = town.repo.open_pull_request("hubot", "Faster", branch="very" + "-long" * 40)
        await town.quiet()
        statuses = town.repo.all_statuses(pull.head_sha) + town.repo.all_statuses(long.head_sha)
        # A push and its pull request are two deliveries that run side by side, so both may write the same status.
        descriptions = {status.description or "" for status in statuses}
        assert len(descriptions) == 3
        assert all(len(description) <= 140 for description in descriptions)


async def test_ci_that_finished_runs_again_in_both_systems_and_is_named(site: Works) -> None:
    town = site.town
    pull = town.repo.open_pull_request("hubot", "Faster")
    done = town.repo.add_workflow_run(pull.head_sha, "CI", "success", {"unit": "success", "slow": "skipped"})
    red = town.repo.add_workflow_run(pull.head_sha, "Docs", "failure")
    running = town.repo.add_workflow_run(pull.head_sha, "Lint")
    gpu, cpu = site.job(pull, "gpu", "SUCCESS"), site.job(pull, "cpu", None)
    comment = pull.comment("hubot", "@ci run slow tests")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert (done.attempt, red.attempt, running.attempt) == (2, 2, 1)
    assert [job.name for job in done.jobs if job.attempt == 2] == ["unit", "slow"]
    assert (len(gpu.builds), len(cpu.builds)) == (2, 1)
    (answer,) = town.answers(pull)
    sha = pull.head_sha[:7]
    (ended,) = [
        line for line in answer.splitlines() if f"CI had already finished on `{sha}`, so I'm restarting it" in line
    ]
    assert set(ended.rstrip(".").partition("with slow tests: ")[2].split(", ")) == {"`CI`", "`Docs`", "`gpu/pr-head`"}
    assert "Still running, so left alone: `Lint`, `cpu/pr-head`." in answer


async def test_a_second_request_restarts_nothing(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    done = town.repo.add_workflow_run(pull.head_sha, "CI", "success")
    pull.comment("hubot", "@ci run slow tests")
    await town.quiet()
    done.start()
    done.finish("success")
    pull.comment("triager", "@ci run slow tests")
    await town.quiet()
    assert done.attempt == 2
    assert len(town.answers(pull)) == 1


async def test_with_nothing_to_restart_the_reaction_and_the_status_are_the_answer(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("hubot", "@ci run slow tests")
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert town.answers(pull) == []


async def test_only_workflows_listed_in_app_yaml_run_again(tmp_path: Path) -> None:
    config = f'{CONFIG}    slow_tests: {{rerun: ["Hardware *"]}}\n'
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        docs = town.repo.add_workflow_run(pull.head_sha, "Docs", "success")
        pull.comment("hubot", "@ci run slow tests")
        await town.quiet()
        assert docs.attempt == 1
        assert "matches `slow_tests: rerun:` in `.github/nightjar.yaml` or `app.yaml`." in town.answers(pull)[0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/repos/octocat/compiler/pulls/77/decision", 404),
        ("/api/v1/repos/octocat/elsewhere/pulls/1/decision", 401),
    ],
)
async def test_unknown_resources_are_answered_with_problem_details(town: Town, path: str, expected: int) -> None:
    """As in RFC 9457; a missing repository gets the same answer as a private one."""
    status, kind, answer = await town.ask(path)
    assert (status, kind) == (expected, "application/problem+json")
    assert answer["status"] == expected
    assert answer["title"]


async def test_a_pull_request_older_than_the_installation_is_looked_up_on_github(town: Town) -> None:
    town.github.webhooks.lose("pull_request")
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    status, _, answer = await town.ask(f"/api/v1/repos/octocat/compiler/pulls/{pull.number}/decision")
    assert (status, answer["sha"]) == (200, pull.head_sha)
    assert answer["run_slow_tests"] == {"value": False, "reason": OFF}
