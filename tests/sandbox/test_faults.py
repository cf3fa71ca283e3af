"""Faults: before a write takes effect, and after it."""

from __future__ import annotations

import asyncio
import re
from typing import Literal

import aiohttp
import pytest

from sandbox import GitHubSandbox, PullRequest

from .conftest import Client

COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"


@pytest.mark.parametrize(("moment", "written"), [("before", 0), ("after", 1)])
async def test_an_error_may_come_before_or_after_the_write(
    client: Client, github: GitHubSandbox, pull: PullRequest, moment: Literal["before", "after"], written: int
) -> None:
    github.faults.add("POST", COMMENTS, status=502, when=moment)
    assert (await client.post("issues/1/comments", {"body": "Hi"})).status == 502
    assert len(pull.comments) == written
    assert (await client.post("issues/1/comments", {"body": "Hi"})).status == 201


@pytest.mark.parametrize(("drop", "written"), [("before", 0), ("after", 1)])
async def test_a_connection_may_be_lost_before_or_after_the_write(
    client: Client, github: GitHubSandbox, pull: PullRequest, drop: Literal["before", "after"], written: int
) -> None:
    github.faults.add("POST", COMMENTS, drop=drop)
    with pytest.raises(aiohttp.ClientError):
        await client.post("issues/1/comments", {"body": "Hi"})
    assert len(pull.comments) == written
    assert [record.status for record in github.requests.records][-1] == 0


async def test_a_limit_comes_with_its_headers_as_often_as_requested(
    client: Client, github: GitHubSandbox, pull: PullRequest
) -> None:
    fault = github.faults.add("*", re.compile("/pulls/"), status=429, headers={"Retry-After": "7"}, times=2)
    answers = [await client.get("pulls/1") for _ in range(3)]
    assert [answer.status for answer in answers] == [429, 429, 200]
    assert answers[0].headers["Retry-After"] == "7"
    assert fault.hits == 2


async def test_a_request_can_be_held_at_a_chosen_moment(
    client: Client, github: GitHubSandbox, pull: PullRequest
) -> None:
    pause = github.faults.pause("POST", COMMENTS, when="after")
    asking = asyncio.create_task(client.post("issues/1/comments", {"body": "Hi"}))
    await pause.reached.wait()
    assert len(pull.comments) == 1
    assert not asking.done()
    pause.resume()
    assert (await asking).status == 201


@pytest.mark.parametrize(("moment", "written"), [("before", 0), ("after", 1)])
async def test_a_held_request_of_a_client_that_died_is_lost(
    client: Client, github: GitHubSandbox, pull: PullRequest, moment: Literal["before", "after"], written: int
) -> None:
    pause = github.faults.pause("POST", COMMENTS, when=moment)
    asking = asyncio.create_task(client.post("issues/1/comments", {"body": "Hi"}))
    await pause.reached.wait()
    pause.abandon()
    with pytest.raises(aiohttp.ClientError):
        await asking
    assert len(pull.comments) == written


async def test_the_headers_of_a_fault_replace_the_usual_ones(
    client: Client, github: GitHubSandbox, pull: PullRequest
) -> None:
    github.faults.add("GET", "*", status=403, headers={"x-ratelimit-remaining": "0", "x-ratelimit-reset": "7"})
    answer = await client.get("pulls/1")
    assert answer.headers.getall("X-RateLimit-Remaining") == ["0"]
    assert answer.headers.getall("X-RateLimit-Reset") == ["7"]


async def test_concurrent_requests_are_counted(client: Client, github: GitHubSandbox, pull: PullRequest) -> None:
    github.requests.clear()
    pause = github.faults.pause("GET", "*", when="before", times=3)
    asking = [asyncio.create_task(client.get("pulls/1")) for _ in range(3)]
    await github.until(lambda: github.requests.in_flight == 3)
    pause.resume()
    await asyncio.gather(*asking)
    assert (github.requests.in_flight, github.requests.most_in_flight) == (0, 3)


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
