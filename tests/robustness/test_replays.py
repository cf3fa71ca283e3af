"""`nightjar replay` and `nightjar deliveries` run as separate processes beside the server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandbox import PullRequest
from sandbox.model.issues import Comment
from tests.robustness.place import BOT, Place, open_place

STATUSES = "/repos/{owner}/{repo}/statuses/{sha}"
RUNS = "/repos/{owner}/{repo}/actions/runs"


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty database, of each kind in turn."""
    database_url: str = request.getfixturevalue(request.param)
    return database_url


async def a_failure(place: Place) -> tuple[PullRequest, Comment, str]:
    """Let a command fail because the App lacks a permission; return its delivery's GUID as well."""
    repository = place.add_repository("octocat")
    place.configure([repository.full_name])
    await place.start()
    pull = repository.open_pull_request("hubot")
    repository.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure"})
    await place.quiet()
    place.github.faults.add("POST", STATUSES, status=403, message="Resource not accessible by integration")
    comment = pull.comment("hubot", "@ci run slow tests")
    await place.quiet()
    (delivery,) = place.github.webhooks.find("issue_comment", "created")[:1]
    return pull, comment, delivery.guid


async def test_a_replay_repeats_failed_jobs_and_no_others(url: str, tmp_path: Path) -> None:
    async with open_place(tmp_path, url) as place:
        pull, comment, guid = await a_failure(place)
        assert pull.reactions(comment, by=BOT) == ["eyes", "confused"]
        assert "the App needs a permission" in pull.comments_by(BOT)[0].body
        code, stdout, _ = await place.bot.run("deliveries", "--failed")
        assert code == 0
        assert guid in stdout
        code, stdout, stderr = await place.bot.run("replay", guid, "--config", str(place.bot.config), "--json")
        assert code == 0, stderr
        assert json.loads(stdout)["state"] == "done"
        status = pull.repository.status(pull.head_sha, "ci/slow-tests")
        assert status is not None
        assert (status.description or "").startswith("On: requested by hubot.")
        assert [run.attempt for run in pull.repository.workflow_runs] == [2]
        assert pull.reactions(comment, by=BOT) == ["eyes", "+1"]
        (answer,) = pull.comments_by(BOT)
        assert "the App needs" not in answer.body
        assert "I'm restarting it with slow tests" in answer.body
        assert await place.bot.run("deliveries", "--failed") == (0, "no deliveries match\n", "")


async def test_a_replay_reports_its_answers_where_no_job_had_failed(url: str, tmp_path: Path) -> None:
    """The App could not see CI at first; then it got the permission."""
    async with open_place(tmp_path, url) as place:
        repository = place.add_repository("octocat")
        place.configure([repository.full_name])
        await place.start()
        pull = repository.open_pull_request("hubot")
        repository.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure"})
        await place.quiet()
        place.github.faults.add("GET", RUNS, status=403, message="Resource not accessible by integration")
        comment = pull.comment("hubot", "@ci rerun")
        await place.quiet()
        assert pull.reactions(comment, by=BOT) == ["eyes", "confused"]
        (delivery,) = place.github.webhooks.find("issue_comment", "created")[:1]
        code, _, stderr = await place.bot.run("replay", delivery.guid, "--config", str(place.bot.config))
        assert code == 0, stderr
        assert [run.attempt for run in repository.workflow_runs] == [2]
        assert pull.reactions(comment, by=BOT) == ["eyes", "+1"]
        (answer,) = pull.comments_by(BOT)
        assert "Restarting on" in answer.body
        assert "can't see" not in answer.body


async def test_a_full_replay_of_a_successful_delivery_changes_nothing(url: str, tmp_path: Path) -> None:
    async with open_place(tmp_path, url) as place:
        pull, _, guid = await a_failure(place)
        await place.bot.run("replay", guid, "--config", str(place.bot.config))
        seen, statuses = pull.conversation(), pull.repository.all_statuses(pull.head_sha)
        code, _, stderr = await place.bot.run("replay", guid, "--config", str(place.bot.config))
        assert code == 0, stderr
        assert pull.conversation() == seen
        assert pull.repository.all_statuses(pull.head_sha) == statuses
        assert [run.attempt for run in pull.repository.workflow_runs] == [2]


async def test_a_dry_run_prints_the_plan_and_writes_nothing_anywhere(url: str, tmp_path: Path) -> None:
    async with open_place(tmp_path, url) as place:
        pull, _, guid = await a_failure(place)
        stored, writes = await place.deliveries(), len(place.github.requests.writes)
        seen = pull.conversation()
        code, stdout, stderr = await place.bot.run("replay", guid, "--dry-run", "--config", str(place.bot.config))
        assert code == 0, stderr
        plan = json.loads(stdout)
        assert plan["guid"] == guid
        (commands,) = plan["plans"]
        assert [effect["kind"] for effect in commands["effects"]][:1] == ["React"]
        assert [effect["kind"] for effect in commands["conclusion"]["effects"]] == ["React"]
        assert (await place.deliveries(), len(place.github.requests.writes)) == (stored, writes)
        assert pull.conversation() == seen
