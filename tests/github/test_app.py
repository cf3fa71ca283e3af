"""The App: its name, and where it is installed."""

from __future__ import annotations

import asyncio

import pytest

from bot.github.access import InstalledRepository
from bot.github.app import AppIdentity, GitHubApp
from bot.github.errors import AppRefused, NotInstalled
from tests.github.scripted import TOKEN_PREFIX, Say, ScriptedGitHub
from tests.github.support import INSTALLATION, REPOSITORY, client_of, refused
from tests.github.virtual import JumpingTime
from tests.waiting import until

WHERE = "/repos/octocat/compiler/installation"
PLACE = InstalledRepository(INSTALLATION, REPOSITORY)


def name_the_app(scripted: ScriptedGitHub) -> None:
    scripted.will("GET", "/app", Say(body={"id": 7, "slug": "nightjar"}))
    scripted.will("GET", "/users/nightjar[bot]", Say(body={"id": 4711, "login": "nightjar[bot]"}))


async def test_the_app_looks_up_its_own_account_once(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    name_the_app(scripted)
    identities = await asyncio.gather(*(scripted_app.identity(PLACE) for _ in range(20)))
    assert set(identities) == {AppIdentity(7, "nightjar", "nightjar[bot]", 4711)}
    assert await scripted_app.identity(PLACE) == identities[0]
    assert len(scripted.requests_for("GET", "/app")) == 1


async def test_the_apps_user_is_looked_up_with_an_installation_token_because_a_jwt_may_not(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    name_the_app(scripted)
    await scripted_app.identity(PLACE)
    assert scripted.requests_for("GET", "/users/nightjar[bot]")[0].bearer == f"{TOKEN_PREFIX}1"
    requests = scripted.requests_for("POST", f"/app/installations/{INSTALLATION}/access_tokens")
    assert [request.json for request in requests] == [{"permissions": {"metadata": "read"}}]


@pytest.mark.parametrize("other_members", [{}, {"repositories": None}, {"repositories": []}])
async def test_the_id_of_a_repository_is_looked_up_where_its_token_names_none(
    scripted: ScriptedGitHub, scripted_app: GitHubApp, other_members: dict[str, object]
) -> None:
    token = {"token": f"{TOKEN_PREFIX}x", "expires_at": "2999-01-01T00:00:00Z", **other_members}
    scripted.will("GET", WHERE, Say(body={"id": 42}))
    scripted.will("POST", "/app/installations/42/access_tokens", Say(201, token))
    scripted.will("GET", "/repos/octocat/compiler", Say(body={"id": 7}))
    assert await scripted_app.place_of("octocat/compiler") == InstalledRepository(42, 7)


async def test_the_installation_of_a_repository_is_looked_up_once_in_ten_minutes(
    scripted: ScriptedGitHub, scripted_app: GitHubApp, jumping: JumpingTime
) -> None:
    scripted.will("GET", WHERE, Say(body={"id": 42}))
    ids = await asyncio.gather(*(scripted_app.installation_for("octocat/compiler") for _ in range(20)))
    assert set(ids) == {42}
    assert await scripted_app.installation_for("Octocat/Compiler") == 42
    assert len(scripted.requests) == 1
    jumping.now += 601
    await scripted_app.installation_for("octocat/compiler")
    assert len(scripted.requests) == 2


async def test_an_installation_that_changed_during_the_request_is_not_cached(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    late = asyncio.Event()
    scripted.will("GET", WHERE, Say(body={"id": 42}, released=late), Say(body={"id": 43}))
    first = asyncio.ensure_future(scripted_app.installation_for("octocat/compiler"))
    await until(lambda: scripted.requests)
    scripted_app.forget(42)
    second = asyncio.ensure_future(scripted_app.installation_for("octocat/compiler"))
    await until(lambda: len(scripted.requests) == 2)
    assert await second == 43
    late.set()
    assert await first == 42
    assert await scripted_app.installation_for("octocat/compiler") == 43


async def test_a_repository_without_the_app_is_named(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    scripted.will("GET", WHERE, refused(404))
    scripted.will("GET", "/app", Say(body={"id": 7}))
    with pytest.raises(NotInstalled, match="octocat/compiler: the App is not installed"):
        await scripted_app.installation_for("octocat/compiler")


async def test_a_rejected_key_is_reported_in_githubs_words(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    scripted.will("GET", WHERE, refused(401, "Integration must generate a public key"))
    with pytest.raises(AppRefused, match="public key"):
        await scripted_app.installation_for("octocat/compiler")


async def test_a_404_for_every_path_means_that_no_app_has_the_id(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    """GitHub answers 404 `Integration not found` to a JWT of an App that does not exist."""
    for method, path in (("GET", WHERE), ("GET", "/app"), ("POST", "/app/installations/42/access_tokens")):
        scripted.will(method, path, refused(404, "Integration not found"))
    with pytest.raises(AppRefused, match="there is no App with the ID 7"):
        await scripted_app.installation_for("octocat/compiler")
    assert "GITHUB_APP_ID" in (scripted_app.refused or "")
    with pytest.raises(AppRefused, match="there is no App with the ID 7"):
        await client_of(scripted_app, 42).getitem("/repos/octocat/compiler")
