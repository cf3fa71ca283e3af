"""Reminders: one per period, whoever applies it and however often, and none once it is obsolete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from handlers.stale_reviews.effects import MARKER, Remind
from handlers.stale_reviews.records import REMINDED_AT, Reminded
from sandbox.clock import iso
from sandbox.github import GitHubSandbox
from sandbox.model.pulls import PullRequest
from tests.handlers.driver import World, a_world

BOT = "nightjar[bot]"
COMMENT = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
DAY = timedelta(days=1)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


@contextmanager
def days_ago(github: GitHubSandbox, days: float) -> Iterator[None]:
    """Date people's actions in the block some days ago."""
    github.clock.advance(days=-days)
    yield
    github.clock.advance(days=days)


def waiting(world: World) -> PullRequest:
    with days_ago(world.github, 8):
        return world.open()


def reminder(world: World, pull: PullRequest, days: float = 7) -> Remind:
    return Remind(pull.number, "@hubot: please review it.", iso(world.github.clock.now() - days * DAY))


async def applied_text(world: World, effect: Remind) -> str:
    return (await world.apply_alone(effect)).text


def said(pull: PullRequest) -> list[str]:
    return [comment.body for comment in pull.comments_by(BOT)]


async def test_people_are_reminded_in_a_separate_comment(world: World) -> None:
    pull = waiting(world)
    effect = reminder(world, pull)
    assert await applied_text(world, effect) == f"reminded the reviewers of #{pull.number}"
    assert said(pull) == [f"{MARKER}\n@hubot: please review it."]
    (comment,) = pull.comments_by(BOT)
    assert await world.records.get(REMINDED_AT.of(world.repository.id, pull.number)) == Reminded(
        iso(comment.created_at)
    )


async def test_a_period_has_one_reminder(world: World) -> None:
    pull = waiting(world)
    for _ in range(3):
        text = await applied_text(world, reminder(world, pull))
    assert text == f"the reviewers of #{pull.number} were already reminded"
    assert len(said(pull)) == 1


async def test_the_next_period_has_the_next_reminder(world: World) -> None:
    pull = waiting(world)
    with days_ago(world.github, 7.5):
        comment = pull.comment(BOT, f"{MARKER}\n@hubot: please review it.")
    await world.records.put(REMINDED_AT.of(world.repository.id, pull.number), Reminded(iso(comment.created_at)))
    assert await applied_text(world, reminder(world, pull)) == f"reminded the reviewers of #{pull.number}"
    assert len(said(pull)) == 2


@pytest.mark.parametrize("lost", ["the answer", "the record"])
async def test_after_a_crash_the_comment_is_not_posted_twice(world: World, lost: str) -> None:
    pull = waiting(world)
    effect = reminder(world, pull)
    if lost == "the answer":
        world.github.faults.add("POST", COMMENT, status=502, when="after")
        with pytest.raises(Exception, match="502"):
            await applied_text(world, effect)
    else:
        await applied_text(world, effect)
        await world.records.remove(REMINDED_AT.of(world.repository.id, pull.number))
    assert await applied_text(world, effect) == f"the reviewers of #{pull.number} were already reminded"
    assert len(said(pull)) == 1
    request_count = len(world.github.requests.records)
    assert await applied_text(world, effect) == f"the reviewers of #{pull.number} were already reminded"
    assert len(world.github.requests.records) == request_count, "a stored comment is not looked up"


async def test_an_obsolete_reminder_is_not_posted(world: World) -> None:
    drafted, closed, busy = (waiting(world) for _ in range(3))
    drafted.convert_to_draft("octocat")
    closed.close("octocat")
    busy.comment("hubot", "I am at it.")
    assert [await applied_text(world, reminder(world, pull)) for pull in (drafted, closed, busy)] == [
        f"no review of #{drafted.number} is pending",
        f"no review of #{closed.number} is pending",
        f"#{busy.number} has had activity since",
    ]
    assert [said(pull) for pull in (drafted, closed, busy)] == [[], [], []]


async def test_comments_of_bots_and_of_people_who_quote_us_are_no_reminders(world: World) -> None:
    pull = waiting(world)
    world.github.user("dependabot[bot]").type = "Bot"
    with days_ago(world.github, 8):
        old = pull.comment("hubot", f"{MARKER}\nold")
    pull.edit_comment(old, f"{MARKER}\nstill old, though it was edited now")
    pull.comment("dependabot[bot]", MARKER)
    pull.comment(BOT, f"Look: {MARKER}")
    assert await applied_text(world, reminder(world, pull)) == f"reminded the reviewers of #{pull.number}"


async def test_a_reminder_costs_three_requests(world: World) -> None:
    first_pull, pull = waiting(world), waiting(world)
    await applied_text(world, reminder(world, first_pull))  # looks up the bot's own account, once
    world.github.requests.clear()
    await applied_text(world, reminder(world, pull))
    requests = [f"{request.method} {request.route}" for request in world.github.requests.of_installation]
    assert requests == ["GET /repos/{owner}/{repo}/pulls/{pull_number}", f"GET {COMMENT}", f"POST {COMMENT}"]
