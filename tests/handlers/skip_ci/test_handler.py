"""The status that says whether CI is skipped: which deliveries matter to it, and what it says in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from nightjar_lab.ci.decision import CiVerdict

from bot.core.events import Delivery, Payload
from handlers.skip_ci.config import SkipCi
from handlers.skip_ci.handler import NAME, accepts, status_for
from handlers.skip_ci.records import ShownSkip
from handlers.skip_ci.texts import RESTART_CI
from sandbox import PullRequest
from tests.handlers.driver import World, a_world
from tests.settings import repository_config

CONFIG = repository_config(skip_ci=SkipCi())
CODE = "CI runs because src/codegen.cc changed."
TAGGED = "CI is skipped: the title had [skip ci] when CI started."
RUNS, SKIPPED = CiVerdict(False, CODE), CiVerdict(True, TAGGED)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, features={"skip_ci": {}}) as world:
        yield world


def shown(world: World, pull: PullRequest) -> list[str]:
    """Return the texts of the head's status, newest first."""
    statuses = world.repository.all_statuses(pull.head_sha)
    return [status.description or "" for status in statuses if status.context == "ci/skip"]


@pytest.mark.parametrize(
    ("action", "title", "changes", "expected"),
    [
        ("opened", "Fix", None, True),
        ("synchronize", "Fix", None, True),
        ("reopened", "Fix", None, True),
        ("edited", "[skip ci] Fix", {"title": {"from": "Fix"}}, True),
        ("edited", "Fix", {"title": {"from": "[Skip CI] Fix"}}, True),
        ("edited", "Fix it", {"title": {"from": "Fix"}}, False),
        ("edited", "[skip ci] Fix it", {"title": {"from": "[skip ci] Fix"}}, False),
        ("edited", "Fix", {"body": {"from": "x"}}, False),
        ("edited", "Fix", {"base": {"ref": {"from": "old"}, "sha": {"from": "0" * 40}}}, True),
    ],
)
def test_only_an_edit_that_can_change_the_decision_gets_a_job(
    action: str, title: str, changes: Mapping[str, Any] | None, expected: bool
) -> None:
    body = {"action": action, "pull_request": {"title": title}, **({"changes": changes} if changes else {})}
    assert accepts(Delivery("guid", "pull_request", Payload(body), 0.0), CONFIG) is expected


def before(verdict: CiVerdict, description: str = "", sha: str = "a") -> ShownSkip:
    text = description or verdict.reason
    return ShownSkip(sha, verdict.reason, verdict.value, text, run_again=text != verdict.reason)


@pytest.mark.parametrize(
    ("verdict", "was", "expected"),
    [
        (RUNS, None, CODE),
        (RUNS, before(SKIPPED, sha="b"), CODE),
        (RUNS, before(RUNS), CODE),
        (SKIPPED, before(RUNS), TAGGED + RESTART_CI),
        (RUNS, before(SKIPPED), CODE + RESTART_CI),
        (RUNS, before(RUNS, CODE + RESTART_CI), CODE + RESTART_CI),
        (RUNS, before(CiVerdict(False, "other"), "other" + RESTART_CI), CODE + RESTART_CI),
        (RUNS, before(CiVerdict(False, "other")), CODE),
    ],
)
def test_a_decision_that_changed_on_the_same_head_asks_for_another_run(
    verdict: CiVerdict, was: ShownSkip | None, expected: str
) -> None:
    assert status_for(verdict, "a", was).description == expected


def test_the_status_fits_githubs_limit_and_ends_with_the_advice() -> None:
    long = CiVerdict(False, "x" * 300)
    assert len(status_for(long, "a", None).description) == 140
    text = status_for(long, "a", before(SKIPPED)).description
    assert len(text) == 140
    assert text.endswith("…" + RESTART_CI)


async def test_a_late_retry_does_not_undo_a_later_edit(world: World) -> None:
    pull = world.open(files={"src/codegen.cc": "x"})
    (opened,) = [answer_ for answer_ in world.github.webhooks.held if answer_.event == "pull_request"]
    _, status = await world.planned(opened, NAME)
    pull.edit("octocat", title="[skip ci] Fix")
    await world.happen()
    assert shown(world, pull) == [TAGGED + RESTART_CI, CODE]
    await world.apply(opened, NAME, status)
    assert shown(world, pull) == [TAGGED + RESTART_CI, CODE]
    assert "has changed, so the bot did not change" in world.applied[-1]


async def test_webhooks_in_the_wrong_order_show_the_current_title(world: World) -> None:
    pull = world.open(files={"src/codegen.cc": "x"})
    world.github.clock.advance(seconds=5)
    pull.edit("octocat", title="[skip ci] Fix")
    pulls = [answer_ for answer_ in world.github.webhooks.held if answer_.event == "pull_request"]
    world.github.webhooks.held[:] = pulls[::-1]
    await world.happen()
    assert shown(world, pull)[0].removesuffix(RESTART_CI) == TAGGED


async def test_an_overtaken_push_sets_no_status_on_its_commit(world: World) -> None:
    pull = world.open(files={"src/codegen.cc": "x"})
    await world.happen()
    world.github.clock.advance(seconds=5)
    first = pull.push({"src/codegen.cc": "y"})
    world.github.clock.advance(seconds=5)
    pull.push({"docs/x.rst": "y"}, force=True)
    pulls = [answer_ for answer_ in world.github.webhooks.held if answer_.event == "pull_request"]
    world.github.webhooks.held[:] = pulls[::-1]
    await world.happen()
    assert shown(world, pull) == ["CI is skipped: only documentation changed (1 file)."]
    assert world.repository.status(first.sha, "ci/skip") is None
