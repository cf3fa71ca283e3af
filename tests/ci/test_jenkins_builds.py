"""Asking Jenkins for the results of builds:

a limited number, with limited answers; without an answer, a build has not ended.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from bot.ci.jenkins_builds import LARGEST, MOST, JenkinsBuilds
from bot.core.web_json import Reader
from tests.serving import served


class Talker:
    """A server that gives the same text for every request, and counts the requests."""

    def __init__(self) -> None:
        self.text = ""
        self.asked: list[tuple[str, str, str]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append((request.path, request.query_string, request.headers.get("Authorization", "")))
        return web.Response(text=self.text)


@pytest.fixture
async def talker() -> Talker:
    return Talker()


@pytest.fixture
async def url(talker: Talker) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_get("/{path:.*}", talker.answer)
    async with served(application) as address:
        yield address


@pytest.fixture
async def builds() -> AsyncIterator[JenkinsBuilds]:
    async with aiohttp.ClientSession() as session:
        yield JenkinsBuilds(Reader(session), "Basic sesame")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ('{"building": false, "result": "ABORTED"}', "ABORTED"),
        ('{"building": false, "result": "SUCCESS"}', "SUCCESS"),
        ('{"building": true, "result": "FAILURE"}', None),
        ('{"building": false, "result": null}', None),
        ('{"result": "ABORTED"}', None),
        ("{}", None),
        ("null", None),
        ("[]", None),
        ('{"building": "no", "result": "ABORTED"}', None),
        ('{"building": false, "result": 7}', None),
        ("<html>", None),
        ("", None),
    ],
)
async def test_only_a_clear_result_ends_a_build(
    talker: Talker, url: str, builds: JenkinsBuilds, text: str, result: str | None
) -> None:
    talker.text = text
    build = f"{url}/job/gpu/job/PR-12/7"
    assert await builds.results([build]) == ({} if result is None else {build: result})
    assert talker.asked == [("/job/gpu/job/PR-12/7/api/json", "tree=building,result", "Basic sesame")]


@pytest.mark.parametrize(("padding", "read"), [(0, True), (1, False)])
async def test_a_long_answer_is_not_read(
    talker: Talker, url: str, builds: JenkinsBuilds, padding: int, read: bool
) -> None:
    talker.text = '{"building": false, "result": "ABORTED"}'.ljust(LARGEST + padding)
    assert bool(await builds.results([f"{url}/job/gpu/7"])) is read


async def test_of_many_builds_a_limited_number_is_requested(talker: Talker, url: str, builds: JenkinsBuilds) -> None:
    talker.text = '{"building": false, "result": "ABORTED"}'
    results = await builds.results([f"{url}/job/gpu/{number}" for number in range(MOST + 1)])
    assert (len(results), len(talker.asked)) == (MOST, MOST)


async def test_a_server_that_is_down_ends_no_build(builds: JenkinsBuilds) -> None:
    assert await builds.results(["http://127.0.0.1:9/job/gpu/7"]) == {}


def test_the_credentials_are_not_shown(builds: JenkinsBuilds) -> None:
    assert "sesame" not in repr(builds)
