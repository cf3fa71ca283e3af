"""`nightjar timer` as a process, next to a server and without one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.app.registration import EVENTS, PERMISSIONS
from bot.engine.service import Engine
from bot.github.pull_heads import REPOSITORY_ID
from bot.github.repositories.known import KNOWN_REPOSITORY, KnownRepository
from sandbox import GitHubSandbox, Repository
from sandbox.bot_process import BotProcess
from tests.fork_server import launch
from tests.running import Finished, run
from tests.tables import with_tables

SECRET = "only-the-tests-know-this-secret"
CONFIG = "repositories:\n  octocat/compiler:\n    nightly: {at: '03:00', timezone: UTC}\n  octocat/other:\n"
BRANCH = "refs/heads/nightly"


@dataclass
class Desk:
    """A GitHub with a repository, and an operator in a folder with app.yaml."""

    github: GitHubSandbox
    repo: Repository
    folder: Path
    env: dict[str, str]

    async def nightjar(self, *arguments: str) -> Finished:
        """Run a command."""
        return await run(*arguments, env=self.env, cwd=self.folder)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    github = GitHubSandbox()
    async with github.serve() as api_url:
        app = github.create_app("nightjar", webhook_secret=SECRET, permissions=PERMISSIONS, events=EVENTS)
        repo = github.create_repository("octocat/compiler")
        app.install(repo)
        (tmp_path / "app.yaml").write_text(CONFIG)
        env = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": api_url,
            "DATABASE_URL": with_tables(f"sqlite:///{tmp_path}/nightjar.db"),
        }
        async with Engine(env["DATABASE_URL"]):
            pass
        yield Desk(github, repo, tmp_path, env)
        assert not github.violations, github.violations


async def test_without_a_server_the_command_runs_the_timer_and_lists_its_outcome(desk: Desk) -> None:
    first_list = await desk.nightjar("timer", "list", "--json")
    assert first_list.status == 0, first_list.err
    (timer,) = json.loads(first_list.out)
    assert (timer["repository"], timer["name"], timer["outcome"]) == ("octocat/compiler", "nightly", "never")
    assert timer["next_run"].endswith("T03:00:00Z")
    sha = desk.repo.branch("main")
    ran = await desk.nightjar("timer", "run", "nightly")
    assert ran.status == 0, ran.err
    assert f"nightly: planned: nightly begins at {sha[:7]}" in ran.out
    assert desk.repo.refs[BRANCH] == sha
    listed = await desk.nightjar("timer", "list")
    assert "03:00 UTC" in listed.out
    assert f"nightly begins at {sha[:7]}" in listed.out


async def test_timers_of_a_pattern_are_those_of_the_repositories_that_are_known(desk: Desk) -> None:
    (desk.folder / "app.yaml").write_text("repositories: {octocat/*: {nightly: {at: '03:00', timezone: UTC}}}")
    none = await desk.nightjar("timer", "list", "--json")
    assert (none.status, none.out) == (0, "[]\n")
    async with Engine(desk.env["DATABASE_URL"]) as engine:
        known = KnownRepository(desk.repo.id, "octocat/compiler", "octocat/compiler")
        await engine.records.put(KNOWN_REPOSITORY.of(desk.repo.id), known)
    listed = await desk.nightjar("timer", "list", "--json")
    assert [timer["repository"] for timer in json.loads(listed.out)] == ["octocat/compiler"]
    planned = await desk.nightjar("timer", "run", "nightly", "--dry-run")
    assert planned.status == 0, planned.err
    assert len(json.loads(planned.out)) == 1


async def test_next_to_a_server_the_server_runs_the_timer(desk: Desk) -> None:
    server = BotProcess(desk.env, config=desk.folder / "app.yaml", launch=launch)
    await server.start()
    try:
        ran = await desk.nightjar("timer", "run", "nightly", "--repo", "Octocat/Compiler", "--json")
    finally:
        await server.stop()
    assert ran.status == 0, ran.err
    (record,) = json.loads(ran.out)
    assert (record["event"], record["state"]) == ("nightjar.timer", "done")
    assert desk.repo.refs[BRANCH] == desk.repo.branch("main")


async def test_a_dry_run_prints_the_plan_and_writes_nothing(desk: Desk) -> None:
    planned = await desk.nightjar("timer", "run", "nightly", "--dry-run")
    assert planned.status == 0, planned.err
    (plan,) = json.loads(planned.out)
    (handler,) = plan["plans"]
    assert [effect["kind"] for effect in handler["effects"]] == ["MoveBranch"]
    assert handler["effects"][0]["sha"] == desk.repo.branch("main")
    assert BRANCH not in desk.repo.refs
    async with Engine(desk.env["DATABASE_URL"]) as engine:
        assert await engine.journal.recent() == []
        assert await engine.records.get(REPOSITORY_ID.of("octocat/compiler")) is None
    assert [record.route for record in desk.github.requests.writes if record.token == "installation"] == []


async def test_a_failing_timer_ends_with_1_and_its_reason(desk: Desk) -> None:
    desk.repo.push("nightly", by="octocat", onto=desk.repo.push("stray", by="octocat").sha)
    desk.repo.push("main", by="octocat")
    ran = await desk.nightjar("timer", "run", "nightly")
    assert ran.status == 1
    assert "the branch nightly cannot be moved: it has commits that" in ran.out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("last-good",), "Unknown timer `last-good`. Available: nightly.\n"),
        (("nightly", "--repo", "octocat/other"), "octocat/other has no timer `nightly` in app.yaml.\n"),
    ],
)
async def test_an_unknown_timer_is_named(desk: Desk, arguments: tuple[str, ...], error: str) -> None:
    finished = await desk.nightjar("timer", "run", *arguments)
    assert (finished.status, finished.out, finished.err) == (1, "", error)
