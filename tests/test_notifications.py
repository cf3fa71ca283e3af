"""What a queue tells of new objects: read as S3 words it, delivered, and deleted only after that."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from bot.aws import Aws
from bot.errors import TryAgain
from bot.notifications import Deliver, Garbage, Notifications, arrivals
from bot.storage import Arrival, Bucket, Place
from tests.bucket import Script, World, fault
from tests.waiting import until

KEY = "results/octocat/compiler/example-lab/adreno/run/manifest.json"
PAUSE = 0.2
ETAG = "0123456789abcdef0123456789abcdef"


def record(**changes: Any) -> dict[str, Any]:
    """Return a record as AWS documents it.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
    """
    return {
        "eventVersion": "2.5",
        "eventSource": "aws:s3",
        "awsRegion": "us-west-2",
        "eventTime": "1970-01-01T00:00:00.000Z",
        "eventName": "ObjectCreated:Put",
        "userIdentity": {"principalId": "AIDAJDPLRKLG7UEXAMPLE"},
        "requestParameters": {"sourceIPAddress": "127.0.0.1"},
        "responseElements": {
            "x-amz-request-id": "C3D13FE58DE4C810",
            "x-amz-id-2": "FMyUVURIY8/IgAtTv8xRjskZQpcIZ9KG4V5",
        },
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "testConfigRule",
            "bucket": {
                "name": changes.pop("bucket", "device-results"),
                "ownerIdentity": {"principalId": "A3NL1KOZZKExample"},
                "arn": "arn:aws:s3:::device-results",
            },
            "object": {
                "key": changes.pop("key", KEY),
                "size": 1024,
                "eTag": changes.pop("etag", ETAG),
                "versionId": "096fKKXTRTtl3on89fVO.nfljtsv6qko",
                "sequencer": "0055AED6DCD90281E5",
            },
        },
    } | changes


def message(*records: dict[str, Any]) -> str:
    return json.dumps({"Records": list(records)})


def wrapped(body: str) -> str:
    """Return a body as SNS hands it on (https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html)."""
    return json.dumps(
        {
            "Type": "Notification",
            "MessageId": "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
            "TopicArn": "arn:aws:sns:us-west-2:123456789012:MyTopic",
            "Subject": "Amazon S3 Notification",
            "Message": body,
            "Timestamp": "2012-05-02T00:54:06.655Z",
            "SignatureVersion": "1",
        }
    )


def bridged(**changes: Any) -> str:
    """Return an event of EventBridge (https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html)."""
    return json.dumps(
        {
            "version": "0",
            "id": "17793124-05d4-b198-2fde-7ededc63b103",
            "detail-type": "Object Created",
            "source": "aws.s3",
            "account": "111122223333",
            "time": "2021-11-12T00:00:00Z",
            "region": "ca-central-1",
            "resources": ["arn:aws:s3:::device-results"],
            "detail": {
                "version": "0",
                "bucket": {"name": "device-results"},
                "object": {"key": KEY, "size": 5, "etag": ETAG, "version-id": "IYV3p45BT0ac8hjHg1houSdS1a.Mro8e"},
                "reason": "PutObject",
            },
        }
        | changes
    )


TEST_EVENT = json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "device-results"})

# Reading


@pytest.mark.parametrize("body", [message(record()), wrapped(message(record())), bridged()])
def test_all_who_hand_on_a_notification_tell_of_the_same_arrival(body: str) -> None:
    assert arrivals(body) == [Arrival("device-results", KEY, ETAG)]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3", "2.10"])
def test_every_minor_version_is_read(version: str) -> None:
    assert len(arrivals(message(record(eventVersion=version)))) == 1


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("red+flower.jpg", "red flower.jpg"),
        ("c%2B%2B/100%25/%252F", "c++/100%/%2F"),
        ("Pr%C3%BCfstand/%F0%9F%98%80", "Prüfstand/😀"),
    ],
)
def test_keys_are_decoded(written: str, key: str) -> None:
    assert [arrival.key for arrival in arrivals(message(record(key=written)))] == [key]
    assert [arrival.key for arrival in arrivals(wrapped(message(record(key=written))))] == [key]


def test_keys_of_event_bridge_are_taken_as_they_are() -> None:
    detail = {"bucket": {"name": "device-results"}, "object": {"key": "c++/100%25", "etag": ETAG}}
    assert [arrival.key for arrival in arrivals(bridged(detail=detail))] == ["c++/100%25"]


def test_a_message_may_tell_of_several_objects() -> None:
    assert [arrival.key for arrival in arrivals(message(record(key="a"), record(key="b")))] == ["a", "b"]


@pytest.mark.parametrize(
    "body",
    [
        TEST_EVENT,
        wrapped(TEST_EVENT),
        message(),
        message(record(eventName="ObjectRemoved:Delete")),
        message(record(eventName="LifecycleExpiration:Delete")),
        bridged(**{"detail-type": "Object Deleted"}),
    ],
)
def test_what_tells_of_no_new_object_tells_of_nothing(body: str) -> None:
    assert arrivals(body) == []


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "it is not JSON"),
        ("hello", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "it is no notification of S3"),
        ("{}", "it is no notification of S3"),
        ('{"Records": 7}', "message.Records: is a number where a list was expected"),
        ('{"Records": [7]}', r"message.Records\[0\]: is a number"),
        (message(record(eventVersion="3.0")), r"it is of version 3\.0; only 2\.x is read"),
        (message(record(eventSource="aws:sqs")), "it is no notification of S3"),
        (message(record(etag=None)), r"message.Records\[0\].s3.object.eTag: is missing"),
        (message(record(key="%FF")), "it is not JSON"),
        (wrapped("hello"), "it is not JSON"),
        (json.dumps({"Type": "Notification"}), "message.Message: is missing"),
    ],
)
def test_garbage_is_told_with_what_is_wrong_with_it(body: str, why: str) -> None:
    with pytest.raises(Garbage, match=why):
        arrivals(body)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


@given(st.dictionaries(st.sampled_from(["Records", "Type", "Message", "Event", "source", "detail"]), _JSON) | _JSON)
def test_any_json_is_an_event_or_garbage(value: object) -> None:
    with contextlib.suppress(Garbage):
        assert isinstance(arrivals(json.dumps(value)), list)


# Listening


@dataclass
class Inbox:
    """What was delivered; fails as long as it is told to."""

    arrived: list[Arrival] = field(default_factory=list)
    fails: BaseException | None = None
    tries: int = 0

    async def deliver(self, arrival: Arrival) -> None:
        self.tries += 1
        if self.fails is not None:
            raise self.fails
        self.arrived.append(arrival)


@asynccontextmanager
async def listening(
    world: World, queue_url: str, deliver: Deliver, places: Iterable[Place] = ()
) -> AsyncIterator[Notifications]:
    """Listen to a queue while the block runs."""
    notifications = Notifications(world.aws, queue_url, list(places) or [Place(world.name, "results/")], pause=PAUSE)
    task = asyncio.create_task(notifications.run(deliver))
    try:
        yield notifications
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def empty(world: World, queue_url: str) -> Callable[[], bool]:
    """Tell whether a queue holds nothing any more."""
    return lambda: world.waiting(queue_url) == 0


async def test_what_is_uploaded_is_heard_of_as_the_listing_tells_it(aws_world: World) -> None:
    inbox, queue = Inbox(), aws_world.queue()
    keys = [KEY, "results/octocat/c++/Prüf stand/100%/run/manifest.json"]
    async with listening(aws_world, queue, inbox.deliver) as notifications:
        for key in keys:
            aws_world.put(key)
        await until(lambda: len(inbox.arrived) == 2)
        await until(empty(aws_world, queue))
    assert notifications.heard is not None
    pages = [page async for page in Bucket(aws_world.aws, aws_world.name).manifests("results/")]
    assert sorted(inbox.arrived, key=str) == sorted((arrival for page in pages for arrival in page), key=str)


async def test_the_loop_runs_on_while_the_queue_has_nothing_to_tell(aws_world: World) -> None:
    inbox, queue = Inbox(), aws_world.queue()
    async with listening(aws_world, queue, inbox.deliver) as notifications:
        await until(lambda: notifications.heard)  # S3's test event; from now on it waits for up to 20 s
        await until(empty(aws_world, queue))
        aws_world.put(KEY)
        await until(lambda: inbox.arrived)


async def test_only_manifests_of_our_places_are_delivered_and_the_rest_is_deleted(aws_world: World) -> None:
    inbox, queue = Inbox(), aws_world.queue(suffix="")
    ours = record(bucket=aws_world.name)
    bodies = [
        "garbage",
        message(record(bucket="other")),
        message(record(bucket=aws_world.name, key="old-results/run/manifest.json")),
        message(record(bucket=aws_world.name, key="results/run/te.xml")),
        message(record(bucket=aws_world.name, key="results/a%00b/manifest.json")),
        message(record(bucket=aws_world.name, eventName="ObjectRemoved:Delete")),
        message(ours, ours),
        message(ours),
    ]
    aws_world.send(queue, *bodies)
    with capture_logs() as logs:
        async with listening(aws_world, queue, inbox.deliver):
            await until(empty(aws_world, queue))
    assert inbox.arrived == [Arrival(aws_world.name, KEY, ETAG)] * 3
    assert [(log["event"], log.get("reason"), log.get("bucket")) for log in logs if "message" in log["event"]] == [
        ("message is not understood", "it is not JSON", None),
        ("message is of another place", None, "other"),
        ("message is of another place", None, aws_world.name),
    ]


async def test_messages_are_heard_in_whatever_order_and_number_they_come(aws_world: World) -> None:
    inbox, queue = Inbox(), aws_world.queue()
    keys = [f"results/{number}/manifest.json" for number in range(25)]
    aws_world.send(queue, *(message(record(bucket=aws_world.name, key=key)) for key in [*reversed(keys), *keys[:5]]))
    async with listening(aws_world, queue, inbox.deliver):
        await until(empty(aws_world, queue))
    assert sorted(arrival.key for arrival in inbox.arrived) == sorted([*keys, *keys[:5]])


async def test_what_could_not_be_noted_comes_again_and_does_not_hold_up_others(aws_world: World) -> None:
    queue = aws_world.queue(visibility=0)
    bad = Arrival(aws_world.name, "results/bad/manifest.json", ETAG)
    inbox = Inbox()

    async def deliver(arrival: Arrival) -> None:
        if arrival == bad and inbox.tries < 3:
            inbox.tries += 1
            raise TryAgain("the database is away")
        await inbox.deliver(arrival)

    keys = ["results/bad/manifest.json", KEY]
    aws_world.send(queue, *(message(record(bucket=aws_world.name, key=key)) for key in keys))
    with capture_logs() as logs:
        async with listening(aws_world, queue, deliver):
            await until(lambda: [arrival.key for arrival in inbox.arrived] == [KEY])
            assert aws_world.waiting(queue) > 0
            await until(lambda: bad in inbox.arrived)
            await until(empty(aws_world, queue))
            await until(lambda: logs[-1]["event"] == "queue is heard again")
    assert (logs[0]["event"], logs[0]["reason"]) == (
        "queue is not heard",
        "an arrival could not be noted: TryAgain",
    )


async def test_a_fault_of_ours_is_logged_with_its_traceback_and_the_queue_is_still_heard(aws_world: World) -> None:
    queue = aws_world.queue(visibility=0)
    inbox = Inbox(fails=LookupError("a fault"))
    aws_world.send(queue, message(record(bucket=aws_world.name)))
    with capture_logs() as logs:
        async with listening(aws_world, queue, inbox.deliver):
            await until(lambda: inbox.tries)
            inbox.fails = None
            await until(lambda: inbox.arrived)
    (told,) = [log for log in logs if log["event"] == "queue is not heard"]
    assert isinstance(told["exc_info"], LookupError)


async def test_a_queue_that_is_away_is_heard_again_when_it_is_back(own_world: World) -> None:
    inbox, queue = Inbox(), own_world.queue()
    with capture_logs() as logs:
        async with listening(own_world, queue, inbox.deliver):
            await until(empty(own_world, queue))
            own_world.server.stop()
            await until(lambda: logs)
            own_world.server.start()
            own_world.create()
            # It has its old name, and so its old address.
            assert own_world.server.create_queue(own_world.name, queue.rsplit("/", 1)[1]) == queue
            own_world.put(KEY)
            await until(lambda: inbox.arrived and len(logs) > 1)
    assert [log["event"] for log in logs] == ["queue is not heard", "queue is heard again"]
    assert logs[0]["reason"].startswith(f"queue {queue}")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("AWS.SimpleQueueService.NonExistentQueue", "does not exist where AWS_* points"),
        ("AccessDeniedException", "sqs:ReceiveMessage is denied to these AWS credentials"),
    ],
)
async def test_a_queue_that_cannot_be_used_is_told_once_with_the_remedy(
    script: Script, aws: Aws, code: str, reason: str
) -> None:
    script.answers = [web.json_response({"__type": code}, status=400)]
    notifications = Notifications(aws, f"{script.url}/123456789012/arrivals", [], pause=PAUSE)
    with capture_logs() as logs:
        task = asyncio.create_task(notifications.run(Inbox().deliver))
        await until(lambda: len(script.requests) >= 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (told,) = logs
    assert reason in told["reason"]
    assert notifications.heard is None


async def test_what_answers_at_once_with_nothing_is_not_asked_again_at_once(script: Script, aws: Aws) -> None:
    asked = list[float]()

    async def welcome(_: web.Request) -> web.StreamResponse:
        asked.append(asyncio.get_running_loop().time())
        return web.Response(text="<html>Welcome</html>", content_type="text/html")

    script.answers = [welcome]
    task = asyncio.create_task(Notifications(aws, f"{script.url}/1/arrivals", [], pause=PAUSE).run(Inbox().deliver))
    await until(lambda: len(asked) >= 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asked[1] - asked[0] > 0.9 * PAUSE  # which no slow machine makes shorter


async def test_a_stop_does_not_wait_for_the_poll(script: Script, aws: Aws) -> None:
    polled, go_on = asyncio.Event(), asyncio.Event()

    async def wait(_: web.Request) -> web.StreamResponse:
        polled.set()
        await go_on.wait()
        return web.json_response({})

    script.answers = [wait]
    task = asyncio.create_task(Notifications(aws, f"{script.url}/1/arrivals", [], pause=PAUSE).run(Inbox().deliver))
    await polled.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not go_on.is_set()
    go_on.set()


async def test_messages_that_cannot_be_deleted_are_told(script: Script, aws: Aws) -> None:
    held = {"Messages": [{"Body": "garbage", "ReceiptHandle": "r", "MessageId": "m"}]}
    failed = {"Failed": [{"Id": "0", "SenderFault": True, "Code": "ReceiptHandleIsInvalid"}]}
    script.answers = [web.json_response(held), web.json_response(failed), fault(500, "InternalError")]
    with capture_logs() as logs:
        task = asyncio.create_task(Notifications(aws, f"{script.url}/1/arrivals", [], pause=PAUSE).run(Inbox().deliver))
        await until(lambda: len(logs) >= 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [log["event"] for log in logs[:2]] == ["message is not understood", "messages were not deleted"]
