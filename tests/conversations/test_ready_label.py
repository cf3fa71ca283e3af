"""The label on pull requests that could be merged right away: added, removed, and always correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from sandbox import PullRequest
from tests.conversations.merges import KEYS, approve, merge_town, ready, report, says
from tests.conversations.town import BOT, Town
from tests.waiting import until

PULL = "/repos/{owner}/{repo}/pulls/{pull_number}"
LABEL = "ready-for-merge"
WITH_LABEL = f"{KEYS}, label: {LABEL}"


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", WITH_LABEL) as town:
        yield town


def labels(pull: PullRequest) -> list[str]:
    return [label.name for label in pull.labels]


def action_counts(town: Town) -> Counter[str]:
    """Return how often the bot added and removed labels."""
    labelings = [
        delivery
        for delivery in town.github.webhooks.deliveries
        if delivery.event == "pull_request" and "label" in delivery.body
    ]
    return Counter(str(delivery.action) for delivery in labelings if delivery.body["sender"]["login"] == BOT)


async def test_the_label_comes_once_the_pull_request_is_ready_and_a_push_removes_it(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    pull.label("hubot", "docs")
    report(town, pull, "pending")
    approve(pull)
    await town.quiet()
    assert labels(pull) == ["docs"]
    report(town, pull)
    await town.quiet()
    assert labels(pull) == ["docs", LABEL]
    pull.push()
    await town.quiet()
    assert labels(pull) == ["docs"]
    report(town, pull)
    approve(pull)
    await town.quiet()
    assert labels(pull) == ["docs", LABEL]
    assert action_counts(town) == {"labeled": 2, "unlabeled": 1}
    assert town.answers(pull) == []


async def test_an_obstacle_removes_the_label_and_its_end_adds_it_again(town: Town) -> None:
    pull = ready(town)
    await town.quiet()
    assert labels(pull) == [LABEL]
    steps: list[tuple[Callable[[], object], list[str]]] = [
        (lambda: report(town, pull, "pending"), []),
        (lambda: report(town, pull), [LABEL]),
        (lambda: report(town, pull, "failure", "gpu/pr-head"), []),
        (lambda: report(town, pull, "success", "gpu/pr-head"), [LABEL]),
        (lambda: pull.label("reader", "hold"), ["hold"]),
        (lambda: pull.unlabel("reader", "hold"), [LABEL]),
        (lambda: pull.convert_to_draft("hubot"), []),
        (lambda: pull.ready_for_review("hubot"), [LABEL]),
        (lambda: pull.review("octocat", "Wait.", "CHANGES_REQUESTED"), []),
        (lambda: pull.dismiss_review("octocat", pull.reviews[-1]), []),
        (lambda: approve(pull), [LABEL]),
        (lambda: pull.close("hubot"), []),
        (lambda: pull.reopen("hubot"), [LABEL]),
    ]
    for happens, expected in steps:
        happens()
        await town.quiet()
        assert labels(pull) == expected


async def test_a_label_that_somebody_else_adds_or_removes_is_corrected_once(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    pull.label("hubot", LABEL.upper())
    await town.quiet()
    assert labels(pull) == []
    report(town, pull)
    approve(pull)
    await town.quiet()
    town.github.clock.advance(seconds=1)
    pull.unlabel("octocat", LABEL)
    await town.quiet()
    assert labels(pull) == [LABEL.upper()], "a label keeps the letter case of its creation"
    assert action_counts(town) == {"labeled": 2, "unlabeled": 1}


async def test_a_merge_removes_the_label(town: Town) -> None:
    pull = ready(town)
    assert (await says(town, pull, "@ci merge")).startswith("eyes +1")
    assert (pull.state, labels(pull)) == ("closed", [])


async def test_the_checks_of_an_unapproved_pull_request_cost_nothing(town: Town) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    town.github.requests.clear()
    report(town, pull, "pending")
    report(town, pull)
    town.repo.add_workflow_run(pull.head_sha, "CI", "success", {str(n): "success" for n in range(9)})
    pull.label("hubot", "docs")
    pull.review("reader", "Hm.")
    await town.quiet()
    assert town.github.requests.of_installation == []


async def test_a_burst_of_checks_causes_one_more_refresh(town: Town) -> None:
    """A scan sees every event before it begins; the next scan sees all events that arrive during it."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    report(town, pull, "pending")
    approve(pull)
    await town.quiet()
    town.github.requests.clear()
    held = town.github.faults.pause("GET", PULL, when="before")
    report(town, pull, context="first/pr-head")
    await held.reached.wait()
    for n in range(40):
        report(town, pull, context=f"{n}/pr-head")
    report(town, pull)
    await town.github.delivered()

    async def events_are_settled() -> bool:
        recent = await town.bot.engine.journal.recent(limit=500)
        return all(record.settled for record in recent if record.event == "status")

    await until(events_are_settled)
    held.resume()
    await town.quiet()
    assert labels(pull) == [LABEL]
    assert town.github.requests.count("GET", PULL) == 2
