"""Two servers with a database each behind one address: everything reaches the server that owns it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from bot.app.address import Address
from bot.app.load import parse_config
from bot.app.registration import EVENTS, PERMISSIONS
from bot.app.serve import Bot, running
from bot.config import Config
from bot.config.environment import Settings
from bot.engine.tokens import LAB as LAB_SCOPE
from bot.engine.tokens import TokenStore
from handlers.labs.calls import LAB_CALLS
from sandbox import App, GitHubSandbox, Repository
from sandbox.front import Owners, front_application
from tests.conversations.lab import Moments
from tests.conversations.town import BOT, SECRET, SOON, UNHURRIED, Town
from tests.conversations.uploads import FILES, UploadLab
from tests.processes import lent_pool
from tests.serving import served
from tests.tables import with_tables

CONFIG = """
repositories:
  {owner}/compiler:
    nightly: {{at: "21:00", timezone: UTC}}
    results:
      labs:
        {lab}: {{targets: [adreno], runs_per_day: 5}}
"""
PLACES = {"octocat": "example-lab", "octo-org": "other-lab"}
"""An account and its lab, for each server."""


@dataclass
class Shard:
    """A server with its own database, and the repository that it owns; `town.url` is the address of the front."""

    town: Town
    lab: str

    async def guids(self) -> set[str]:
        """Return the GUIDs of the deliveries in its database."""
        return {record.guid for record in await self.town.bot.engine.journal.recent(limit=500)}


@dataclass
class TwoShards:
    """Both servers, by account, and the moment that they see."""

    shards: dict[str, Shard]
    time: Moments
    client: aiohttp.ClientSession

    async def quiet(self) -> None:
        """Wait until no server has work left."""
        for shard in self.shards.values():
            await shard.town.quiet()


@pytest.fixture
async def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TwoShards]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    github, moments = GitHubSandbox(), Moments()
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(github.serve())
        pool = await stack.enter_async_context(lent_pool())
        client = await stack.enter_async_context(aiohttp.ClientSession())
        app = github.create_app("nightjar", webhook_secret=SECRET, permissions=PERMISSIONS, events=EVENTS)
        repositories = {
            owner: github.create_repository(f"{owner}/compiler", people={"hubot": "write"}) for owner in PLACES
        }
        for repository in repositories.values():
            app.install(repository)
        servers, bots = dict[str, Config](), list[Bot]()
        for owner, lab in PLACES.items():
            config = parse_config(CONFIG.format(owner=owner, lab=lab).encode(), "app.yaml")
            (tmp_path / owner).mkdir()
            url = with_tables(f"sqlite:///{tmp_path}/{owner}/nightjar.db")
            server = running(
                config, _settings(app, api, url), Address("127.0.0.1", 0), UNHURRIED, moments, SOON, pool=pool
            )
            at_work = await stack.enter_async_context(server)
            at_work.bot.services.part(LAB_CALLS).clock = lambda: 0.0
            bots.append(at_work.bot)
            servers[f"http://127.0.0.1:{at_work.port}"] = config
        front_client = await stack.enter_async_context(aiohttp.ClientSession(auto_decompress=False))
        front = await stack.enter_async_context(served(front_application(Owners.of(servers), front_client)))
        app.webhook_url = f"{front}/webhook"
        shards = {
            owner: Shard(Town(github, app, repositories[owner], bot, front), lab)
            for (owner, lab), bot in zip(PLACES.items(), bots, strict=True)
        }
        yield TwoShards(shards, moments, client)
        assert not github.violations, github.violations


def _settings(app: App, api: str, database: str) -> Settings:
    return Settings.from_environment(
        {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "GITHUB_API_URL": api,
            "DATABASE_URL": database,
        }
    )


async def test_a_delivery_reaches_the_database_of_its_account_alone(two: TwoShards) -> None:
    for shard in two.shards.values():
        pull = shard.town.repo.open_pull_request("octocat")
        pull.comment("hubot", "@ci help")
        await two.quiet()
        assert len(pull.comments_by(BOT)) == 1
        guid = shard.town.github.webhooks.find("issue_comment")[-2].guid
        assert [guid in await other.guids() for other in two.shards.values()].count(True) == 1
        assert guid in await shard.guids()


async def test_a_lab_uploads_through_the_front_and_pages_and_lists_have_its_run(two: TwoShards) -> None:
    for owner, shard in two.shards.items():
        repo: Repository = shard.town.repo
        sha = repo.push("nightly", {"tests/python/test_ops.py": "def test_add(): ...\n"}, by="octocat").sha
        tokens = TokenStore(shard.town.bot.engine.database.connector, LAB_SCOPE)
        token, _ = await tokens.create(shard.lab, seconds=1e6)
        await two.quiet()
        lab = UploadLab(shard.town, two.time, token, "", sha, two.client)
        await _upload(lab, shard.lab, f"{owner}/compiler")
        await two.quiet()
        run = f"{owner}/compiler/runs/{shard.lab}/adreno/{sha}/run-1"
        status, _, _ = await shard.town.ask(f"/api/v1/repos/{run}")
        assert status == 200
        async with two.client.get(f"{shard.town.url}/r/{run}") as response:
            assert (response.status, sha[:7] in await response.text()) == (200, True)
    status, _, page = await shard.town.ask("/api/v1/repos")
    assert [listed["repository"] for listed in page["repositories"]] == [f"{owner}/compiler" for owner in PLACES]
    assert (page["total"], page["pages"]) == (2, 1)


async def _upload(lab: UploadLab, name: str, repository: str) -> None:
    beginning = lab.beginning(repository=repository, target="adreno")
    status, body = await lab.call("runs", beginning, lab=name)
    assert status == 201, body
    for file, content in FILES.items():
        assert (await lab.call(f"runs/{body['upload']}/files/{file}", content, method="PUT", lab=name))[0] == 204
    assert (await lab.call(f"runs/{body['upload']}/manifest", lab.manifest(), lab=name))[0] == 202


async def test_a_timer_runs_on_the_server_of_its_repository_alone(two: TwoShards) -> None:
    for shard in two.shards.values():
        await shard.town.bot.timers.tick()
    two.time.advance_to(two.time() + 86_400)
    for shard in two.shards.values():
        await shard.town.bot.timers.tick()
    await two.quiet()
    for owner, shard in two.shards.items():
        repo = shard.town.repo
        assert repo.branch("nightly") == repo.branch("main")
        runs = {guid for guid in await shard.guids() if guid.startswith("timer:")}
        assert len(runs) == 1
        status, _, state = await shard.town.ask(f"/api/v1/repos/{owner}/compiler/nightly")
        assert (status, state["sha"]) == (200, repo.branch("main"))


def test_no_account_and_no_lab_may_belong_to_two_servers() -> None:
    configs = [
        parse_config(CONFIG.format(owner=owner, lab=lab).encode(), "app.yaml")
        for owner, lab in (("octocat", "example-lab"), ("octo-org", "other-lab"), ("hubot", "example-lab"))
    ]
    owners = Owners.of({"http://a": configs[0], "http://b": configs[1]})
    assert owners.of_path("/r/Octo-Org/compiler/labs") == "http://b"
    assert owners.of_path("/api/v1/labs/other-lab/claims") == "http://b"
    assert owners.of_path("/help") == owners.of_webhook(b"not JSON") == owners.of_webhook(b"[]") == "http://a"
    assert owners.of_webhook(b'{"installation": {"account": {"login": "octo-org"}}}') == "http://b"
    # An account that no app.yaml names always reaches the same server, which ignores it.
    assert owners.of_account("Nobody") == owners.of_account("nobody")
    with pytest.raises(ValueError, match="example-lab"):
        Owners.of({"http://a": configs[0], "http://c": configs[2]})
