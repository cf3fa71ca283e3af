"""One read token for each installation: used for listed repositories only, and for no address but theirs."""

from __future__ import annotations

import pytest
from gidgethub import BadRequest

from bot.github.access import ISSUES, READING, InstalledRepository
from bot.github.app import GitHubApp
from bot.github.client import GitHub
from bot.github.errors import NotSelected
from tests.github.scripted import Say, ScriptedGitHub
from tests.github.support import INSTALLATION, Apps, refused

TOKENS = f"/app/installations/{INSTALLATION}/access_tokens"
READ_ALL = {name: "read" for name, _ in READING.levels}
SHARED = {"permissions": READ_ALL}
SECRET = "/repos/octocat/secret/issues/1"


def listed(app: GitHubApp, *names: str) -> list[GitHub]:
    """Say that GitHub lists these repositories, with the IDs 1, 2 and so on; return a client of each."""
    places = [InstalledRepository(INSTALLATION, number) for number in range(1, len(names) + 1)]
    for name, place in zip(names, places, strict=True):
        app.note_listed(name, place, name, app.changes(INSTALLATION))
    return [app.client(place, frozenset({ISSUES})) for place in places]


def token_requests(scripted: ScriptedGitHub) -> list[object]:
    return [request.json for request in scripted.requests_for("POST", TOKENS)]


async def test_all_repositories_of_an_installation_are_read_with_one_token(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    names = [f"octocat/compiler-{number}" for number in range(20)]
    for name, github in zip(names, listed(scripted_app, *names), strict=True):
        scripted.will("GET", f"/repos/{name}/issues/1", Say(body={}))
        await github.getitem("/repos/{+repo}/issues/1", {"repo": name})
    assert token_requests(scripted) == [SHARED]


async def test_a_write_has_a_token_for_one_repository_and_the_permissions_of_the_effect(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    scripted.will("POST", "/repos/octocat/compiler/issues", Say(201, {}))
    (github,) = listed(scripted_app, "octocat/compiler")
    await github.post("/repos/octocat/compiler/issues", data={})
    assert token_requests(scripted) == [{"repository_ids": [1], "permissions": {"metadata": "read", "issues": "write"}}]


@pytest.mark.parametrize(
    "path",
    [
        SECRET,
        "/repos/octocat/compiler-secret/issues/1",
        "/repos/octocat/compiler/contents/%2e%2e/%2e%2e/%2e%2e/octocat/secret/issues/1",
        "/repositories/2/issues/1",
        "/orgs/octocat/teams/hexagon/members",
        "/search/issues?q=repo:octocat/secret",
    ],
)
async def test_an_address_that_is_not_of_the_repository_is_read_with_a_token_of_the_repository_alone(
    scripted: ScriptedGitHub, scripted_app: GitHubApp, path: str
) -> None:
    """The token of the installation reads a private repository as well: nothing of it may reach another one's pages."""
    github, _ = listed(scripted_app, "octocat/compiler", "octocat/secret")
    with pytest.raises(BadRequest):
        await github.getitem(path)
    assert token_requests(scripted) == [{"repository_ids": [1], "permissions": READ_ALL}]


async def test_graphql_is_asked_with_a_token_of_the_repository_alone(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    scripted.will("POST", "/graphql", Say(body={"data": {}}))
    github, _ = listed(scripted_app, "octocat/compiler", "octocat/secret")
    await github.graphql("query { viewer { login } }")
    assert token_requests(scripted) == [{"repository_ids": [1], "permissions": READ_ALL}]


async def test_a_repository_that_is_not_listed_or_was_renamed_since_has_a_token_of_its_own(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    """A name of a payload does not count: the old name of a repository may be that of a private one by now."""
    (github,) = listed(scripted_app, "octocat/compiler")
    new = "/repos/octocat/compiler-next/issues/1"
    scripted.will("GET", new, Say(body={}))
    await github.getitem(new)
    scripted_app.forget(INSTALLATION)
    scripted.will("GET", "/repos/octocat/compiler/issues/1", Say(body={}))
    place = InstalledRepository(INSTALLATION, 1)
    await scripted_app.client(place).getitem("/repos/octocat/compiler/issues/1")
    assert token_requests(scripted) == [{"repository_ids": [1], "permissions": READ_ALL}] * 2


async def test_a_list_that_is_older_than_a_change_is_not_used(scripted_app: GitHubApp) -> None:
    changes, place = scripted_app.changes(INSTALLATION), InstalledRepository(INSTALLATION, 1)
    scripted_app.forget(INSTALLATION)
    scripted_app.note_listed("octocat/compiler", place, "octocat/compiler", changes)
    assert scripted_app._shared_reading(place) is None


async def test_a_listed_repository_is_found_by_its_name_in_app_yaml_without_a_request(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    place = InstalledRepository(INSTALLATION, 5)
    scripted_app.note_listed("octocat/Compiler", place, "octocat/compiler-next", scripted_app.changes(INSTALLATION))
    assert await scripted_app.place_of("Octocat/compiler") == place
    assert await scripted_app.installation_for("octocat/compiler-next") == INSTALLATION
    assert not scripted.requests


async def test_a_404_of_a_repository_that_was_taken_from_the_installation_is_not_taken_for_a_missing_object(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    """GitHub goes on to make tokens of the installation, so only the repository itself shows that it was removed."""
    (github,) = listed(scripted_app, "octocat/compiler")
    for path in ("/repos/octocat/compiler", "/repos/octocat/compiler/issues/1"):
        scripted.will("GET", path, refused(404))
    for _ in range(2):
        with pytest.raises(NotSelected) as raised:
            await github.getitem("/repos/octocat/compiler/issues/1")
        assert raised.value.repository == 1


async def test_a_404_of_a_missing_object_is_confirmed_once_for_all_clients(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    scripted.will("GET", "/repos/octocat/compiler", Say(body={"id": 1}))
    for number in range(3):
        scripted.will("GET", f"/repos/octocat/compiler/issues/{number}", refused(404))
        (github,) = listed(scripted_app, "octocat/compiler")
        with pytest.raises(BadRequest):
            await github.getitem(f"/repos/octocat/compiler/issues/{number}")
    assert len(scripted.requests_for("GET", "/repos/octocat/compiler")) == 1


async def test_a_404_under_a_name_that_another_repository_has_now_does_not_count(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    scripted.will("GET", "/repos/octocat/compiler", Say(body={"id": 2}))
    scripted.will("GET", "/repos/octocat/compiler/issues/1", refused(404))
    (github,) = listed(scripted_app, "octocat/compiler")
    with pytest.raises(NotSelected):
        await github.getitem("/repos/octocat/compiler/issues/1")


async def test_the_addresses_of_an_enterprise_server_begin_with_a_path(
    scripted: ScriptedGitHub, make_app: Apps
) -> None:
    path = "/api/v3"
    app = make_app(api_url=f"{scripted.url}{path}")
    place = InstalledRepository(INSTALLATION, 1)
    app.note_listed("octocat/compiler", place, "octocat/compiler", app.changes(INSTALLATION))
    shared = app._shared_reading(place)
    assert shared is not None
    assert shared.covers(f"{scripted.url}{path}/repos/octocat/Compiler/issues?page=2")
    assert not shared.covers(f"{scripted.url}/repos/octocat/compiler/issues")
