"""The bucket as a lab writes to it, over the real S3 protocol."""

from __future__ import annotations

import asyncio
import hashlib
import io
from pathlib import Path

import pytest
from nightjar_formats.errors import TryAgain, UserError
from nightjar_lab.bucket import LabBucket

from tests.bucket import Script, World, fault


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def test_an_object_that_is_written_once_exists(aws_world: World) -> None:
    bucket = LabBucket(aws_world.name)
    assert bucket.put_once("te.xml", io.BytesIO(b"<xml/>"), sha256=sha256(b"<xml/>")) is True
    assert bucket.read("te.xml")[0] == b"<xml/>"


def test_a_file_is_written_from_its_place_on_disk(aws_world: World, tmp_path: Path) -> None:
    (tmp_path / "te.xml").write_bytes(b"<xml/>")
    bucket = LabBucket(aws_world.name)
    with (tmp_path / "te.xml").open("rb") as file:
        assert bucket.put_once("te.xml", file, sha256=sha256(b"<xml/>"))
    assert bucket.read("te.xml")[0] == b"<xml/>"


def test_the_same_content_again_is_accepted_and_not_written(aws_world: World) -> None:
    bucket = LabBucket(aws_world.name)
    aws_world.put("te.xml", b"<xml/>")
    assert bucket.put_once("te.xml", io.BytesIO(b"<xml/>"), sha256=sha256(b"<xml/>")) is False


def test_other_content_is_never_overwritten(aws_world: World) -> None:
    bucket = LabBucket(aws_world.name)
    aws_world.put("te.xml", b"first")
    with pytest.raises(UserError, match=r"already in the bucket with other content.*upload under another run ID"):
        bucket.put_once("te.xml", io.BytesIO(b"second"), sha256=sha256(b"second"))
    assert bucket.read("te.xml")[0] == b"first"


def test_a_lab_without_read_access_learns_that_an_object_exists(aws_world: World) -> None:
    aws_world.put("te.xml", b"first")
    aws_world.server.forbid(aws_world.name, "s3:GetObject")
    with pytest.raises(UserError, match="these credentials may not read it"):
        LabBucket(aws_world.name).put_once("te.xml", io.BytesIO(b"x"), sha256=sha256(b"x"))


def test_a_lab_without_write_access_gets_the_missing_action(aws_world: World) -> None:
    aws_world.server.forbid(aws_world.name, "s3:PutObject")
    with pytest.raises(UserError, match="s3:PutObject is denied"):
        LabBucket(aws_world.name).put_once("te.xml", io.BytesIO(b"x"), sha256=sha256(b"x"))


async def test_a_file_that_changed_during_the_upload_is_reported(script: Script) -> None:
    script.answers = [fault(400, "XAmzContentChecksumMismatch")]
    with pytest.raises(UserError, match="a file changed during the upload"):
        await asyncio.to_thread(
            LabBucket("device-results", tries=1).put_once, "te.xml", io.BytesIO(b"x"), sha256=sha256(b"y")
        )
    (request,) = script.requests
    assert request.headers["If-None-Match"] == "*"
    assert request.headers["x-amz-checksum-sha256"] == "ofzkNjhU/4iM/0uOeHXWAMJoI5BBKoz3mzfQsRFIsPo="


NOT_AUTHORIZED = "User: arn:aws:iam::1:user/lab is not authorized to perform: {} on resource: arn:aws:kms:key/1"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((501, "NotImplemented"), r"this store lacks conditional writes .*set AWS_ENDPOINT_URL and NIGHTJAR_BUCKET"),
        ((403, "AccessDenied", NOT_AUTHORIZED.format("kms:GenerateDataKey")), r"allow kms:GenerateDataKey on that key"),
        ((403, "AccessDenied", NOT_AUTHORIZED.format("s3:PutObjectAcl")), r"s3:PutObjectAcl is denied to these"),
        ((403, "AccessDenied"), r"s3:PutObject is denied to these credentials; correct NIGHTJAR_LAB"),
        ((400, "InvalidArgument", "No\nsuch part."), r"s3:PutObject was refused \(InvalidArgument: No such part\)"),
        ((400, "KMS.DisabledException", "The key is disabled"), r"\(KMS.DisabledException: The key is disabled\)"),
    ],
)
async def test_a_refused_upload_ends_with_what_to_do(script: Script, answer: tuple[int, str], text: str) -> None:
    script.answers = [fault(*answer)]
    with pytest.raises(UserError, match=text):
        await asyncio.to_thread(LabBucket("device-results").put_once, "te.xml", io.BytesIO(b"x"), sha256=sha256(b"x"))
    assert len(script.requests) == 1


async def test_a_store_that_does_not_implement_a_read_is_a_permanent_error(script: Script) -> None:
    script.answers = [fault(501, "NotImplemented")]
    with pytest.raises(UserError, match="this store does not implement s3:GetObject"):
        await asyncio.to_thread(LabBucket("device-results").read, "nightly.json")


async def test_two_simultaneous_writers_are_tried_again_later(script: Script) -> None:
    script.answers = [fault(409, "ConditionalRequestConflict")]
    with pytest.raises(TryAgain):
        await asyncio.to_thread(
            LabBucket("device-results", tries=1).put_once, "te.xml", io.BytesIO(b"x"), sha256="00" * 32
        )
