"""The API of a private repository tells strangers nothing, and holders of its token everything."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from sandbox import PullRequest
from tests.conversations.town import CONFIG, Town
from tests.conversations.town import town as start_town
from tests.running import Finished, run

ROUTES = (
    "pulls/1/decision",
    f"commits/{'d' * 40}/decision",
    "results/runs",
    "results/failures?lab=example-lab&target=adreno",
    "timers",
    "nightly",
    "last-good",
)
NO_TOKEN = (
    "There is no public repository with this name here. For a private one send its token: Authorization: Bearer "
    "TOKEN. The operator of the bot creates one with `nightjar token create OWNER/NAME`."
)
BAD_TOKEN = (
    "The token is unknown, revoked or expired. The operator of the bot creates a new one with "
    "`nightjar token create OWNER/NAME`."
)


async def fetch(town: Town, path: str, token: str = "", **headers: str) -> tuple[int, Mapping[str, str], Any]:
    """GET a path of the bot's own; returns status, headers and JSON."""
    request_headers = {"Authorization": f"Bearer {token}", **headers} if token else headers
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{town.url}{path}", headers=request_headers) as response,
    ):
        return response.status, response.headers, await response.json(content_type=None)


def path_of(pull: PullRequest | None = None, repository: str = "octocat/compiler", route: str = "") -> str:
    return f"/api/v1/repos/{repository}/{route or f'pulls/{pull.number if pull else 1}/decision'}"


async def command(folder: Path, *arguments: str, **env: str) -> Finished:
    """Run `nightjar` beside the running bot."""
    (folder / "app.yaml").write_text(CONFIG)
    return await run(*arguments, env={"DATABASE_URL": f"sqlite:///{folder}/nightjar.db", **env}, cwd=folder)


async def create_token(folder: Path, *arguments: str) -> dict[str, Any]:
    finished = await command(folder, "token", "create", *arguments, "--json")
    assert finished.status == 0, finished
    created: dict[str, Any] = json.loads(finished.out)
    return created


async def test_strangers_get_the_same_answer_for_a_private_repository_and_a_missing_one(town: Town) -> None:
    town.repo.private = True
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    answers = [
        await fetch(town, path_of(repository=name, route=route))
        for route in ROUTES
        for name in ("octocat/compiler", "octocat/elsewhere")
    ]
    answers.append(await fetch(town, path_of(pull)))
    for status, headers, problem in answers:
        assert (status, problem) == (
            401,
            {"type": "about:blank", "title": "Unauthorized", "status": 401, "detail": NO_TOKEN},
        )
        assert headers["WWW-Authenticate"] == 'Bearer realm="nightjar"'
        assert headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("lost", [False, True])
async def test_strangers_can_no_longer_read_once_the_repository_is_private(
    town: Town, tmp_path: Path, lost: bool
) -> None:
    """If GitHub's event about that change is lost, the next payload shows it."""
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    assert (await fetch(town, path_of(pull)))[0] == 200
    if lost:
        town.github.webhooks.lose("repository")
    town.repo.privatize("octocat")
    pull.comment("hubot", "Still faster")
    await town.quiet()
    status, _, problem = await fetch(town, path_of(pull))
    assert (status, problem["detail"]) == (401, NO_TOKEN)
    created = await create_token(tmp_path, "octocat/compiler")
    assert (await fetch(town, path_of(pull), created["token"]))[0] == 200


async def test_a_token_of_the_repository_gives_programs_access(town: Town, tmp_path: Path) -> None:
    town.repo.private = True
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    created = await create_token(tmp_path, "OctoCat/Compiler", "--note", "Jenkins")
    status, _, decision = await fetch(town, path_of(pull), created["token"])
    assert (status, decision["sha"]) == (200, pull.head_sha)
    assert (await fetch(town, path_of(route="timers"), created["token"]))[0] == 200
    assert (await fetch(town, path_of(route="nightly"), created["token"]))[0] == 404
    elsewhere = await fetch(town, path_of(repository="octocat/elsewhere"), created["token"])
    assert (elsewhere[0], elsewhere[2]["detail"]) == (401, NO_TOKEN)
    listed = json.loads((await command(tmp_path, "token", "list", "--json")).out)
    assert listed == [{key: value for key, value in created.items() if key != "token"}]
    assert (listed[0]["repository"], listed[0]["note"]) == ("octocat/compiler", "Jenkins")
    listing = await command(tmp_path, "token", "list")
    assert created["id"] in listing.out
    assert "Jenkins" in listing.out
    assert created["token"] not in listing.out
    revoked = await command(tmp_path, "token", "revoke", created["id"])
    assert revoked.out == f"revoked {created['id']}\n"
    status, headers, problem = await fetch(town, path_of(pull), created["token"])
    assert (status, problem["detail"]) == (401, BAD_TOKEN)
    assert headers["WWW-Authenticate"] == 'Bearer realm="nightjar", error="invalid_token"'


@pytest.mark.parametrize(
    "authorization",
    ["Bearer x", "Bearer " + "x" * 3000, "Basic b2N0b2NhdDpo", "Bearer", "Bearer nightjar_0_0", "bearer \xe9"],
)
async def test_a_bad_token_is_refused_even_for_a_public_repository(town: Town, authorization: str) -> None:
    """A CI with an expired token gets an error, instead of a share of the quota that sometimes runs out."""
    status, _, problem = await fetch(town, path_of(), Authorization=authorization)
    assert (status, problem["detail"]) == (401, BAD_TOKEN)


async def test_a_public_repository_can_have_a_private_api(tmp_path: Path) -> None:
    config = f"{CONFIG}    api: {{private: true}}\n"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        assert (await fetch(town, path_of(route="timers")))[0] == 401
        created = await create_token(tmp_path, "octocat/compiler")
        assert (await fetch(town, path_of(route="timers"), created["token"]))[0] == 200


async def test_a_private_repository_can_be_opened_to_everybody_who_reaches_the_api(tmp_path: Path) -> None:
    config = f"{CONFIG}    api: {{private: false}}\n"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        town.repo.private = True
        assert (await fetch(town, path_of(route="timers")))[0] == 200


async def test_ci_decide_shows_its_token(town: Town, tmp_path: Path) -> None:
    town.repo.private = True
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    created = await create_token(tmp_path, "octocat/compiler", "--expires", "90d")
    arguments = ("ci", "decide", "--pr", str(pull.number), "--repo", "octocat/compiler")
    decided = await command(tmp_path, *arguments, NIGHTJAR_URL=town.url, NIGHTJAR_TOKEN=created["token"])
    assert "SKIP_SLOW_TESTS=true" in decided.out
    assert "Fallback" not in decided.err
    refused = await command(tmp_path, *arguments, NIGHTJAR_URL=town.url)
    assert "SKIP_SLOW_TESTS=false" in refused.out
    assert f"Fallback: the bot answered 401: {NO_TOKEN[:60]}" in refused.err
    expired = await command(tmp_path, *arguments, NIGHTJAR_URL=town.url, NIGHTJAR_TOKEN=created["token"][:-1])
    assert f"Fallback: the bot answered 401: {BAD_TOKEN[:60]}" in expired.err
    for finished in (decided, refused, expired):
        assert created["token"][:-1] not in finished.out + finished.err


async def test_strangers_can_use_a_small_share_of_the_quota_and_programs_with_a_token_are_not_strangers(
    tmp_path: Path,
) -> None:
    config = f"http: {{anonymous_percent: 2}}\n{CONFIG}"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        # Else GitHub's answers to the startup tell of two limits, in any order.
        await town.started()
        town.github.rate_limits.limit = 500
        status, headers, problem = await fetch(town, path_of())
        assert status == 404, (dict(headers), problem)
        created = await create_token(tmp_path, "octocat/compiler")
        town.github.requests.clear()
        paths = [path_of(route=f"pulls/{number}/decision") for number in range(1_000, 1_020)]
        statuses = [(await fetch(town, path))[0] for path in paths]
        assert statuses == [404] * 9 + [503] * 11
        assert town.github.requests.count("GET", "/repos/{owner}/{repo}/pulls/{pull_number}") == 9
        status, headers, _ = await fetch(town, paths[-1])
        assert (status, int(headers["Retry-After"]) > 0) == (503, True)
        assert (await fetch(town, paths[0]))[0] == 404
        assert (await fetch(town, paths[-1], created["token"]))[0] == 404


async def test_ci_decide_sends_its_token_to_no_address_that_a_pull_request_chose(town: Town, tmp_path: Path) -> None:
    """A pull request can change the app.yaml in the folder that CI builds."""
    town.repo.private = True
    created = await create_token(tmp_path, "octocat/compiler")
    config = tmp_path / "app.yaml"
    config.write_text(f"public_url: {town.url}\n{CONFIG}")
    arguments = ("ci", "decide", "--pr", "1", "--repo", "octocat/compiler")
    without_option = await run(*arguments, env={"NIGHTJAR_TOKEN": created["token"]}, cwd=tmp_path)
    assert "the bot answered 401" in without_option.err
    with_option = await run(*arguments, "--config", "app.yaml", env={"NIGHTJAR_TOKEN": created["token"]}, cwd=tmp_path)
    assert "the bot answered 404" in with_option.err


async def test_ci_decide_sends_no_token_over_an_unencrypted_connection(tmp_path: Path) -> None:
    token = "nightjar_000000000000_" + "0" * 64
    arguments = ("ci", "decide", "--pr", "1", "--repo", "octocat/compiler", "--api", "http://ci.example.org")
    finished = await command(tmp_path, *arguments, NIGHTJAR_TOKEN=token)
    assert (finished.status, "SKIP_CI=false" in finished.out) == (0, True)
    assert "NIGHTJAR_TOKEN is not sent to http://ci.example.org" in finished.err
    assert token not in finished.err


@pytest.mark.parametrize(
    ("arguments", "status", "fault"),
    [
        (["create", "octocat/elsewhere"], 1, "app.yaml does not list octocat/elsewhere"),
        (["create", "octocat"], 2, "must be OWNER/NAME"),
        (["create", "octocat/compiler", "--expires", "0d"], 2, "must be a number of days from 1d to 3650d, or never"),
        (["create", "octocat/compiler", "--expires", "4000d"], 2, "must be a number of days"),
        (["create", "octocat/compiler", "--note", "x" * 101], 2, "at most 100 characters"),
        (["revoke", "000000000000"], 1, "no token has the ID 000000000000; `nightjar token list`"),
    ],
)
async def test_an_invalid_command_is_answered_with_the_fault(
    town: Town, tmp_path: Path, arguments: list[str], status: int, fault: str
) -> None:
    finished = await command(tmp_path, "token", *arguments)
    assert (finished.status, finished.out) == (status, "")
    assert fault in " ".join(finished.err.split())


async def test_a_token_is_shown_only_once(town: Town, tmp_path: Path) -> None:
    finished = await command(tmp_path, "token", "create", "octocat/compiler", "--expires", "never")
    (token,) = finished.out.splitlines()
    assert "The token is not shown again" in finished.err
    assert token not in finished.err
    assert (await fetch(town, path_of(route="timers"), token))[0] == 200
    (listed,) = json.loads((await command(tmp_path, "token", "list", "--json")).out)
    assert listed["expires_at"] is None


async def test_the_api_document_says_which_routes_take_a_token(town: Town) -> None:
    _, _, document = await fetch(town, "/api/v1/openapi.json")
    schemes = document["components"]["securitySchemes"]
    assert {name: scheme["scheme"] for name, scheme in schemes.items()} == {"token": "bearer", "labToken": "bearer"}
    for path, operations in document["paths"].items():
        for described in operations.values():
            of_a_repository = path.startswith("/api/v1/repos/{owner}/{repo}/")
            of_a_lab = path.startswith("/api/v1/labs/{lab}/")
            needed: list[dict[str, list[str]]]
            needed = [{}, {"token": []}] if of_a_repository else [{"labToken": []}] if of_a_lab else []
            assert described.get("security", []) == needed
            assert ("401" in described["responses"]) == (of_a_repository or of_a_lab or path == "/webhook")
