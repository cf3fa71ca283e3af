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
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    async with merge_town(f"sqlite:///{tmp_path}/nightjar.db", WITH_LABEL) as place:
        yield place


def labels(pull: PullRequest) -> list[str]:
    return [label.name for label in pull.labels]


def action_counts(here: Town) -> Counter[str]:
    """Return how often the bot added and removed labels."""
    labelings = [d for d in here.github.webhooks.deliveries if d.event == "pull_request" and "label" in d.body]
    return Counter(str(d.action) for d in labelings if d.body["sender"]["login"] == BOT)


async def test_the_label_comes_once_the_pull_request_is_ready_and_a_push_removes_it(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    pull.label("hubot", "docs")
    report(here, pull, "pending")
    approve(pull)
    await here.quiet()
    assert labels(pull) == ["docs"]
    report(here, pull)
    await here.quiet()
    assert labels(pull) == ["docs", LABEL]
    pull.push()
    await here.quiet()
    assert labels(pull) == ["docs"]
    report(here, pull)
    approve(pull)
    await here.quiet()
    assert labels(pull) == ["docs", LABEL]
    assert action_counts(here) == {"labeled": 2, "unlabeled": 1}
    assert here.answers(pull) == []


async def test_an_obstacle_removes_the_label_and_its_end_adds_it_again(here: Town) -> None:
    pull = ready(here)
    await here.quiet()
    assert labels(pull) == [LABEL]
    steps: list[tuple[Callable[[], object], list[str]]] = [
        (lambda: report(here, pull, "pending"), []),
        (lambda: report(here, pull), [LABEL]),
        (lambda: report(here, pull, "failure", "gpu/pr-head"), []),
        (lambda: report(here, pull, "success", "gpu/pr-head"), [LABEL]),
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
        await here.quiet()
        assert labels(pull) == expected


async def test_a_label_that_somebody_else_adds_or_removes_is_corrected_once(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    pull.label("hubot", LABEL.upper())
    await here.quiet()
    assert labels(pull) == []
    report(here, pull)
    approve(pull)
    await here.quiet()
    here.github.clock.advance(seconds=1)
    pull.unlabel("octocat", LABEL)
    await here.quiet()
    assert labels(pull) == [LABEL.upper()], "a label keeps the letter case of its creation"
    assert action_counts(here) == {"labeled": 2, "unlabeled": 1}


async def test_a_merge_removes_the_label(here: Town) -> None:
    pull = ready(here)
    assert (await says(here, pull, "@ci merge")).startswith("eyes +1")
    assert (pull.state, labels(pull)) == ("closed", [])


async def test_the_checks_of_an_unapproved_pull_request_cost_nothing(here: Town) -> None:
    pull = here.repo.open_pull_request("hubot", "Faster")
    await here.quiet()
    here.github.requests.clear()
    report(here, pull, "pending")
    report(here, pull)
    here.repo.add_workflow_run(pull.head_sha, "CI", "success", {str(n): "success" for n in range(9)})
    pull.label("hubot", "docs")
    pull.review("reader", "Hm.")
    await here.quiet()
    assert here.github.requests.of_installation == []


async def test_a_burst_of_checks_causes_one_more_refresh(here: Town) -> None:
    """A scan sees every event before it begins; the next scan sees all events that arrive during it."""
    pull = here.repo.open_pull_request("hubot", "Faster")
    report(here, pull, "pending")
    approve(pull)
    await here.quiet()
    here.github.requests.clear()
    held = here.github.faults.pause("GET", PULL, when="before")
    report(here, pull, context="first/pr-head")
    await held.reached.wait()
    for n in range(40):
        report(here, pull, context=f"{n}/pr-head")
    report(here, pull)
    await here.github.delivered()

    async def events_are_settled() -> bool:
        recent = await here.bot.engine.journal.recent(limit=500)
        return all(one.settled for one in recent if one.event == "status")

    await until(events_are_settled)
    held.resume()
    await here.quiet()
    assert labels(pull) == [LABEL]
    assert here.github.requests.count("GET", PULL) == 2
