"""Who may read what the API says about a repository; no route can omit the check."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

from bot.web.access import ApiAccess
from bot.web.openapi import Operation, ResponseSchema
from tests.web.conftest import Site, running_site

OURS = {"owner": "octocat", "repo": "compiler", "n": "1", "sha": "0" * 40}


@pytest.fixture
async def private(sqlite_url: str) -> AsyncIterator[Site]:
    """Return an application without public repositories."""
    async with running_site(sqlite_url, public=False) as running:
        yield running


async def paths(site: Site) -> list[str]:
    """Return every path below /api/, with octocat/compiler for the parameters."""
    _, _, body = await site.get("/api/v1/openapi.json")
    described = [path for path in json.loads(body)["paths"] if path.startswith("/api/")]
    return [path.format(**OURS) for path in described]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_every_route_of_a_repository_asks_strangers_for_a_token(private: Site, method: str) -> None:
    addresses = await paths(private)
    assert len(addresses) > 5
    for path in addresses:
        status, headers, _ = await private.get(path, method)
        if path in ("/api/v1/openapi.json", "/api/v1/help"):
            assert status == 200
        else:
            assert (path, status, headers.get("WWW-Authenticate")) == (path, 401, 'Bearer realm="nightjar"')


async def test_strangers_get_the_same_errors_for_a_wrong_path(private: Site) -> None:
    for repository in ("octocat/compiler", "octocat/elsewhere"):
        status, _, _ = await private.get(f"/api/v1/repos/{repository}/pulls/x/decision")
        assert status == 401


async def nothing(_: web.Request) -> web.Response:
    return web.Response()


async def never(_: str) -> None:
    raise AssertionError


def operation(path: str, public: bool = False) -> Operation:
    return Operation("GET", path, "A new route", nothing, {200: ResponseSchema("It")}, public=public)


def access() -> ApiAccess:
    is_public: Callable[[str], Awaitable[bool]] = never  # type: ignore[assignment]  # nobody calls it
    return ApiAccess(never, is_public)


@pytest.mark.parametrize(
    "path", ["/api/v1/labs", "/api/v1/repos", "/api/v1/repos/{owner}", "/api/v2/repos/{owner}/{repo}/x"]
)
def test_a_new_route_that_does_not_declare_its_readers_keeps_the_server_from_starting(path: str) -> None:
    with pytest.raises(ValueError, match="declares neither"):
        access().guarded(operation(path))


@pytest.mark.parametrize(("path", "public"), [("/api/v1/labs", True), ("/help", False)])
def test_a_route_of_no_repository_is_left_unchanged(path: str, public: bool) -> None:
    assert access().guarded(operation(path, public)) == operation(path, public)


def test_a_route_of_a_repository_is_guarded_whatever_it_declares() -> None:
    path = "/api/v1/repos/{owner}/{repo}/grid"
    for public in (False, True):
        guarded = access().guarded(operation(path, public))
        assert guarded.takes_token
        assert 401 in guarded.answers
        assert dataclasses.replace(
            guarded, handler=nothing, takes_token=False, answers={200: ResponseSchema("It")}
        ) == operation(path, public)
        assert guarded.handler is not nothing
