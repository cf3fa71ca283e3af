"""The bucket that labs upload to, over the real S3 protocol."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import io
from collections.abc import Iterable

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.refused import TooMuch

from bot.aws.bucket import CHUNK, Arrival, Bucket, BucketFolder, NotThere, ObjectHead, Small, is_manifest
from bot.aws.client import Aws
from bot.core.errors import TryAgain, UserError
from tests.bucket import Script, World, fault

ODD = [
    "results/octocat/compiler/example lab/c++/run/manifest.json",
    "results/octocat/compiler/100%/%2F/run/manifest.json",
    "results/octocat/compiler/Prüfstand/測試/run/manifest.json",
    "results/octocat/compiler/a&b<c>/'\"/run/manifest.json",
    "results/octocat/compiler/?x=1#y/😀/run/manifest.json",
]


async def listed(bucket: Bucket, prefix: str = "") -> list[str]:
    return [arrival.key async for page in bucket.manifests(prefix) for arrival in page]


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


# Listing


async def test_manifests_are_listed_with_their_versions_and_other_objects_are_not(aws_world: World) -> None:
    version = aws_world.put("results/a/manifest.json", b'{"schema": 1}')
    for key in ("results/a/te.xml", "results/a/manifest.json.gz", "results/a/my-manifest.json", "other/manifest.json"):
        aws_world.put(key)
    pages = [page async for page in Bucket(aws_world.aws, aws_world.name).manifests("results/")]
    assert pages == [[Arrival(aws_world.name, "results/a/manifest.json", version)]]


def put_many(world: World, keys: Iterable[str]) -> None:
    """Upload without signatures, over one connection: a thousand in seconds."""
    for key in keys:
        connection = http.client.HTTPConnection("127.0.0.1", world.server.port)
        connection.request("PUT", f"/{world.name}/{key}", body=b"{}")
        assert connection.getresponse().status == 200
        connection.close()


async def test_more_than_a_thousand_objects_are_listed_page_by_page(aws_world: World) -> None:
    keys = [f"results/{number:04}/manifest.json" for number in range(1001)]
    put_many(aws_world, keys)
    pages = [page async for page in Bucket(aws_world.aws, aws_world.name).manifests("results/")]
    assert [len(page) for page in pages] == [1000, 1]
    assert [arrival.key for page in pages for arrival in page] == keys


async def test_odd_keys_are_listed_and_read_unchanged(aws_world: World) -> None:
    for number, key in enumerate(ODD):
        aws_world.put(key, b"%d" % number)
    bucket = Bucket(aws_world.aws, aws_world.name)
    assert sorted(await listed(bucket, "results/")) == sorted(ODD)
    assert [(await bucket.read_small(key, 10)).body for key in ODD] == [b"0", b"1", b"2", b"3", b"4"]


async def test_runs_may_be_at_the_root_of_a_bucket(aws_world: World) -> None:
    aws_world.put("octocat/compiler/example-lab/adreno/run/manifest.json")
    bucket = Bucket(aws_world.aws, aws_world.name)
    assert await listed(bucket) == ["octocat/compiler/example-lab/adreno/run/manifest.json"]
    assert await listed(bucket, "octocat/compiler/") == await listed(bucket)
    assert await listed(bucket, "octocat/comp/") == []


async def test_an_empty_bucket_is_one_empty_page(aws_world: World) -> None:
    assert [page async for page in Bucket(aws_world.aws, aws_world.name).manifests("")] == [[]]


async def test_a_missing_bucket_is_reported(aws_world: World) -> None:
    with pytest.raises(UserError, match="bucket no-such-bucket does not exist"):
        await listed(Bucket(aws_world.aws, "no-such-bucket"))


async def test_an_unreadable_key_is_left_out(aws_world: World) -> None:
    aws_world.put("results/a\u202eb/manifest.json")
    aws_world.put("results/c/manifest.json")
    assert await listed(Bucket(aws_world.aws, aws_world.name)) == ["results/c/manifest.json"]


@given(st.text() | st.text().map(lambda text: f"{text}/manifest.json"))
def test_every_database_can_store_the_key_of_a_manifest(key: str) -> None:
    if is_manifest(key):
        assert len(key.encode()) <= 1024
        assert not {"\0", "\n", "\x1b", "\u202e"} & set(key)


def test_an_arrival_belongs_to_the_place_whose_folder_begins_its_key() -> None:
    arrival = Arrival("device-results", "results/octocat/manifest.json", "e")
    assert arrival.lies_in(BucketFolder("device-results", "results/"))
    assert arrival.lies_in(BucketFolder("device-results", ""))
    assert not arrival.lies_in(BucketFolder("other", "results/"))
    assert not arrival.lies_in(BucketFolder("device-results", "old-results/"))


# Reading


async def test_an_object_is_downloaded_with_its_hash(aws_world: World) -> None:
    body = bytes(range(256)) * (2 * CHUNK // 256) + b"end"
    version = aws_world.put("te.xml", body)
    into = io.BytesIO()
    bucket = Bucket(aws_world.aws, aws_world.name)
    assert await bucket.head("te.xml") == ObjectHead(len(body), version)
    assert await bucket.download("te.xml", into, limit=len(body)) == (len(body), sha256(body), version)
    assert into.getvalue() == body


async def test_an_object_beyond_the_limit_is_not_read(aws_world: World) -> None:
    aws_world.put("te.xml", b"12345")
    into = io.BytesIO()
    with pytest.raises(TooMuch, match=r"te\.xml has 5 bytes; at most 4 are read"):
        await Bucket(aws_world.aws, aws_world.name).download("te.xml", into, limit=4)
    assert into.getvalue() == b""


async def test_an_object_without_a_size_is_read_up_to_the_limit(script: Script, aws: Aws) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"ETag": '"e"'})
        response.enable_chunked_encoding()
        await response.prepare(request)
        while request.transport is not None:
            await response.write(bytes(CHUNK))
        return response

    script.answers = [endless]
    into = io.BytesIO()
    with pytest.raises(TooMuch, match=r"te\.xml has more than 3,000,000 bytes"):
        await Bucket(aws, "device-results").download("te.xml", into, limit=3_000_000)
    assert len(into.getvalue()) <= 3_000_000


async def test_an_object_whose_download_is_cut_short_is_tried_again_later(script: Script, aws: Aws) -> None:
    async def short(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"ETag": '"e"', "Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"only this")
        assert request.transport is not None
        request.transport.close()
        return response

    script.answers = [short]
    with pytest.raises(TryAgain, match="bucket device-results cannot be reached now"):
        await Bucket(aws, "device-results").download("te.xml", io.BytesIO(), limit=100)


async def test_a_compressed_object_stays_compressed_whatever_its_headers_say(aws_world: World) -> None:
    aws_world.s3.put_object(Bucket=aws_world.name, Key="te.xml.gz", Body=b"\x1f\x8b no gzip", ContentEncoding="gzip")
    read = await Bucket(aws_world.aws, aws_world.name).read_small("te.xml.gz", 100)
    assert read.body == b"\x1f\x8b no gzip"


async def test_an_object_that_was_replaced_after_the_listing_reports_the_version_that_was_read(
    aws_world: World,
) -> None:
    bucket = Bucket(aws_world.aws, aws_world.name)
    listed_version = aws_world.put("results/a/manifest.json", b"first")
    version = aws_world.put("results/a/manifest.json", b"second")
    read = await bucket.read_small("results/a/manifest.json", 100)
    assert read == Small(b"second", version)
    assert version != listed_version
    assert [page async for page in bucket.manifests("")] == [
        [Arrival(aws_world.name, "results/a/manifest.json", version)]
    ]


async def test_a_removed_object_is_not_found(aws_world: World) -> None:
    bucket = Bucket(aws_world.aws, aws_world.name)
    with pytest.raises(NotThere, match=r"te\.xml is not in the bucket"):
        await bucket.read_small("te.xml", 100)
    with pytest.raises(NotThere):
        await bucket.head("te.xml")


async def test_an_unreadable_object_is_reported_with_the_action_to_allow(aws_world: World) -> None:
    aws_world.put("te.xml")
    aws_world.server.forbid(aws_world.name, "s3:GetObject")
    with pytest.raises(UserError, match="s3:GetObject is denied to these AWS credentials; allow it"):
        await Bucket(aws_world.aws, aws_world.name).read_small("te.xml", 100)


async def test_a_cancelled_read_stops_reading(script: Script, aws: Aws) -> None:
    written, removed = asyncio.Event(), asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"ETag": '"e"', "Content-Length": str(1 << 40)})
        await response.prepare(request)
        try:
            while True:
                await response.write(bytes(CHUNK))
                written.set()
        except ConnectionError:
            removed.set()
        return response

    script.answers = [endless]
    into = io.BytesIO()
    reading = asyncio.create_task(Bucket(aws, "device-results").download("te.xml", into, limit=1 << 41))
    await written.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await removed.wait()


async def test_a_server_that_is_down_is_tried_again_later_and_works_when_it_is_back(own_world: World) -> None:
    bucket = Bucket(own_world.aws, own_world.name)
    own_world.put("results/a/manifest.json")
    assert await listed(bucket) == ["results/a/manifest.json"]
    own_world.server.stop()
    with pytest.raises(TryAgain, match="cannot be reached now"):
        await listed(bucket)
    own_world.server.start()
    own_world.create()
    own_world.put("results/b/manifest.json")
    assert await listed(bucket) == ["results/b/manifest.json"]


# Overwriting


async def test_an_overwritten_object_has_the_new_content_and_must_not_be_cached(aws_world: World) -> None:
    bucket = Bucket(aws_world.aws, aws_world.name)
    assert await bucket.write_over("nightly.json", b'{"sha": 1}', content_type="application/json") is True
    assert await bucket.write_over("nightly.json", b"{}", content_type="application/json") is True
    stored = aws_world.s3.get_object(Bucket=aws_world.name, Key="nightly.json")
    assert stored["Body"].read() == b"{}"
    assert (stored["ContentType"], stored["CacheControl"]) == ("application/json", "no-cache")


async def test_the_same_content_is_not_written_again(aws_world: World) -> None:
    aws_world.put("nightly.json", b"{}")
    bucket = Bucket(aws_world.aws, aws_world.name)
    assert await bucket.write_over("nightly.json", b"{}", content_type="application/json") is False
    # Somebody else's object is still there.
    assert aws_world.s3.head_object(Bucket=aws_world.name, Key="nightly.json").get("CacheControl") is None


async def test_a_large_foreign_object_is_overwritten_unread(aws_world: World) -> None:
    aws_world.put("nightly.json", bytes(CHUNK))
    bucket = Bucket(aws_world.aws, aws_world.name)
    assert await bucket.write_over("nightly.json", b"{}", content_type="application/json") is True
    assert (await bucket.read_small("nightly.json", 10)).body == b"{}"


@pytest.mark.parametrize(
    ("answer", "header", "version", "refusal"),
    [
        (web.Response(body=b"old", headers={"ETag": '"e1"'}), "If-Match", '"e1"', fault(412, "PreconditionFailed")),
        (web.Response(body=b"old", headers={"ETag": '"e1"'}), "If-Match", '"e1"', fault(404, "NoSuchKey")),
        (fault(404, "NoSuchKey"), "If-None-Match", "*", fault(412, "PreconditionFailed")),
        (fault(404, "NoSuchKey"), "If-None-Match", "*", fault(409, "ConditionalRequestConflict")),
    ],
)
async def test_an_object_that_somebody_else_wrote_meanwhile_is_read_again_before_it_is_overwritten(
    answer: web.Response, header: str, version: str, refusal: web.Response, script: Script, aws: Aws
) -> None:
    script.answers = [answer, refusal]
    with pytest.raises(TryAgain):
        await Bucket(aws, "device-results").write_over("nightly.json", b"new", content_type="application/json")
    read, written = script.requests
    assert (read.method, written.method) == ("GET", "PUT")
    assert written.headers[header] == version


async def test_if_overwriting_is_not_allowed_the_action_is_named(aws_world: World) -> None:
    aws_world.server.forbid(aws_world.name, "s3:PutObject")
    with pytest.raises(
        UserError, match="s3:PutObject is denied: the bucket's policy denies it, or no policy allows it"
    ):
        await Bucket(aws_world.aws, aws_world.name).write_over("a", b"{}", content_type="application/json")
