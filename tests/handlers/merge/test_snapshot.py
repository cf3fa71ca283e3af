"""The merge state of a pull request, read from GitHub: rules, protection, reviews, and people's access."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.github.client import GitHub
from bot.github.commits.ours import Ours
from handlers.merge.readiness import BranchRules, MergeState, RequiredCheck
from handlers.merge.snapshot import MOST_REVIEWERS, merge_state_of, rules_of
from sandbox import PullRequest
from sandbox.model.rules import Rules
from tests.handlers.driver import FULL_NAME, World, a_world

ROLE = "/repos/{owner}/{repo}/collaborators/{username}/permission"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


@pytest.fixture
async def github(world: World) -> GitHub:
    app = world.pipeline.app
    return await app.reader(FULL_NAME)


async def stands(github: GitHub, pull: PullRequest) -> MergeState:
    return await merge_state_of(github, FULL_NAME, pull.number, Ours(app_id=-1, user_id=-1))


@pytest.mark.parametrize(
    ("ruleset", "classic", "expected"),
    [
        (Rules(), (), BranchRules()),
        (Rules(required={"cpu": None}), (), BranchRules((RequiredCheck("cpu"),))),
        (Rules(required={"cpu": 15368}), ("cpu",), BranchRules((RequiredCheck("cpu", 15368), RequiredCheck("cpu")))),
        (Rules(required={"cpu": None}), ("cpu", "gpu"), BranchRules((RequiredCheck("cpu"), RequiredCheck("gpu")))),
        (
            Rules(approvals=2, methods=("squash",), queue=True),
            (),
            BranchRules(approvals=2, methods=("squash",), queue=True),
        ),
    ],
)
async def test_rules_and_classic_protection_are_combined(
    world: World, github: GitHub, ruleset: Rules, classic: tuple[str, ...], expected: BranchRules
) -> None:
    world.repository.rules["main"] = ruleset
    if classic:
        world.repository.protect("main", *classic)
    assert await rules_of(github, FULL_NAME, "main") == expected


async def test_for_a_removed_branch_only_rules_remain(world: World, github: GitHub) -> None:
    world.repository.rules["removed"] = Rules(required={"cpu": None})
    assert await rules_of(github, FULL_NAME, "removed") == BranchRules((RequiredCheck("cpu"),))


@pytest.mark.parametrize("status", [403, 404])
async def test_without_rulesets_only_classic_protection_counts(world: World, github: GitHub, status: int) -> None:
    world.github.faults.add("GET", "/repos/{owner}/{repo}/rules/branches/{branch}", status=status, message="Upgrade")
    world.repository.protect("main", "cpu")
    assert await rules_of(github, FULL_NAME, "main") == BranchRules((RequiredCheck("cpu"),))


async def test_nothing_else_is_read_for_a_closed_pull_request(world: World, github: GitHub) -> None:
    pull = world.open()
    pull.merge("octocat")
    world.github.requests.clear()
    merge_state = await stands(github, pull)
    assert (merge_state.merged, merge_state.pull.is_open, merge_state.signals) == (True, False, ())
    assert world.github.requests.count("GET") == 1


@pytest.mark.parametrize("undecided", [0, 1])
async def test_what_github_has_not_determined_is_unknown(world: World, github: GitHub, undecided: int) -> None:
    pull = world.open()
    pull.undecided = undecided
    pull.label("hubot", "Hold")
    merge_state = await stands(github, pull)
    assert (merge_state.mergeable, merge_state.labels) == (None if undecided else True, ("Hold",))


async def test_reviewers_access_is_looked_up_by_account_id(world: World, github: GitHub) -> None:
    """TVM #11480, #12295: its script searched for a name, and compared it with what is not a name."""
    world.repository.set_role("mona", "write")
    pull = world.repository.open_pull_request("hubot")
    for login in ("mona", "hubot", "octocat", "somebody"):
        pull.review(login, state="APPROVED")
    world.github.users["octocat2"] = world.github.users.pop("mona")
    world.github.users["octocat2"].login = "octocat2"
    world.github.user("mona")
    merge_state = await stands(github, pull)
    assert [(review.author, review.may_write) for review in merge_state.reviews] == [
        ("octocat2", True),
        ("hubot", False),
        ("octocat", True),
        ("somebody", False),
    ]


async def test_reviewers_with_deleted_accounts_are_ignored(world: World, github: GitHub) -> None:
    pull = world.open()
    pull.review("hubot", state="APPROVED")
    world.github.user("hubot").deleted = True
    (review,) = (await stands(github, pull)).reviews
    assert (review.author_id, review.author, review.may_write) == (0, "ghost", False)


async def test_only_a_limited_number_of_reviewers_with_an_opinion_are_looked_up(world: World, github: GitHub) -> None:
    """Anybody may request changes in a public repository."""
    pull = world.open()
    pull.review("hubot", "Hm.")
    for n in range(MOST_REVIEWERS + 5):
        pull.review(f"passer-by-{n}", state="CHANGES_REQUESTED")
    world.repository.set_role("mona", "admin")
    pull.review("mona", state="APPROVED")
    merge_state = await stands(github, pull)
    assert world.github.requests.count("GET", ROLE) == MOST_REVIEWERS
    may_write: dict[str, Any] = {review.author: review.may_write for review in merge_state.reviews}
    assert may_write["mona"], "people who approved the head are looked up first"
    assert not may_write["hubot"]
    assert sum(may_write[name] for name in may_write if name.startswith("passer-by")) == 6, "no objection is ignored"
