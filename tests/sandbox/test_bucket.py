"""The stand-in for S3 and SQS: it starts, stops, and ends with the process that started it."""

from __future__ import annotations

import asyncio
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from sandbox.bucket import BucketServer
from tests.waiting import until

ROOT = Path(__file__).parent.parent.parent

STARTS_ONE = """
import sys
from sandbox.bucket import BucketServer
with BucketServer() as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url):
            return True
    except OSError:  # it may be ending right now
        return False


def test_it_restarts_on_its_port_and_is_empty() -> None:
    with BucketServer() as server:
        server.create_bucket("device-results")
        url = server.url
        server.stop()
        assert not answers(url)
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", server.port))
        server.start()
        assert server.url == url
        assert server.client("s3").list_buckets()["Buckets"] == []
    assert not answers(url)


def test_a_port_in_use_is_reported(bucket_server: BucketServer, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match="the S3 stand-in did not start"):
        BucketServer(bucket_server.port).start()
    assert "in use" in capfd.readouterr().err


def test_it_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with BucketServer() as server:
        server.create_bucket("device-results")
        server.create_queue("device-results", "arrivals")
        server.client("s3").put_object(Bucket="device-results", Key="a/manifest.json", Body=b"{}")
    assert capfd.readouterr() == ("", "")


def test_it_listens_only_on_this_machine(bucket_server: BucketServer) -> None:
    assert answers(bucket_server.url)
    assert not answers(bucket_server.url.replace("127.0.0.1", "127.0.0.2"))


async def test_it_ends_with_the_process_that_started_it() -> None:
    pipe = asyncio.subprocess.PIPE
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", STARTS_ONE, cwd=ROOT, stdin=pipe, stdout=pipe)
    assert parent.stdout is not None
    url = (await parent.stdout.readline()).decode().strip()
    assert answers(url)
    parent.kill()
    await parent.wait()
    await until(lambda: not answers(url))
