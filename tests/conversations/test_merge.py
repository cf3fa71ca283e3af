"""`@ci merge`: what a person with write access writes, and what becomes of the pull request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sandbox import PullRequest
from sandbox.rules import Rules
from tests.conversations.merges import approve, merge_town, ready, report, says
from tests.conversations.town import Town, town

REACT = "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"
MERGE = "/repos/{owner}/{repo}/pulls/{pull_number}/merge"
WHO = "Only people with the write role or a higher one may ask for this; one of them can do it here."
UNAPPROVED = "Nobody with write access other than the author has approved"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


def message(here: Town) -> str:
    """Return what the newest commit of the base branch says."""
    return here.repo.git.commits[here.repo.branch("main")].message


def short(pull: PullRequest) -> str:
    return f"`{pull.head_sha[:7]}`"


async def test_what_is_ready_is_merged_with_a_message_worth_keeping(here: Town) -> None:
    """Merges with `sha`, squash, title `… (#n)`, a text without template, comments and mentions, and co-authors."""
    template = "<!-- Thanks! -->\n## Why\n\nPlease name an issue.\n"
    here.repo.push("main", {".github/PULL_REQUEST_TEMPLATE.md": template}, by="octocat")
    text = f"{template}\r\nSaves a pass, says @octocat:\r\n\r\n    @T.prim_func\r\n\r\n`@hubot`"
    pull = here.repo.open_pull_request("hubot", "Faster, @octocat", text)
    pull.push(by="reader", message="More\n\nCo-authored-by: Mona <mona@example.org>")
    pull.push(by="hubot")
    report(here, pull)
    approve(pull)
    sha = pull.head_sha
    assert await says(here, pull, "@ci merge") == "eyes +1"
    reader = here.github.user("reader")
    assert message(here) == (
        "Faster, octocat (#1)\n\nSaves a pass, says octocat:\n\n    @T.prim_func\n\n`@hubot`\n\n"
        f"Co-authored-by: reader <{reader.id}+reader@users.noreply.example.org>\n"
        "Co-authored-by: Mona <mona@example.org>"
    )
    assert (pull.state, str(pull.merged_by), pull.head_sha) == ("closed", "@nightjar[bot]", sha)
    assert here.repo.branch("main") == pull.merge_commit_sha


async def test_everything_that_is_in_the_way_is_told_at_once(here: Town) -> None:
    """TVM's bot told one thing, and the next after that was cured; and it did not look at drafts at all."""
    pull = here.repo.open_pull_request("hubot", "Faster", draft=True, files={"README.md": "mine\n"})
    here.repo.push("main", {"README.md": "theirs\n"}, by="octocat")
    here.repo.set_role("triager", "write")
    pull.review("triager", "Not like this.", "CHANGES_REQUESTED")
    pull.label("hubot", "hold")
    report(here, pull, "failure")
    report(here, pull, "pending", "gpu/pr-head")
    said = await says(here, pull, "@ci merge")
    url = f"{here.github.url}/octocat/compiler/pull/1#pullrequestreview-{pull.reviews[0].id}"
    job = "<https://ci.example.org/job/1>"
    assert said.splitlines() == [
        "eyes confused",
        "- 😕 `@ci merge`: Not merged:",
        "  - It is a draft: mark it as ready for review first.",
        "  - It has conflicts with `main`: merge `main` into it, or rebase it, and have it reviewed again.",
        "  - It has the label `hold`: somebody has to take that off first.",
        f"  - `triager` [requests changes]({url}): they have to approve, or somebody has to dismiss that review.",
        f"  - [`cpu/pr-head`]({job}) has failed on {short(pull)}: `@ci rerun` runs again what failed.",
        f"  - [`gpu/pr-head`]({job}) has not ended on {short(pull)} yet.",
        f"  - {UNAPPROVED} {short(pull)}.",
    ]
    assert pull.state == "open"


# Who may


@pytest.mark.parametrize("who", ["octocat", "hubot", "Hubot"])
async def test_people_who_may_write_may_merge_also_the_author(here: Town, who: str) -> None:
    """TVM #11480: the first of several checks that failed refused, so that an author could never merge."""
    pull = ready(here, author="hubot")
    assert await says(here, pull, "@ci merge", by=who) == "eyes +1"
    assert pull.merged_at


@pytest.mark.parametrize(("who", "author"), [("triager", "hubot"), ("reader", "hubot"), ("somebody", "somebody")])
async def test_others_may_not_and_are_told_who_may(here: Town, who: str, author: str) -> None:
    pull = ready(here, author, fork=author == "somebody")
    assert await says(here, pull, "@ci merge", by=who) == f"eyes confused\n- 😕 `@ci merge`: {WHO}"
    assert pull.state == "open"


@pytest.mark.parametrize("who", ["hub", "hubot2", "octo"])
async def test_a_name_like_a_maintainers_opens_no_door(here: Town, who: str) -> None:
    """TVM #11480: whoever a search for the name found first was taken for them.

    TVM #12295: then a name was looked for in a list of objects, so that nobody was found at all.
    """
    assert (await says(here, ready(here), "@ci merge", by=who)).startswith("eyes confused")


async def test_an_author_who_may_write_does_not_approve_their_own_work(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    report(here, pull)
    approve(pull, by="hubot")
    assert UNAPPROVED in await says(here, pull, "@ci merge", by="hubot")


async def test_an_approval_by_somebody_who_may_not_write_is_none(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    report(here, pull)
    approve(pull, by="reader")
    approve(pull, by="triager")
    assert UNAPPROVED in await says(here, pull, "@ci merge")


# Which commit


async def test_an_approval_is_of_a_commit_and_a_push_takes_it_along(here: Town) -> None:
    pull = ready(here)
    old = pull.head_sha
    pull.push()
    report(here, pull)
    said = await says(here, pull, "@ci merge")
    assert f"{UNAPPROVED} {short(pull)}; [the approval of `octocat`]" in said
    assert f"is of `{old[:7]}`, which is not the head any more." in said


async def test_who_asked_to_change_something_and_approves_then_is_content(here: Town) -> None:
    """TVM's bot took each review for itself, so that the older of the two kept blocking."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    report(here, pull)
    pull.review("octocat", "Not like this.", "CHANGES_REQUESTED")
    approve(pull)
    assert await says(here, pull, "@ci merge") == "eyes +1"


async def test_a_push_between_the_comment_and_its_handling_is_not_merged(here: Town) -> None:
    pull = ready(here)
    await here.quiet()
    here.github.webhooks.hold()
    comment = pull.comment("octocat", "@ci merge")
    old, new = pull.head_sha, pull.push().sha
    report(here, pull)
    approve(pull)
    here.github.webhooks.release()
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert (
        f"The head moved from `{old[:7]}` to `{new[:7]}` while you asked, so nothing was done."
        in (here.answers(pull)[0])
    )


async def test_a_comment_that_comes_after_the_push_that_followed_it_is_not_about_that(here: Town) -> None:
    """What could not be delivered comes hours later; by then our record of the head is that of today."""
    pull = ready(here)
    await here.quiet()
    here.github.webhooks.hold()
    comment = pull.comment("octocat", "@ci merge")
    pull.push()
    report(here, pull)
    approve(pull)
    here.github.webhooks.release(lambda held: sorted(held, key=lambda delivery: delivery.event == "issue_comment"))
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert f"The head moved to {short(pull)} since you wrote this, so nothing was done." in here.answers(pull)[0]


async def test_a_push_at_the_very_moment_of_the_merge_is_not_merged(here: Town) -> None:
    """GitHub is told which head is meant."""
    pull = ready(here)
    await here.quiet()
    held = here.github.faults.pause("PUT", MERGE, when="before")
    comment = pull.comment("octocat", "@ci merge")
    await held.reached.wait()
    pull.push()
    held.resume()
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert "GitHub did not merge" in here.answers(pull)[0]
    assert pull.state == "open"


async def test_what_came_in_the_way_since_it_was_decided_is_seen_before_the_merge(here: Town) -> None:
    pull = ready(here)
    await here.quiet()
    held = here.github.faults.pause(
        "POST", "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions", when="after"
    )
    comment = pull.comment("octocat", "@ci merge")
    await held.reached.wait()
    pull.label("hubot", "hold")
    held.resume()
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert "By now something is in the way:\n  - It has the label `hold`" in here.answers(pull)[0]


# Comments


async def test_an_approving_review_may_ask_for_the_merge_in_the_same_breath(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    report(here, pull)
    review = pull.review("octocat", "Looks good.\n\n@ci merge", "APPROVED")
    await here.quiet()
    assert pull.reactions(review) == ["eyes", "+1"]
    assert pull.merged_at


async def test_a_closed_pull_request_is_answered_in_words(here: Town) -> None:
    """TVM's bot reacted with 👍 and did nothing."""
    pull = ready(here)
    pull.close("hubot")
    assert await says(here, pull, "@ci merge") == (
        "eyes confused\n- 😕 `@ci merge`: Not merged:\n  - It is closed: reopen it first."
    )
    merged = ready(here, author="reader")
    merged.merge("octocat")
    assert "It is merged already." in await says(here, merged, "@ci merge")


async def test_editing_or_deleting_an_old_comment_merges_nothing(here: Town) -> None:
    """TVM's workflow listened to edited and deleted comments too, and ran the old `merge` again."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("octocat", "@ci merge")
    await here.quiet()
    report(here, pull)
    approve(pull)
    pull.edit_comment(comment, "@ci merge\n\nSorry, not approved yet.")
    await here.quiet()
    pull.delete_comment(comment)
    await here.quiet()
    assert pull.state == "open"
    assert len(here.answers(pull)) == 1


async def test_another_comment_meanwhile_calls_nothing_off(here: Town) -> None:
    """TVM's workflow was cancelled by any later comment on the same pull request."""
    pull = ready(here)
    await here.quiet()
    here.github.webhooks.hold()
    comment = pull.comment("octocat", "@ci merge")
    pull.comment("reader", "Nice.")
    pull.comment("reader", "@ci help")
    here.github.webhooks.release()
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert pull.merged_at


@pytest.mark.parametrize("said", ["@ci merge this", "@CI Merge this PR please!", "Thanks!\n\n@ci: merge."])
async def test_it_may_be_said_in_several_ways(here: Town, said: str) -> None:
    """TVM's bot took the whole comment for the command, in small letters and without a full stop."""
    assert await says(here, ready(here), said) == "eyes +1"


@pytest.mark.parametrize("said", ["@ci merge tomorrow", "@ci merge?", "@ci merg"])
async def test_what_is_no_command_is_said_to_be_none(here: Town, said: str) -> None:
    pull = ready(here)
    answer = await says(here, pull, said)
    assert "Did you mean `@ci merge`?" in answer
    assert pull.state == "open"


# Checks


async def test_nothing_but_what_is_required_matters_whoever_reports_it(here: Town) -> None:
    """TVM's bot died of a commit without any check, and of check runs that were not of GitHub Actions."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    approve(pull)
    assert f"Nothing on {short(pull)} is named `*/pr-head` yet" in await says(here, pull, "@ci merge")
    foreign = here.github.create_app("lint", permissions={"checks": "write"})
    foreign.install(here.repo)
    here.repo.add_check_run(foreign, pull.head_sha, "style", conclusion="failure")
    here.repo.add_check_run(here.app, pull.head_sha, "hardware/example-lab/adreno", conclusion="neutral")
    here.repo.add_workflow_run(pull.head_sha, "CI", "failure")
    report(here, pull)
    assert await says(here, pull, "@ci merge") == "eyes +1"


async def test_what_the_branch_requires_is_read_from_its_rules_and_its_protection(here: Town) -> None:
    """TVM #18780, #14618: jobs that were named in the code went stale; here none is."""
    here.repo.rules["main"] = Rules(required={"build": here.github.actions_app.id, "docs": None})
    here.repo.protect("main", "lint")
    pull = ready(here)
    here.repo.add_check_run(here.app, pull.head_sha, "build", conclusion="success")
    said = await says(here, pull, "@ci merge")
    assert [line for line in said.splitlines() if "has not begun" in line] == [
        f"  - `build` has not begun on {short(pull)} yet; the rules of `main` require it, reported by the App with the "
        f"number {here.github.actions_app.id}. If it never comes, it is required there in vain.",
        *(
            f"  - `{name}` has not begun on {short(pull)} yet; the rules of `main` require it. "
            "If it never comes, it is required there in vain."
            for name in ("docs", "lint")
        ),
    ]
    here.repo.add_workflow_run(pull.head_sha, "CI", "failure", {"build": "failure"})
    here.repo.add_workflow_run(pull.head_sha, "CI", "success", {"build": "success"})
    report(here, pull, context="docs")
    report(here, pull, context="lint")
    assert await says(here, pull, "@ci merge") == "eyes +1"


async def test_without_patterns_the_rules_of_the_branch_are_all_that_counts(tmp_path: Path) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", "method: merge") as here:
        pull = here.repo.open_pull_request("hubot", "Faster")
        report(here, pull, "failure")
        approve(pull)
        assert await says(here, pull, "@ci merge") == "eyes +1"
        assert len(here.repo.git.commits[here.repo.branch("main")].parents) == 2
        assert message(here) == "Faster (#1)"


async def test_a_rebase_keeps_the_messages_of_the_commits(tmp_path: Path) -> None:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", "method: rebase") as here:
        pull = here.repo.open_pull_request("hubot", "Faster")
        pull.push(message="And smaller")
        approve(pull)
        assert await says(here, pull, "@ci merge") == "eyes +1"
        assert [one.message for one in here.repo.git.ancestry(here.repo.branch("main"))[:2]] == [
            "And smaller",
            "Faster",
        ]


# GitHub


async def test_what_github_refuses_is_told_in_its_words_and_without_a_traceback(here: Town) -> None:
    """TVM's bot put its tracebacks into comments."""
    here.repo.merge_methods = ("merge",)
    pull = ready(here)
    said = await says(here, pull, "@ci merge")
    assert said == (
        f"eyes confused\n- 😕 `@ci merge`: GitHub did not merge {short(pull)}; "
        "it says `Squash merges are not allowed on this repository.`."
    )
    assert "Traceback" not in said


async def test_conflicts_that_github_has_to_look_for_are_waited_for(here: Town) -> None:
    pull = ready(here)
    await here.quiet()
    pull.undecided = 1
    assert await says(here, pull, "@ci merge") == "eyes +1"


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_merge_whose_answer_is_lost_is_found_and_not_tried_again(here: Town, when: str) -> None:
    pull = ready(here)
    await here.quiet()
    here.github.faults.add("PUT", MERGE, drop="after" if when == "after" else "before")
    assert await says(here, pull, "@ci merge") == "eyes +1"
    assert here.answers(pull) == []
    assert len(here.repo.git.ancestry(here.repo.branch("main"))) == 2


# The merge queue


@pytest.mark.parametrize("classic", [True, False])
async def test_a_branch_with_a_merge_queue_is_merged_into_by_it(here: Town, classic: bool) -> None:
    if classic:
        here.repo.classic_queues.add("main")
    else:
        here.repo.rules["main"] = Rules(queue=True, methods=("rebase",))
    pull = ready(here)
    told = (
        ""
        if classic
        else f"{short(pull)} goes into the merge queue of `main`; GitHub merges it when its turn has come."
    )
    said = await says(here, pull, "@ci merge")
    assert said == (f"eyes +1\n- `@ci merge`: {told}" if told else "eyes +1")
    assert pull.queued is not None
    assert (str(pull.queued.enqueuer), pull.queued.head_sha) == ("@nightjar[bot]", pull.head_sha)
    assert here.github.requests.count("PUT", MERGE) == 0
    assert await says(here, pull, "@ci merge") == said, "it is in the queue, and stays there"
    said = await says(here, pull, "@ci cancel", by="hubot")
    assert said == f"eyes +1\n- `@ci cancel`: The merge of {short(pull)} that `octocat` asked for is called off."
    assert pull.queued is None


async def test_what_the_queue_does_not_take_is_told(here: Town) -> None:
    here.repo.classic_queues.add("main")
    pull = ready(here)
    await here.quiet()
    held = here.github.faults.pause("POST", "/graphql", when="before", skip=1)
    comment = pull.comment("octocat", "@ci merge")
    await held.reached.wait()
    old = pull.head_sha
    pull.push()
    held.resume()
    await here.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert (
        f"GitHub did not take `{old[:7]}` into the merge queue; "
        "it says `Expected head oid does not match the current head oid`."
    ) in here.answers(pull)[0]


async def test_where_merging_is_off_it_is_said_who_can_switch_it_on(tmp_path: Path) -> None:
    """Off unless app.yaml names it."""
    async with town(f"sqlite:///{tmp_path}/nightjar.db") as here:
        pull = ready(here)
        said = await says(here, pull, "@ci merge")
        assert "This command is switched off for `octocat/compiler`. A maintainer can switch it on: `merge` in" in said
        assert pull.state == "open"
