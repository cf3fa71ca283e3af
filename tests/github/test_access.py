"""What tokens may do: one repository, and those of the needed permissions that the installation grants now."""

from __future__ import annotations

import asyncio

import pytest
from gidgethub import BadRequest, QueryError

from bot.github.access import ISSUES, METADATA, NO_PERMISSIONS, READING, STATUSES, Access, InstalledRepository
from bot.github.app import GitHubApp
from bot.github.client import GitHub
from bot.github.errors import NotInstalled, WriteRefused
from tests.github.scripted import TOKEN_PREFIX, Say, ScriptedGitHub
from tests.github.support import INSTALLATION, REPOSITORY, client_of, refused
from tests.github.virtual import JumpingTime

TOKENS = f"/app/installations/{INSTALLATION}/access_tokens"
ISSUE, STATUS = "/repos/octocat/compiler/issues/1", "/repos/octocat/compiler/statuses/abc"
READ_ALL = {name: "read" for name, _ in READING.levels}
NOT_GRANTED = refused(422, "The permissions requested are not granted to this installation.")
NOT_ACCESSIBLE = refused(403, "Resource not accessible by integration")
FORBIDDEN = Say(body={"data": None, "errors": [{"type": "FORBIDDEN", "message": "Resource not accessible"}]})
LATER = 61  # seconds after which a token may lack a newly granted permission


def token_requests(scripted: ScriptedGitHub) -> list[object]:
    return [request.json for request in scripted.requests_for("POST", TOKENS)]


async def test_a_reader_gets_a_token_that_reads_one_repository(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", ISSUE, Say(body={}))
    await gh.getitem(ISSUE)
    assert token_requests(scripted) == [{"repository_ids": [REPOSITORY], "permissions": READ_ALL}]


async def test_a_write_uses_a_token_with_the_declared_permissions(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    scripted.will("GET", ISSUE, Say(body={}))
    scripted.will("PATCH", ISSUE, Say(body={}))
    github = client_of(scripted_app, permissions=frozenset({ISSUES}))
    await github.getitem(ISSUE)
    assert len(token_requests(scripted)) == 1
    await github.patch(ISSUE, data={})
    await github.getitem(ISSUE)
    assert token_requests(scripted)[1:] == [
        {"repository_ids": [REPOSITORY], "permissions": {"metadata": "read", "issues": "write"}}
    ]
    assert [request.bearer[-1] for request in scripted.requests_for("GET", ISSUE)] == ["1", "1"]
    assert scripted.requests_for("PATCH", ISSUE)[0].bearer == f"{TOKEN_PREFIX}2"


async def test_a_caller_without_declared_permissions_cannot_write(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    github = client_of(scripted_app, permissions=NO_PERMISSIONS)
    with pytest.raises(WriteRefused, match="declare the permissions"):
        await github.post(ISSUE + "/comments", data={})
    with pytest.raises(WriteRefused):
        await github.graphql("mutation { addReaction }")
    assert not scripted.requests


async def test_every_purpose_and_every_repository_has_its_own_token(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    for path in (ISSUE, STATUS):
        scripted.will("POST", path, Say(201, {}))
    for _ in range(3):
        for repository in (1, 2):
            for permission, path in ((ISSUES, ISSUE), (STATUSES, STATUS)):
                await scripted_app.client(InstalledRepository(INSTALLATION, repository), frozenset({permission})).post(
                    path, data={}
                )
    assert scripted.tokens_made == 4


async def test_a_permission_that_is_not_granted_is_left_out(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    """Members may be left out when the App is registered: everything else still works."""
    granted = {**dict.fromkeys(READ_ALL, "write"), "metadata": "read"}
    del granted["members"]
    made = Say(201, {"token": "ghs_1", "expires_at": "2099-01-01T00:00:00Z"})
    scripted.will("POST", TOKENS, NOT_GRANTED, made)
    scripted.will("GET", f"/app/installations/{INSTALLATION}", Say(body={"permissions": granted}))
    scripted.will("GET", ISSUE, Say(body={}))
    await scripted_app.client(InstalledRepository(INSTALLATION, 1)).getitem(ISSUE)
    available = {name: level for name, level in READ_ALL.items() if name != "members"}
    assert [body["permissions"] for body in token_requests(scripted)] == [READ_ALL, available]  # type: ignore[index]


async def test_a_repository_missing_in_the_installation_is_not_requested_twice(
    scripted: ScriptedGitHub, gh: GitHub
) -> None:
    scripted.will("POST", TOKENS, refused(422, "There is at least one repository that does not exist"))
    granted = Say(body={"permissions": dict.fromkeys(READ_ALL, "write")})
    scripted.will("GET", f"/app/installations/{INSTALLATION}", granted)
    with pytest.raises(NotInstalled, match="the App is not installed on the repository"):
        await gh.getitem(ISSUE)
    assert len(token_requests(scripted)) == 1


@pytest.mark.parametrize(("age", "times"), [(59, 1), (60, 2), (LATER, 2)])
async def test_a_403_on_an_old_token_is_tried_again_with_a_new_one(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime, age: int, times: int
) -> None:
    scripted.will("GET", ISSUE, Say(body={}))
    await gh.getitem(ISSUE)
    jumping.now += age
    scripted.will("GET", ISSUE, NOT_ACCESSIBLE)
    with pytest.raises(BadRequest):
        await gh.getitem(ISSUE)
    assert (len(token_requests(scripted)), len(scripted.requests_for("GET", ISSUE)) - 1) == (times, times)


async def test_a_newly_granted_permission_is_used_at_once(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime
) -> None:
    scripted.will("POST", ISSUE, Say(201, {}))
    await gh.post(ISSUE, data={})
    jumping.now += LATER
    scripted.will("POST", ISSUE, NOT_ACCESSIBLE, Say(201, {"id": 5}))
    assert await gh.post(ISSUE, data={}) == {"id": 5}


async def test_many_403s_at_once_request_one_new_token(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime
) -> None:
    scripted.will("GET", ISSUE, Say(body={}))
    await gh.getitem(ISSUE)
    jumping.now += LATER
    scripted.will("GET", ISSUE, *[NOT_ACCESSIBLE] * 10, Say(body={}))
    await asyncio.gather(*(gh.getitem(ISSUE) for _ in range(10)))
    assert scripted.tokens_made == 2


@pytest.mark.parametrize("document", ["{ viewer }", "mutation { addReaction }"])
async def test_graphql_says_forbidden_inside_a_200(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime, document: str
) -> None:
    scripted.will("POST", "/graphql", FORBIDDEN)
    for _ in range(2):  # the token is new, and stays so
        with pytest.raises(QueryError):
            await gh.graphql(document)
    assert len(scripted.requests_for("POST", "/graphql")) == 2
    jumping.now += LATER
    scripted.will("POST", "/graphql", FORBIDDEN, Say(body={"data": {"done": True}}))
    assert await gh.graphql(document) == {"done": True}
    assert scripted.tokens_made == 2


async def test_the_permissions_of_an_installation_can_be_forgotten(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    scripted.will("GET", ISSUE, Say(body={}))
    for installation in (1, 2):
        await client_of(scripted_app, installation).getitem(ISSUE)
    scripted_app.forget(1)
    for installation in (1, 2):
        await client_of(scripted_app, installation).getitem(ISSUE)
    assert [len(scripted.requests_for("POST", f"/app/installations/{n}/access_tokens")) for n in (1, 2)] == [2, 1]


async def test_the_id_of_a_repository_comes_with_its_first_token(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    scripted.will("GET", "/repos/octocat/compiler/installation", Say(body={"id": INSTALLATION}))
    ends = {"token": "ghs_1", "expires_at": "2099-01-01T00:00:00Z", "repositories": [{"id": 5}]}
    scripted.will("POST", TOKENS, Say(201, ends))
    scripted.will("GET", ISSUE, Say(body={}))
    assert await scripted_app.place_of("octocat/compiler") == InstalledRepository(INSTALLATION, 5)
    github = await scripted_app.reader("Octocat/Compiler")
    await github.getitem(ISSUE)
    assert token_requests(scripted) == [{"repositories": ["compiler"], "permissions": READ_ALL}]
    assert len(scripted.requests) == 3


async def test_a_renamed_repository_is_found_by_its_old_name(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    scripted.will("GET", "/repos/octocat/old/installation", Say(body={"id": INSTALLATION}))
    removed = refused(422, "There is at least one repository that does not exist")
    made = Say(201, {"token": "ghs_1", "expires_at": "2099-01-01T00:00:00Z"})
    scripted.will("POST", TOKENS, removed, made)
    granted = Say(body={"permissions": dict.fromkeys(READ_ALL, "write")})
    scripted.will("GET", f"/app/installations/{INSTALLATION}", granted)
    scripted.will("GET", "/repos/octocat/old", Say(body={"id": 5, "full_name": "octocat/new"}))
    assert await scripted_app.place_of("octocat/old") == InstalledRepository(INSTALLATION, 5)
    assert token_requests(scripted)[1] == {"permissions": {"metadata": "read"}}


@pytest.mark.parametrize(
    ("requested", "granted", "expected"),
    [
        ({"issues": "write"}, {"issues": "write"}, {"metadata": "read"} | {"issues": "write"}),
        ({"issues": "write"}, {"issues": "read"}, {"metadata": "read"}),
        ({"issues": "write"}, {"issues": "admin"}, {"metadata": "read"} | {"issues": "write"}),
        ({"issues": "write"}, {}, {"metadata": "read"}),
    ],
)
def test_requested_access_is_never_empty_because_github_takes_that_for_everything(
    requested: dict[str, str], granted: dict[str, str], expected: dict[str, str]
) -> None:
    access = Access.writing(frozenset(requested)).within(granted | {METADATA: "read"})
    assert dict(access.levels) == expected
    assert Access.writing(frozenset()).within({}).levels
