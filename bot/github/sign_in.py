"""Sign people in with GitHub: the App's user-to-server OAuth flow, and requests with a person's own token.

These requests don't go through `bot.github.client`: that applies the limits of installations, and here each person has
their own.
https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from nightjar_formats.strict_json import read_json

from bot.core.errors import TryAgain
from bot.core.events import Payload, Person
from bot.core.web_json import read_body
from bot.github.client import API_VERSION, USER_AGENT
from bot.github.transport.graphql import graphql_url

TIMEOUT = aiohttp.ClientTimeout(total=10, sock_connect=5)
"""Seconds: a person waits for the answer."""
LARGEST = 512 * 1024
"""The most bytes of an answer that are read."""
MOST_REPOSITORIES = 100
"""The most repositories in one query."""
WRITERS = frozenset({"WRITE", "MAINTAIN", "ADMIN"})
WITH_EXPLICIT_ACCESS = WRITERS | {"TRIAGE"}
"""In a public repository everybody has READ: https://docs.github.com/en/graphql/reference/enums#repositorypermission."""

AWAY = "GitHub did not answer {what} ({problem})"
ODD = "GitHub's answer to {what} cannot be read"
REFUSED = "GitHub refused the code ({kind})"
NOT_VALID = "GitHub no longer accepts the token"


class SignInRefused(Exception):
    """GitHub refuses to exchange a code for a token; `kind` is the name of its error."""

    def __init__(self, kind: str) -> None:
        super().__init__(REFUSED.format(kind=kind[:60]))
        self.kind = kind


class TokenEnded(Exception):
    """A person's token was revoked or has expired."""


@dataclass(frozen=True, slots=True)
class PersonToken:
    """A user access token; `lifetime` is in seconds, None if it does not expire."""

    value: str = field(repr=False)
    lifetime: float | None


@dataclass(frozen=True, slots=True)
class RepositoryAccess:
    """The ID of a repository that a person has explicit access to, and whether they have the write role or a higher."""

    id: int
    may_write: bool


class SignInClient:
    """Asks GitHub on behalf of people. All methods that send requests raise `TryAgain` while GitHub does not answer."""

    def __init__(
        self, session: aiohttp.ClientSession, *, github_url: str, api_url: str, client_id: str, client_secret: str
    ) -> None:
        self._session = session
        self._github = github_url.rstrip("/")
        self._api = api_url.rstrip("/")
        self._id = client_id
        self._secret = client_secret

    def __repr__(self) -> str:
        return f"SignInClient({self._id})"

    def authorize_url(self, redirect_uri: str, state: str, challenge: str) -> str:
        """Return the URL at which a person signs in; `challenge` is the PKCE challenge (S256)."""
        query = {
            "client_id": self._id,
            "redirect_uri": redirect_uri,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{self._github}/login/oauth/authorize?{urlencode(query)}"

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> PersonToken:
        """Return the token for a code. Raises `SignInRefused`."""
        form = {
            "client_id": self._id,
            "client_secret": self._secret,
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        # GitHub reports errors with status 200 too.
        answer = await self._request("POST", f"{self._github}/login/oauth/access_token", {}, form=form)
        if error := answer.text("error"):
            raise SignInRefused(error)
        lifetime = answer.integer("expires_in") if answer.has("expires_in") else None
        return PersonToken(answer.string("access_token"), lifetime)

    async def person(self, token: str) -> Person:
        """Return the owner of a token. Raises `TokenEnded`."""
        return Person.of(await self._request("GET", f"{self._api}/user", _bearer(token)))

    async def readable(self, token: str, repositories: Sequence[str]) -> dict[str, RepositoryAccess]:
        """Return the access of a person to those repositories (`owner/name`) that they have it to, with one query.

        For a public repository, that means the triage role or a higher one. Raises `TokenEnded`, and ValueError for
        more than 100 repositories.
        """
        if len(repositories) > MOST_REPOSITORIES:
            raise ValueError(f"more than {MOST_REPOSITORIES} repositories")
        names, fields = [], []
        variables: dict[str, str] = {}
        for number, repository in enumerate(repositories):
            owner, _, name = repository.partition("/")
            variables |= {f"o{number}": owner, f"n{number}": name}
            names.append(f"$o{number}: String!, $n{number}: String!")
            fields.append(
                f"r{number}: repository(owner: $o{number}, name: $n{number})"
                " { databaseId isPrivate viewerPermission }"
            )
        query = f"query({', '.join(names)}) {{ {' '.join(fields)} }}"
        body = {"query": query, "variables": variables}
        answer = await self._request("POST", graphql_url(self._api), _bearer(token), content=body)
        # A repository that the person cannot see is null, and `errors` has an entry for it.
        return _readable(answer.at("data"), repositories)

    async def revoke(self, token: str) -> None:
        """Revoke a token; it may already be invalid."""
        auth = {"Authorization": aiohttp.encode_basic_auth(self._id, self._secret)}
        await self._request(
            "DELETE",
            f"{self._api}/applications/{quote(self._id, safe='')}/token",
            auth,
            content={"access_token": token},
            accepted=(204, 404, 422),
        )

    async def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        *,
        form: Mapping[str, str] | None = None,
        content: Mapping[str, Any] | None = None,
        accepted: Sequence[int] = (200,),
    ) -> Payload:
        """Send a request; a redirect is an error. Raises `TokenEnded` for a 401, `TryAgain` for any other problem."""
        request = f"{method} {url.removeprefix(self._api).removeprefix(self._github).partition('?')[0]}"
        all_headers = {
            "Accept": "application/json",
            "User-Agent": USER_AGENT,
            "X-GitHub-Api-Version": API_VERSION,
            **headers,
        }
        try:
            async with self._session.request(
                method, url, headers=all_headers, data=form, json=content, allow_redirects=False, timeout=TIMEOUT
            ) as response:
                status, body = response.status, await read_body(response, LARGEST)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            problem = type(error).__name__
        else:
            if status == 401:
                raise TokenEnded(NOT_VALID)
            if status in accepted:
                return _payload(body, request)
            problem = str(status)
        # Raise outside the `except`: aiohttp's errors hold the request's headers, and with them the token.
        raise TryAgain(AWAY.format(what=request, problem=problem))


def _readable(data: Payload, repositories: Sequence[str]) -> dict[str, RepositoryAccess]:
    readable = {}
    for number, repository in enumerate(repositories):
        if not data.has(f"r{number}", "databaseId"):
            continue
        description = data.at(f"r{number}")
        permission = description.text("viewerPermission")
        if description.raw.get("isPrivate") is True or permission in WITH_EXPLICIT_ACCESS:
            readable[repository] = RepositoryAccess(description.integer("databaseId"), permission in WRITERS)
    return readable


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _payload(body: bytes, request: str) -> Payload:
    try:
        value = read_json(body) if body else {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise TryAgain(ODD.format(what=request))
    return Payload(value, request, is_answer=True)
