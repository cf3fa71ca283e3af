"""Which workflow runs a command on a pull request may start, for every kind of run that a commit may have."""

from __future__ import annotations

from typing import Any

import pytest

from bot.ci.restarts import PullOrigin, why_not_own, why_not_restart
from bot.ci.texts import AWAITS_APPROVAL, NO_FORK
from bot.core.events import Payload

BASE, FORK, OTHER_FORK = 1, 2, 3
FROM_FORK = PullOrigin(12, BASE, "main", FORK, "fast")
FROM_HERE = PullOrigin(12, BASE, "release/1.0", BASE, "main")
FORK_DELETED = PullOrigin(12, BASE, "main", 0, "fast")


def run(event: str, repository: int | None, branch: str | None, conclusion: str = "failure") -> Payload:
    home: Any = None if repository is None else {"id": repository}
    return Payload({"event": event, "head_repository": home, "head_branch": branch, "conclusion": conclusion})


@pytest.mark.parametrize(
    ("origin", "workflow_run"),
    [
        (FROM_FORK, run("pull_request", FORK, "fast")),
        (FROM_FORK, run("pull_request", FORK, "fast", "cancelled")),
        (FROM_FORK, run("pull_request", FORK, "fast", "")),
        (FROM_HERE, run("pull_request", BASE, "main")),
        (FROM_FORK, run("merge_group", BASE, "gh-readonly-queue/main/pr-12-0123abc")),
    ],
)
def test_the_pull_requests_own_runs_may_be_started(origin: PullOrigin, workflow_run: Payload) -> None:
    assert why_not_restart(workflow_run, origin) == ""


@pytest.mark.parametrize(
    "event",
    [
        "push",
        "schedule",
        "workflow_dispatch",
        "repository_dispatch",
        "release",
        "deployment",
        "deployment_status",
        "pull_request_target",
        "pull_request_review",
        "workflow_run",
        "issue_comment",
        "dynamic",
        "an event that GitHub adds next year",
    ],
)
def test_runs_of_other_events_are_left_alone_even_on_the_pull_requests_own_branch(event: str) -> None:
    assert why_not_restart(run(event, FORK, "fast"), FROM_FORK) == (
        f"it was started by `{event}`, and I restart only runs that a pull request started"
    )


@pytest.mark.parametrize(
    ("origin", "workflow_run"),
    [
        (FROM_FORK, run("pull_request", BASE, "main")),
        (FROM_FORK, run("pull_request", BASE, "fast")),
        (FROM_FORK, run("pull_request", OTHER_FORK, "fast")),
        (FROM_FORK, run("pull_request", FORK, "slow")),
        (FROM_FORK, run("pull_request", FORK, None)),
        (FROM_HERE, run("pull_request", FORK, "main")),
        (FROM_FORK, run("merge_group", BASE, "gh-readonly-queue/main/pr-120-0123abc")),
        (FROM_FORK, run("merge_group", BASE, "gh-readonly-queue/release/pr-12-0123abc")),
        (FROM_FORK, run("merge_group", FORK, "gh-readonly-queue/main/pr-12-0123abc")),
        (FROM_FORK, run("merge_group", BASE, "fast")),
    ],
)
def test_a_run_of_another_branch_or_repository_is_left_alone(origin: PullOrigin, workflow_run: Payload) -> None:
    assert "not to this pull request" in why_not_restart(workflow_run, origin)


@pytest.mark.parametrize(
    ("origin", "workflow_run"),
    [
        (FORK_DELETED, run("pull_request", None, "fast")),
        (FORK_DELETED, run("pull_request", FORK, "fast")),
        (FROM_FORK, run("pull_request", None, "fast")),
    ],
)
def test_after_a_fork_is_deleted_no_run_is_known_to_belong_to_it(origin: PullOrigin, workflow_run: Payload) -> None:
    assert why_not_restart(workflow_run, origin) == NO_FORK


def test_a_run_that_waits_for_approval_belongs_to_the_pull_request_but_is_not_started() -> None:
    waiting = run("pull_request", FORK, "fast", "action_required")
    assert why_not_own(waiting, FROM_FORK) == ""
    assert why_not_restart(waiting, FROM_FORK) == AWAITS_APPROVAL


def test_the_name_of_a_branch_has_no_effect_in_an_answer() -> None:
    reason = why_not_restart(run("pull_request", BASE, "@octocat`x"), FROM_FORK)
    assert reason == "it belongs to branch ``@octocat`x``, not to this pull request"
