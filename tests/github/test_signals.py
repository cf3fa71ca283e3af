"""The signals of a commit: statuses and check runs of everybody, the latest of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.github.client import GitHub
from bot.github.ours import Ours
from bot.github.required import Signal, State
from bot.github.signals import signals_of
from sandbox import App
from tests.handlers.driver import FULL_NAME, World, a_world

NOBODYS = Ours(app_id=-1, user_id=-1)
"""Where this bot reports nothing, and pushes no branch."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def client(world: World) -> GitHub:
    app = world.pipeline.app
    return await app.reader(FULL_NAME)


async def stands(world: World, sha: str) -> dict[str, tuple[State, int]]:
    found = await signals_of(await client(world), FULL_NAME, sha, NOBODYS)
    return {signal.name: (signal.state, signal.app) for signal in found}


def foreign_app(world: World, slug: str) -> App:
    app = world.github.create_app(slug, permissions={"checks": "write", "statuses": "write"})
    app.install(world.repository)
    return app


async def test_a_check_run_and_a_status_say_which_app_reported_them(world: World) -> None:
    sha, lint = world.open().head_sha, foreign_app(world, "lint")
    world.repository.add_check_run(lint, sha, "style", conclusion="success")
    world.repository.set_status(lint.bot, sha, "format", "success")
    world.repository.set_status("hubot", sha, "by-hand", "pending")
    assert await stands(world, sha) == {
        "style": (State.GREEN, lint.id),
        "format": (State.GREEN, lint.id),
        "by-hand": (State.PENDING, 0),
    }


async def test_a_commit_without_any_report_has_no_signals(world: World) -> None:
    """TVM's script crashed on this null `rollup`, as GraphQL calls it."""
    assert await stands(world, world.open().head_sha) == {}


@pytest.mark.parametrize("conclusion", ["success", "neutral", "skipped"])
async def test_whatever_satisfies_githubs_required_checks_is_green(world: World, conclusion: str) -> None:
    """TVM #11569: neutral counted as a failure."""
    sha = world.open().head_sha
    world.repository.add_check_run(foreign_app(world, "lint"), sha, "style", conclusion=conclusion)
    assert [state for state, _ in (await stands(world, sha)).values()] == [State.GREEN]


async def test_the_later_of_two_runs_of_a_workflow_counts(world: World) -> None:
    """TVM #11569: a rerun job was listed twice, and its first failure blocked the merge."""
    sha = world.open().head_sha
    world.repository.add_workflow_run(sha, "CI", "failure", {"unit": "failure"})
    world.repository.add_workflow_run(sha, "CI", "success", {"unit": "success"})
    found = await signals_of(await client(world), FULL_NAME, sha, NOBODYS)
    assert found == [Signal("unit", State.GREEN)]


def asked_for_workflows(world: World) -> int:
    return sum(one.path.endswith("/actions/runs") for one in world.github.requests.records)


@pytest.mark.parametrize("states", [("failure", "success"), ("success", "failure")])
async def test_a_green_job_of_another_workflow_hides_no_red_one_of_the_same_name(
    world: World, states: tuple[str, str]
) -> None:
    """Anybody who opens a pull request may add a workflow with a job of any name."""
    sha = world.open().head_sha
    for workflow, state in zip(("CI", "Mine"), states, strict=True):
        world.repository.add_workflow_run(sha, workflow, state, {"cpu": state})
    assert [state for state, _ in (await stands(world, sha)).values()] == [State.RED]
    world.repository.add_workflow_run(sha, "CI", "success", {"cpu": "success"})
    world.repository.add_workflow_run(sha, "Mine", "success", {"cpu": "success"})
    assert [state for state, _ in (await stands(world, sha)).values()] == [State.GREEN]
    assert asked_for_workflows(world) == 2


async def test_the_worse_run_of_a_workflow_with_two_events_counts(world: World) -> None:
    sha = world.open().head_sha
    world.repository.add_workflow_run(sha, "CI", "failure", {"cpu": "failure"}, event="pull_request")
    world.repository.add_workflow_run(sha, "CI", "success", {"cpu": "success"}, event="push")
    assert [state for state, _ in (await stands(world, sha)).values()] == [State.RED]


async def test_the_workflow_is_looked_up_only_if_it_changes_the_result(world: World) -> None:
    sha = world.open().head_sha
    world.repository.add_workflow_run(sha, "CI", "success", {"unit": "success", "cpu": "success"})
    world.repository.add_workflow_run(sha, "Mine", "failure", {"lint": "failure", "cpu": "success"})
    assert {name: state for name, (state, _) in (await stands(world, sha)).items()} == {
        "unit": State.GREEN,
        "cpu": State.GREEN,
        "lint": State.RED,
    }
    assert asked_for_workflows(world) == 0


async def test_workflows_of_other_apps_are_not_looked_up(world: World) -> None:
    sha, lint = world.open().head_sha, foreign_app(world, "lint")
    for conclusion in ("failure", "success"):
        suite = world.repository.new_check_suite(lint, sha)
        world.repository.add_check_run(lint, sha, "style", suite=suite, conclusion=conclusion)
    assert await stands(world, sha) == {"style": (State.GREEN, lint.id)}
    assert asked_for_workflows(world) == 0


# Our own reports


async def ours_in(world: World, *branches: str) -> Ours:
    app = world.pipeline.app
    me = await app.identity(await app.installation_for(FULL_NAME))
    return Ours(me.app_id, me.user_id, frozenset({"ci/skip"}), frozenset(branches))


async def test_our_own_statuses_and_check_runs_are_recognized_by_who_set_them(world: World) -> None:
    sha, foreign = world.open().head_sha, foreign_app(world, "lint")
    mine = next(iter(world.github.apps.values()))
    world.repository.set_status(mine.bot, sha, "some-name", "success")
    world.repository.add_check_run(mine, sha, "nightjar/lint", conclusion="success")
    world.repository.set_status("hubot", sha, "CI/Skip", "success")
    world.repository.add_check_run(foreign, sha, "nightjar/lint-of-others", conclusion="success")
    world.repository.set_status("hubot", sha, "nightly", "success")
    found = await signals_of(await client(world), FULL_NAME, sha, await ours_in(world))
    assert {signal.name: signal.ours for signal in found} == {
        "some-name": True,
        "nightjar/lint": True,
        "CI/Skip": True,
        "nightjar/lint-of-others": False,
        "nightly": False,
    }


@pytest.mark.parametrize(
    ("branch", "event", "left"),
    [
        ("nightly", "push", []),
        ("nightly", "workflow_dispatch", []),
        ("main", "push", ["cpu"]),
        ("nightly", "pull_request", ["cpu"]),
        ("nightly", "pull_request_target", ["cpu"]),
    ],
)
async def test_runs_on_a_branch_that_we_pushed_are_left_out(
    world: World, branch: str, event: str, left: list[str]
) -> None:
    sha = world.repository.push("main", by="hubot").sha
    world.repository.add_workflow_run(sha, "CI", "failure", {"cpu": "failure"}, event=event, branch=branch)
    found = await signals_of(await client(world), FULL_NAME, sha, await ours_in(world, "nightly"))
    assert [signal.name for signal in found] == left


async def test_a_forks_branch_with_the_name_of_one_of_ours_hides_nothing(world: World) -> None:
    pull = world.repository.open_pull_request("stranger", branch="nightly", fork=True)
    world.repository.add_workflow_run(pull.head_sha, "CI", "failure", {"cpu": "failure"}, event="push")
    found = await signals_of(await client(world), FULL_NAME, pull.head_sha, await ours_in(world, "nightly"))
    assert [(signal.name, signal.state) for signal in found] == [("cpu", State.RED)]


async def test_runs_on_our_own_branch_count_for_that_branch(world: World) -> None:
    sha = world.repository.push("main", by="hubot").sha
    world.repository.add_workflow_run(sha, "CI", "failure", {"cpu": "failure"}, event="push", branch="nightly")
    ours = (await ours_in(world, "nightly")).on("nightly")
    assert [signal.name for signal in await signals_of(await client(world), FULL_NAME, sha, ours)] == ["cpu"]


async def test_a_status_and_a_check_run_say_when_they_were_reported(world: World) -> None:
    sha, lint = world.open().head_sha, foreign_app(world, "lint")
    world.repository.set_status("hubot", sha, "by-hand", "success")
    run = world.repository.add_check_run(lint, sha, "style")
    world.github.clock.advance(seconds=60)
    ended = world.repository.add_check_run(lint, sha, "format", conclusion="success")
    status = world.repository.statuses(sha)[0]
    assert run.started_at is not None
    assert ended.completed_at is not None
    found = await signals_of(await client(world), FULL_NAME, sha, NOBODYS)
    assert {signal.name: signal.at for signal in found} == {
        "by-hand": status.created_at.timestamp(),
        "style": run.started_at.timestamp(),
        "format": ended.completed_at.timestamp(),
    }
