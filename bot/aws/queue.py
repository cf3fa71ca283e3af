"""Notifications of S3 about new objects, received from an SQS queue by long polling.

SQS delivers a message at least once and in any order, and a message may be lost. So the receiver must recognize an
arrival that it already has, and a listing finds objects without a message. A message only names an object; the bot
reads the object itself from the bucket.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote_plus

import structlog
from nightjar_formats.strict_json import read_json

from bot.aws import texts
from bot.aws.bucket import Arrival, BucketFolder, is_manifest
from bot.aws.client import Aws, explained, in_thread
from bot.core.errors import PayloadError, TryAgain, UserError
from bot.core.events import Payload

WAIT, BATCH = 20, 10
"""Seconds that SQS lets a poll wait, and messages that it returns at once: the maxima that SQS allows."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before the next poll after a failure, doubled each time; the first also after a poll without messages."""
MAJOR_VERSION = "2"
CREATED = ("ObjectCreated:", "s3:ObjectCreated:")


Deliver = Callable[[Arrival], Awaitable[object]]
"""Makes an arrival durable before it returns; accepts an arrival that it already has."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Garbage(Exception):
    """A message that no retry can make readable; the text is the reason."""


def arrivals(body: str) -> list[Arrival]:
    """Return the objects that a message reports as created; an empty list for other events.

    Reads S3's own messages, those that SNS has wrapped, and EventBridge's. Raises `Garbage` for any other text.
    https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
    """
    try:
        message = Payload(read_json(body), "message")
        if message.text("Type") == "Notification":
            message = Payload(read_json(message.string("Message")), "message")
        if message.text("Event") == "s3:TestEvent":
            return []
        if message.text("source") == "aws.s3":
            return _arrivals_of_event_bridge(message)
        if not message.has("Records"):
            raise Garbage(texts.NOT_AN_EVENT)
        return [arrival for record in message.items("Records") for arrival in _arrivals_of_record(record)]
    except ValueError:
        raise Garbage(texts.NOT_JSON) from None
    except PayloadError as error:
        raise Garbage(str(error)) from None


def _arrivals_of_record(record: Payload) -> list[Arrival]:
    if record.string("eventSource") != "aws:s3":
        raise Garbage(texts.NOT_AN_EVENT)
    version = record.string("eventVersion")
    # Only a new major version changes these fields:
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
    if version.partition(".")[0] != MAJOR_VERSION:
        raise Garbage(texts.OTHER_VERSION.format(version=version[:20]))
    if not record.string("eventName").startswith(CREATED):
        return []
    # S3 encodes keys in its messages, with `+` for a space.
    key = unquote_plus(record.string("s3", "object", "key"), errors="strict")
    return [_arrival(record.string("s3", "bucket", "name"), key, record.string("s3", "object", "eTag"))]


def _arrivals_of_event_bridge(message: Payload) -> list[Arrival]:
    # Its keys are not encoded: https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
    if message.string("detail-type") != "Object Created":
        return []
    detail = message.at("detail")
    return [_arrival(detail.string("bucket", "name"), detail.string("object", "key"), detail.string("object", "etag"))]


def _arrival(bucket: str, key: str, etag: str) -> Arrival:
    return Arrival(bucket, key, etag.strip('"'))


class Notifications:
    """Receives messages from a queue. `heard` is when SQS last answered, in seconds since 1970; None before that.

    `folders` are the prefixes of runs: messages about other objects are ignored. `pause` is in seconds.
    """

    def __init__(
        self, aws: Aws, queue_url: str, folders: Collection[BucketFolder], *, pause: float = FIRST_PAUSE
    ) -> None:
        self.queue_url = queue_url
        self.heard: float | None = None
        self._aws = aws
        self._folders = tuple(folders)
        self._pause = pause
        self._problem = ""

    async def run(self, deliver: Deliver) -> None:
        """Deliver the manifests that appear, until cancelled. Deletes a message only after its delivery.

        SQS sends an undelivered message again after the queue's visibility timeout. It must have no dead-letter queue,
        which would take such messages while the database is unavailable. Unreadable messages, and those of other
        buckets or prefixes, are deleted: otherwise they would come again forever.
        """
        pause = 0.0
        while True:
            try:
                await self._once(deliver)
            except Exception as error:  # without this loop no run would arrive, and nobody would notice
                pause = min(max(2 * pause, self._pause), LONGEST_PAUSE)
                self._report(error)
                await asyncio.sleep(pause)
            else:
                pause = 0.0
                self._report(None)

    async def _once(self, deliver: Deliver) -> None:
        """Receive up to ten messages and deliver them; raise `TryAgain` if one of them was not delivered."""
        messages = await in_thread(self._receive)
        self.heard = time.time()
        if not messages:  # for services without long polls
            await asyncio.sleep(self._pause)
        # Collect exceptions, so that delivered messages are deleted even if another one failed.
        outcomes = await asyncio.gather(
            *(self._deliver(message["Body"], deliver) for message in messages), return_exceptions=True
        )
        finished = [message for message, outcome in zip(messages, outcomes, strict=True) if outcome is None]
        if finished:
            await in_thread(partial(self._delete, finished))
        failed = [outcome for outcome in outcomes if outcome is not None]
        if failed:
            raise TryAgain(texts.UNDELIVERED.format(reason=type(failed[0]).__name__)) from failed[0]

    async def _deliver(self, body: str, deliver: Deliver) -> None:
        try:
            arrived = arrivals(body)
        except Garbage as garbage:
            log.warning("message is unreadable", queue=self.queue_url, reason=str(garbage), body=body[:200])
            return
        for arrival in arrived:
            if not any(arrival.lies_in(folder) for folder in self._folders):
                log.info(
                    "ignored message for another bucket or prefix",
                    queue=self.queue_url,
                    bucket=arrival.bucket,
                    key=arrival.key,
                )
            elif is_manifest(arrival.key):
                await deliver(arrival)

    def _receive(self) -> Sequence[Any]:
        with explained(self._queue_label):
            answer = self._aws.sqs(self.queue_url).receive_message(
                QueueUrl=self.queue_url, WaitTimeSeconds=WAIT, MaxNumberOfMessages=BATCH
            )
        messages: Sequence[Any] = answer.get("Messages", ())
        return messages

    def _delete(self, messages: Sequence[Any]) -> None:
        """Delete messages of one poll, which are never more than SQS deletes at once."""
        # An ID only has to be unique within the request.
        entries = [{"Id": str(i), "ReceiptHandle": message["ReceiptHandle"]} for i, message in enumerate(messages)]
        with explained(self._queue_label):
            answer = self._aws.sqs(self.queue_url).delete_message_batch(QueueUrl=self.queue_url, Entries=entries)
        if answer.get("Failed"):  # SQS sends them again, which does no harm
            log.warning("messages were not deleted", queue=self.queue_url, count=len(answer["Failed"]))

    def _report(self, error: Exception | None) -> None:
        """Log the state of the queue when it changes."""
        is_expected = isinstance(error, TryAgain | UserError)
        problem = "" if error is None else str(error) if is_expected else type(error).__name__
        if error is not None and problem != self._problem:
            cause = error.__cause__ if is_expected else error
            log.warning("cannot receive from queue", queue=self.queue_url, reason=problem, exc_info=cause)
        elif self._problem and not problem:
            log.info("queue answers again", queue=self.queue_url)
        self._problem = problem

    @property
    def _queue_label(self) -> str:
        return f"queue {self.queue_url}"
