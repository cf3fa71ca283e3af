"""A whole server as a process, with a GitHub in the test: ready, next to commands, short of disk, and stopped."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from sandbox import App, GitHubSandbox, PullRequest, Repository
from sandbox.bot_process import BotProcess
from tests.fork_server import launch
from tests.waiting import DEADLINE, until

SECRET = "only-the-tests-know-this-secret"
COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
REACTIONS = "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions"
BOT = "nightjar[bot]"


@dataclass
class World:
    """A GitHub with a repository and an App, and our server, which the test starts."""

    github: GitHubSandbox
    app: App
    repository: Repository
    bot: BotProcess
    client: aiohttp.ClientSession

    async def start(self) -> None:
        """Start the server, and give GitHub its address."""
        await self.bot.start()
        self.app.webhook_url = f"{self.bot.url}/webhook"

    def open(self) -> PullRequest:
        return self.repository.open_pull_request("octocat")

    def answers(self, pull: PullRequest) -> list[str]:
        return [comment.body for comment in pull.comments_by(BOT)]

    async def get(self, path: str) -> tuple[int, str]:
        async with self.client.get(self.bot.url + path) as answer:
            return answer.status, await answer.text()

    async def is_ready(self) -> bool:
        return (await self.get("/readyz"))[0] == 200

    async def guid_of(self, event: str) -> str:
        """Return the GUID of an event's newest delivery, once everything about it has ended."""
        await self.github.delivered()
        guid = self.github.webhooks.find(event)[-1].guid
        await self.end_of(guid)
        return guid

    async def end_of(self, guid: str) -> None:
        """Wait until everything about a delivery has ended."""

        async def ended() -> bool:
            _, out, _ = await self.bot.run("deliveries", "--json", "--all", "--limit", "100")
            states = {one["guid"]: one["state"] for one in json.loads(out)}
            return states.get(guid) not in {None, "waiting", "working"}

        try:
            await until(ended)
        except AssertionError as error:
            error.add_note(f"{guid}\n" + "\n".join([*self.bot.output[-40:], self.github.transcript()]))
            raise


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    github = GitHubSandbox()
    config = tmp_path / "app.yaml"
    config.write_text("repositories:\n  octocat/compiler:\n")
    async with github.serve() as url, aiohttp.ClientSession() as client:
        app = github.create_app("nightjar", webhook_secret=SECRET)
        repository = github.create_repository("octocat/compiler")
        app.install(repository)
        environment = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": url,
            "DATABASE_URL": f"sqlite:///{tmp_path / 'nightjar.db'}",
            "PYTHONWARNINGS": "error",
        }
        world = World(github, app, repository, BotProcess(environment, config=config, launch=launch), client)
        try:
            yield world
        finally:
            await world.bot.kill()
        # Every line is JSON without secrets, and the server broke none of GitHub's rules.
        assert len(world.bot.logs) == len(world.bot.output)
        for secret in (SECRET, app.private_key.splitlines()[5], "ghs_", "eyJ"):
            assert not [line for line in world.bot.output if secret in line]
        assert not github.violations, github.violations


async def test_the_server_is_ready_answers_and_has_metrics(world: World) -> None:
    await world.start()
    await until(world.is_ready)
    pull = world.open()
    pull.comment("octocat", "@ci help")
    await world.github.until(lambda: world.answers(pull))
    status, decision = await world.get(f"/api/v1/repos/octocat/compiler/pulls/{pull.number}/decision")
    assert (status, json.loads(decision)["sha"]) == (200, pull.head_sha)
    assert (await world.get("/api/v1/repos/octocat/compiler/pulls/4711/decision"))[0] == 404
    assert (await world.get("/api/v1/repos/octocat/other/pulls/1/decision"))[0] == 401
    _, metrics = await world.get("/metrics")
    # The answer is a comment too, and GitHub sends an event for it, which may have been handled already.
    assert re.search(r'nightjar_deliveries_total\{event="issue_comment",outcome="routed"\} [12]\.0', metrics)
    assert 'nightjar_github_requests_total{method="GET",route="/repos/{+repo}/pulls/{number}"' in metrics
    assert "nightjar_github_quota_remaining{" in metrics
    assert await world.bot.stop() == 0
    assert "stopping" in [line["event"] for line in world.bot.logs]
    assert world.bot.logs[-1]["event"] == "stopped"


async def test_who_connects_while_it_starts_waits_and_is_answered(world: World) -> None:
    """It took seconds to load, in which it refused connections, such as GitHub's with a delivery."""
    app_yaml = world.bot.config.read_text(encoding="utf-8")
    world.bot.config.unlink()
    os.mkfifo(world.bot.config)  # the start waits until somebody writes app.yaml
    with socket.create_server(("127.0.0.1", 0)) as free:
        world.bot.port = free.getsockname()[1]
    await world.bot.spawn()

    async def listens() -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", world.bot.port)
        except ConnectionRefusedError:
            return False
        writer.close()
        return True

    await until(listens)
    asked = asyncio.create_task(world.get("/healthz"))
    assert not world.bot.logs
    await asyncio.to_thread(world.bot.config.write_text, app_yaml, encoding="utf-8")
    assert (await asyncio.wait_for(asked, DEADLINE))[0] == 200


async def test_every_line_of_a_job_names_its_delivery(world: World) -> None:
    await world.start()
    world.open().comment("octocat", "@ci help")
    guid = await world.guid_of("issue_comment")
    assert await world.bot.stop() == 0
    message = [line for line in world.bot.logs if line.get("delivery") == guid]
    assert {line["logger"] for line in message} >= {"bot.engine.worker.tasks"}


async def test_commands_work_next_to_the_server(world: World) -> None:
    await world.start()
    pull = world.open()
    pull.comment("octocat", "@ci help")
    guid = await world.guid_of("issue_comment")
    status, listed, _ = await world.bot.run("deliveries")
    assert status == 0
    assert f"octocat/compiler#{pull.number}" in next(line for line in listed.splitlines() if guid in line)
    before = world.answers(pull)
    status, plan, _ = await world.bot.run("replay", guid, "--dry-run", "--config", str(world.bot.config))
    assert status == 0
    assert "commands" in {one["handler"] for one in json.loads(plan)["plans"]}
    assert world.answers(pull) == before
    status, message, progress = await world.bot.run("replay", guid, "--config", str(world.bot.config))
    assert status == 0, message
    assert message.startswith(f"{guid} issue_comment.created: routed")
    assert "steps done" in progress
    assert world.answers(pull) == before, "a replay repeats nothing"
    status, _, refused = await world.bot.run("serve", "--port", "0", "--config", str(world.bot.config))
    assert status == 1
    assert f"is in use by another nightjar (process {world.bot.pid})" in refused


@pytest.mark.one_clock
async def test_a_stop_lets_the_job_in_progress_end_and_starts_no_others(world: World) -> None:
    await world.start()
    pull = world.open()
    held = world.github.faults.pause("POST", COMMENTS, when="before")
    pull.comment("octocat", "@ci help")
    await asyncio.wait_for(held.reached.wait(), DEADLINE)
    world.bot.send(signal.SIGTERM)

    async def closed() -> bool:
        try:
            return (await world.get("/healthz"))[0] == 0
        except aiohttp.ClientConnectionError:
            return True

    await until(closed)
    assert world.answers(pull) == []
    held.resume()
    assert await world.bot.ended() == 0
    assert len(world.answers(pull)) == 1
    await world.start()
    await world.guid_of("issue_comment")
    assert len(world.answers(pull)) == 1


async def test_a_second_signal_ends_it_at_once_and_the_next_process_does_the_work(world: World) -> None:
    await world.start()
    pull = world.open()
    held = world.github.faults.pause("POST", COMMENTS, when="before")
    pull.comment("octocat", "@ci help")
    await asyncio.wait_for(held.reached.wait(), DEADLINE)
    asked = world.github.webhooks.find("issue_comment")[-1].guid
    world.bot.send(signal.SIGINT)
    await until(lambda: world.bot.logs[-1]["event"] == "stopping")
    assert await world.bot.stop() == -signal.SIGTERM
    world.github.faults.clear()
    await world.start()
    # Not the newest: the answer may be written, and GitHub may send its event, while nothing listens.
    await world.end_of(asked)
    assert len(world.answers(pull)) == 1


@pytest.mark.one_clock
async def test_deliveries_missed_during_an_absence_are_requested_at_the_next_start(world: World) -> None:
    await world.start()
    pull = world.open()
    await world.guid_of("pull_request")
    assert await world.bot.stop() == 0
    pull.comment("octocat", "@ci help")
    await world.github.delivered()
    assert world.github.webhooks.find("issue_comment")[-1].status_code == 502
    await world.start()
    await world.github.until(lambda: world.answers(pull))
    assert [line for line in world.bot.logs if line["event"] == "redelivery asked for"]


async def test_on_a_full_disk_deliveries_are_refused_with_503_until_there_is_space(world: World) -> None:
    await world.start()
    await until(world.is_ready)
    # No file of the process may grow from here on, which SQLite reports as a full disk.
    free = resource.prlimit(world.bot.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(world.bot.pid, resource.RLIMIT_FSIZE, (1, free[1]))
    world.open()
    await world.github.delivered()
    refused = world.github.webhooks.find("pull_request")[-1]
    assert refused.status_code == 503
    assert int(refused.response_headers["Retry-After"]) > 0
    status, text = await world.get("/readyz")
    assert (status, "deliveries cannot be stored" in text) == (503, True)
    resource.prlimit(world.bot.pid, resource.RLIMIT_FSIZE, free)
    await until(world.is_ready)
    world.github.webhooks.redeliver(refused)
    await world.github.delivered()
    assert world.github.webhooks.find("pull_request")[-1].status_code == 202
