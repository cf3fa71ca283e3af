"""Lists are read to their end, however they change between two reads, while GitHub answers 304 for their pages."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.github.app import GitHubApp
from tests.github.scripted import Say, ScriptedGitHub
from tests.github.support import APP_ID, client_of, pem
from tests.github.virtual import JumpingTime
from tests.serving import served

Change = Callable[[list[int]], list[int]]
PAGE = 3
CHANGES = st.one_of(
    st.integers(0, 2 * PAGE).map(lambda count: lambda items: [*items, *range(len(items), len(items) + count)]),
    st.integers(0, 2 * PAGE).map(lambda count: lambda items: items[: max(0, len(items) - count)]),
    st.integers(0, 3 * PAGE).map(lambda place: lambda items: [*items[:place], *items[place + 1 :]]),
    st.integers(0, 3 * PAGE).map(lambda place: lambda items: [*items[:place], -1, *items[place:]]),
)


class ListServer:
    """Serves one list as GitHub does: an ETag is that of the body, so a 304 may hide that a next page has come."""

    def __init__(self, *, links_unchanged_pages: bool, wrapped: bool) -> None:
        self.items: list[int] = []
        self._links_unchanged_pages, self._wrapped = links_unchanged_pages, wrapped

    async def answer(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            return web.json_response({"token": "ghs_1", "expires_at": "2099-01-01T00:00:00Z"}, status=201)
        size, number = int(request.query["per_page"]), int(request.query.get("page", "1"))
        items = self.items[(number - 1) * size : number * size]
        body = json.dumps({"jobs": items} if self._wrapped else items)
        headers = {"etag": f'W/"{hashlib.sha256(body.encode()).hexdigest()}"'}
        links = {}
        if number * size < len(self.items):
            next_page = request.url.update_query(page=number + 1)
            links["link"] = f'<{next_page}>; rel="next"'
        elif number > 1:
            links["link"] = f'<{request.url.update_query(page=1)}>; rel="first"'
        if request.headers.get("if-none-match") == headers["etag"]:
            return web.Response(status=304, headers=headers | (links if self._links_unchanged_pages else {}))
        return web.Response(text=body, content_type="application/json", headers=headers | links)


async def read_after_each_change(changes: Sequence[Change], server: ListServer) -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    async with served(app) as url, aiohttp.ClientSession() as session:
        made = GitHubApp(session, api_url=url, app_id=APP_ID, private_key=pem(), timing=JumpingTime().timing())
        github = client_of(made)
        for change in changes:
            server.items = change(server.items)
            assert [item async for item in github.getiter(f"/list?per_page={PAGE}")] == server.items


@settings(max_examples=60)
@given(st.lists(CHANGES, min_size=2, max_size=6), st.booleans(), st.booleans())
def test_a_list_that_changes_between_two_reads_is_read_whole(
    changes: list[Change], links_unchanged_pages: bool, wrapped: bool
) -> None:
    server = ListServer(links_unchanged_pages=links_unchanged_pages, wrapped=wrapped)
    asyncio.run(read_after_each_change(changes, server))


@pytest.mark.parametrize(
    ("count", "conditions"), [(99, [None, '"a"']), (100, [None, '"a"', None]), (101, [None, '"a"'])]
)
async def test_only_a_full_last_page_is_requested_again_after_a_304(
    scripted: ScriptedGitHub, scripted_app: GitHubApp, count: int, conditions: list[str | None]
) -> None:
    github, path = client_of(scripted_app), "/repos/octocat/compiler/pulls/1/reviews"
    items = list(range(count))
    next_link = {"link": f'<{scripted.url}/more>; rel="next"'} if count > 100 else {}
    page = Say(body=items[:100], headers={"etag": '"a"', **next_link})
    scripted.will("GET", path, page, Say(304), page)
    scripted.will("GET", "/more", Say(body=items[100:]))
    for _ in range(2):
        assert [item async for item in github.getiter(path)] == items
    assert [request.headers.get("if-none-match") for request in scripted.requests_for("GET", path)] == conditions
