"""Who an App is, and what its tokens allow."""

from __future__ import annotations

import time

import aiohttp
import pytest

from sandbox import App, GitHubSandbox, PullRequest, Repository
from sandbox.model.apps import new_private_key

from .conftest import REPO, Client, signed

pytestmark = pytest.mark.one_clock
STATUS = {"state": "success", "context": "ci/slow-tests"}


async def test_an_app_with_a_correct_signature_is_recognized(as_app: Client, app: App) -> None:
    answer = await as_app.get("/app")
    assert (answer.status, answer.json["slug"], answer.json["id"]) == (200, "nightjar", app.id)


async def test_a_token_with_another_key_or_time_is_refused(
    session: aiohttp.ClientSession, app: App, github: GitHubSandbox
) -> None:
    moment = int(time.time())
    refused = [
        signed(app, key=new_private_key("another")),
        signed(app, exp=moment - 1),
        signed(app, exp=moment + 1200),
        signed(app, iat=moment + 60),
        "nonsense",
    ]
    assert [(await Client(session, token).get("/app")).status for token in refused] == [401] * len(refused)
    answer = await Client(session, signed(app, iss="4")).get("/app")
    assert (answer.status, answer.json["message"]) == (404, "Integration not found")


async def test_without_credentials_nothing_is_answered(session: aiohttp.ClientSession) -> None:
    async with session.get("/app") as answer:
        assert answer.status == 401


async def test_an_installation_token_expires_after_an_hour(
    client: Client, github: GitHubSandbox, pull: PullRequest
) -> None:
    assert (await client.get("pulls/1")).status == 200
    github.clock.advance(seconds=3601)
    answer = await client.get("pulls/1")
    assert (answer.status, answer.json["message"]) == (401, "Bad credentials")


async def test_tokens_can_be_made_to_expire_early(client: Client, github: GitHubSandbox, pull: PullRequest) -> None:
    github.tokens.expire_all()
    assert (await client.get("pulls/1")).status == 401


async def test_a_token_can_be_limited_to_less_than_the_app_may(
    as_app: Client, client: Client, app: App, pull: PullRequest
) -> None:
    path = f"/app/installations/{next(iter(app.installations))}/access_tokens"
    narrow = (await as_app.post(path, {"permissions": {"statuses": "read"}})).json["token"]
    answer = await Client(client.session, narrow).post(f"statuses/{pull.head_sha}", STATUS)
    assert (answer.status, answer.json["message"]) == (403, "Resource not accessible by integration")
    assert (await as_app.post(path, {"permissions": {"administration": "write"}})).status == 422


@pytest.mark.parametrize(
    ("permission", "method", "path", "body"),
    [
        ("statuses", "POST", "statuses/{sha}", STATUS),
        ("checks", "POST", "check-runs", {"name": "lint", "head_sha": "{sha}"}),
        ("actions", "GET", "actions/runs", None),
        ("pull_requests", "POST", "pulls/1/requested_reviewers", {"reviewers": ["octocat"]}),
        ("contents", "PUT", "pulls/1/merge", {}),
    ],
)
async def test_each_group_of_routes_needs_its_permission(
    client: Client, app: App, pull: PullRequest, as_app: Client, permission: str, method: str, path: str, body: object
) -> None:
    del app.permissions[permission]
    tokens = f"/app/installations/{next(iter(app.installations))}/access_tokens"
    lesser = Client(client.session, (await as_app.post(tokens)).json["token"])
    filled = {k: pull.head_sha if v == "{sha}" else v for k, v in body.items()} if isinstance(body, dict) else None
    answer = await lesser.ask(method, path.replace("{sha}", pull.head_sha), filled)
    assert answer.status == 403


async def test_repositories_without_the_app_are_hidden_or_read_only(client: Client, github: GitHubSandbox) -> None:
    github.create_repository("octocat/secret", private=True)
    github.create_repository("octocat/open").open_issue("hubot", "Broken")
    assert (await client.get("/repos/octocat/secret")).status == 404
    assert (await client.get("/repos/octocat/nowhere")).status == 404
    assert (await client.get("/repos/octocat/open/issues/1")).status == 200
    assert (await client.post("/repos/octocat/open/issues/1/comments", {"body": "Hi"})).status == 403


async def test_an_app_finds_its_installation_only_where_it_is_installed(
    as_app: Client, repo: Repository, github: GitHubSandbox
) -> None:
    github.create_repository("octocat/open")
    assert (await as_app.get(f"{REPO}/installation")).json["account"]["login"] == "octocat"
    assert (await as_app.get("/repos/octocat/open/installation")).status == 404


async def test_a_suspended_installation_answers_403(client: Client, app: App, pull: PullRequest) -> None:
    next(iter(app.installations.values())).suspend()
    assert (await client.get("pulls/1")).status == 403


async def test_the_bot_has_its_own_account(client: Client) -> None:
    answer = await client.get("/users/nightjar%5Bbot%5D")
    assert (answer.json["login"], answer.json["type"]) == ("nightjar[bot]", "Bot")
