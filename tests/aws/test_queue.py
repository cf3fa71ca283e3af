"""Notifications of new objects from a queue: read as S3 writes them, delivered, and deleted only after that."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.aws.bucket import Arrival
from bot.aws.queue import Garbage, arrivals

KEY = "results/octocat/compiler/example-lab/adreno/run/manifest.json"
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
    """Return a body as SNS wraps it (https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html)."""
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
def test_all_services_that_forward_a_notification_report_the_same_arrival(body: str) -> None:
    assert arrivals(body) == [Arrival("device-results", KEY, ETAG)]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3", "2.10"])
def test_every_minor_version_is_accepted(version: str) -> None:
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


def test_keys_of_event_bridge_are_not_decoded() -> None:
    detail = {"bucket": {"name": "device-results"}, "object": {"key": "c++/100%25", "etag": ETAG}}
    assert [arrival.key for arrival in arrivals(bridged(detail=detail))] == ["c++/100%25"]


def test_one_message_may_name_several_objects() -> None:
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
def test_a_message_without_a_new_object_has_no_arrival(body: str) -> None:
    assert arrivals(body) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "it is not JSON"),
        ("hello", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[]", "it is not an S3 notification"),
        ("{}", "it is not an S3 notification"),
        ('{"Records": 7}', "message.Records: is a number where a list was expected"),
        ('{"Records": [7]}', r"message.Records\[0\]: is a number"),
        (message(record(eventVersion="3.0")), r"it has version 3\.0; only 2\.x is supported"),
        (message(record(eventSource="aws:sqs")), "it is not an S3 notification"),
        (message(record(etag=None)), r"message.Records\[0\].s3.object.eTag: is missing"),
        (message(record(key="%FF")), "it is not JSON"),
        (wrapped("hello"), "it is not JSON"),
        (json.dumps({"Type": "Notification"}), "message.Message: is missing"),
    ],
)
def test_garbage_is_reported_with_its_fault(body: str, reason: str) -> None:
    with pytest.raises(Garbage, match=reason):
        arrivals(body)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
)


@given(st.dictionaries(st.sampled_from(["Records", "Type", "Message", "Event", "source", "detail"]), _JSON) | _JSON)
def test_any_json_is_an_event_or_garbage(value: object) -> None:
    with contextlib.suppress(Garbage):
        assert isinstance(arrivals(json.dumps(value)), list)


# Listening
