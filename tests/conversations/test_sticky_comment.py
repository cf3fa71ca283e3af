"""The sticky comment of a pull request, and what people and other bots may do to it."""

from __future__ import annotations

from bot.github.text import sticky
from sandbox import PullRequest
from tests.conversations.town import BOT, Town
from tests.gfm import rendered

COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
COMMENT = "/repos/{owner}/{repo}/issues/comments/{comment_id}"


def messages_of(*names: str) -> str:
    return ", ".join(f"`{name}`" for name in names)


async def with_refusal(town: Town, *names: str) -> PullRequest:
    """Open a pull request whose sticky comment names a reviewer who could not be requested."""
    body = "cc " + ", ".join(f"@{name}" for name in names)
    pull = town.repo.open_pull_request("hubot", "Faster", body)
    await town.quiet()
    return pull


async def test_it_is_edited_in_place(town: Town) -> None:
    pull = await with_refusal(town, "stranger")
    (first,) = pull.comments_by(BOT)
    pull.edit("hubot", body="cc @stranger, @passer-by")
    await town.quiet()
    (second,) = pull.comments_by(BOT)
    assert second is first
    assert messages_of("passer-by", "stranger") in second.body
    assert town.github.requests.count("POST", COMMENTS) == 1
    assert town.github.requests.count("PATCH", COMMENT) == 1


async def test_its_markers_are_invisible(town: Town) -> None:
    pull = await with_refusal(town, "stranger")
    page = rendered(town.answers(pull)[0])
    assert "nightjar" not in page
    assert page.count("<p>") == 1


async def test_other_sections_stay_as_they_are(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    docs = sticky.render({"docs": "Built docs: `abc`.", "runtime": "12 min"})
    comment = pull.comment(BOT, docs)
    pull.edit("hubot", body="cc @stranger")
    await town.quiet()
    assert sticky.sections_of(comment.body).keys() == {"docs", "runtime", "cc-reviewers"}
    pull.edit("hubot", body="Never mind.")
    await town.quiet()
    assert comment.body == docs


async def test_a_comment_by_somebody_else_with_our_marker_is_left_alone(town: Town) -> None:
    """The bot finds its comment by marker *and* author ID, because anybody can quote or forge a marker."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    forged = pull.comment("reader", sticky.render({"cc-reviewers": "I am the bot."}))
    quoted = pull.comment("reader", f"> {sticky.MARKER}\n\nWhat is this?")
    bodies = (forged.body, quoted.body)
    pull.edit("hubot", body="cc @stranger")
    await town.quiet()
    assert (forged.body, quoted.body) == bodies
    (comment,) = pull.comments_by(BOT)
    assert "I am the bot" not in comment.body
    pull.edit("hubot", body="Never mind.")
    await town.quiet()
    assert pull.comments == [forged, quoted]


async def test_an_answer_of_ours_that_quotes_it_is_not_taken_for_it(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    pull.comment("hubot", f"@ci help\n@ci rerun '{sticky.MARKER}'")
    await town.quiet()
    pull.edit("hubot", body="cc @stranger")
    await town.quiet()
    answer, sticky_body = town.answers(pull)
    assert "nightjar:answer" in answer
    assert sticky_body.startswith(sticky.MARKER)


async def test_it_is_found_behind_a_hundred_comments(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    town.github.webhooks.lose("issue_comment", times=151)
    for number in range(150):
        pull.comment("reader", f"Comment {number}")
    comment = pull.comment(BOT, sticky.render({"docs": "built"}))
    pull.edit("hubot", body="cc @stranger")
    await town.quiet()
    assert pull.comments_by(BOT) == [comment]
    assert "`stranger`" in comment.body
    assert town.github.requests.count("GET", COMMENTS) == 2


async def test_duplicates_from_a_race_are_merged_and_deleted(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    first = pull.comment(BOT, sticky.render({"docs": "old", "runtime": "12 min"}))
    town.github.clock.advance(seconds=5)
    pull.comment(BOT, sticky.render({"docs": "new"}))
    pull.edit("hubot", body="cc @stranger")
    await town.quiet()
    assert pull.comments_by(BOT) == [first]
    sections = sticky.sections_of(first.body)
    assert (sections["docs"], sections["runtime"]) == ("new", "12 min")
    assert "`stranger`" in sections["cc-reviewers"]


async def test_when_the_last_section_is_cleared_all_duplicates_are_deleted(town: Town) -> None:
    pull = await with_refusal(town, "stranger")
    pull.comment(BOT, town.answers(pull)[0])
    pull.edit("hubot", body="Never mind.")
    await town.quiet()
    assert pull.comments == []


async def test_without_a_section_there_is_no_comment(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat")
    pull.push()
    await town.quiet()
    assert pull.comments == []
    assert town.github.requests.count("", COMMENTS) == 0


async def test_a_comment_that_a_maintainer_edited_in_a_browser_keeps_its_sections(town: Town) -> None:
    pull = await with_refusal(town, "stranger")
    (comment,) = pull.comments_by(BOT)
    pull.edit_comment(
        comment, sticky.render({"docs": "built"} | sticky.sections_of(comment.body)).replace("\n", "\r\n")
    )
    pull.edit("hubot", body="cc @passer-by")
    await town.quiet()
    sections = sticky.sections_of(comment.body)
    assert sections["docs"] == "built"
    assert "`passer-by`" in sections["cc-reviewers"]


async def test_a_sticky_comment_deleted_during_the_update_is_written_again(town: Town) -> None:
    pull = await with_refusal(town, "stranger")
    (comment,) = pull.comments_by(BOT)
    edit = town.github.faults.pause("PATCH", COMMENT, when="before")
    pull.edit("hubot", body="cc @stranger, @passer-by")
    await edit.reached.wait()
    pull.delete_comment(comment, by="octocat")
    edit.resume()
    await town.quiet()
    (rewritten,) = town.answers(pull)
    assert messages_of("passer-by", "stranger") in rewritten


async def test_a_duplicate_that_somebody_else_deletes_first_causes_no_failure(town: Town) -> None:
    pull = await with_refusal(town, "stranger")
    twin = pull.comment(BOT, town.answers(pull)[0])
    removal = town.github.faults.pause("DELETE", COMMENT, when="before")
    pull.edit("hubot", body="cc @passer-by")
    await removal.reached.wait()
    pull.delete_comment(twin, by="octocat")
    removal.resume()
    await town.quiet()
    assert await town.failures() == []
    assert len(town.answers(pull)) == 1


async def test_a_section_that_cannot_be_written_stops_nothing_else(town: Town) -> None:
    town.github.faults.add("POST", COMMENTS, status=403, message="Resource not accessible by integration", times=1)
    pull = await with_refusal(town, "stranger", "octocat")
    assert [user.login for user in pull.requested_reviewers] == ["octocat"]
    assert town.repo.status(pull.head_sha, "ci/slow-tests") is not None
    assert town.answers(pull) == []
    pull.push()
    await town.quiet()
    assert "`stranger`" in town.answers(pull)[0]
