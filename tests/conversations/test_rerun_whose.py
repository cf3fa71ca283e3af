"""`@ci rerun` restarts only the pull request's own CI, and nothing that deploys or waits for approval."""

from __future__ import annotations

import pytest

from sandbox import PullRequest
from tests.conversations.town import Town

RERUN = "/repos/{owner}/{repo}/actions/runs/{run_id}/rerun"
RERUN_JOB = "/repos/{owner}/{repo}/actions/jobs/{job_id}/rerun"
APPROVE = "/repos/{owner}/{repo}/actions/runs/{run_id}/approve"


async def says(town: Town, pull: PullRequest, commenter: str, text: str) -> tuple[list[str], str]:
    """Let somebody comment; return the reactions and the answer, empty if there is none."""
    answer_count = len(town.answers(pull))
    comment = pull.comment(commenter, text)
    await town.quiet()
    return pull.reactions(comment), "\n".join(town.answers(pull)[answer_count:])


@pytest.mark.exhaustive(
    "push-@ci rerun",
    "schedule-@ci rerun Release",
    "release-@ci rerun deploy",
    "workflow_dispatch-@ci rerun all",
    "pull_request_target-@ci rerun",
)
@pytest.mark.parametrize("command", ["@ci rerun", "@ci rerun all", "@ci rerun Release", "@ci rerun deploy"])
@pytest.mark.parametrize("event", ["push", "release", "schedule", "workflow_dispatch", "pull_request_target"])
async def test_a_release_of_main_at_a_forks_head_is_listed_and_left_alone(town: Town, command: str, event: str) -> None:
    """A fork's branch pointed to a commit of main, and its author restarted main's release workflow."""
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    jobs = {"deploy": "failure"}
    release = town.repo.add_workflow_run(pull.head_sha, "Release", "failure", jobs, event=event, branch="main")
    reactions, answer = await says(town, pull, "somebody", command)
    assert (release.attempt, reactions) == (1, ["eyes", "confused"])
    assert f"I can't restart `Release`: it was started by `{event}`, and I restart only runs" in answer


async def test_the_pull_requests_own_run_at_the_same_commit_runs_again(town: Town) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    release = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", event="push", branch="main")
    pull_run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    main_run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", branch="main")
    reactions, answer = await says(town, pull, "somebody", "@ci rerun")
    assert (pull_run.attempt, release.attempt, main_run.attempt, reactions) == (2, 1, 1, ["eyes", "+1"])
    assert "I can't restart `CI`: it belongs to branch `main`, not to this pull request." in answer


async def test_slow_tests_restart_nothing_that_deploys(town: Town) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    release = town.repo.add_workflow_run(pull.head_sha, "Release", "success", event="push", branch="main")
    await says(town, pull, "somebody", "@ci run slow tests")
    assert release.attempt == 1


async def test_a_check_run_that_links_another_runs_job_restarts_nothing(town: Town) -> None:
    """A workflow can create check runs with any link, even to a job that deploys."""
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    release = town.repo.add_workflow_run(pull.head_sha, "Release", "failure", {"deploy": "failure"}, event="push")
    ci_run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure", "docs": "failure"})
    deploy = release.jobs[0]
    ci_run.jobs[0].check_run.details_url = f"https://github.com/{town.repo.full_name}/actions/runs/1/job/{deploy.id}"
    reactions, answer = await says(town, pull, "somebody", "@ci rerun unit")
    assert (release.attempt, ci_run.attempt, reactions) == (1, 1, ["eyes", "confused"])
    assert "I can't restart `unit`: that job belongs to another workflow run." in answer
    assert town.github.requests.count("POST", RERUN_JOB) == 0


@pytest.mark.parametrize("command", ["@ci rerun", "@ci rerun all", "@ci rerun unit", "@ci run slow tests"])
@pytest.mark.parametrize("commenter", ["somebody", "hubot"])
async def test_a_run_that_waits_for_approval_is_not_restarted(town: Town, command: str, commenter: str) -> None:
    """GitHub restarts it for anybody who asks, without the approval (kubernetes-sigs/prow#798)."""
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "action_required", {"unit": "action_required"})
    _, answer = await says(town, pull, commenter, command)
    assert (run.attempt, run.conclusion) == (1, "action_required")
    if "rerun" in command:
        assert "Waiting for approval: `CI`." in answer
        assert "Someone with write access can start them with `@ci approve ci`." in answer


async def test_a_maintainer_approves_the_waiting_workflows_of_the_head(town: Town) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    waiting = town.repo.add_workflow_run(pull.head_sha, "CI", "action_required")
    release = town.repo.add_workflow_run(pull.head_sha, "Release", "action_required", event="push", branch="main")
    reactions, answer = await says(town, pull, "hubot", "@ci approve ci")
    assert reactions == ["eyes", "+1"]
    assert (waiting.status, waiting.conclusion, waiting.attempt) == ("queued", None, 1)
    assert release.conclusion == "action_required"
    assert f"Approving on `{pull.head_sha[:7]}`: `CI`." in answer


@pytest.mark.parametrize("commenter", ["somebody", "triager", "reader"])
async def test_nobody_without_the_write_role_may_approve(town: Town, commenter: str) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "action_required")
    reactions, answer = await says(town, pull, commenter, "@ci approve ci")
    assert (reactions, run.conclusion) == (["eyes", "confused"], "action_required")
    assert "You need write access for this." in answer


async def test_approval_applies_only_to_the_head_that_the_maintainer_saw(town: Town) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    await town.quiet()
    town.github.webhooks.hold()
    comment = pull.comment("hubot", "@ci approve ci")
    pull.push()
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "action_required")
    town.github.webhooks.release()
    await town.quiet()
    head = pull.head_sha
    assert (pull.reactions(comment), run.conclusion) == (["eyes", "confused"], "action_required")
    (answer,) = town.answers(pull)
    assert f"Nothing was approved: the head moved to `{head[:7]}` after your comment." in answer
    assert f"Review `{head[:7]}`, then comment `@ci approve ci {head}`." in answer
    reactions, _ = await says(town, pull, "hubot", f"@ci approve ci {head}")
    assert (reactions, run.conclusion) == (["eyes", "+1"], None)


@pytest.mark.parametrize(
    ("named", "says_why"),
    [
        ("0123456", "you named `0123456`, but the head is"),
        ("main", "name one commit by 7 to 40 digits of its SHA"),
        ("012345", "name one commit by 7 to 40 digits of its SHA"),
        ("0123456 1234567", "name one commit by 7 to 40 digits of its SHA"),
    ],
)
async def test_a_commit_other_than_the_head_is_not_approved(town: Town, named: str, says_why: str) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "action_required")
    reactions, answer = await says(town, pull, "hubot", f"@ci approve ci {named}")
    assert (reactions, run.conclusion) == (["eyes", "confused"], "action_required")
    assert says_why in answer


@pytest.mark.parametrize(("digits", "approved"), [(7, False), (12, False), (39, False), (40, True)])
async def test_only_a_full_sha_approves_a_commit_newer_than_the_comment(
    town: Town, digits: int, approved: bool
) -> None:
    """An attacker quickly creates two commits with the same first digits: one for the review, one for the approval."""
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    await town.quiet()
    town.github.clock.advance(seconds=2)
    with town.github.clock.stopped():
        pull.push()  # may be newer than the comment, whose author saw another commit with these digits
        run = town.repo.add_workflow_run(pull.head_sha, "CI", "action_required")
        reactions, answer = await says(town, pull, "hubot", f"@ci approve ci {pull.head_sha[:digits]}")
    assert reactions == ["eyes", "+1" if approved else "confused"]
    assert run.conclusion == (None if approved else "action_required")
    assert approved or f"then comment `@ci approve ci {pull.head_sha}`." in answer


async def test_if_the_head_was_never_recorded_the_comment_must_name_the_commit(town: Town) -> None:
    """The App was installed after the pull request was opened: a push may have come after the comment."""
    town.github.webhooks.lose("pull_request")
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "action_required")
    reactions, answer = await says(town, pull, "hubot", "@ci approve ci")
    assert (reactions, run.conclusion) == (["eyes", "confused"], "action_required")
    assert "I don't know which commit was the head when you commented." in answer
    reactions, _ = await says(town, pull, "hubot", f"@ci approve ci {pull.head_sha}")
    assert (reactions, run.conclusion) == (["eyes", "+1"], None)


async def test_if_the_head_was_recorded_after_the_comment_the_comment_must_name_the_commit(town: Town) -> None:
    """The push's webhook was lost, and a label event revealed a head that the commenter had never seen."""
    town.github.webhooks.lose("pull_request", times=2)
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    town.github.clock.advance(seconds=1)
    town.github.webhooks.hold()
    comment = pull.comment("hubot", "@ci approve ci")
    [held] = town.github.webhooks.held
    town.github.webhooks.held.clear()
    town.github.clock.advance(seconds=1)
    pull.push()
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "action_required")
    pull.label("hubot", "docs")
    town.github.webhooks.release()
    await town.quiet()
    town.github.webhooks.hold()
    town.github.webhooks.held.append(held)
    town.github.webhooks.release()
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert (run.attempt, run.conclusion) == (1, "action_required")
    assert "after your comment" in town.answers(pull)[0]


async def test_the_answer_says_that_nothing_waits_for_approval(town: Town) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    _, answer = await says(town, pull, "hubot", "@ci approve ci")
    assert f"No workflow run of this pull request waits for approval on `{pull.head_sha[:7]}`." in answer


async def test_the_answer_to_a_refused_approval_says_what_to_do(town: Town) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    town.repo.add_workflow_run(pull.head_sha, "CI", "action_required")
    town.github.faults.add("POST", APPROVE, status=403)
    reactions, answer = await says(town, pull, "hubot", "@ci approve ci")
    assert reactions == ["eyes", "confused"]
    assert "GitHub didn't approve `CI`. GitHub denied this: the App needs " in answer


async def test_the_reason_for_which_github_refuses_an_approval_is_quoted(town: Town) -> None:
    pull = town.repo.open_pull_request("somebody", "Faster", fork=True)
    town.repo.add_workflow_run(pull.head_sha, "CI", "action_required")
    reason = "Actions are disabled for this repository by its organization"
    town.github.faults.add("POST", APPROVE, status=403, message=reason)
    _, answer = await says(town, pull, "hubot", "@ci approve ci")
    assert f"GitHub didn't approve `CI`. GitHub refused this: `{reason}`. Someone with write access can" in answer
    assert "needs" not in answer
