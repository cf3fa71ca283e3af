"""`@ci merge`: what somebody with write access comments, and what happens to the pull request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conversations.merges import UNAPPROVED, approve, merge_town, message, ready, report, says, short
from tests.conversations.town import Town

REACT = "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"
MERGE = "/repos/{owner}/{repo}/pulls/{pull_number}/merge"
WHO = "You need write access for this. Ask a maintainer to comment `@ci merge`."


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


async def test_a_ready_pull_request_is_merged_with_a_useful_message(town: Town) -> None:
    """Merges with `sha`:

    squash, title `… (#n)`, a text without template, comments and mentions, and with co-authors.
    """
    template = "<!-- Thanks! -->\n## Why\n\nPlease name an issue.\n"
    town.repo.push("main", {".github/PULL_REQUEST_TEMPLATE.md": template}, by="octocat")
    text = f"{template}\r\nSaves a pass, says @octocat:\r\n\r\n    @T.prim_func\r\n\r\n`@hubot`"
    pull = town.repo.open_pull_request("hubot", "Faster, @octocat", text)
    pull.push(by="reader", message="More\n\nCo-authored-by: Mona <mona@example.org>")
    pull.push(by="hubot")
    report(town, pull)
    approve(pull)
    sha = pull.head_sha
    assert await says(town, pull, "@ci merge") == "eyes +1"
    reader = town.github.user("reader")
    assert message(town) == (
        "Faster, octocat (#1)\n\nSaves a pass, says octocat:\n\n    @T.prim_func\n\n`@hubot`\n\n"
        f"Co-authored-by: reader <{reader.id}+reader@users.noreply.example.org>\n"
        "Co-authored-by: Mona <mona@example.org>"
    )
    assert (pull.state, str(pull.merged_by), pull.head_sha) == ("closed", "@nightjar[bot]", sha)
    assert town.repo.branch("main") == pull.merge_commit_sha


async def test_an_update_with_the_base_makes_nobody_a_co_author(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster, with the v…", "…ectorized schedule\n\nSaves a pass.")
    town.repo.push("main", by="octocat")
    pull.update_branch("octocat")
    town.repo.push("main", by="octocat")
    pull.update_branch("nightjar[bot]")
    report(town, pull)
    approve(pull)
    town.github.clock.advance(seconds=1)
    assert await says(town, pull, "@ci merge") == "eyes +1"
    assert message(town) == "Faster, with the vectorized schedule (#1)\n\nSaves a pass."


async def test_text_that_makes_ci_skip_a_commit_is_removed_from_the_message(town: Town) -> None:
    """Otherwise the author of a pull request could keep CI from testing main."""
    text = "Saves a pass. [no ci]\n\n```\n***NO_CI***\n```\n\n\nskip-checks: true"
    pull = town.repo.open_pull_request("hubot", "[skip ci] Faster", text)
    report(town, pull)
    approve(pull)
    assert await says(town, pull, "@ci merge") == "eyes +1"
    assert message(town) == "Faster (#1)\n\nSaves a pass.\n\n```\n\n```"


async def test_everything_that_blocks_a_merge_is_reported_at_once(town: Town) -> None:
    """TVM's bot reported one obstacle at a time, and did not check for drafts."""
    pull = town.repo.open_pull_request("hubot", "Faster", draft=True, files={"README.md": "mine\n"})
    town.repo.push("main", {"README.md": "theirs\n"}, by="octocat")
    town.repo.set_role("triager", "write")
    pull.review("triager", "Not like this.", "CHANGES_REQUESTED")
    pull.label("hubot", "hold")
    report(town, pull, "failure")
    report(town, pull, "pending", "gpu/pr-head")
    reply = await says(town, pull, "@ci merge")
    url = f"{town.github.url}/octocat/compiler/pull/1#pullrequestreview-{pull.reviews[0].id}"
    job = "<https://ci.example.org/job/1>"
    assert reply.splitlines() == [
        "eyes confused",
        "- 😕 `@ci merge`: Not merged:",
        "  - It is a draft. Mark it as ready for review.",
        "  - It conflicts with `main`. Merge `main` into it or rebase it, then ask for a new review.",
        "  - It has the label `hold`. Remove the label first.",
        f"  - `triager` [requested changes]({url}). They must approve, or someone must dismiss the review.",
        f"  - [`cpu/pr-head`]({job}) failed on {short(pull)}. "
        "I can't restart it: it comes from a CI that I don't control.",
        f"  - [`gpu/pr-head`]({job}) is still running on {short(pull)}.",
        f"  - {short(pull)} {UNAPPROVED}",
    ]
    assert pull.state == "open"


# Who may merge


async def test_people_with_write_access_may_merge_including_the_author(town: Town) -> None:
    """TVM #11480, #12361: one failed check of several was enough to refuse, so an author could never merge."""
    for login in ("octocat", "hubot", "Hubot"):
        pull = ready(town, author="hubot")
        assert await says(town, pull, "@ci merge", by=login) == "eyes +1"
        assert pull.merged_at


async def test_others_may_not_merge_and_are_answered_who_may(town: Town) -> None:
    for login, author in (("triager", "hubot"), ("reader", "hubot"), ("somebody", "somebody")):
        pull = ready(town, author, fork=author == "somebody")
        assert await says(town, pull, "@ci merge", by=login) == f"eyes confused\n- 😕 `@ci merge`: {WHO}"
        assert pull.state == "open"


async def test_a_name_similar_to_a_maintainers_gives_no_access(town: Town) -> None:
    """TVM #11480: the first result of a name search got the access.

    TVM #12295: the script then searched for a name in a list of objects, and found nobody.
    """
    for login in ("hub", "hubot2", "octo"):
        assert (await says(town, ready(town), "@ci merge", by=login)).startswith("eyes confused")


@pytest.mark.parametrize(
    "header",
    [
        "On Tue, Nov 25, 2026 somebody ***@***.***> wrote:",
        "From: somebody\nDate: Wednesday, November 25, 2026 10:00\nTo: octocat/compiler\nSubject: Re: Faster",
        "Am Mi., 25. Nov. 2026 um 10:00 schrieb somebody:",
        "------------------ 原始邮件 ------------------",
    ],
)
async def test_a_command_quoted_in_a_reply_by_mail_merges_nothing(town: Town, header: str) -> None:
    pull = ready(town)
    reply = await says(town, pull, f"Not yet, please.\n\n{header}\n\nGreat!\n@ci merge\n")
    assert "This line is below the header of an earlier mail" in reply
    assert pull.merged_at is None


async def test_an_author_with_write_access_cannot_approve_their_own_work(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    report(town, pull)
    approve(pull, by="hubot")
    assert UNAPPROVED in await says(town, pull, "@ci merge", by="hubot")


async def test_an_approval_without_write_access_does_not_count(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    report(town, pull)
    approve(pull, by="reader")
    approve(pull, by="triager")
    assert UNAPPROVED in await says(town, pull, "@ci merge")


# Which commit is merged


async def test_an_approval_counts_only_for_its_commit(town: Town) -> None:
    """TVM #10833 asked to merge without a new review; here the answer names the older approval."""
    pull = ready(town)
    old = pull.head_sha
    pull.push()
    report(town, pull)
    reply = await says(town, pull, "@ci merge")
    assert f"{short(pull)} {UNAPPROVED} [The approval by `octocat`]" in reply
    assert f"is for `{old[:7]}`, an older commit." in reply


async def test_an_approval_replaces_an_earlier_request_for_changes_by_the_same_person(town: Town) -> None:
    """TVM's bot counted each review separately, so the older of the two still blocked."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    report(town, pull)
    pull.review("octocat", "Not like this.", "CHANGES_REQUESTED")
    approve(pull)
    assert await says(town, pull, "@ci merge") == "eyes +1"


async def test_a_push_between_the_comment_and_its_handling_is_not_merged(town: Town) -> None:
    pull = ready(town)
    await town.quiet()
    town.github.webhooks.hold()
    comment = pull.comment("octocat", "@ci merge")
    old, new = pull.head_sha, pull.push().sha
    report(town, pull)
    approve(pull)
    town.github.webhooks.release()
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert f"The head moved from `{old[:7]}` to `{new[:7]}`, so I did nothing." in (town.answers(pull)[0])


async def test_a_late_comment_does_not_apply_to_a_push_that_came_after_it(town: Town) -> None:
    """A redelivery may come hours later; by then our record shows the current head."""
    pull = ready(town)
    await town.quiet()
    town.github.webhooks.hold()
    comment = pull.comment("octocat", "@ci merge")
    pull.push()
    report(town, pull)
    approve(pull)
    town.github.webhooks.release(lambda held: sorted(held, key=lambda delivery: delivery.event == "issue_comment"))
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert f"The head moved to {short(pull)} after your comment, so I did nothing." in town.answers(pull)[0]


async def test_a_push_at_the_moment_of_the_merge_is_not_merged(town: Town) -> None:
    """The merge request to GitHub names the head SHA."""
    pull = ready(town)
    await town.quiet()
    held = town.github.faults.pause("PUT", MERGE, when="before")
    comment = pull.comment("octocat", "@ci merge")
    await held.reached.wait()
    pull.push()
    held.resume()
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert "GitHub didn't merge" in town.answers(pull)[0]
    assert pull.state == "open"


async def test_an_obstacle_that_appears_after_the_decision_prevents_the_merge(town: Town) -> None:
    pull = ready(town)
    await town.quiet()
    held = town.github.faults.pause(
        "POST", "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions", when="after"
    )
    comment = pull.comment("octocat", "@ci merge")
    await held.reached.wait()
    pull.label("hubot", "hold")
    held.resume()
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "confused"]
    assert "Something blocks it now:\n  - It has the label `hold`" in town.answers(pull)[0]


# Forms of comments


async def test_an_approving_review_may_contain_the_command(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    report(town, pull)
    review = pull.review("octocat", "Looks good.\n\n@ci merge", "APPROVED")
    await town.quiet()
    assert pull.reactions(review) == ["eyes", "+1"]
    assert pull.merged_at


async def test_a_pull_request_older_than_the_installation_is_merged_at_its_approved_head(town: Town) -> None:
    """No webhook has named its head or ever will, so a refusal would be permanent."""
    town.github.webhooks.lose("pull_request")
    pull = ready(town)
    assert await says(town, pull, "@ci merge") == "eyes +1"
    assert pull.merged_at


async def test_a_pull_request_older_than_the_installation_is_not_merged_if_another_head_was_approved(
    town: Town,
) -> None:
    town.github.webhooks.lose("pull_request", times=2)
    pull = ready(town)
    pull.push()
    report(town, pull)
    assert "an older commit" in await says(town, pull, "@ci merge")
    assert pull.state == "open"


async def test_merge_on_a_closed_pull_request_is_answered(town: Town) -> None:
    """TVM's bot reacted with 👍 and did nothing."""
    pull = ready(town)
    pull.close("hubot")
    assert await says(town, pull, "@ci merge") == (
        "eyes confused\n- 😕 `@ci merge`: Not merged:\n  - It is closed. Reopen it first."
    )
    merged = ready(town, author="reader")
    merged.merge("octocat")
    assert "It is already merged." in await says(town, merged, "@ci merge")


async def test_editing_or_deleting_an_old_comment_merges_nothing(town: Town) -> None:
    """TVM's workflow also ran on edited and deleted comments, and repeated the old `merge`."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    comment = pull.comment("octocat", "@ci merge")
    await town.quiet()
    report(town, pull)
    approve(pull)
    pull.edit_comment(comment, "@ci merge\n\nSorry, not approved yet.")
    await town.quiet()
    pull.delete_comment(comment)
    await town.quiet()
    assert pull.state == "open"
    assert len(town.answers(pull)) == 1


async def test_another_comment_does_not_cancel_the_merge(town: Town) -> None:
    """TVM's workflow was cancelled by any later comment on the same pull request."""
    pull = ready(town)
    await town.quiet()
    town.github.webhooks.hold()
    comment = pull.comment("octocat", "@ci merge")
    pull.comment("reader", "Nice.")
    pull.comment("reader", "@ci help")
    town.github.webhooks.release()
    await town.quiet()
    assert pull.reactions(comment) == ["eyes", "+1"]
    assert pull.merged_at


async def test_the_command_may_be_phrased_in_several_ways(town: Town) -> None:
    """TVM's bot matched the whole comment, only in lower case and without a full stop."""
    for comment in ("@ci merge this", "@CI Merge this PR please!", "Thanks!\n\n@ci: merge."):
        assert await says(town, ready(town), comment) == "eyes +1"


async def test_an_invalid_command_is_answered_as_such(town: Town) -> None:
    pull = ready(town)
    for comment in ("@ci merge tomorrow", "@ci merge?", "@ci merg"):
        assert "Did you mean `@ci merge`?" in await says(town, pull, comment)
    assert pull.state == "open"
