"""S3 and SQS for tests: a simulated S3 with a fresh bucket for each test, and a scripted server.

The simulated S3 stores objects. The scripted server gives answers that the simulated one cannot: that it is busy, a
body that is too short, or no answer at all. It runs in the test's own event loop, so a call that blocks the loop fails.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape

import pytest
from aiohttp import web

from bot.aws.client import Aws
from sandbox.bucket import ENVIRONMENT, BucketServer
from tests.serving import served

_NUMBERS = itertools.count(1)


@dataclass
class World:
    """A bucket on a simulated S3, the owner's client, and our clients, which find it through the environment."""

    server: BucketServer
    aws: Aws
    name: str = field(default_factory=lambda: f"bucket-{next(_NUMBERS)}")

    def create(self) -> None:
        """Create the bucket."""
        self.server.create_bucket(self.name)

    def put(self, key: str, body: bytes = b"{}") -> str:
        """Upload with the owner's client; return the ETag without quotes."""
        return str(self.s3.put_object(Bucket=self.name, Key=key, Body=body)["ETag"]).strip('"')

    def keys(self, prefix: str) -> list[str]:
        """Return the keys with a prefix, up to a thousand."""
        listed = self.s3.list_objects_v2(Bucket=self.name, Prefix=prefix).get("Contents", ())
        return [str(item["Key"]) for item in listed]

    def queue(self, **how: Any) -> str:
        """Create a queue that is notified of new objects; return its URL."""
        return self.server.create_queue(self.name, f"queue-{next(_NUMBERS)}", **how)

    def send(self, queue_url: str, *bodies: str) -> None:
        """Put messages into a queue."""
        for body in bodies:
            self.server.client("sqs").send_message(QueueUrl=queue_url, MessageBody=body)

    def waiting(self, queue_url: str) -> int:
        """Return the number of messages in a queue, including those that were received and not deleted."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        message = self.server.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)["Attributes"]
        return sum(int(message[name]) for name in names)

    @property
    def s3(self) -> Any:
        """Return the owner's client."""
        return self.server.client("s3")


def point_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point boto3 at a service, and hide the settings of the person who runs the tests."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": url}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def bucket_server() -> Iterator[BucketServer]:
    """Return the session's simulated S3; a test that stops it must have its own."""
    with BucketServer() as server:
        yield server


@pytest.fixture(scope="session")
def bucket_aws() -> Iterator[Aws]:
    """Return our clients for the session's simulated S3: creating them takes longer than most tests."""
    aws = Aws()
    yield aws
    aws.close()


@pytest.fixture
def aws_world(bucket_server: BucketServer, bucket_aws: Aws, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a fresh bucket on the session's simulated S3."""
    return _world(bucket_server, bucket_aws, monkeypatch)


@pytest.fixture
def own_world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Return a fresh bucket on a simulated S3 of the test's own, which it may stop and start."""
    aws = Aws()
    with BucketServer() as server:
        yield _world(server, aws, monkeypatch)
    aws.close()


def _world(server: BucketServer, aws: Aws, monkeypatch: pytest.MonkeyPatch) -> World:
    point_to(server.url, monkeypatch)
    world = World(server, aws)
    world.create()
    return world


Answer = web.StreamResponse | Callable[[web.Request], Awaitable[web.StreamResponse]]


def fault(status: int, code: str, message: str = "In AWS's own words") -> web.Response:
    """Return an error in S3's format (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html)."""
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
    return web.Response(status=status, text=text, content_type="application/xml")


@dataclass
class Script:
    """A server that gives the answers of its list in turn, and repeats the last one."""

    answers: list[Answer] = field(default_factory=list)
    requests: list[web.Request] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        await request.read()
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not isinstance(answer, web.StreamResponse):
            return await answer(request)
        assert isinstance(answer, web.Response)
        # A response can be sent only once, so each request gets a copy.
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


@pytest.fixture
async def script(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Script]:
    """Return a server with the test's answers, to which the environment points."""
    script = Script()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", script.answer)
    async with served(app) as script.url:
        point_to(script.url, monkeypatch)
        yield script


@pytest.fixture
def aws() -> Iterator[Aws]:
    """Return clients for the service in the environment, without retries."""
    aws = Aws(attempts=1)
    yield aws
    aws.close()
