"""How soon somebody who has lost access to a repository can no longer read about it."""

from __future__ import annotations

import aiohttp
from aiohttp.test_utils import make_mocked_request

from bot.core.events import Person
from bot.engine.service import Engine
from bot.github.sign_in import RepositoryAccess, SignInClient
from bot.web.sign_in.cookies import SESSION_COOKIE, OwnOrigin
from bot.web.sign_in.forms import FormTokens
from bot.web.sign_in.keys import SignInKeys
from bot.web.sign_in.sessions import Sessions
from bot.web.sign_in.viewers import FRESH_SECONDS, SignInParts, Viewers
from sandbox import GitHubSandbox
from sandbox.model.sign_in import challenge_of
from tests.tables import with_tables

REPOSITORY = "octocat/secret"


async def test_access_ends_within_a_minute_and_a_revoked_token_ends_the_session(sqlite_url: str) -> None:
    clock, github = [0.0], GitHubSandbox()
    async with github.serve() as url, Engine(with_tables(sqlite_url)) as engine, aiohttp.ClientSession() as session:
        app = github.create_app("nightjar")
        repository = github.create_repository(REPOSITORY, private=True, people={"hubot": "read"})
        app.install(repository)
        client = SignInClient(
            session, github_url=url, api_url=url, client_id=app.client_id, client_secret=app.client_secret
        )
        code = github.sign_ins.authorize(app, github.user("hubot"), "http://127.0.0.1/", challenge_of("v" * 43))
        token = await client.exchange(code, "v" * 43, "http://127.0.0.1/")
        keys = SignInKeys("s" * 32)
        sessions = Sessions(engine.records, keys)
        viewers = Viewers(
            SignInParts(client, sessions, FormTokens(keys), OwnOrigin(None), engine.records), lambda: clock[0]
        )
        cookie, _ = await sessions.begin(Person(github.user("hubot").id, "hubot", is_bot=False), token)

        async def reads() -> bool:
            request = make_mocked_request("GET", "/", {"Cookie": f"{SESSION_COOKIE}={cookie}"})
            return await viewers.may_read(request, REPOSITORY)

        assert await reads()
        repository.set_role("hubot", "none")
        clock[0] += FRESH_SECONDS
        assert not await reads()
        repository.set_role("hubot", "read")
        clock[0] += FRESH_SECONDS
        assert await reads()
        github.sign_ins.revoke(token.value)
        clock[0] += FRESH_SECONDS
        assert not await reads()
        assert await sessions.find(cookie) is None
        # A public repository with private results: everybody may read the former, people with a role the latter.
        repository.private = False
        assert await client.readable(await again(client, github), [REPOSITORY]) == {}
        repository.set_role("hubot", "triage")
        access = RepositoryAccess(repository.id, may_write=False)
        assert await client.readable(await again(client, github), [REPOSITORY]) == {REPOSITORY: access}


async def again(client: SignInClient, github: GitHubSandbox) -> str:
    """Return a new token of hubot."""
    (app,) = github.apps.values()
    code = github.sign_ins.authorize(app, github.user("hubot"), "http://127.0.0.1/", "")
    return (await client.exchange(code, "v" * 43, "http://127.0.0.1/")).value
