"""A running sandbox, an App in it, a client with the App's token, and a receiver of webhooks."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import jwt
import pytest
from aiohttp import web
from multidict import CIMultiDictProxy

from sandbox import App, GitHubSandbox, PullRequest, Repository
from tests.serving import served

SECRET = "It's a Secret to Everybody"
REPO = "/repos/octocat/compiler"


@dataclass
class Reply:
    """A complete answer."""

    status: int
    headers: CIMultiDictProxy[str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Client:
    """A client of the sandbox's API with one token; paths that begin with a dot are below the repository."""

    session: aiohttp.ClientSession
    token: str

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        path = path if path.startswith(("/", "http")) else f"{REPO}/{path}".rstrip("/")
        sent = {"Authorization": f"Bearer {self.token}"} | {k.replace("_", "-"): v for k, v in headers.items()}
        data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        async with self.session.request(method, path, data=data, headers=sent) as answer:
            return Reply(answer.status, answer.headers, await answer.text())

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.ask("GET", path, **headers)

    async def post(self, path: str, body: object = None) -> Reply:
        return await self.ask("POST", path, body)

    async def patch(self, path: str, body: object) -> Reply:
        return await self.ask("PATCH", path, body)


@dataclass
class Receiver:
    """A bot that only listens; it checks every signature and answers `status`."""

    url: str = ""
    status: int = 202
    received: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    guids: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Return the received events as `event.action`, in order."""
        return [f"{event}.{body['action']}" if "action" in body else event for event, body in self.received]

    async def take(self, request: web.Request) -> web.Response:
        raw = await request.read()
        expected = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()
        assert request.headers["X-Hub-Signature-256"] == f"sha256={expected}"
        self.received.append((request.headers["X-GitHub-Event"], json.loads(raw)))
        self.guids.append(request.headers["X-GitHub-Delivery"])
        self.headers.append(request.headers)
        return web.Response(status=self.status)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    application = web.Application(client_max_size=2**25)
    application.router.add_post("/webhook", made.take)
    async with served(application) as url:
        made.url = f"{url}/webhook"
        yield made


@pytest.fixture
async def github() -> AsyncIterator[GitHubSandbox]:
    made = GitHubSandbox()
    async with made.serve():
        yield made


@pytest.fixture
def app(github: GitHubSandbox) -> App:
    return github.create_app(webhook_secret=SECRET)


@pytest.fixture
def repo(github: GitHubSandbox, app: App) -> Repository:
    made = github.create_repository("octocat/compiler", people={"hubot": "write", "monalisa": "triage"})
    app.install(made)
    return made


@pytest.fixture
def pull(repo: Repository) -> PullRequest:
    return repo.open_pull_request("hubot", "Fuse before lowering", "Saves a pass.")


@pytest.fixture
async def session(github: GitHubSandbox) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(github.url) as made:
        yield made


def signed(app: App, key: str = "", **claims: object) -> str:
    """Return an App's JSON Web Token, correct except for the given claims."""
    moment = int(app.github.clock.now().timestamp())
    return jwt.encode(
        {"iss": str(app.id), "iat": moment - 60, "exp": moment + 540} | claims, key or app.private_key, "RS256"
    )


@pytest.fixture
def as_app(session: aiohttp.ClientSession, app: App) -> Client:
    return Client(session, signed(app))


@pytest.fixture
async def client(as_app: Client, repo: Repository) -> Client:
    installation = (await as_app.get(f"{REPO}/installation")).json
    answer = await as_app.post(f"/app/installations/{installation['id']}/access_tokens")
    assert answer.status == 201
    return Client(as_app.session, answer.json["token"])
