"""The object store that labs upload to: the bot lists and reads objects within limits, and objects are written once.

Only the bot's own objects, which labs read, are overwritten; each such write names the version that it replaces.

A new object is identified by bucket, key and ETag, whichever notification named it. The version ID would not do:
notifications have it and listings don't, while both have the ETag. The ETag differs whenever the content does, and the
same content uploaded again is nothing new: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple, Protocol

from nightjar_formats.refused import TooMuch

from bot.aws import texts
from bot.aws.client import Aws, code_of, explained, in_thread
from bot.core.errors import TryAgain, UserError

MANIFEST = "manifest.json"
CHUNK = 1 << 20
COMPARED = 1 << 16
"""Bytes up to which `write_over` reads an object before it replaces it; a larger one has other content anyway."""
LONGEST_KEY = 1024
"""Bytes, by S3's own rule: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html"""
LONGEST_PERMISSION = 7 * 86_400
"""Seconds, by S3's own rule for version 4 of its signatures."""


class NotThere(Exception):
    """There is no object under the key: not yet, or no longer."""


class OtherContent(UserError):
    """The object exists with other content, and nothing is overwritten."""


class NoSpace(Exception):
    """The disk is nearly full; the text says how full."""


@dataclass(frozen=True, slots=True)
class BucketFolder:
    """Where runs are: a bucket and a folder in it, with a slash at the end, or empty for the whole bucket."""

    bucket: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """A new object; the value is the same whichever notification named it.

    `version` is its ETag, without quotes.
    """

    bucket: str
    key: str
    version: str

    def lies_in(self, place: BucketFolder) -> bool:
        """Return whether it is below the place."""
        return self.bucket == place.bucket and self.key.startswith(place.prefix)


class ObjectHead(NamedTuple):
    """What is known about an object before it is read."""

    bytes: int
    version: str


class Small(NamedTuple):
    """A small object's content and version, which may be newer than the one that was listed."""

    body: bytes
    version: str


class Downloaded(NamedTuple):
    """What was read of an object; `sha256` in hexadecimal digits."""

    bytes: int
    sha256: str
    version: str


class PresignedPost(NamedTuple):
    """A permission to upload with an HTML form: its URL, and the fields that precede the file."""

    url: str
    fields: Mapping[str, str]


class Writable(Protocol):
    """A file to copy into."""

    def write(self, piece: bytes, /) -> object:
        """Append some more bytes."""
        ...


class Source(Protocol):
    """A source of runs: a bucket, or a folder with the layout of one.

    Raises `NotThere` for a key without an object, `TooMuch` beyond a limit, and, of a bucket, `TryAgain` and
    `UserError`.
    """

    name: str

    def manifests(self, prefix: str) -> AsyncIterator[list[Arrival]]:
        """Yield the manifests whose keys begin with a prefix, page by page; a page may be empty."""
        ...

    async def folders(self, prefix: str) -> list[str]:
        """Return the folders directly below a prefix, each as its prefix with a slash at the end."""
        ...

    async def head(self, key: str) -> ObjectHead:
        """Return an object's size and version."""
        ...

    async def read_small(self, key: str, limit: int) -> Small:
        """Return the content of an object of at most `limit` bytes."""
        ...

    async def download(self, key: str, into: Writable, *, limit: int) -> Downloaded:
        """Copy an object of at most `limit` bytes into a file. Reads nothing of a larger one."""
        ...


class RunStore(Source, Protocol):
    """A source of runs to which the bot writes too: a bucket, or the folder beside the database."""

    def check_space(self, size: int) -> None:
        """Raise `NoSpace` unless the store has space for so many more bytes."""
        ...

    def temporary_file(self) -> AbstractContextManager[BinaryIO]:
        """Return a new file whose content `put_once` can store."""
        ...

    async def put_once(self, key: str, file: BinaryIO, *, sha256: str) -> bool:
        """Store a `temporary_file`; return False if the key has this content already. Raises `OtherContent`."""
        ...

    async def write_over(self, key: str, body: bytes, *, content_type: str) -> bool:
        """Write one of the bot's own objects unless it holds this content already; return whether it was written."""
        ...


class Discarded:
    """A file that keeps nothing of what is written, for a copy of which only the digest is needed."""

    def write(self, piece: bytes, /) -> object:
        """Do nothing."""


def is_manifest(key: str) -> bool:
    """Return whether a key can name a run's manifest. Keys with control characters cannot: databases refuse them."""
    try:
        fits = len(key.encode()) <= LONGEST_KEY
    except UnicodeEncodeError:
        return False
    return fits and key.endswith(f"/{MANIFEST}") and key.isprintable()


class Bucket:
    """A bucket of S3, as a source of runs."""

    def __init__(self, aws: Aws, name: str) -> None:
        self._aws = aws
        self.name = name

    async def manifests(self, prefix: str) -> AsyncIterator[list[Arrival]]:
        """Yield the manifests whose keys begin with a prefix, a list for each answer of S3 of up to 1000 objects."""
        next_token: str | None = ""
        while next_token is not None:
            page, next_token = await in_thread(partial(self._page, prefix, next_token))
            yield page

    def _page(self, prefix: str, token: str) -> tuple[list[Arrival], str | None]:
        answer = self._list(prefix, token)
        manifests = [
            # S3's answers quote an ETag (https://www.rfc-editor.org/rfc/rfc9110#name-etag), its messages do not.
            Arrival(self.name, item["Key"], item["ETag"].strip('"'))
            for item in answer.get("Contents", ())
            if is_manifest(item["Key"])
        ]
        return manifests, answer.get("NextContinuationToken")

    async def check(self, prefix: str) -> None:
        """Ask for one key below a prefix; raise `UserError` if listing is not allowed, `TryAgain` while S3 fails."""
        await in_thread(partial(self._list, prefix, "", MaxKeys=1))

    async def has_many(self, prefix: str, count: int) -> bool:
        """Return whether at least `count` objects are below a prefix; read no more pages than that takes."""
        listed, next_token = 0, ""
        while next_token is not None and listed < count:
            answer = await in_thread(partial(self._list, prefix, next_token))
            listed, next_token = listed + len(answer.get("Contents", ())), answer.get("NextContinuationToken")
        return listed >= count

    def _list(self, prefix: str, token: str, **options: Any) -> Any:
        arguments = options | ({"ContinuationToken": token} if token else {})
        with explained(self._place):
            return self._aws.s3().list_objects_v2(Bucket=self.name, Prefix=prefix, **arguments)

    async def folders(self, prefix: str) -> list[str]:
        """Return the folders directly below a prefix, each as its prefix with a slash at the end."""
        folders: list[str] = []
        next_token: str | None = ""
        while next_token is not None:
            answer = await in_thread(partial(self._list, prefix, next_token, Delimiter="/"))
            folders += [item["Prefix"] for item in answer.get("CommonPrefixes", ())]
            next_token = answer.get("NextContinuationToken")
        return folders

    async def head(self, key: str) -> ObjectHead:
        """Return an object's size and version. Raises `NotThere`."""

        def ask() -> ObjectHead:
            with explained(self._place):
                answer = self._call(key, "head_object")
            return ObjectHead(answer["ContentLength"], answer["ETag"].strip('"'))

        return await in_thread(ask)

    async def read_small(self, key: str, limit: int) -> Small:
        """Return the content of an object of at most `limit` bytes. Raises `NotThere` and `TooMuch`."""
        into = BytesIO()
        read = await self.download(key, into, limit=limit)
        return Small(into.getvalue(), read.version)

    async def download(self, key: str, into: Writable, *, limit: int) -> Downloaded:
        """Copy an object of at most `limit` bytes into a file. Raises `NotThere` and `TooMuch`.

        When cancelled, the thread stops after the current chunk, which it may still write.
        """
        stop = threading.Event()
        try:
            return await in_thread(lambda: self._copy(key, into, limit, stop))
        finally:
            stop.set()

    def _copy(self, key: str, into: Writable, limit: int, stop: threading.Event) -> Downloaded:
        with explained(self._place):
            answer = self._call(key, "get_object")
            with closing(answer["Body"]) as body:
                size = answer.get("ContentLength", 0)
                if size > limit:
                    raise TooMuch(texts.TOO_LARGE.format(key=key, size=size, limit=limit))
                count, digest = 0, hashlib.sha256()
                while not stop.is_set() and (piece := body.read(CHUNK)):
                    count += len(piece)
                    # Check the size again while reading: the length is only what the store declares.
                    if count > limit:
                        raise TooMuch(texts.TOO_LONG.format(key=key, limit=limit))
                    digest.update(piece)
                    into.write(piece)
        return Downloaded(count, digest.hexdigest(), answer["ETag"].strip('"'))

    def _call(self, key: str, operation: str) -> Any:
        from botocore.exceptions import ClientError

        try:
            return getattr(self._aws.s3(), operation)(Bucket=self.name, Key=key)
        except ClientError as error:
            # A HEAD has no body that could name a code, so botocore uses the status.
            if code_of(error)[0] in ("NoSuchKey", "404"):
                raise NotThere(texts.NOT_THERE.format(key=key)) from None
            raise

    def check_space(self, size: int) -> None:
        """Do nothing: a bucket has space."""

    def temporary_file(self) -> AbstractContextManager[BinaryIO]:
        """Return a new file for `put_once`."""
        return tempfile.TemporaryFile()

    async def put_once(self, key: str, file: BinaryIO, *, sha256: str) -> bool:
        """Store a `temporary_file`; return False if the key has this content already.

        Raises `OtherContent`, `TryAgain` and `UserError`.
        https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
        """
        if await in_thread(partial(self._put_new, key, file, sha256)):
            return True
        try:
            stored = await self.download(key, Discarded(), limit=os.fstat(file.fileno()).st_size)
        except TooMuch:
            raise OtherContent(texts.OTHER_CONTENT.format(key=key)) from None
        if stored.sha256 != sha256:
            raise OtherContent(texts.OTHER_CONTENT.format(key=key))
        return False

    def _put_new(self, key: str, file: BinaryIO, sha256: str) -> bool:
        from botocore.exceptions import ClientError

        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        file.seek(0)
        with explained(self._place):
            try:
                self._aws.s3().put_object(
                    Bucket=self.name, Key=key, Body=file, IfNoneMatch="*", ChecksumSHA256=checksum
                )
            except ClientError as error:
                if code_of(error)[0] not in ("PreconditionFailed", "412"):
                    raise
                return False
        return True

    async def write_over(self, key: str, body: bytes, *, content_type: str) -> bool:
        """Write an object unless it holds this content already; return whether it was written.

        Caches must check each time whether their copy is still the newest. Raises `TryAgain` if somebody else wrote the
        object after this read it. https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
        """
        try:
            current = await self.read_small(key, max(len(body), COMPARED))
        except NotThere:
            replaces = {"IfNoneMatch": "*"}
        except TooMuch:
            replaces = {"IfMatch": f'"{(await self.head(key)).version}"'}
        else:
            if current.body == body:
                return False
            replaces = {"IfMatch": f'"{current.version}"'}
        await in_thread(partial(self._replace, key, body, content_type, replaces))
        return True

    def _replace(self, key: str, body: bytes, content_type: str, replaces: Mapping[str, str]) -> None:
        from botocore.exceptions import ClientError

        options = {"ContentType": content_type, "CacheControl": "no-cache", **replaces}
        with explained(self._place):
            try:
                self._aws.s3().put_object(Bucket=self.name, Key=key, Body=body, **options)
            except ClientError as error:
                # 404: somebody deleted the object before it was replaced.
                if code_of(error)[0] not in ("PreconditionFailed", "412", "NoSuchKey", "404"):
                    raise
                raise TryAgain(texts.WRITTEN_MEANWHILE.format(key=key)) from None

    async def presign_post(self, prefix: str, *, most: int, seconds: float) -> PresignedPost:
        """Presign a POST of files of 1 to `most` bytes under a key prefix, valid for `seconds`.

        The bot's own credentials sign it; if those are a role's, it expires with them at the latest. A form cannot
        require `If-None-Match`, so files may be overwritten until it expires.
        https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTConstructPolicy.html
        """

        def sign() -> PresignedPost:
            with explained(self._place):
                signed = self._aws.s3().generate_presigned_post(
                    Bucket=self.name,
                    Key=f"{prefix}${{filename}}",
                    Conditions=[["content-length-range", 1, most]],
                    ExpiresIn=int(min(seconds, LONGEST_PERMISSION)),
                )
            return PresignedPost(signed["url"], signed["fields"])

        return await in_thread(sign)

    @property
    def _place(self) -> str:
        return f"bucket {self.name}"
