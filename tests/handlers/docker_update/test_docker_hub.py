"""Requests to a registry, and what its answers mean: only 404 means no."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from bot.core.errors import TryAgain, UserError
from bot.core.web_json import LARGEST, LONGEST_PAUSE, Reader
from handlers.docker_update.docker_hub import MOST_PAGES, DockerHub
from sandbox.registry import RegistrySandbox

NOW = 1_795_152_000.0
IMAGE, TAG, LATER = "tlcpack/ci-cpu", "20260101-060115-61c9742ea", "20260201-060115-7a2b3c4d"


@pytest.fixture
async def hub() -> AsyncIterator[RegistrySandbox]:
    sandbox = RegistrySandbox()
    async with sandbox.serve():
        yield sandbox


@pytest.fixture
async def registry(hub: RegistrySandbox) -> AsyncIterator[DockerHub]:
    async with aiohttp.ClientSession() as session:
        yield DockerHub(Reader(session, clock=lambda: NOW), hub.url)


async def test_an_image_exists_or_not(hub: RegistrySandbox, registry: DockerHub) -> None:
    hub.push(IMAGE, TAG)
    assert await registry.has(IMAGE, TAG)
    assert not await registry.has(IMAGE, LATER)
    assert not await registry.has("tlcpack/no-such-image", TAG)
    assert hub.requests[0] == f"/v2/repositories/{IMAGE}/tags/{TAG}"


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (429, {"Retry-After": "7"}, 7.0),
        (429, {"X-Retry-After": f"{NOW + 9:.0f}"}, 9.0),
        (429, {"X-Retry-After": f"{NOW - 9:.0f}"}, 0.0),
        (429, {"X-Retry-After": "9" * 400}, LONGEST_PAUSE),
        (429, {}, None),
        (500, {}, None),
        (503, {"Retry-After": "5"}, 5.0),
    ],
)
async def test_an_error_does_not_mean_that_the_image_is_missing(
    hub: RegistrySandbox, registry: DockerHub, status: int, headers: dict[str, str], wait: float | None
) -> None:
    """TVM took each error for a missing image, and fell back to the wrong images."""
    hub.push(IMAGE, TAG)
    hub.faults.add("GET", "*", status=status, headers=headers)
    with pytest.raises(TryAgain, match=r"^127\.0\.0\.1 ") as raised:
        await registry.has(IMAGE, TAG)
    assert raised.value.retry_in == wait


async def test_a_lost_connection_does_not_mean_that_the_image_is_missing(
    hub: RegistrySandbox, registry: DockerHub
) -> None:
    hub.faults.add("GET", "*", drop="before", times=None)
    with pytest.raises(TryAgain, match=r"127\.0\.0\.1 did not answer"):
        await registry.tags(IMAGE)


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        (401, {}, "answered 401 to GET /v2/repositories/tlcpack/ci-cpu/tags/"),
        (403, {}, "answered 403"),
        (302, {"Location": "http://169.254.169.254/"}, "redirects GET /v2/repositories"),
    ],
)
async def test_a_refusal_is_an_error_and_no_redirect_is_followed(
    hub: RegistrySandbox, registry: DockerHub, status: int, headers: dict[str, str], message: str
) -> None:
    hub.faults.add("GET", "*", status=status, headers=headers)
    with pytest.raises(UserError, match=message):
        await registry.has(IMAGE, TAG)
    assert len(hub.requests) == 1


async def test_an_answer_that_is_not_json_or_too_long_is_refused(hub: RegistrySandbox, registry: DockerHub) -> None:
    hub.pages = {
        "/v2/repositories/tlcpack/ci-cpu/tags": "<html>",
        "/v2/repositories/tlcpack/ci-gpu/tags": "x" * LARGEST,
    }
    with pytest.raises(UserError, match="did not answer with JSON"):
        await registry.tags(IMAGE)
    hub.pages["/v2/repositories/tlcpack/ci-gpu/tags"] += "y"
    with pytest.raises(UserError, match="with more than 4,194,304 bytes"):
        await registry.tags("tlcpack/ci-gpu")


async def test_only_tags_made_by_builds_count_with_their_times(hub: RegistrySandbox, registry: DockerHub) -> None:
    hub.push(IMAGE, TAG, "2026-11-20T05:20:00Z")
    hub.push(IMAGE, LATER, "2026-11-20T05:20:00.5Z")
    for tag, pushed_at in (
        ("latest", "2026-11-20T05:20:00Z"),
        ("20260301-x", None),
        ("1-2-abc", None),
        ("1-3-x", "soon"),
    ):
        hub.push(IMAGE, tag, pushed_at)
    assert await registry.tags(IMAGE) == {TAG: NOW, LATER: NOW + 0.5}
    assert await registry.tags("tlcpack/no-such-image") == {}


async def test_pages_are_read_until_one_has_tags_of_builds(hub: RegistrySandbox, registry: DockerHub) -> None:
    hub.push(IMAGE, TAG, "2026-01-01T00:00:00Z")
    for number in range(150):
        hub.push(IMAGE, f"v{number}", "2026-11-20T05:20:00Z")
    assert list(await registry.tags(IMAGE)) == [TAG]
    assert len(hub.requests) == 2
    for number in range(150, 100 * MOST_PAGES):
        hub.push(IMAGE, f"v{number}", "2026-11-20T05:20:00Z")
    hub.requests.clear()
    assert await registry.tags(IMAGE) == {}
    assert len(hub.requests) == MOST_PAGES
