"""`@ci merge when green`: what it waits for, what ends it, and who is notified."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from handlers.merge.pending import waiting_pulls as numbers_waiting
from sandbox import PullRequest
from sandbox.model.rules import Rules
from tests.conversations.lab import Moments
from tests.conversations.merges import BODY, approve, merge_town, message, ready, report, says, short
from tests.conversations.town import Town

WHEN_GREEN = "@ci merge when green"


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


async def waiting(town: Town, *, requester: str = "octocat", approved: bool = True, **values: object) -> PullRequest:
    """Open a pull request with a pending merge."""
    pull = town.repo.open_pull_request("hubot", "Faster", BODY, **values)  # type: ignore[arg-type]
    if approved:
        approve(pull)
    report(town, pull, "pending")
    assert (await says(town, pull, WHEN_GREEN, requester)).startswith("eyes +1\n")
    return pull


async def waiting_numbers(town: Town) -> list[int]:
    """Return the pull requests with a pending merge."""
    return await numbers_waiting(town.bot.engine.records, town.repo.id)


def last_message(town: Town, pull: PullRequest) -> str:
    """Return the bot's last message, after checking that it wrote only one after its answer."""
    _, *messages = town.answers(pull)
    return "\n".join(messages)


async def test_it_waits_for_checks_and_approval_and_merges_once_both_are_there(town: Town) -> None:
    """TVM #10833 asked for a merge once CI has passed; TVM's status listener could not find the pull request."""
    pull = town.repo.open_pull_request("hubot", "Faster", BODY)
    report(town, pull, "pending")
    reply = await says(town, pull, WHEN_GREEN)
    assert reply.splitlines() == [
        "eyes +1",
        f"- `@ci merge when green`: I'll merge {short(pull)} once these are resolved:",
        f"  - [`cpu/pr-head`](<https://ci.example.org/job/1>) is still running on {short(pull)}.",
        f"  - {short(pull)} has no approval by someone with write access other than the author.",
        "  ",
        "  A new push or `@ci cancel` cancels this.",
    ]
    report(town, pull)
    await town.quiet()
    assert pull.state == "open"
    approve(pull)
    await town.quiet()
    assert str(pull.merged_by) == "@nightjar[bot]"
    assert message(town) == "Faster (#1)\n\nSaves a pass.\n\ncc octocat"
    assert last_message(town, pull) == ""


async def test_a_ready_pull_request_is_merged_at_once(town: Town) -> None:
    pull = ready(town)
    assert await says(town, pull, "@ci merge when ready") == "eyes +1"
    assert pull.merged_at


@pytest.mark.parametrize("fork", [False, True])
async def test_check_runs_count_including_those_of_forks(town: Town, fork: bool) -> None:
    """The check runs of a fork's commit name no pull request."""
    town.repo.rules["main"] = Rules(required={"unit": None})
    pull = town.repo.open_pull_request("somebody", "Faster", fork=fork)
    report(town, pull)
    approve(pull)
    run = town.repo.add_workflow_run(pull.head_sha, "CI", jobs={"unit": None})
    assert (await says(town, pull, WHEN_GREEN)).startswith("eyes +1\n")
    run.finish("success")
    await town.quiet()
    assert pull.merged_at


async def test_it_waits_after_a_failure_because_a_rerun_may_pass(town: Town) -> None:
    pull = await waiting(town)
    report(town, pull, "failure")
    await town.quiet()
    assert last_message(town, pull) == ""
    report(town, pull, "pending")
    report(town, pull)
    await town.quiet()
    assert pull.merged_at


async def test_rerun_and_merge_may_be_in_one_comment(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    town.repo.rules["main"] = Rules(required={"unit": None})
    report(town, pull)
    approve(pull)
    run = town.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"unit": "failure"})
    assert (await says(town, pull, f"@ci rerun\n{WHEN_GREEN}")).startswith("eyes +1\n")
    run.finish("success")
    await town.quiet()
    assert pull.merged_at


# What ends the waiting


async def test_a_push_cancels_it_and_says_so_once(town: Town) -> None:
    pull = await waiting(town)
    old = pull.head_sha
    pull.push()
    pull.push()
    report(town, pull)
    approve(pull)
    await town.quiet()
    assert pull.state == "open"
    (answer,) = town.answers(pull)[1:]
    comment = pull.comments_by("octocat")[-1]
    url = f"{town.github.url}/octocat/compiler/pull/1#issuecomment-{comment.id}"
    assert f"I won't merge `{old[:7]}`, which `octocat` [asked for]({url}). The head moved to `" in answer
    assert answer.endswith("`. Review it, and ask again to merge it.")


async def test_in_a_locked_conversation_a_merge_is_cancelled_silently(town: Town) -> None:
    pull = await waiting(town)
    pull.locked = True
    pull.push()
    await town.quiet()
    assert last_message(town, pull) == ""
    assert await waiting_numbers(town) == []
    assert await town.failures() == []


HINDRANCES: list[tuple[Callable[[PullRequest], object], str]] = [
    (lambda pull: pull.label("reader", "hold"), "- It has the label `hold`. Remove the label first."),
    (lambda pull: pull.convert_to_draft("hubot"), "- It is a draft. Mark it as ready for review."),
    (lambda pull: pull.review("octocat", "No.", "CHANGES_REQUESTED"), "- `octocat` [requested changes]("),
    (lambda pull: pull.retarget("hubot", "release"), "Its base is now `release`, not `main`"),
]


async def test_an_obstacle_that_would_have_been_refused_cancels_it(town: Town) -> None:
    town.repo.push("release", by="octocat")
    for obstruct, reason in HINDRANCES:
        pull = await waiting(town)
        obstruct(pull)
        await town.quiet()
        assert "I won't merge" in last_message(town, pull)
        assert reason in last_message(town, pull)
        pull.labels.clear()
        pull.draft = False
        approve(pull)
        report(town, pull)
        await town.quiet()
        assert pull.state == "open", "it must be requested again"


async def test_conflicts_from_the_base_are_reported_once_checks_are_green(town: Town) -> None:
    pull = await waiting(town, files={"README.md": "mine\n"})
    town.repo.push("main", {"README.md": "theirs\n"}, by="octocat")
    report(town, pull)
    await town.quiet()
    assert "- It conflicts with `main`" in last_message(town, pull)


async def test_closing_or_merging_by_hand_needs_no_message(town: Town) -> None:
    closed, merged = await waiting(town), await waiting(town)
    closed.close("hubot")
    merged.merge("octocat")
    await town.quiet()
    closed.reopen("hubot")
    report(town, closed)
    await town.quiet()
    assert (last_message(town, closed), last_message(town, merged)) == ("", "")
    assert (closed.state, str(merged.merged_by)) == ("open", "@octocat")


async def test_nothing_is_merged_for_somebody_who_has_lost_access(town: Town) -> None:
    pull = await waiting(town, requester="hubot", approved=False)
    town.repo.set_role("hubot", "triage")
    approve(pull)
    report(town, pull)
    await town.quiet()
    assert pull.state == "open"
    assert last_message(town, pull).endswith(
        "`hubot` no longer has write access. Ask someone who has it to comment again."
    )


async def test_a_refusal_of_the_final_merge_is_reported(town: Town) -> None:
    pull = await waiting(town)
    town.repo.merge_methods = ("rebase",)
    report(town, pull)
    await town.quiet()
    assert ": `Squash merges are not allowed on this repository.`." in last_message(town, pull)
    report(town, pull)
    await town.quiet()
    assert len(town.answers(pull)) == 2


async def test_it_waits_for_approvals_that_only_githubs_classic_protection_requires(town: Town) -> None:
    """This is reported once, however often the merge is tried."""
    town.repo.protect("main", approvals=2)
    pull = await waiting(town)
    report(town, pull)
    await town.quiet()
    report(town, pull)
    await town.quiet()
    assert pull.state == "open"
    needs = "At least 2 approving review is required by reviewers with write access."
    assert last_message(town, pull).partition("-->\n")[2] == (
        f"GitHub doesn't merge {short(pull)} yet: `{needs}`. I'll try again after each review or "
        f"check. A new push cancels this."
    )
    town.repo.set_role("triager", "write")
    approve(pull, by="triager")
    await town.quiet()
    assert pull.merged_at


async def test_a_merge_that_github_already_refused_can_still_be_cancelled(town: Town) -> None:
    town.repo.protect("main", approvals=2)
    pull = await waiting(town)
    report(town, pull)
    await town.quiet()
    assert "that `octocat` asked for" in await says(town, pull, "@ci cancel")
    town.repo.set_role("triager", "write")
    approve(pull, by="triager")
    await town.quiet()
    assert pull.state == "open"


# Cancelling


async def test_people_with_write_access_and_the_author_can_cancel_it(town: Town) -> None:
    town.repo.set_role("hubot", "read")
    for login in ("octocat", "hubot"):
        pull = await waiting(town)
        reply = await says(town, pull, "@ci cancel", login)
        assert reply == f"eyes +1\n- `@ci cancel`: Cancelled the merge of {short(pull)} that `octocat` asked for."
        report(town, pull)
        await town.quiet()
        assert pull.state == "open"


async def test_others_cannot_cancel_it(town: Town) -> None:
    """TVM's bot took `cancel` from anybody, anywhere in any comment; TVM #11442: a bot's comment made it forget."""
    pull = await waiting(town)
    pull.comment("reader", "I would not @ci cancel this.")
    assert (await says(town, pull, "@ci cancel", "triager")).startswith("eyes confused")
    report(town, pull)
    await town.quiet()
    assert pull.merged_at


async def test_the_last_command_of_a_comment_wins(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await says(town, pull, f"{WHEN_GREEN}\n@ci stop merge")
    report(town, pull)
    approve(pull)
    await town.quiet()
    assert pull.state == "open"
    assert "No merge is pending here" in await says(town, pull, "@ci cancel")


@pytest.mark.parametrize("command", ["@ci merge", WHEN_GREEN])
async def test_a_ready_pull_request_is_not_merged_if_the_same_comment_cancels(town: Town, command: str) -> None:
    pull = ready(town)
    reply = await says(town, pull, f"{command}\n@ci cancel")
    assert pull.state == "open"
    assert reply.splitlines() == [
        "eyes +1",
        f"- `{command}`: Ignored: a later line of this comment overrides it.",
        "- `@ci cancel`: No merge is pending here, so there is nothing to cancel.",
    ]
    assert (await says(town, pull, f"@ci cancel\n{command}")).startswith("eyes +1")
    assert pull.merged_at


async def test_a_replay_does_not_repeat_a_cancelled_merge(town: Town) -> None:
    """The bot said that the merge was cancelled, and people may have pushed, cancelled, or asked again since."""
    pull = await waiting(town)
    town.repo.merge_methods = ("rebase",)
    report(town, pull)
    await town.quiet()
    (refused,) = [record for record in await town.bot.engine.journal.recent(limit=50) if record.state == "refused"]
    assert await town.failures() == []
    town.repo.merge_methods = ("squash",)
    await town.bot.engine.replay(refused.guid)
    await town.quiet()
    assert pull.state == "open"
    assert "I won't merge" in last_message(town, pull)


# What is refused immediately


async def test_all_obstacles_that_waiting_cannot_remove_are_reported_at_once(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", draft=True)
    pull.label("hubot", "hold")
    reply = await says(town, pull, WHEN_GREEN)
    assert reply.splitlines() == [
        "eyes confused",
        "- 😕 `@ci merge when green`: Not merged, and waiting won't help:",
        "  - It is a draft. Mark it as ready for review.",
        "  - It has the label `hold`. Remove the label first.",
        f"  - Nothing on {short(pull)} matches `*/pr-head` yet. `merge: required` in `app.yaml` requires it. If "
        f"nothing ever reports this name, fix `merge: required`.",
        f"  - {short(pull)} has no approval by someone with write access other than the author.",
        "  ",
        "  Ask again once someone has fixed this.",
    ]
    pull.unlabel("hubot", "hold")
    pull.ready_for_review("hubot")
    report(town, pull)
    approve(pull)
    await town.quiet()
    assert pull.state == "open"


# Nothing is lost


async def test_the_timer_finds_a_success_whose_events_were_lost(tmp_path: Path) -> None:
    moments = Moments()
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", now=moments) as town:
        await town.bot.timers.tick()
        pull = await waiting(town)
        town.github.webhooks.lose("status")
        report(town, pull)
        await town.quiet()
        assert pull.state == "open"
        moments.ahead += 15 * 60
        await town.bot.timers.tick()
        await town.quiet()
        assert pull.merged_at
        town.github.requests.clear()
        moments.ahead += 15 * 60
        await town.bot.timers.tick()
        await town.quiet()
        assert town.github.requests.of_installation == [], "without a pending merge there are no requests"


async def test_events_during_the_handling_of_the_command_are_not_lost(town: Town) -> None:
    """The checks pass between the refresh and the record of the pending merge; the next refresh finds them."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    approve(pull)
    report(town, pull, "pending")
    await town.quiet()
    held = town.github.faults.pause(
        "POST", "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions", when="before"
    )
    pull.comment("octocat", WHEN_GREEN)
    await held.reached.wait()
    report(town, pull)
    await town.github.delivered()
    held.resume()
    await town.quiet()
    assert pull.merged_at


async def test_it_waits_in_the_merge_queue_too_and_leaves_it_when_cancelled(town: Town) -> None:
    town.repo.rules["main"] = Rules(queue=True)
    pull = await waiting(town)
    report(town, pull)
    await town.quiet()
    assert pull.queued is not None
    assert (await says(town, pull, "@ci cancel")).startswith("eyes +1")
    assert pull.queued is None


async def test_two_pull_requests_of_one_commit_are_waited_for_separately(town: Town) -> None:
    town.repo.push("release", by="octocat", onto=town.repo.branch("main"))
    first = town.repo.open_pull_request("hubot", "Faster", branch="faster")
    second = town.repo.open_pull_request("hubot", "Faster", branch="faster", base="release")
    assert first.head_sha == second.head_sha
    for pull in (first, second):
        approve(pull)
        assert (await says(town, pull, WHEN_GREEN)).startswith("eyes +1\n")
    report(town, first)
    await town.quiet()
    assert first.merged_at
    assert second.merged_at
