"""`cc @octocat` in the description of a pull request."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.app.registration import PERMISSIONS
from sandbox import PullRequest
from tests.conversations.town import Town
from tests.conversations.town import town as start_town

REQUESTED = "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers"
REVIEWS = "/repos/{owner}/{repo}/pulls/{pull_number}/reviews"


def requested(pull: PullRequest) -> list[str]:
    return [user.login for user in pull.requested_reviewers] + [team.slug for team in pull.requested_teams]


async def test_all_named_people_are_requested_in_one_call(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "Speeds up matmul.\n\ncc @octocat, @triager and @reader")
    await town.quiet()
    assert requested(pull) == ["octocat", "triager", "reader"]
    assert town.github.requests.count("POST", REQUESTED) == 1
    assert town.answers(pull) == []


@pytest.mark.parametrize(
    "text", ["CC: @octocat", "Fixes a crash, cc @Octocat.", "- Cc @octocat", "cc  @octocat\r\nBye"]
)
async def test_cc_is_recognized_in_every_common_notation(town: Town, text: str) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", text)
    await town.quiet()
    assert requested(pull) == ["octocat"]


NO_CC = (
    "`cc @octocat`",
    "```\ncc @octocat\n```",
    "> cc @octocat",
    "<!-- cc @octocat -->",
    "gcc @octocat",
    "a.cc@octocat",
    "thanks @octocat",
    "cc @hubot",
    "cc @ci",
    None,
)


async def test_text_that_is_no_cc_requests_nobody_and_costs_no_call(town: Town) -> None:
    """Not in code, quotes, comments or mid-word; never the author, and never the bot's own mention."""
    pulls = [town.repo.open_pull_request("hubot", "Faster", text) for text in NO_CC]
    await town.quiet()
    for pull, text in zip(pulls, NO_CC, strict=True):
        assert requested(pull) == [], text
    assert town.github.requests.count("", REVIEWS) == 0
    assert town.github.requests.count("", REQUESTED) == 0


async def test_teams_are_requested_by_their_full_name(tmp_path: Path) -> None:
    teams = {"reviewers": ["triager"]}
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", teams=teams) as town:
        pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat/reviewers @triager")
        await town.quiet()
        assert requested(pull) == ["triager", "reviewers"]
        assert town.github.requests.count("POST", REQUESTED) == 1


async def test_if_the_app_cannot_see_teams_the_comment_names_the_missing_permission(tmp_path: Path) -> None:
    """GitHub only says that it could not resolve a node: it names neither the team nor the permission."""
    permissions = {name: access for name, access in PERMISSIONS.items() if name != "members"}
    teams = {"reviewers": ["triager"]}
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", teams=teams, permissions=permissions) as town:
        pull = town.repo.open_pull_request("octocat", "Faster", "cc @octocat/reviewers @hubot @stranger")
        await town.quiet()
        assert requested(pull) == ["hubot"]
        (sticky,) = town.answers(pull)
        assert (
            "**Reviewers:** I couldn't request a review from `octocat/reviewers`: the App needs *Members: "
            "read* to see teams."
        ) in sticky
        assert "**Reviewers:** I couldn't request a review from `stranger`: only people and teams" in sticky
        town.app.permissions["members"] = "read"
        town.github.tokens.expire_all()
        pull.edit("octocat", body="cc @octocat/reviewers @hubot @stranger, please")
        await town.quiet()
        assert requested(pull) == ["hubot", "reviewers"]
        (sticky,) = town.answers(pull)
        assert "Members" not in sticky


async def test_a_team_of_another_organization_is_not_requested(tmp_path: Path) -> None:
    """The API takes a team's name without its organization:

    `@example-lab/reviewers` would request `octocat/reviewers`.
    """
    teams = {"reviewers": ["triager"]}
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", teams=teams) as town:
        pull = town.repo.open_pull_request("hubot", "Faster", "cc @example-lab/reviewers")
        await town.quiet()
        assert requested(pull) == []
        (sticky,) = town.answers(pull)
        assert "I couldn't request a review from `example-lab/reviewers`:" in sticky


async def test_somebody_already_requested_is_not_requested_again(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    pull.request_review("hubot", "octocat")
    pull.edit("hubot", body="cc @octocat and @triager")
    await town.quiet()
    assert requested(pull) == ["octocat", "triager"]
    deliveries = town.github.webhooks.find("pull_request", "review_requested")
    assert [delivery.body["requested_reviewer"]["login"] for delivery in deliveries] == ["octocat", "triager"]


async def test_somebody_who_has_reviewed_is_not_requested_again_whatever_the_number_of_reviews(town: Town) -> None:
    """TVM's bot read only the first page of reviews."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    town.github.webhooks.lose("pull_request_review", times=101)
    for number in range(100):
        pull.review("triager", f"Comment {number}")
    pull.review("octocat", "", "APPROVED")
    pull.edit("hubot", body="cc @octocat, @triager, @reader")
    await town.quiet()
    assert requested(pull) == ["reader"]
    assert town.github.requests.count("GET", REVIEWS) == 2


async def test_a_review_by_a_deleted_account_does_not_stop_the_request(town: Town) -> None:
    """TVM's bot crashed on a review whose author was null."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    pull.review("passer-by", "Nice")
    await town.quiet()
    town.github.user("passer-by").deleted = True
    pull.edit("hubot", body="cc @octocat")
    await town.quiet()
    assert requested(pull) == ["octocat"]


async def test_if_github_refuses_one_name_the_others_are_still_requested(town: Town) -> None:
    """The sticky comment names the refused person, without a mention."""
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat, @stranger and @triager")
    await town.quiet()
    assert requested(pull) == ["octocat", "triager"]
    (sticky,) = town.answers(pull)
    assert "I couldn't request a review from `stranger`:" in sticky
    assert "@" not in sticky
    assert "octocat" not in sticky


async def test_the_next_push_does_not_try_a_refused_name_again(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @stranger")
    await town.quiet()
    town.github.requests.clear()
    pull.push()
    await town.quiet()
    assert town.github.requests.count("", REQUESTED) == 0
    assert len(town.answers(pull)) == 1


async def test_correcting_a_misspelt_name_clears_the_comment(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocta")
    await town.quiet()
    assert "`octocta`" in town.answers(pull)[0]
    pull.edit("hubot", body="cc @octocat")
    await town.quiet()
    assert requested(pull) == ["octocat"]
    assert town.answers(pull) == []


async def test_removing_a_refused_name_from_the_description_clears_the_comment(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @stranger, @passer-by")
    await town.quiet()
    pull.edit("hubot", body="cc @passer-by")
    await town.quiet()
    (sticky,) = town.answers(pull)
    assert "`passer-by`" in sticky
    assert "stranger" not in sticky
    pull.edit("hubot", body="Never mind.")
    await town.quiet()
    assert town.answers(pull) == []


async def test_somebody_who_got_access_is_requested_when_the_description_is_edited(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @newcomer")
    await town.quiet()
    town.repo.set_role("newcomer", "read")
    pull.edit("hubot", body="Now with access.\n\ncc @newcomer")
    await town.quiet()
    assert requested(pull) == ["newcomer"]
    assert town.answers(pull) == []


async def test_a_push_does_not_request_again_somebody_whose_request_a_human_removed(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat and @triager")
    await town.quiet()
    pull.remove_review_request("hubot", "octocat")
    pull.push()
    pull.edit("hubot", title="Much faster")
    await town.quiet()
    assert requested(pull) == ["triager"]


async def test_somebody_whose_earlier_request_a_human_removed_is_not_requested(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    pull.request_review("hubot", "octocat")
    pull.edit("hubot", body="cc @octocat")
    await town.quiet()
    pull.remove_review_request("hubot", "octocat")
    pull.push()
    await town.quiet()
    assert requested(pull) == []


async def test_a_push_with_nobody_left_to_request_costs_no_call(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat and @triager")
    await town.quiet()
    town.github.requests.clear()
    pull.push()
    await town.quiet()
    assert town.github.requests.count("", REVIEWS) == 0
    assert town.github.requests.count("", REQUESTED) == 0


async def test_a_name_added_by_an_edit_is_requested(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat")
    await town.quiet()
    pull.edit("hubot", body="cc @octocat @triager")
    await town.quiet()
    assert requested(pull) == ["octocat", "triager"]
    pull.remove_review_request("hubot", "octocat")
    pull.push()
    await town.quiet()
    assert requested(pull) == ["triager"]


async def test_a_draft_requests_reviews_at_once_and_not_again_when_it_is_ready(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat", draft=True)
    await town.quiet()
    assert requested(pull) == ["octocat"]
    pull.ready_for_review("hubot")
    await town.quiet()
    assert town.github.requests.count("POST", REQUESTED) == 1


async def test_a_closed_pull_request_requests_nobody(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    pull.close("hubot")
    pull.edit("hubot", body="cc @octocat")
    await town.quiet()
    assert requested(pull) == []


async def test_the_section_reports_a_missing_permission_and_clears_when_it_is_granted(town: Town) -> None:
    needed = {"X-Accepted-GitHub-Permissions": "pull_requests=write"}
    town.github.faults.add("POST", REQUESTED, status=403, headers=needed)
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat")
    await town.quiet()
    (sticky,) = town.answers(pull)
    assert "I couldn't request reviews. GitHub denied this: the App needs" in sticky
    assert "*Pull requests: write*" in sticky
    assert requested(pull) == []
    pull.push()
    await town.quiet()
    assert requested(pull) == ["octocat"]
    assert town.answers(pull) == []


async def test_the_section_reports_that_reviewers_cannot_be_listed(town: Town) -> None:
    """Other features go on: the status for slow tests is there, and the next push requests the reviewers."""
    town.github.faults.add("GET", REVIEWS, status=422, message="No reviews for @octocat")
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat")
    await town.quiet()
    (sticky,) = town.answers(pull)
    assert "I couldn't request reviews. GitHub refused this: `No reviews for @octocat`." in sticky
    assert town.repo.status(pull.head_sha, "ci/slow-tests") is not None
    pull.push()
    await town.quiet()
    assert requested(pull) == ["octocat"]
    assert town.answers(pull) == []


async def test_a_failure_is_removed_once_nobody_is_named(town: Town) -> None:
    town.github.faults.add("GET", REVIEWS, status=422, message="No", times=1)
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat")
    await town.quiet()
    assert len(town.answers(pull)) == 1
    pull.edit("hubot", body="Never mind.")
    await town.quiet()
    assert town.answers(pull) == []
