"""Faults: before a write took effect, and after it."""

from __future__ import annotations

import asyncio
import re

import aiohttp
import pytest

from sandbox import GitHubSandbox, PullRequest

from .conftest import Client

COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"


@pytest.mark.parametrize(("when", "written"), [("before", 0), ("after", 1)])
async def test_an_error_before_or_after_the_write(
    client: Client, github: GitHubSandbox, pull: PullRequest, when: str, written: int
) -> None:
    github.faults.add("POST", COMMENTS, status=502, when="after" if when == "after" else "before")
    assert (await client.post("issues/1/comments", {"body": "Hi"})).status == 502
    assert len(pull.comments) == written
    assert (await client.post("issues/1/comments", {"body": "Hi"})).status == 201


@pytest.mark.parametrize(("drop", "written"), [("before", 0), ("after", 1)])
async def test_a_connection_lost_before_or_after_the_write(
    client: Client, github: GitHubSandbox, pull: PullRequest, drop: str, written: int
) -> None:
    github.faults.add("POST", COMMENTS, drop="after" if drop == "after" else "before")
    with pytest.raises(aiohttp.ClientError):
        await client.post("issues/1/comments", {"body": "Hi"})
    assert len(pull.comments) == written
    assert [record.status for record in github.requests.records][-1] == 0


async def test_a_limit_with_its_headers_as_often_as_asked(
    client: Client, github: GitHubSandbox, pull: PullRequest
) -> None:
    fault = github.faults.add("*", re.compile("/pulls/"), status=429, headers={"Retry-After": "7"}, times=2)
    answers = [await client.get("pulls/1") for _ in range(3)]
    assert [answer.status for answer in answers] == [429, 429, 200]
    assert answers[0].headers["Retry-After"] == "7"
    assert fault.hits == 2


async def test_a_request_can_be_held_at_the_moment_that_matters(
    client: Client, github: GitHubSandbox, pull: PullRequest
) -> None:
    pause = github.faults.pause("POST", COMMENTS, when="after")
    asking = asyncio.create_task(client.post("issues/1/comments", {"body": "Hi"}))
    await pause.reached.wait()
    assert len(pull.comments) == 1
    assert not asking.done()
    pause.resume()
    assert (await asking).status == 201


async def test_requests_and_points_are_counted_by_route(
    client: Client, github: GitHubSandbox, pull: PullRequest
) -> None:
    github.requests.clear()
    await client.get("issues/1/comments")
    await client.get("issues/1/comments")
    await client.post("issues/1/comments", {"body": "Hi"})
    assert github.requests.counts() == {f"GET {COMMENTS}": 2, f"POST {COMMENTS}": 1}
    assert github.requests.count("POST", COMMENTS) == 1
    assert github.requests.points == 7
    assert [(record.path, record.status, record.token) for record in github.requests.writes] == [
        ("/repos/octocat/compiler/issues/1/comments", 201, "installation")
    ]
