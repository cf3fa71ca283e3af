"""A front for several servers, each with a database of its own: it sends every request to the server that owns it.

An account on GitHub belongs to one server, with all its repositories, and so does each lab. The app.yaml files of the
servers say which ones. The front stores nothing and checks no signature: bodies and headers arrive as they were sent.

docs/decisions/several-databases.md
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
from aiohttp import web
from yarl import URL

from bot.config import Config
from handlers.results.config import labs_of

MOST_BYTES = 25 * 1024 * 1024
"""The largest webhook that GitHub sends."""
ACCOUNTS = (("repository", "owner"), ("installation", "account"), ("organization",))
"""Where payloads name the account: https://docs.github.com/en/webhooks/webhook-events-and-payloads"""
OF_REPOSITORIES, OF_LABS, WEBHOOK = ("/r/", "/api/v1/repos/"), "/api/v1/labs/", "/webhook"
FROM_ALL = ("/api/v1/repos", "/api/v1/labs")
"""Lists of all repositories and labs. Each server returns its own."""
TOTAL = "total"
OF_ONE_HOP = ("connection", "keep-alive", "transfer-encoding", "host")
"""Headers that are not passed on."""
TWO_ACCOUNTS = "{name} is in the app.yaml of two servers"


@dataclass(frozen=True, slots=True)
class Owners:
    """Which of the `servers` owns an account or a lab, by name in lower case: its place in the list."""

    servers: Sequence[str]
    accounts: Mapping[str, int]
    labs: Mapping[str, int]

    @classmethod
    def of(cls, servers: Mapping[str, Config]) -> Self:
        """Read the owners from the app.yaml of each server, by its address. Raises ValueError if two own the same."""
        accounts, labs = dict[str, int](), dict[str, int]()
        for place, config in enumerate(servers.values()):
            for name, settings in config.configured.entries.items():
                _own(accounts, name.partition("/")[0].lower(), place)
                for lab in labs_of(settings):
                    _own(labs, lab.lower(), place)
        return cls(tuple(servers), accounts, labs)

    def of_account(self, account: str) -> str:
        """Return the server of an account. Accounts that no app.yaml names are spread over all of them."""
        name = account.lower()
        return self.servers[self.accounts.get(name, zlib.crc32(name.encode()) % len(self.servers))]

    def of_path(self, path: str) -> str:
        """Return the server of a page or of a call to the API: the first one if it is about no account."""
        for prefix in OF_REPOSITORIES:
            if path.startswith(prefix):
                return self.of_account(path.removeprefix(prefix).partition("/")[0])
        if path.startswith(OF_LABS):
            return self.servers[self.labs.get(path.removeprefix(OF_LABS).partition("/")[0].lower(), 0)]
        return self.servers[0]

    def of_webhook(self, body: bytes) -> str:
        """Return the server of a delivery. One that names no account, such as `ping`, goes to the first server."""
        try:
            payload = json.loads(body)
        except ValueError:
            return self.servers[0]  # which refuses it
        for members in ACCOUNTS:
            account: Any = payload
            for member in (*members, "login"):
                account = account.get(member) if isinstance(account, dict) else None
            if isinstance(account, str):
                return self.of_account(account)
        return self.servers[0]


def _own(owners: dict[str, int], name: str, place: int) -> None:
    if owners.setdefault(name, place) != place:
        raise ValueError(TWO_ACCOUNTS.format(name=name))


class Front:
    """Passes requests on to the servers, and their responses back."""

    def __init__(self, owners: Owners, client: aiohttp.ClientSession) -> None:
        self._owners = owners
        self._client = client

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request as the server that owns it does."""
        if (
            request.method == "GET"
            and request.path in FROM_ALL
            and "text/html" not in request.headers.get("Accept", "")
        ):
            return await self._from_all(request)
        if request.path == WEBHOOK:
            body = await request.read()
            return await self._pass_on(request, self._owners.of_webhook(body), body)
        return await self._pass_on(request, self._owners.of_path(request.path), request.content)

    async def _pass_on(
        self, request: web.Request, server: str, body: bytes | aiohttp.StreamReader
    ) -> web.StreamResponse:
        async with self._client.request(
            request.method,
            URL(server + request.raw_path, encoded=True),
            headers=_passed(request.headers),
            data=body if request.can_read_body or body else None,
            allow_redirects=False,
        ) as answer:
            response = web.StreamResponse(status=answer.status, headers=_passed(answer.headers))
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    async def _from_all(self, request: web.Request) -> web.StreamResponse:
        """Join the lists of all servers. One that cannot answer makes the whole list fail: people must not miss it."""

        async def ask(server: str) -> dict[str, Any]:
            address = URL(server + request.raw_path, encoded=True)
            headers = [*_passed(request.headers, "accept-encoding"), ("Accept-Encoding", "identity")]
            async with self._client.get(address, headers=headers, raise_for_status=True) as answer:
                return dict(await answer.json())

        first, *others = await asyncio.gather(*map(ask, self._owners.servers))
        for page in others:
            first = {member: _joined(member, value, page[member]) for member, value in first.items()}
        return web.json_response(first)


def _joined(member: str, value: Any, other: Any) -> Any:
    """Join a member of two pages: lists and totals are added, and of other numbers the greater one counts."""
    if isinstance(value, list) or member == TOTAL:
        return value + other
    return max(value, other) if isinstance(value, int) else value


def _passed(headers: Mapping[str, str], *others: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers.items() if name.lower() not in (*OF_ONE_HOP, *others)]


def front_application(owners: Owners, client: aiohttp.ClientSession) -> web.Application:
    """Return the front as an application; `client` must not decompress what it gets."""
    application = web.Application(client_max_size=MOST_BYTES)
    application.router.add_route("*", "/{path:.*}", Front(owners, client).handle)
    return application
