"""The signals of a commit: statuses and check runs of everybody, the latest of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from pathlib import Path

import aiohttp
import pytest
from gidgethub import BadRequest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bot.github.app import GitHubApp
from bot.github.client import GitHub
from bot.github.commits.ours import Ours
from bot.github.commits.required import Signal, State, blockers
from bot.github.commits.signals import GREEN_CONCLUSIONS, signals_of
from sandbox import App, GitHubSandbox
from sandbox.model.workflows import WorkflowRun
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


async def signals_by_name(world: World, sha: str) -> dict[str, tuple[State, int]]:
    signals = await signals_of(await client(world), FULL_NAME, sha, NOBODYS)
    return {signal.name: (signal.state, signal.app) for signal in signals}


def foreign_app(world: World, slug: str) -> App:
    app = world.github.create_app(slug, permissions={"checks": "write", "statuses": "write"})
    app.install(world.repository)
    return app


async def test_a_check_run_and_a_status_say_which_app_reported_them(world: World) -> None:
    sha, lint = world.open().head_sha, foreign_app(world, "lint")
    world.repository.add_check_run(lint, sha, "style", conclusion="success")
    world.repository.set_status(lint.bot, sha, "format", "success")
    world.repository.set_status("hubot", sha, "by-hand", "pending")
    assert await signals_by_name(world, sha) == {
        "style": (State.GREEN, lint.id),
        "format": (State.GREEN, lint.id),
        "by-hand": (State.PENDING, 0),
    }


async def test_a_commit_without_any_report_has_no_signals(world: World) -> None:
    """TVM's script crashed on this null `rollup`, as GraphQL calls it."""
    assert await signals_by_name(world, world.open().head_sha) == {}


@pytest.mark.parametrize("conclusion", ["success", "neutral", "skipped"])
async def test_whatever_satisfies_githubs_required_checks_is_green(world: World, conclusion: str) -> None:
    """TVM #11569: neutral counted as a failure."""
    sha = world.open().head_sha
    world.repository.add_check_run(foreign_app(world, "lint"), sha, "style", conclusion=conclusion)
    assert [state for state, _ in (await signals_by_name(world, sha)).values()] == [State.GREEN]


async def test_the_later_of_two_runs_of_a_workflow_counts(world: World) -> None:
    """TVM #11569: a rerun job was listed twice, and its first failure blocked the merge."""
    sha = world.open().head_sha
    world.repository.add_workflow_run(sha, "CI", "failure", {"unit": "failure"})
    world.repository.add_workflow_run(sha, "CI", "success", {"unit": "success"})
    signals = await signals_of(await client(world), FULL_NAME, sha, NOBODYS)
    assert signals == [Signal("unit", State.GREEN)]


def workflow_requests(world: World) -> int:
    return sum(request.path.endswith("/actions/runs") for request in world.github.requests.records)


@pytest.mark.parametrize("states", [("failure", "success"), ("success", "failure")])
async def test_a_green_job_of_another_workflow_hides_no_red_one_of_the_same_name(
    world: World, states: tuple[str, str]
) -> None:
    """Anybody who opens a pull request may add a workflow with a job of any name."""
    sha = world.open().head_sha
    for workflow, state in zip(("CI", "Mine"), states, strict=True):
        world.repository.add_workflow_run(sha, workflow, state, {"cpu": state})
    assert [state for state, _ in (await signals_by_name(world, sha)).values()] == [State.RED]
    world.repository.add_workflow_run(sha, "CI", "success", {"cpu": "success"})
    world.repository.add_workflow_run(sha, "Mine", "success", {"cpu": "success"})
    assert [state for state, _ in (await signals_by_name(world, sha)).values()] == [State.GREEN]
    assert workflow_requests(world) == 2


async def test_the_worse_run_of_a_workflow_with_two_events_counts(world: World) -> None:
    sha = world.open().head_sha
    world.repository.add_workflow_run(sha, "CI", "failure", {"cpu": "failure"}, event="pull_request")
    world.repository.add_workflow_run(sha, "CI", "success", {"cpu": "success"}, event="push")
    assert [state for state, _ in (await signals_by_name(world, sha)).values()] == [State.RED]


async def test_runs_of_other_apps_belong_to_no_workflow(world: World) -> None:
    sha, lint = world.open().head_sha, foreign_app(world, "lint")
    for conclusion in ("failure", "success"):
        suite = world.repository.new_check_suite(lint, sha)
        world.repository.add_check_run(lint, sha, "style", suite=suite, conclusion=conclusion)
    assert await signals_by_name(world, sha) == {"style": (State.GREEN, lint.id)}


async def test_a_server_without_actions_has_no_workflow_runs(world: World) -> None:
    sha = world.open().head_sha
    world.repository.set_status("hubot", sha, "by-hand", "success")
    world.github.faults.add("GET", "/repos/{owner}/{repo}/actions/runs", status=404, message="Not Found", times=None)
    assert await signals_by_name(world, sha) == {"by-hand": (State.GREEN, 0)}


async def test_the_state_of_jobs_is_unknown_without_the_workflow_runs(world: World) -> None:
    sha = world.open().head_sha
    world.repository.add_workflow_run(sha, "CI", "success", {"unit": "success"})
    world.github.faults.add("GET", "/repos/{owner}/{repo}/actions/runs", status=404, message="Not Found", times=None)
    with pytest.raises(BadRequest, match="Not Found"):
        await signals_by_name(world, sha)


# Workflow runs in progress

JOBS = ("build", "test", "publish")
"""Each needs the one before it."""


async def states(world: World, sha: str) -> dict[str, State]:
    return {name: state for name, (state, _) in (await signals_by_name(world, sha)).items()}


async def test_a_job_that_the_attempt_before_skipped_is_pending_until_the_workflow_run_has_completed(
    world: World,
) -> None:
    sha = world.open().head_sha
    run = world.repository.add_workflow_run(sha, "CI", "failure", {"build": "failure", "test": "skipped"})
    assert await states(world, sha) == {"build": State.RED, "test": State.GREEN}
    run.rerun(world.github.user("octocat"), only_failed=True)
    assert await states(world, sha) == {"build": State.PENDING, "test": State.PENDING}
    run.start()
    world.github.clock.advance(seconds=60)
    run.finish_job("build", "success")
    assert await states(world, sha) == {"build": State.GREEN, "test": State.PENDING}
    run.add_job("test")
    run.start()
    assert await states(world, sha) == {"build": State.GREEN, "test": State.PENDING}
    run.finish("failure", {"test": "failure"})
    assert await states(world, sha) == {"build": State.GREEN, "test": State.RED}


async def test_a_workflow_run_is_pending_while_it_may_begin_another_job(world: World) -> None:
    sha = world.open().head_sha
    run = world.repository.add_workflow_run(sha, "CI", jobs={"build": None})
    run.finish_job("build", "success")
    assert await states(world, sha) == {"build": State.GREEN, "CI": State.PENDING}
    signals = await signals_of(await client(world), FULL_NAME, sha, NOBODYS)
    page = f"{world.github.url}/{FULL_NAME}/actions/runs/{run.id}"
    assert [signal.url for signal in signals if signal.is_workflow_run] == [page]
    run.finish("success")
    assert await states(world, sha) == {"build": State.GREEN}


async def test_a_workflow_run_that_ends_while_the_checks_are_read_does_not_pass(world: World) -> None:
    sha = world.open().head_sha
    run = world.repository.add_workflow_run(sha, "CI", jobs={"build": None})
    run.finish_job("build", "success")
    checks = world.github.faults.pause("GET", "/repos/{owner}/{repo}/commits/{ref}/check-runs", when="after")
    reading = asyncio.create_task(states(world, sha))
    await checks.reached.wait()
    run.add_job("test")
    run.finish("failure")
    checks.resume()
    assert await reading == {"build": State.GREEN, "CI": State.PENDING}
    assert await states(world, sha) == {"build": State.GREEN, "test": State.RED}


async def test_a_run_in_progress_on_a_branch_that_we_pushed_is_left_out(world: World) -> None:
    sha = world.repository.push("main", by="hubot").sha
    run = world.repository.add_workflow_run(sha, "CI", jobs={"build": None}, event="push", branch="nightly")
    run.finish_job("build", "success")
    assert await signals_of(await client(world), FULL_NAME, sha, await ours_in(world, "nightly")) == []


def run_attempt(run: WorkflowRun, green_jobs: Collection[str]) -> Iterator[None]:
    """Run the jobs of an attempt in their order, and pause after each change; those after a failure are skipped."""
    run.start()
    for number, name in enumerate(JOBS):
        if not all(job.conclusion == "success" for job in run.latest_jobs if job.name in JOBS[:number]):
            run.add_job(name)
            run.finish_job(name, "skipped")
        elif all(job.name != name or job.conclusion == "skipped" for job in run.latest_jobs):
            run.add_job(name)
            run.start()
            yield
        if any(job.name == name and job.status != "completed" for job in run.latest_jobs):
            run.finish_job(name, "success" if name in green_jobs else "failure")
            yield


async def check_attempts(attempts: Sequence[Collection[str]], require: str) -> None:
    github = GitHubSandbox()
    async with github.serve() as url, aiohttp.ClientSession() as session:
        app = github.create_app("nightjar")
        repository = github.create_repository(FULL_NAME)
        app.install(repository)
        reader = await GitHubApp(session, api_url=url, app_id=app.id, private_key=app.private_key).reader(FULL_NAME)

        async def passes() -> bool:
            return not blockers([require], await signals_of(reader, FULL_NAME, sha, NOBODYS))

        sha = repository.push("main", by="octocat").sha
        run = repository.add_workflow_run(sha, "CI", jobs={JOBS[0]: None}, branch="main")
        for green_jobs in attempts:
            for _ in run_attempt(run, green_jobs):
                # A job that has ended in this attempt counts, even if others go on.
                ended = {job.name for job in run.jobs if job.attempt == run.attempt and job.conclusion == "success"}
                assert await passes() == (require in ended)
            green = all(job.conclusion == "success" for job in run.latest_jobs)
            run.finish("success" if green else "failure")
            assert await passes() == all(
                job.conclusion in GREEN_CONCLUSIONS for job in run.latest_jobs if require in ("*", job.name)
            )
            if green:
                break
            run.rerun(github.user("octocat"), only_failed=True)
            assert not await passes()
            github.clock.advance(seconds=1)


@settings(max_examples=25)
@given(st.lists(st.frozensets(st.sampled_from(JOBS)), min_size=1, max_size=4), st.sampled_from(["*", JOBS[-1]]))
@example([frozenset({"build"}), frozenset(JOBS)], "publish")
@example([frozenset(), frozenset(JOBS)], "*")
def test_nothing_passes_while_a_workflow_run_goes_on_whatever_its_earlier_attempts_said(
    attempts: list[frozenset[str]], require: str
) -> None:
    asyncio.run(check_attempts(attempts, require))


# Our own reports


async def ours_in(world: World, *branches: str) -> Ours:
    app = world.pipeline.app
    me = await app.identity(await app.place_of(FULL_NAME))
    return Ours(me.app_id, me.user_id, frozenset({"ci/skip"}), frozenset(branches))


async def test_our_own_statuses_and_check_runs_are_recognized_by_who_set_them(world: World) -> None:
    sha, foreign = world.open().head_sha, foreign_app(world, "lint")
    own_app = next(iter(world.github.apps.values()))
    world.repository.set_status(own_app.bot, sha, "some-name", "success")
    world.repository.add_check_run(own_app, sha, "nightjar/lint", conclusion="success")
    world.repository.set_status("hubot", sha, "CI/Skip", "success")
    world.repository.add_check_run(foreign, sha, "nightjar/lint-of-others", conclusion="success")
    world.repository.set_status("hubot", sha, "nightly", "success")
    signals = await signals_of(await client(world), FULL_NAME, sha, await ours_in(world))
    assert {signal.name: signal.ours for signal in signals} == {
        "some-name": True,
        "nightjar/lint": True,
        "CI/Skip": True,
        "nightjar/lint-of-others": False,
        "nightly": False,
    }


@pytest.mark.parametrize(
    ("branch", "event", "names"),
    [
        ("nightly", "push", []),
        ("nightly", "workflow_dispatch", []),
        ("main", "push", ["cpu"]),
        ("nightly", "pull_request", ["cpu"]),
        ("nightly", "pull_request_target", ["cpu"]),
    ],
)
async def test_runs_on_a_branch_that_we_pushed_are_left_out(
    world: World, branch: str, event: str, names: list[str]
) -> None:
    sha = world.repository.push("main", by="hubot").sha
    world.repository.add_workflow_run(sha, "CI", "failure", {"cpu": "failure"}, event=event, branch=branch)
    signals = await signals_of(await client(world), FULL_NAME, sha, await ours_in(world, "nightly"))
    assert [signal.name for signal in signals] == names


async def test_a_forks_branch_with_the_name_of_one_of_ours_hides_nothing(world: World) -> None:
    pull = world.repository.open_pull_request("stranger", branch="nightly", fork=True)
    world.repository.add_workflow_run(pull.head_sha, "CI", "failure", {"cpu": "failure"}, event="push")
    signals = await signals_of(await client(world), FULL_NAME, pull.head_sha, await ours_in(world, "nightly"))
    assert [(signal.name, signal.state) for signal in signals] == [("cpu", State.RED)]


async def test_runs_on_our_own_branch_count_for_that_branch(world: World) -> None:
    sha = world.repository.push("main", by="hubot").sha
    world.repository.add_workflow_run(sha, "CI", "failure", {"cpu": "failure"}, event="push", branch="nightly")
    own_reports = (await ours_in(world, "nightly")).on("nightly")
    assert [signal.name for signal in await signals_of(await client(world), FULL_NAME, sha, own_reports)] == ["cpu"]


async def test_a_status_and_a_check_run_say_when_they_were_reported(world: World) -> None:
    sha, lint = world.open().head_sha, foreign_app(world, "lint")
    world.repository.set_status("hubot", sha, "by-hand", "success")
    run = world.repository.add_check_run(lint, sha, "style")
    world.github.clock.advance(seconds=60)
    ended = world.repository.add_check_run(lint, sha, "format", conclusion="success")
    status = world.repository.statuses(sha)[0]
    assert run.started_at is not None
    assert ended.completed_at is not None
    signals = await signals_of(await client(world), FULL_NAME, sha, NOBODYS)
    assert {signal.name: signal.at for signal in signals} == {
        "by-hand": status.created_at.timestamp(),
        "style": run.started_at.timestamp(),
        "format": ended.completed_at.timestamp(),
    }
