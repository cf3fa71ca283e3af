"""Listening to a queue: its messages are delivered, and deleted only after that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from bot.aws.bucket import Arrival, Bucket, BucketFolder
from bot.aws.client import Aws
from bot.aws.queue import Deliver, Notifications
from bot.core.errors import TryAgain
from tests.aws.test_queue import ETAG, KEY, message, record
from tests.bucket import Script, World, fault
from tests.waiting import until

PAUSE = 0.2


@dataclass
class Inbox:
    """The delivered arrivals; deliveries fail while a test says so."""

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
    world: World, queue_url: str, deliver: Deliver, places: Iterable[BucketFolder] = ()
) -> AsyncIterator[Notifications]:
    """Listen to a queue while the block runs."""
    notifications = Notifications(
        world.aws, queue_url, list(places) or [BucketFolder(world.name, "results/")], pause=PAUSE
    )
    task = asyncio.create_task(notifications.run(deliver))
    try:
        yield notifications
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def empty(world: World, queue_url: str) -> Callable[[], bool]:
    """Return whether a queue is empty."""
    return lambda: world.waiting(queue_url) == 0


async def test_the_queue_reports_an_upload_as_the_listing_does(aws_world: World) -> None:
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


async def test_the_event_loop_is_not_blocked_while_the_queue_is_empty(aws_world: World) -> None:
    inbox, queue = Inbox(), aws_world.queue()
    async with listening(aws_world, queue, inbox.deliver) as notifications:
        await until(lambda: notifications.heard)  # S3's test event; from now on it waits for up to 20 s
        await until(empty(aws_world, queue))
        aws_world.put(KEY)
        await until(lambda: inbox.arrived)


async def test_only_manifests_of_our_places_are_delivered_and_the_rest_is_deleted(aws_world: World) -> None:
    inbox, queue = Inbox(), aws_world.queue(suffix="")
    own_record = record(bucket=aws_world.name)
    bodies = [
        "garbage",
        message(record(bucket="other")),
        message(record(bucket=aws_world.name, key="old-results/run/manifest.json")),
        message(record(bucket=aws_world.name, key="results/run/te.xml")),
        message(record(bucket=aws_world.name, key="results/a%00b/manifest.json")),
        message(record(bucket=aws_world.name, eventName="ObjectRemoved:Delete")),
        message(own_record, own_record),
        message(own_record),
    ]
    aws_world.send(queue, *bodies)
    with capture_logs() as logs:
        async with listening(aws_world, queue, inbox.deliver):
            await until(empty(aws_world, queue))
    assert inbox.arrived == [Arrival(aws_world.name, KEY, ETAG)] * 3
    assert [(log["event"], log.get("reason"), log.get("bucket")) for log in logs if "message" in log["event"]] == [
        ("message is unreadable", "it is not JSON", None),
        ("ignored message for another bucket or prefix", None, "other"),
        ("ignored message for another bucket or prefix", None, aws_world.name),
    ]


async def test_messages_are_accepted_in_any_order_and_number(aws_world: World) -> None:
    inbox, queue = Inbox(), aws_world.queue()
    keys = [f"results/{number}/manifest.json" for number in range(25)]
    aws_world.send(queue, *(message(record(bucket=aws_world.name, key=key)) for key in [*reversed(keys), *keys[:5]]))
    async with listening(aws_world, queue, inbox.deliver):
        await until(empty(aws_world, queue))
    assert sorted(arrival.key for arrival in inbox.arrived) == sorted([*keys, *keys[:5]])


async def test_an_arrival_that_could_not_be_stored_comes_again_and_does_not_delay_others(aws_world: World) -> None:
    queue = aws_world.queue(visibility=0)
    bad = Arrival(aws_world.name, "results/bad/manifest.json", ETAG)
    inbox = Inbox()

    async def deliver(arrival: Arrival) -> None:
        if arrival == bad and inbox.tries < 3:
            inbox.tries += 1
            raise TryAgain("the database is unavailable")
        await inbox.deliver(arrival)

    keys = ["results/bad/manifest.json", KEY]
    aws_world.send(queue, *(message(record(bucket=aws_world.name, key=key)) for key in keys))
    with capture_logs() as logs:
        async with listening(aws_world, queue, deliver):
            await until(lambda: [arrival.key for arrival in inbox.arrived] == [KEY])
            assert aws_world.waiting(queue) > 0
            await until(lambda: bad in inbox.arrived)
            await until(empty(aws_world, queue))
            await until(lambda: logs[-1]["event"] == "queue answers again")
    assert (logs[0]["event"], logs[0]["reason"]) == (
        "cannot receive from queue",
        "could not store the notification of a new file: TryAgain",
    )


async def test_a_fault_of_ours_is_logged_with_its_traceback_and_listening_goes_on(aws_world: World) -> None:
    queue = aws_world.queue(visibility=0)
    inbox = Inbox(fails=LookupError("a fault"))
    aws_world.send(queue, message(record(bucket=aws_world.name)))
    with capture_logs() as logs:
        async with listening(aws_world, queue, inbox.deliver):
            await until(lambda: inbox.tries)
            inbox.fails = None
            await until(lambda: inbox.arrived)
    (log,) = [log for log in logs if log["event"] == "cannot receive from queue"]
    assert isinstance(log["exc_info"], LookupError)


@pytest.mark.exhaustive
async def test_listening_goes_on_after_an_outage_of_the_queue(own_world: World) -> None:
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
    assert [log["event"] for log in logs] == ["cannot receive from queue", "queue answers again"]
    assert logs[0]["reason"].startswith(f"queue {queue}")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("AWS.SimpleQueueService.NonExistentQueue", "does not exist at the account or endpoint"),
        ("AccessDeniedException", "sqs:ReceiveMessage is denied to these AWS credentials"),
    ],
)
async def test_an_unusable_queue_is_reported_once_with_the_remedy(
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
    (log,) = logs
    assert reason in log["reason"]
    assert notifications.heard is None


async def test_a_queue_that_answers_at_once_with_nothing_is_not_asked_again_at_once(script: Script, aws: Aws) -> None:
    poll_times = list[float]()

    async def welcome(_: web.Request) -> web.StreamResponse:
        poll_times.append(asyncio.get_running_loop().time())
        return web.Response(text="<html>Welcome</html>", content_type="text/html")

    script.answers = [welcome]
    task = asyncio.create_task(Notifications(aws, f"{script.url}/1/arrivals", [], pause=PAUSE).run(Inbox().deliver))
    await until(lambda: len(poll_times) >= 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert poll_times[1] - poll_times[0] > 0.9 * PAUSE  # which no slow machine makes shorter


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


async def test_messages_that_cannot_be_deleted_are_reported(script: Script, aws: Aws) -> None:
    held = {"Messages": [{"Body": "garbage", "ReceiptHandle": "r", "MessageId": "m"}]}
    failed = {"Failed": [{"Id": "0", "SenderFault": True, "Code": "ReceiptHandleIsInvalid"}]}
    script.answers = [web.json_response(held), web.json_response(failed), fault(500, "InternalError")]
    with capture_logs() as logs:
        task = asyncio.create_task(Notifications(aws, f"{script.url}/1/arrivals", [], pause=PAUSE).run(Inbox().deliver))
        await until(lambda: len(logs) >= 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert [log["event"] for log in logs[:2]] == ["message is unreadable", "messages were not deleted"]
