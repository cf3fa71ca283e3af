"""What each feature costs: every request to GitHub, counted, except tokens and the App's own lookups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from sandbox import PullRequest
from tests.conversations.town import Town, Works

Step = Callable[[Works, PullRequest], object]

REPO = "/repos/{owner}/{repo}"
PULL = f"GET {REPO}/pulls/{{pull_number}}"
ROLE = f"GET {REPO}/collaborators/{{username}}/permission"
REACT = f"POST {REPO}/issues/comments/{{comment_id}}/reactions"
COMMENTS, COMMENT = f"GET {REPO}/issues/{{issue_number}}/comments", f"POST {REPO}/issues/{{issue_number}}/comments"
STATUSES, STATUS = f"GET {REPO}/commits/{{ref}}/status", f"POST {REPO}/statuses/{{sha}}"
RUNS, CHECKS = f"GET {REPO}/actions/runs", f"GET {REPO}/commits/{{ref}}/check-runs"
RUN, RERUN_FAILED = f"GET {REPO}/actions/runs/{{run_id}}", f"POST {REPO}/actions/runs/{{run_id}}/rerun-failed-jobs"
RERUN = f"POST {REPO}/actions/runs/{{run_id}}/rerun"
REVIEWS = f"GET {REPO}/pulls/{{pull_number}}/reviews"
SETTINGS = f"GET {REPO}/contents/{{path}}"
REQUESTED, REQUEST = (f"{method} {REPO}/pulls/{{pull_number}}/requested_reviewers" for method in ("GET", "POST"))

SCAN_CI = {RUNS: 1, CHECKS: 1, STATUSES: 1}
DONE = {PULL: 1, ROLE: 1, REACT: 2}
"""The bot reacts and sets a status. It writes no comment."""
ANSWERED = {**DONE, COMMENTS: 1, COMMENT: 1}
"""Priorities and limits depend on the role of the commenter, which the bot caches for 45 seconds."""


def many_failed(site: Works, pull: PullRequest) -> None:
    for name in ("CI", "Docs", "Lint"):
        site.town.repo.add_workflow_run(pull.head_sha, name, "failure", {f"{name}-{n}": "failure" for n in range(9)})
    site.job(pull, "gpu", "FAILURE")


def ended_well(site: Works, pull: PullRequest) -> None:
    site.town.repo.add_workflow_run(pull.head_sha, "CI", "success", {str(n): "success" for n in range(9)})
    site.town.repo.add_workflow_run(pull.head_sha, "Docs", "success")


def says(text: str, commenter: str = "hubot") -> Step:
    return lambda site, pull: pull.comment(commenter, text)


def nothing(site: Works, pull: PullRequest) -> None:
    """Prepare nothing."""


TABLE: dict[str, tuple[Step, Step, dict[str, int]]] = {
    "a push": (nothing, lambda site, pull: pull.push(), {STATUSES: 1, STATUS: 1, SETTINGS: 1}),
    "a comment that calls nobody": (nothing, says("Nice."), {}),
    "a typo by somebody who may run nothing": (nothing, says("@ci rnu", "reader"), {PULL: 1, ROLE: 1}),
    "help, by the author": (nothing, says("@ci help"), ANSWERED),
    "help, by somebody else": (nothing, says("@ci help", "triager"), ANSWERED),
    "five commands in one comment": (
        nothing,
        says("@ci help\n@ci commands\n@ci rnu\n@ci skip slow\n@ci help me"),
        ANSWERED | {STATUSES: 1, STATUS: 1},
    ),
    "run slow tests before CI began": (
        nothing,
        says("@ci run slow tests"),
        DONE | SCAN_CI | {STATUSES: 2, STATUS: 1},
    ),
    "run slow tests after two workflows ended": (
        ended_well,
        says("@ci run slow tests"),
        ANSWERED | SCAN_CI | {STATUSES: 2, STATUS: 1, RUN: 2, RERUN: 2},
    ),
    "skip slow tests": (
        lambda site, pull: pull.comment("hubot", "@ci run slow tests"),
        says("@ci skip slow tests"),
        {PULL: 1, REACT: 2, STATUSES: 1, STATUS: 1},
    ),
    "rerun where nothing ran": (nothing, says("@ci rerun"), ANSWERED | SCAN_CI),
    "rerun of three workflows with nine failed jobs each, and a Jenkins job": (
        many_failed,
        says("@ci rerun"),
        ANSWERED | SCAN_CI | {RUN: 3, RERUN_FAILED: 3},
    ),
    "a switch and two reruns in one comment": (
        many_failed,
        says("@ci run slow tests\n@ci rerun ci\n@ci rerun docs"),
        ANSWERED | SCAN_CI | {STATUSES: 2, STATUS: 1, RUN: 3, RERUN: 3},
    ),
    "cc of three people": (
        nothing,
        lambda site, pull: pull.edit("hubot", body="cc @octocat, @triager and @reader"),
        {REVIEWS: 1, REQUESTED: 1, REQUEST: 1},
    ),
    "cc of three people, one without access": (
        nothing,
        lambda site, pull: pull.edit("hubot", body="cc @octocat, @triager and @stranger"),
        {REVIEWS: 1, REQUESTED: 1, REQUEST: 4, COMMENTS: 1, COMMENT: 1},
    ),
    "a push after a cc": (
        lambda site, pull: pull.edit("hubot", body="cc @octocat and @stranger"),
        lambda site, pull: pull.push(),
        {STATUSES: 1, STATUS: 1, SETTINGS: 1},
    ),
}


async def cost(town: Town, step: Callable[[], object]) -> Counter[str]:
    """Return the requests that a step causes, by method and route."""
    await town.started()
    await town.quiet()
    town.github.requests.clear()
    step()
    await town.quiet()
    return Counter(f"{r.method} {r.route}" for r in town.github.requests.of_installation)


@pytest.mark.parametrize("scenario", TABLE)
async def test_each_request_is_accounted_for(site: Works, scenario: str) -> None:
    prepare, step, expected = TABLE[scenario]
    pull = site.town.repo.open_pull_request("hubot", "Faster")
    prepare(site, pull)
    assert await cost(site.town, lambda: step(site, pull)) == expected


async def test_opening_a_pull_request_reads_twice_and_writes_once(town: Town) -> None:
    opened = await cost(town, lambda: town.repo.open_pull_request("hubot", "Faster"))
    town.github.requests.clear()
    # At its very first event, the bot looks up its own account, once.
    scans = {STATUSES: 1, STATUS: 1, SETTINGS: 1}
    assert opened == scans | {"GET /users/{username}": 1}
    assert await cost(town, lambda: town.repo.open_pull_request("hubot", "Faster")) == scans


async def test_a_description_that_asks_for_slow_tests_writes_one_status(town: Town) -> None:
    """The command is processed before the opening's status, which then has nothing left to write."""
    react = f"POST {REPO}/issues/{{issue_number}}/reactions"
    town.repo.open_pull_request("hubot", "First")
    opened = await cost(town, lambda: town.repo.open_pull_request("hubot", "Faster", "@ci run slow tests"))
    expected = {PULL: 1, ROLE: 1, react: 2, **SCAN_CI, STATUSES: 3, STATUS: 1, SETTINGS: 1}
    assert opened == expected


async def test_other_events_cost_nothing(town: Town) -> None:
    """Statuses, checks, workflow runs, labels, pushes to other branches, and the bot's own comments."""
    pull = town.repo.open_pull_request("hubot", "Faster")

    def noise() -> None:
        town.repo.set_status("octocat", pull.head_sha, "ci", "success")
        town.repo.add_workflow_run(pull.head_sha, "CI", "failure")
        town.repo.push("feature", by="hubot")
        town.repo.open_issue("hubot", "Slow", "@ci help\ncc @octocat")
        pull.label("hubot", "faster")
        pull.comment("nightjar[bot]", "@ci help")

    assert await cost(town, noise) == {}


async def test_a_busy_pull_request_needs_one_token_per_kind_of_permission(site: Works) -> None:
    """Tokens are cached for 55 minutes: after the first of its kind, no event creates another."""
    town, tokens = site.town, "/app/installations/{installation_id}/access_tokens"
    pull = town.repo.open_pull_request("hubot", "Faster", "cc @octocat")
    many_failed(site, pull)
    await town.quiet()

    pull.comment("hubot", "@ci run slow tests\n@ci rerun")
    await town.quiet()
    levels = [token.permissions.items() for token in town.github.tokens.all]
    writing = [
        written for permissions in levels if (written := [name for name, level in permissions if level == "write"])
    ]
    assert sorted(writing) == [["actions"], ["issues", "pull_requests"], ["pull_requests"], ["statuses"]]
    token_count = town.github.requests.count("POST", tokens)
    for _ in range(3):
        pull.push()
        pull.comment("hubot", "@ci rerun")
        await town.quiet()
    assert town.github.requests.count("POST", tokens) == token_count
