"""The people to ask for a review, decided from plain data."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.events import Delivery, Payload
from bot.github.text.mentions import Ccs
from handlers.cc_reviewers.effects import reviewers_refused_text
from handlers.cc_reviewers.handler import MOST, NAME, KnownReviewers, decide_reviewers
from handlers.cc_reviewers.records import REVIEWERS, ReviewRequests
from tests.handlers.driver import a_world

NOBODY = KnownReviewers(author="hubot", asked_before=(), reviewed=())


@pytest.mark.parametrize(
    ("users", "teams", "pull_reviewers", "expected"),
    [
        (("octocat", "triager"), ("example-lab/gpu",), NOBODY, ("octocat", "triager", "example-lab/gpu")),
        (("Hubot", "octocat"), (), NOBODY, ("octocat",)),
        (("OctoCat", "triager"), (), KnownReviewers("hubot", {"octocat"}, ()), ("triager",)),
        (("OctoCat", "triager"), (), KnownReviewers("hubot", (), {"octocat"}), ("triager",)),
        (("CI", "triager"), (), KnownReviewers("hubot", (), (), {"ci"}), ("triager",)),
        ((), ("Example-Lab/GPU",), KnownReviewers("hubot", {"example-lab/gpu"}, ()), ()),
        (("octocat",), ("octocat/octocat",), KnownReviewers("hubot", {"octocat"}, ()), ("octocat/octocat",)),
    ],
    ids=[
        "all",
        "not the author",
        "nobody requested before",
        "nobody who has reviewed",
        "not the bot",
        "no team twice",
        "a team is not taken for a person",
    ],
)
def test_reviewers_to_request(
    users: tuple[str, ...], teams: tuple[str, ...], pull_reviewers: KnownReviewers, expected: tuple[str, ...]
) -> None:
    decided = decide_reviewers(Ccs(users=users, teams=teams), pull_reviewers)
    assert (*decided.users, *decided.teams) == expected


def test_no_more_are_requested_than_github_allows_and_people_come_before_teams() -> None:
    users = tuple(f"person-{number}" for number in range(MOST - 1))
    decided = decide_reviewers(Ccs(users=users, teams=("example-lab/gpu", "example-lab/cpu")), NOBODY)
    assert decided == Ccs(users=users, teams=("example-lab/gpu",))


async def test_a_push_plans_nothing_if_the_comment_already_names_a_hidden_team(tmp_path: Path) -> None:
    team = ("example-lab/gpu",)
    async with a_world(tmp_path) as world:
        pull = world.open("cc @example-lab/gpu")
        requests = ReviewRequests(frozenset(team), team, reviewers_refused_text(team, team), hidden=team)
        await world.records.put(REVIEWERS.of(world.repository.id, pull.number), requests)
        world.github.webhooks.held.clear()
        pull.push({"a.py": "1"})
        (sent,) = [delivery for delivery in world.github.webhooks.held if delivery.event == "pull_request"]
        plan = await world.pipeline.plan(Delivery(sent.guid, sent.event, Payload(sent.body), 0.0), NAME, "intent")
    assert (plan.effects, plan.conclusion_basis) == ((), None)
