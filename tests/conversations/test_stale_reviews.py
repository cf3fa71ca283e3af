"""Stale reviews: reviewers of inactive pull requests are reminded, never more often than configured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.app.registration import PERMISSIONS
from bot.timers.timers import TIMER_EVENT
from sandbox import PullRequest
from tests.conversations.stale import StaleTown, stale_town

REPO = "/repos/{owner}/{repo}"
COMMENTS, COMMENT = f"GET {REPO}/issues/{{issue_number}}/comments", f"POST {REPO}/issues/{{issue_number}}/comments"
PULL = f"GET {REPO}/pulls/{{pull_number}}"
LIST = "POST /graphql"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/nightjar.db"


@pytest.fixture
async def place(url: str) -> AsyncIterator[StaleTown]:
    async with stale_town(url) as place:
        yield place


def bot(place: StaleTown, login: str = "dependabot[bot]") -> str:
    """Return the login of a bot that is not ours."""
    place.town.github.user(login).type = "Bot"
    return login


async def last_run(place: StaleTown) -> tuple[str, str]:
    """Return how the last run ended, and why."""
    runs = [
        record for record in await place.town.bot.engine.journal.recent(limit=500) if record.event == TIMER_EVENT.name
    ]
    return runs[0].state, runs[0].reason


async def test_reviewers_are_reminded_once_per_week_without_activity(place: StaleTown) -> None:
    pull = place.opened(6.9, "hubot", "triager")
    await place.scan()
    assert place.reminders(pull) == []
    await place.scan(days=0.2)
    (first,) = place.reminders(pull)
    assert first.startswith(
        "There has been no activity for 7 days. @hubot and @triager: please review this, or say what is "
        "missing. @octocat: if you are still working on it, please [convert it to a draft](https://docs.github.com/"
    )
    for days in (0, 3, 3.5):
        await place.scan(days)
    assert place.reminders(pull) == [first]
    await place.scan(days=1)
    assert [text.partition(".")[0] for text in place.reminders(pull)] == [
        "There has been no activity for 7 days",
        "There has been no activity for 14 days",
    ]
    assert pull.requested_reviewers, "a reminder requests no review"


async def test_any_activity_by_a_person_postpones_the_reminder(place: StaleTown) -> None:
    """TVM #10149, #10208: reviews without comments, and drafts that became ready, did not count."""
    repo = place.town.repo
    pulls: dict[str, PullRequest] = {
        activity: place.opened(9, "hubot")
        for activity in ("nothing", "comment", "review", "line", "push", "force", "edit", "title", "asked", "reopened")
    }
    pulls["ready"] = place.opened(9, "hubot", draft=True)
    with place.days_ago(8):
        reviewed = place.opened(9, "hubot")
        line = reviewed.review_comment("hubot", "Why?", path="README.md", line=1)
    pulls["reply"] = reviewed
    with place.days_ago(2):
        pulls["comment"].comment("reader", "Any news?")
        pulls["review"].review("hubot", state="APPROVED")
        pulls["line"].review_comment("hubot", "Why?", path="README.md", line=1)
        pulls["reply"].review_comment("octocat", "Because.", path="README.md", line=1, reply_to=line)
        pulls["push"].push()
        pulls["force"].push(force=True)
        pulls["edit"].edit("octocat", body="More words")
        pulls["title"].edit("octocat", title="A better title")
        pulls["asked"].request_review("octocat", "triager")
        pulls["ready"].ready_for_review("octocat")
        pulls["reopened"].close("octocat")
        pulls["reopened"].reopen("octocat")
    await place.town.quiet()
    assert len(repo.pulls) == 12
    await place.scan()
    assert [activity for activity, pull in pulls.items() if place.reminders(pull)] == ["nothing"]


async def test_activity_by_bots_does_not_count(place: StaleTown) -> None:
    dependabot = bot(place)
    pull = place.opened(9, "hubot")
    with place.days_ago(1):
        pull.comment(dependabot, "A newer version is there.")
        sticky = pull.comment("nightjar[bot]", "The sticky comment.")
        pull.edit_comment(sticky, "What it says now.")
        pull.review(dependabot)
        pull.request_review(dependabot, "triager")
        pull.push(by=dependabot)
        pull.edit(dependabot, body="A bot's table")
    await place.town.quiet()
    await place.scan()
    reminder = place.reminders(pull)[-1]
    assert reminder.startswith("There has been no activity for 9 days. @hubot and @triager: ")


async def test_a_push_of_an_old_commit_counts_as_activity_now(place: StaleTown) -> None:
    """The pull request's payload says when the head moved; GitHub later only says when the commit was made."""
    pull = place.opened(9, "hubot")
    await place.town.quiet()
    with place.days_ago(20):
        old = place.town.repo.git.commit(
            (pull.head_sha,), {"a": "b"}, "An old one", pull.user, place.town.github.clock.now()
        )
    with place.days_ago(1):
        place.town.repo.move(f"refs/heads/{pull.head_ref}", old.sha, "octocat")
    await place.town.quiet()
    await place.scan()
    assert place.reminders(pull) == []


async def test_there_is_no_reminder_without_a_reviewer_to_remind(place: StaleTown) -> None:
    """TVM mentioned an empty list of names, as in `this PR was updated, please`, and authors who had reviewed."""
    alone, self_reviewed, drafted = place.opened(30), place.opened(30), place.opened(30, "hubot", draft=True)
    with place.days_ago(29):
        self_reviewed.review("OctoCat", "I would say so.")
        self_reviewed.review(bot(place), "Well done.")
    await place.scan()
    assert [place.reminders(pull) for pull in (alone, self_reviewed, drafted)] == [[], [], []]
    assert await last_run(place) == ("done", "nobody needs a reminder; open pull requests: 3")


async def test_deleted_accounts_do_not_prevent_reminders(place: StaleTown) -> None:
    """TVM's script crashed on the first author or reviewer who was null."""
    first_pull = place.opened(9, "hubot", by="reader")
    with place.days_ago(8):
        first_pull.review("stranger", "Hm.")
    place.town.github.user("reader").deleted = True
    place.town.github.user("stranger").deleted = True
    second_pull = place.opened(10, "hubot")
    await place.scan()
    assert place.reminders(first_pull) == [
        "There has been no activity for 8 days. @hubot: please review this, or say what is missing."
    ]
    assert len(place.reminders(second_pull)) == 1


async def test_the_longest_waiting_pull_requests_are_reminded_in_the_first_run_and_others_in_later_runs(
    place: StaleTown,
) -> None:
    """TVM #10807: only the first page was read, with the newest pull requests."""
    pulls = [place.opened(10 + number, "hubot") for number in range(60)]
    reminded: list[int] = []
    for _ in range(3):
        await place.scan()
        new = [number for number in range(60) if place.reminders(pulls[number]) and number not in reminded]
        reminded += sorted(new, reverse=True)
    assert reminded == list(range(59, 44, -1))


async def test_a_team_is_reminded_if_no_person_was_requested(url: str) -> None:
    teams = {"gpu": ["hubot"]}
    async with stale_town(url, teams=teams) as place:
        pull = place.opened(9, "octocat/gpu", by="reader")
        await place.scan()
        assert "for 9 days. @octocat/gpu: please review this" in place.reminders(pull)[0]


async def test_a_team_that_the_app_cannot_see_does_not_prevent_other_reminders(url: str) -> None:
    permissions = {name: access for name, access in PERMISSIONS.items() if name != "members"}
    async with stale_town(url, teams={"gpu": ["hubot"]}, permissions=permissions) as place:
        team_pull, user_pull = place.opened(9, "octocat/gpu", by="reader"), place.opened(9, "hubot", by="reader")
        await place.scan()
        assert [len(place.reminders(reviewed_pull)) for reviewed_pull in (team_pull, user_pull)] == [0, 1]


async def test_a_failing_run_is_visible(url: str) -> None:
    """TVM #9983, #12788: every run ended in a NameError for years, hidden by `|| echo failed`."""
    permissions = {**PERMISSIONS, "issues": "read", "pull_requests": "read"}
    async with stale_town(url, permissions=permissions) as place:
        pull = place.opened(9, "hubot")
        await place.scan()
        assert place.reminders(pull) == []
        state, failure = await last_run(place)
        assert state == "failed"
        assert "Resource not accessible by integration" in failure
        (timer,) = (await place.town.ask("/api/v1/repos/octocat/compiler/timers"))[2]["timers"]
        assert (timer["name"], timer["outcome"]) == ("stale-reviews", "failed")


@pytest.mark.exhaustive
async def test_a_scan_costs_a_request_per_25_pull_requests_and_a_reminder_three(place: StaleTown) -> None:
    for _ in range(60):
        place.opened(1, "hubot")
    pending = place.opened(9, "hubot")
    await place.town.quiet()
    await place.scan()
    assert len(place.reminders(pending)) == 1
    place.town.github.requests.clear()
    await place.scan()
    routes = {request.route for request in place.town.github.requests.of_installation}
    assert routes == {"/graphql"}
    second = place.opened(9, "hubot")
    await place.town.quiet()
    place.town.github.requests.clear()
    await place.scan()
    assert len(place.reminders(second)) == 1
    counts = place.town.github.requests.counts()
    assert {name: counts[name] for name in (LIST, PULL, COMMENTS, COMMENT)} == {
        LIST: 3,
        PULL: 1,
        COMMENTS: 1,
        COMMENT: 1,
    }


async def test_an_answer_to_a_reminder_prevents_the_next_one_for_a_whole_period(place: StaleTown) -> None:
    pull = place.opened(8, "hubot")
    await place.scan()
    await place.scan(days=3)
    with place.days_ago(0):
        pull.comment("hubot", "Tomorrow.")
    await place.town.quiet()
    await place.scan(days=6.9)
    assert len(place.reminders(pull)) == 1
    await place.scan(days=0.2)
    assert len(place.reminders(pull)) == 2
    assert "for 7 days" in place.reminders(pull)[1]
