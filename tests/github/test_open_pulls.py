"""The last activity by a person on a pull request, and its reviewers, read from GitHub's answer."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.events import Payload, Person
from handlers.stale_reviews.open_pulls import MOST_PAGES, moment, open_pulls, pull_of
from tests.github.scripted import Say, ScriptedGitHub
from tests.github.support import INSTALLATION, Apps, client_of

HUMAN = {"__typename": "User", "login": "hubot", "databaseId": 2}
BOT = {"__typename": "Bot", "login": "nightjar"}
OPENED = "2026-11-01T00:00:00Z"
LATER, LAST = "2026-11-02T00:00:00Z", "2026-11-09T00:00:00Z"


def node(*happened: Any, cut: bool = False, **members: Any) -> dict[str, Any]:
    """Return a pull request that octocat opened with a commit of the same time."""
    return {
        "number": 7,
        "isDraft": False,
        "locked": True,
        "createdAt": OPENED,
        "updatedAt": LAST,
        "lastEditedAt": None,
        "author": {"__typename": "User", "login": "octocat", "databaseId": 1},
        "editor": None,
        "commits": {"nodes": [commit(OPENED)]},
        "reviewRequests": {"nodes": []},
        "latestReviews": {"nodes": []},
        "timelineItems": {"pageInfo": {"hasPreviousPage": cut}, "nodes": list(happened)},
        **members,
    }


def commit(date: str | None, name: str | None = "octocat") -> dict[str, Any]:
    return {"commit": {"committedDate": date, "author": {"name": name}}}


def act(created_at: str, author: Any, edited: str | None = None) -> dict[str, Any]:
    return {"createdAt": created_at, "by": author, "lastEditedAt": edited}


@pytest.mark.parametrize(
    ("pull", "active_at"),
    [
        (node(), OPENED),
        (node(act(LATER, HUMAN)), LATER),
        (node(act(LATER, HUMAN), act(LAST, BOT)), LATER),
        (node(act(LATER, {"__typename": "Mannequin", "login": "x"})), OPENED),
        (node(act(LATER, None)), LATER),
        (node(act(OPENED, HUMAN, edited=LATER)), LATER),
        (node(act(OPENED, BOT, edited=LATER)), OPENED),
        ({**node(), "commits": {"nodes": [commit(LATER)]}}, LATER),
        ({**node(), "commits": {"nodes": [commit(LATER, "pre-commit-ci[bot]")]}}, OPENED),
        ({**node(), "commits": {"nodes": [commit("2099-01-01T00:00:00Z")]}}, LAST),
        ({**node(), "commits": {"nodes": [commit("2020-01-01T00:00:00Z")]}}, OPENED),
        ({**node(), "commits": {"nodes": [commit(None, None)]}}, OPENED),
        ({**node(), "commits": {"nodes": []}}, OPENED),
        (node(lastEditedAt=LATER, editor=HUMAN), LATER),
        (node(lastEditedAt=LATER, editor=None), LATER),
        (node(lastEditedAt=LATER, editor=BOT), OPENED),
        (node(act(LATER, BOT), act(LAST, BOT), cut=True), LATER),
        (node(act(OPENED, BOT), act(LATER, HUMAN), act(LAST, BOT), cut=True), LATER),
        (node(author=None), OPENED),
    ],
    ids=[
        "opened",
        "a person's comment or review (TVM #10208)",
        "a bot's comment does not count",
        "a mannequin's comment does not count",
        "a deleted account may have been a person (TVM's null author)",
        "an edited comment",
        "a bot's edit does not count",
        "a push",
        "a bot's push does not count",
        "a push in the future counts as the last update",
        "an old commit",
        "a commit without author or date",
        "no commit",
        "an edit of the text",
        "an edit by a deleted account",
        "a bot's edit of the text does not count",
        "an omitted comment may be a person's",
        "an omitted comment is older than the others",
        "opened by a deleted account",
    ],
)
def test_the_last_activity_by_a_person(pull: dict[str, Any], active_at: str) -> None:
    assert pull_of(Payload(pull)).active_at == moment(active_at)


def test_who_was_requested_and_who_has_reviewed() -> None:
    requested: list[Any] = [HUMAN, {"combinedSlug": "example-lab/gpu"}, BOT, None]
    reviewed: list[Any] = [None, {"__typename": "User", "login": "triager", "databaseId": 3}, BOT]
    pull = pull_of(
        Payload(
            node(
                reviewRequests={"nodes": [{"requestedReviewer": reviewer} for reviewer in requested]},
                latestReviews={"nodes": [{"author": reviewer} for reviewer in reviewed]},
            )
        )
    )
    assert (pull.is_draft, pull.is_locked) == (False, True)
    assert pull.author == Person(1, "octocat", is_bot=False)
    assert pull.requested == (Person(2, "hubot", is_bot=False),)
    assert pull.teams == ("example-lab/gpu",)
    assert pull.reviewed == (Person(3, "triager", is_bot=False),)


def page(*numbers: int, cursor: str | None = None) -> dict[str, Any]:
    info = {"hasNextPage": cursor is not None, "endCursor": cursor}
    nodes = [{**node(), "number": number} for number in numbers]
    return {"repository": {"pullRequests": {"pageInfo": info, "nodes": nodes}}}


async def test_pages_are_followed_to_the_last(scripted: ScriptedGitHub, make_app: Apps) -> None:
    """TVM #10807: only the first page was read."""
    github = client_of(make_app(), INSTALLATION)
    scripted.will("POST", "/graphql", *(Say(body={"data": data}) for data in (page(1, 2, cursor="a"), page(3))))
    assert [pull.number for pull in await open_pulls(github, "octocat/compiler")] == [1, 2, 3]
    variables = [request.json["variables"] for request in scripted.requests_for("POST", "/graphql")]
    assert variables == [{"owner": "octocat", "name": "compiler", "after": cursor} for cursor in (None, "a")]


async def test_the_number_of_pages_is_limited(scripted: ScriptedGitHub, make_app: Apps) -> None:
    github = client_of(make_app(), INSTALLATION)
    scripted.will("POST", "/graphql", *(Say(body={"data": page(1, cursor="a")}) for _ in range(MOST_PAGES + 1)))
    assert len(await open_pulls(github, "octocat/compiler")) == MOST_PAGES
