"""A dry run shows exactly what a real run then writes, for deliveries of every kind.

The driver plans each delivery dry, runs it for real against the sandbox, and compares both lists of effects.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bot.app.features import full_router
from bot.config.shared import PATH as FILE
from bot.core.events import Repository
from bot.effects.section_state import SECTION_TEXT, SectionText
from bot.engine.internal import announce
from bot.github.limits import Allowance
from bot.timers.timers import TIMER_EVENT, TimerEvent
from sandbox import PullRequest
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
NOT_HERE = frozenset(
    {
        *("hardware-runs", "hardware-results", "hardware-results-all", "regressions", "docker-update"),
        *("nightly-news", "news", "lab-webhook"),
        *("skipped-tests", "skipped-tests-run", "skipped-tests-results"),
        *("runtime", "runtime-run", "runtime-results"),
    }
)
"""Handlers that need a bucket, a channel, Docker Hub or artifacts of CI. They have no conclude stage, so all that they
write is in their plan, which a dry run shows as it is."""
IN_RESULTS = frozenset({"degraded-targets"})
"""Handlers that conclude, and judge stored results, of which there are none here."""


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
        await world.work_off_announced()


async def timer(world: World, name: str) -> None:
    repository = Repository(world.repository.id, FULL_NAME, None)
    await announce(world.accept, TIMER_EVENT, repository, TimerEvent(name, f"asked-{time.time_ns()}", int(time.time())))
    await everything_that_waits(world)


async def a_pull_request_is_talked_about_and_merged(world: World) -> PullRequest:
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
    # GitHub's times are whole seconds: a comment of the second in which somebody pushes is about the head before.
    world.github.clock.advance(seconds=2)
    pull.comment("octocat", "@ci merge")
    await everything_that_waits(world)
    return pull


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


@pytest.mark.no_cover
async def test_what_a_dry_run_shows_is_what_is_written(tmp_path: Path) -> None:
    for folder in (tmp_path / "pulls", tmp_path / "branches", tmp_path / "settings"):
        folder.mkdir()
    async with dry_first(tmp_path / "pulls") as pulls:
        pull = await a_pull_request_is_talked_about_and_merged(pulls)
    async with dry_first(tmp_path / "branches") as branches:
        await branches_are_scanned(branches)
    async with dry_first(tmp_path / "settings") as settings:
        await a_newcomer_changes_the_settings(settings)
    assert pull.state == "closed"
    planned = [*pulls.planned_to_write, *branches.planned_to_write, *settings.planned_to_write]
    ran = {handler for handler, _ in planned}
    assert {handler.name for handler in full_router().handlers} - ran <= NOT_HERE | IN_RESULTS
    concluding = {handler.name for handler in full_router().handlers if handler.conclude is not None}
    assert concluding <= ran | IN_RESULTS
    assert not concluding & NOT_HERE
    wrote = {handler for handler, effects in planned if effects}
    assert {"nightly", "welcome", "repository-file-check", "lint-again", "merge-group-lint", "team-list"} <= wrote
