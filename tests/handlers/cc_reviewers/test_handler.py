"""Whom to ask for a review, decided from plain data."""

from __future__ import annotations

import pytest

from bot.github.mentions import Ccs
from handlers.cc_reviewers.handler import MOST, KnownReviewers, decide_reviewers

NOBODY = KnownReviewers(author="hubot", asked_before=(), reviewed=())


@pytest.mark.parametrize(
    ("users", "teams", "known", "asked"),
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
        "not who was asked",
        "not who has reviewed",
        "not the bot",
        "no team twice",
        "a team is no person",
    ],
)
def test_who_is_asked(
    users: tuple[str, ...], teams: tuple[str, ...], known: KnownReviewers, asked: tuple[str, ...]
) -> None:
    decided = decide_reviewers(Ccs(users=users, teams=teams), known)
    assert (*decided.users, *decided.teams) == asked


def test_no_more_are_asked_than_github_takes_and_people_come_before_teams() -> None:
    users = tuple(f"person-{number}" for number in range(MOST - 1))
    decided = decide_reviewers(Ccs(users=users, teams=("example-lab/gpu", "example-lab/cpu")), NOBODY)
    assert decided == Ccs(users=users, teams=("example-lab/gpu",))
