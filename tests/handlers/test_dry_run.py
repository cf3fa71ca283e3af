"""A dry run shows exactly what a real run then writes, and writes nothing itself.

The driver plans each delivery dry, runs it for real against the sandbox, and compares both lists of effects. Handlers
that need a bucket, a chat, Docker Hub, artifacts or a lab are compared in `tests/conversations/test_dry_runs.py`, where
a test checks that no handler and no kind of effect is missing.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bot.config.shared import PATH as FILE
from bot.core.events import Repository
from bot.effects.section_state import SECTION_TEXT, SectionText
from bot.engine.internal import announce
from bot.github.limits.ledger import Allowance
from bot.timers.timers import TIMER_EVENT, TimerEvent
from sandbox.model.apps import DEFAULT_PERMISSIONS
from tests.handlers.driver import FULL_NAME, World, a_world

FEATURES = {
    "cc_reviewers": True,
    "docs": {"context": "docs/pr-head", "link": "https://docs.example.org/PR-{number}/{build}/index.html"},
    "last_good": {"branch": "last-successful", "require": ["lint"]},
    "lint": {},
    "main_failures": {"branches": ["main"], "contexts": ["lint"], "to": ["issue"], "wait": "1s"},
    "merge": {"required": ["cpu"], "label": "ready"},
    "nightly": {},
    "results": {"bucket": "device-results", "labs": {"example-lab": {"targets": {"hexagon-v73": {"tier": 2}}}}},
    "skip_ci": {"globs": ["*.md"]},
    "slow_tests": {"branches": ["main", "staging-*"]},
    "stale_reviews": {"after": "7d"},
    "teams": {"topics": {"hexagon": ["@octocat"]}, "issue": 1},
    "welcome": True,
}


@asynccontextmanager
async def dry_first(folder: Path) -> AsyncIterator[World]:
    unhurried = Allowance(10_000, 10_000, 100_000, 100_000, write_spacing=0)
    permissions = DEFAULT_PERMISSIONS | {"merge_queues": "write"}
    async with a_world(folder, features=FEATURES, permissions=permissions, allowance=unhurried) as world:
        world.pipeline = replace(world.pipeline, announce=world.accept)
        world.run_dry_first = True
        yield world


async def everything_that_waits(world: World) -> None:
    while world.github.webhooks.held or world.announced:
        await world.happen()
        await world.process_announced()


async def timer(world: World, name: str) -> None:
    repository = Repository(world.repository.id, FULL_NAME, None)
    await announce(world.accept, TIMER_EVENT, repository, TimerEvent(name, f"asked-{time.time_ns()}", int(time.time())))
    await everything_that_waits(world)


async def a_pull_request_is_discussed_and_merged(world: World) -> None:
    pull = world.open("cc @hubot, for [hexagon]", title="[hexagon] Fix")
    await everything_that_waits(world)
    world.repository.add_workflow_run(pull.head_sha, "CI", "failure")
    for text in (
        "@ci rerun\n@ci rnu",
        "@ci merge when green",
        "@ci run slow tests",
        "@ci cancel",
        "@ci help",
        "@ci test on all",
    ):
        pull.comment("octocat", text)
        await everything_that_waits(world)
    world.repository.set_status(
        "octocat", pull.head_sha, "docs/pr-head", "success", target_url="https://ci.example.org/7/"
    )
    pull.push()
    world.repository.set_status("octocat", pull.head_sha, "cpu", "success")
    world.repository.set_role("maintainer", "maintain")
    pull.review("maintainer", state="APPROVED")
    await everything_that_waits(world)
    # GitHub's times are whole seconds: a comment in the second of a push counts for the head before it.
    world.github.clock.advance(seconds=2)
    pull.comment("octocat", "@ci merge")
    await everything_that_waits(world)
    assert pull.state == "closed"


async def branches_are_scanned(world: World) -> None:
    world.repository.push("staging-1", by="octocat")
    head = world.repository.branch("main")
    world.repository.set_status("octocat", head, "lint", "failure")
    world.repository.set_status("octocat", world.repository.push("main", by="octocat").sha, "lint", "success")
    await everything_that_waits(world)
    for name in ("nightly", "last-good", "main-failures", "merges", "stale-reviews"):
        await timer(world, name)


async def a_newcomer_changes_the_settings(world: World) -> None:
    repository = world.repository
    repository.set_role("maintainer", "maintain")
    topics = repository.open_issue("maintainer", "Topics", "- adreno: @octocat\n- not a topic")
    await everything_that_waits(world)
    topics.comment("maintainer", "- hexagon: @octocat")
    pull = repository.open_pull_request("newcomer", "Fix", fork=True, files={FILE: "nightly: {}\n"})
    await everything_that_waits(world)
    for name in ("nightjar/lint", "nightjar/config"):
        (run,) = repository.check_runs(pull.head_sha, name)
        run.rerequest("newcomer")
        await everything_that_waits(world)
    section = SectionText(section="docs", number=pull.number, sha=pull.head_sha, text="Docs", as_of=time.time())
    await announce(world.accept, SECTION_TEXT, Repository(repository.id, FULL_NAME, None), section)
    repository.push("main", {FILE: "nightly: {ta: 1}\n"}, by="maintainer")
    await everything_that_waits(world)
    repository.classic_queues.add("main")
    queued = repository.open_pull_request("octocat", "[hexagon] Fix")
    queued.enqueue("octocat")
    queued.test_in_queue()
    await everything_that_waits(world)


Scene = Callable[[World], Awaitable[None]]
SCENES: dict[Scene, str] = {
    a_pull_request_is_discussed_and_merged: """
        commands cc-reviewers RequestReviewers docs-link lint skip-ci slow-tests RerunWorkflow MergePull
        SetStatus PutCheckRun""",
    branches_are_scanned: "last-good merges nightly main-failures slow-tests-branches StoreRecord",
    a_newcomer_changes_the_settings: """
        repository-file repository-file-check repository-file-again StoreRepositoryFile lint-again
        merge-group-lint merge-group-skip-ci merge-group-slow-tests team-list StoreTeamList welcome UpsertSection""",
}
"""The handlers and the kinds of effects that each scene is here for; it may show more."""


@pytest.mark.no_cover
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_a_dry_run_shows_exactly_what_is_written(scene: Scene, tmp_path: Path) -> None:
    async with dry_first(tmp_path) as world:
        await scene(world)
    handlers = {handler for handler, _ in world.planned_to_write}
    kinds = {effect["kind"] for _, effects in world.planned_to_write for effect in effects}
    assert set(SCENES[scene].split()) - handlers - kinds == set()
