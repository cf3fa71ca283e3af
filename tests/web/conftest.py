"""The web application on a free port, in front of a real engine on a real database."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bot.app import timers_route
from bot.app.load import parse_config
from bot.app.services import list_commands_of
from bot.core.health import HealthCheck
from bot.core.metrics import Metrics
from bot.engine.service import Engine
from bot.github.repositories.visibility import PublicRepositories
from bot.web.access import ApiAccess
from bot.web.app import Parts, create_app, create_runner
from bot.web.bodies import IN_FLIGHT, Bodies
from bot.web.connections import Connections, LimitedSite
from bot.web.webhook import MAX_BODY
from handlers.ci_decisions import route as ci_decisions
from handlers.last_good import route as last_good_route
from handlers.nightly import route as nightly_route
from handlers.results import route as results
from handlers.results.listing import RunQuery, RunWithCheck
from tests.tables import with_tables
from tests.waiting import until

APP_YAML = b"""
repositories:
  octocat/compiler: {rerun: {allow: [maintain]}}
  octocat/secret:
"""
SECRET, NEXT_SECRET = b"the secret that is in use", b"the secret that comes next"
DECISION = {
    "sha": "6dcb09b5b57875f334f61aebed695e2e4193db5e",
    "level": "main",
    "run_slow_tests": {"value": True, "reason": "queries"},
    "skip_ci": {"value": False, "reason": "codegen.cc matters"},
    "docs_only": {"value": False, "reason": "code is changed"},
    "rebuild_docker": {"value": False, "reason": "nothing is changed"},
}


@dataclass
class Site:
    """A running web application and its client.

    `decisions` are answered, or raised. `runs` are those of octocat/compiler, and `queries` the queries for them;
    `warnings` says why the check `bucket` fails.
    """

    url: str
    app: web.Application
    client: aiohttp.ClientSession
    engine: Engine
    metrics: Metrics
    bodies: Bodies
    decisions: dict[tuple[str, int | str], Mapping[str, Any] | Exception] = field(default_factory=dict)
    runs: list[RunWithCheck] = field(default_factory=list)
    queries: list[RunQuery] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def headers(self, body: bytes, guid: str = "guid-1", secret: bytes = SECRET) -> dict[str, str]:
        """Return the headers of a webhook as GitHub sends them."""
        return {
            "X-Hub-Signature-256": "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest(),
            "X-Hub-Signature": "sha1=" + hmac.new(secret, body, hashlib.sha1).hexdigest(),
            "X-GitHub-Event": "issue_comment",
            "X-GitHub-Delivery": guid,
            "Content-Type": "application/json",
        }

    async def post(
        self, body: bytes = b"{}", headers: Mapping[str, str | None] | None = None, **basis: Any
    ) -> tuple[int, dict[str, Any]]:
        """Send a webhook; a header that is None is left out. Return the status and the JSON answer."""
        all_headers = {**self.headers(body, **basis), **(headers or {})}
        sent = {name: value for name, value in all_headers.items() if value is not None}
        skip = [name for name, value in all_headers.items() if value is None]
        async with self.client.post(
            f"{self.url}/webhook", data=io.BytesIO(body), headers=sent, skip_auto_headers=skip
        ) as answer:
            return answer.status, json.loads(await answer.read())

    async def get(self, path: str, method: str = "GET") -> tuple[int, Mapping[str, str], bytes]:
        """Request a path; return status, headers and body."""
        async with self.client.request(method, self.url + path) as answer:
            return answer.status, answer.headers, await answer.read()

    async def holds(self, count: int) -> None:
        """Wait until the server holds this many bytes of bodies."""
        await until(lambda: self.bodies.held == count)

    async def stored(self) -> list[str]:
        """Return the GUIDs in the inbox, oldest first."""
        return [record.guid for record in reversed(await self.engine.journal.recent())]


@asynccontextmanager
async def running_site(database_url: str, body_bytes: int = IN_FLIGHT, public: bool = True) -> AsyncIterator[Site]:
    """Serve the application of an engine that does not work, so tests can inspect what was stored."""
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine(with_tables(database_url)))
        metrics = Metrics("1.2.3", {"issue_comment"})
        decisions: dict[tuple[str, int | str], Mapping[str, Any] | Exception] = {}

        async def decide(repository: str, number: int, sha: str) -> Mapping[str, Any]:
            answer = decisions.get((repository, number), LookupError())
            if isinstance(answer, Exception):
                raise answer
            return {**answer, "sha": sha or answer["sha"]}

        async def decide_commit(repository: str, sha: str, branch: str) -> Mapping[str, Any]:
            answer = decisions.get((repository, f"{sha}@{branch}"), LookupError())
            if isinstance(answer, Exception):
                raise answer
            return answer

        runs: list[RunWithCheck] = []
        queries: list[RunQuery] = []
        warnings: list[str] = []

        async def list_runs(query: RunQuery) -> list[RunWithCheck]:
            queries.append(query)
            if query.repository != "octocat/compiler":
                raise LookupError(query.repository)
            keys = [listed.run.key for listed in runs]
            start = keys.index(query.before) + 1 if query.before else 0
            return runs[start : start + query.limit]

        async def nothing_of(repository: str) -> Any:
            raise LookupError(repository)

        async def verify(text: str) -> None:
            return None

        async def is_public(repository: str) -> bool:
            return public

        async def list_public() -> PublicRepositories:
            return PublicRepositories(["octocat/compiler"] if public else [], incomplete=False)

        async def refresh() -> None:
            backlog = await engine.backlog()
            metrics.set_queue(backlog.waiting, backlog.oldest_seconds, 1)

        bodies, connections = Bodies(body_bytes, MAX_BODY), Connections(256)
        app = create_app(
            Parts(
                inbox=engine,
                bodies=bodies,
                connections=connections,
                access=ApiAccess(verify, is_public),
                repositories=["octocat/compiler"],
                is_public=is_public,
                list_public=list_public,
                secrets=[SECRET, NEXT_SECRET],
                checks=[
                    HealthCheck("engine", engine.ready),
                    HealthCheck("bucket", lambda: next(iter(warnings), None), fatal=False),
                ],
                refresh=refresh,
                routes=[
                    *ci_decisions.operations(decide, decide_commit),
                    results.operation(list_runs),
                    timers_route.operation(nothing_of),
                    nightly_route.operation(nothing_of),
                    last_good_route.operation(nothing_of),
                ],
                metrics=metrics,
                version="1.2.3",
                mentions=["@ci"],
                list_commands=list_commands_of(parse_config(APP_YAML, "app.yaml"), engine.records),
            )
        )
        runner = create_runner(app)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await LimitedSite(runner, "127.0.0.1", 0, connections).start()
        client = await stack.enter_async_context(aiohttp.ClientSession())
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield Site(url, app, client, engine, metrics, bodies, decisions, runs, queries, warnings)


@pytest.fixture
async def site(sqlite_url: str) -> AsyncIterator[Site]:
    """Return the application on SQLite."""
    async with running_site(sqlite_url) as running:
        yield running
