"""Which workflow runs of a commit count, and which check runs belong to them."""

from typing import Any

from bot.ci.actions import newest
from bot.core.events import Payload


def run(number: int, workflow: int, event: str = "pull_request", branch: str | None = "fast") -> Payload:
    return Payload({"id": number, "workflow_id": workflow, "event": event, "head_branch": branch})


def ids(runs: list[Payload]) -> list[Any]:
    return [workflow_run.integer("id") for workflow_run in runs]


def test_an_older_run_of_the_same_workflow_and_event_is_superseded() -> None:
    assert ids(newest([run(5, 1), run(9, 1), run(7, 1)])) == [9]


def test_other_workflows_events_and_branches_count_separately() -> None:
    runs = [run(1, 1), run(2, 2), run(3, 1, event="push"), run(4, 1, branch="other"), run(5, 1, branch=None)]
    assert ids(newest(runs)) == [1, 2, 3, 4, 5]
