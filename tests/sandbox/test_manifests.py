"""Creating an App from a manifest, as a browser and a program see it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from sandbox.github import GitHubSandbox
from sandbox.manifests import NAME_TAKEN

MANIFEST: dict[str, Any] = {
    "name": "Nightjar for Octo",
    "url": "https://ci.example.org",
    "hook_attributes": {"url": "https://ci.example.org/webhook", "active": True},
    "redirect_url": "http://127.0.0.1:8080/setup/created",
    "callback_urls": ["https://ci.example.org/login/callback"],
    "public": False,
    "default_permissions": {"issues": "write"},
    "default_events": ["issues"],
}


async def create(session: aiohttp.ClientSession, manifest: object = None, **fields: str) -> tuple[int, str, str]:
    """Press the button; return the status, the redirect, and the page."""
    form = {"manifest": json.dumps(manifest or MANIFEST), "create": "1", **fields}
    address = "/organizations/octo-org/settings/apps/new?state=s1"
    async with session.post(address, data=form, allow_redirects=False) as answer:
        return answer.status, answer.headers.get("Location", ""), await answer.text()


async def converted(session: aiohttp.ClientSession, code: str, prefix: str = "") -> tuple[int, Any]:
    async with session.post(f"{prefix}/app-manifests/{code}/conversions") as answer:
        return answer.status, await answer.json()


async def test_a_code_gives_the_secrets_once(github: GitHubSandbox, session: aiohttp.ClientSession) -> None:
    status, location, _ = await create(session)
    assert status == 302
    query = parse_qs(urlsplit(location).query)
    assert query["state"] == ["s1"]
    status, made = await converted(session, query["code"][0], "/api/v3")
    app = github.apps[made["id"]]
    assert (status, made["slug"], made["owner"]["login"]) == (201, "nightjar-for-octo", "octo-org")
    assert (made["pem"], made["webhook_secret"]) == (app.private_key, app.webhook_secret)
    assert app.permissions == {"issues": "write", "metadata": "read"}
    assert app.webhook_url == "https://ci.example.org/webhook"
    assert (await converted(session, query["code"][0]))[0] == 404


async def test_a_code_is_valid_for_an_hour(github: GitHubSandbox, session: aiohttp.ClientSession) -> None:
    _, location, _ = await create(session)
    github.clock.advance(seconds=3600)
    assert (await converted(session, parse_qs(urlsplit(location).query)["code"][0]))[0] == 404


async def test_a_name_can_be_taken_once(session: aiohttp.ClientSession) -> None:
    await create(session)
    status, _, page = await create(session)
    assert status == 422
    assert NAME_TAKEN in page
    assert (await create(session, name="Another"))[0] == 302


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"hook_attributes": {}}, "hook_attributes.url is not a URL"),
        ({"default_events": ["push"]}, "Default events are not supported by permissions: push"),
        ({"hook_url": "x"}, "hook_url is not a key of a manifest"),
        ({"callback_urls": ["/login"]}, "callback_urls[0] is not a URL"),
    ],
)
async def test_an_invalid_manifest_is_refused(
    session: aiohttp.ClientSession, change: dict[str, Any], problem: str
) -> None:
    status, _, page = await create(session, MANIFEST | change)
    assert status == 422
    assert problem in page
