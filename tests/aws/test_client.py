"""The way to AWS: what the environment must contain, what its errors become, and that nobody waits for a thread."""

from __future__ import annotations

import asyncio
import threading

import pytest

from bot.aws.bucket import Bucket
from bot.aws.client import Aws, check_environment, in_thread, region_of
from bot.core.errors import SettingsError, TryAgain, UserError
from sandbox.bucket import ENVIRONMENT
from tests.bucket import Script, fault, point_to

QUEUE = "https://sqs.us-west-2.amazonaws.com/123456789012/arrivals"
ELSEWHERE = "http://queues.example.org/123456789012/arrivals"
SECRET = "wJalrXUtnFEMIK7MDENG"


@pytest.fixture
def blank(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Clear all AWS settings from the environment, including files of the person who runs the tests."""
    point_to("", monkeypatch)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    return monkeypatch


@pytest.mark.parametrize(
    ("environment", "queues", "line"),
    [
        ({}, [ELSEWHERE], f"AWS_DEFAULT_REGION is not set; set it to the region of the queue {ELSEWHERE}"),
        ({"AWS_ACCESS_KEY_ID": "AKIA"}, [], "AWS_SECRET_ACCESS_KEY is not set, but AWS_ACCESS_KEY_ID is"),
        ({"AWS_SECRET_ACCESS_KEY": SECRET}, [], "AWS_ACCESS_KEY_ID is not set, but AWS_SECRET_ACCESS_KEY is"),
        ({"AWS_ENDPOINT_URL": f"minio:{SECRET}@store"}, [], "AWS_ENDPOINT_URL must be a web address"),
        (
            {"AWS_ENDPOINT_URL_SQS": f"http://u:{SECRET}@q.example.org"},
            [],
            "AWS_ENDPOINT_URL_SQS must not contain a user",
        ),
        ({"AWS_PROFILE": "labs"}, [], "AWS_PROFILE names a profile that none of AWS's configuration files has"),
    ],
)
def test_a_missing_or_malformed_setting_is_named_in_one_line_without_its_value(
    blank: pytest.MonkeyPatch, environment: dict[str, str], queues: list[str], line: str
) -> None:
    for name, value in environment.items():
        blank.setenv(name, value)
    with pytest.raises(SettingsError) as refused:
        check_environment(queues)
    (problem,) = refused.value.problems
    assert problem.startswith(line)
    assert SECRET not in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("environment", "queues"),
    [
        ({}, []),  # the machine's role gives credentials, and S3 finds a bucket's region itself
        ({}, [QUEUE]),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, [ELSEWHERE]),
        ({"AWS_REGION": "eu-west-1"}, [ELSEWHERE]),  # which is what containers are given, and boto3 does not read
        (ENVIRONMENT | {"AWS_ENDPOINT_URL": "http://127.0.0.1:9000"}, [ELSEWHERE]),
    ],
)
def test_the_minimal_settings_are_accepted(
    blank: pytest.MonkeyPatch, environment: dict[str, str], queues: list[str]
) -> None:
    for name, value in environment.items():
        blank.setenv(name, value)
    check_environment(queues)
    aws = Aws()
    regions = [aws.sqs(url).meta.region_name for url in queues]
    assert regions == [
        region_of(url) or "eu-west-1" if "AWS_ENDPOINT_URL" not in environment else "us-east-1" for url in queues
    ]
    aws.s3()
    aws.close()


@pytest.mark.parametrize(
    ("url", "region"),
    [
        (QUEUE, "us-west-2"),
        ("https://sqs.cn-north-1.amazonaws.com.cn/1/q", "cn-north-1"),
        ("https://sqs.eu-west-1.api.aws/1/q", "eu-west-1"),
        ("https://us-west-2.queue.amazonaws.com/1/q", None),
        ("https://sqs.us-west-2.amazonaws.com.example.org/1/q", None),
        (ELSEWHERE, None),
    ],
)
def test_an_aws_queue_must_name_its_region(url: str, region: str | None) -> None:
    assert region_of(url) == region


@pytest.mark.parametrize(
    ("status", "code", "remedy"),
    [
        (403, "AccessDenied", "s3:ListBucket is denied to these AWS credentials; allow it"),
        (404, "NoSuchBucket", "does not exist at the account or endpoint that the AWS_* variables name; create it"),
        (403, "InvalidAccessKeyId", "renew AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (403, "SignatureDoesNotMatch", "renew AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (400, "ExpiredToken", "renew AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (403, "RequestTimeTooSkewed", "this machine's clock is wrong"),
        (400, "InvalidRequest", "s3:ListBucket was refused (InvalidRequest: In AWS's own words); correct the AWS_*"),
        (501, "NotImplemented", "this store does not implement s3:ListBucket; update it, or set AWS_ENDPOINT_URL"),
    ],
)
async def test_a_permanent_error_is_reported_with_its_remedy(
    script: Script, aws: Aws, status: int, code: str, remedy: str
) -> None:
    script.answers = [fault(status, code)]
    with pytest.raises(UserError) as refused:
        await anext(Bucket(aws, "device-results").manifests(""))
    assert str(refused.value).startswith("bucket device-results")
    assert remedy in str(refused.value)
    assert ENVIRONMENT["AWS_SECRET_ACCESS_KEY"] not in str(refused.value)


NOT_AUTHORIZED = (
    "User: arn:aws:iam::123456789012:user/nightjar is not authorized to perform: {action} on resource: "
    "arn:aws:kms:us-west-2:123456789012:key/1 because no identity-based policy allows the {action} action"
)


@pytest.mark.parametrize(
    ("action", "remedy"),
    [
        ("kms:GenerateDataKey", "the bucket is encrypted with a key of AWS KMS; allow kms:GenerateDataKey on that key"),
        ("kms:Decrypt", "the bucket is encrypted with a key of AWS KMS; allow kms:Decrypt on that key"),
        ("s3:PutObjectTagging", "s3:PutObjectTagging is denied to these AWS credentials; allow it in a policy"),
        ("s3:PutObject", "s3:PutObject is denied: the bucket's policy denies it"),
    ],
)
async def test_a_denial_names_the_permission_that_the_store_names(
    script: Script, aws: Aws, action: str, remedy: str
) -> None:
    script.answers = [fault(404, "NoSuchKey"), fault(403, "AccessDenied", NOT_AUTHORIZED.format(action=action))]
    with pytest.raises(UserError) as refused:
        await Bucket(aws, "device-results").write_over("k", b"x", content_type="application/json")
    assert remedy in str(refused.value)
    assert "123456789012" not in str(refused.value)


async def test_a_store_without_conditional_writes_is_a_permanent_error_with_its_remedy(
    script: Script, aws: Aws
) -> None:
    script.answers = [
        fault(404, "NoSuchKey"),
        fault(501, "NotImplemented", "A header you provided implies functionality"),
    ]
    with pytest.raises(
        UserError, match=r"this store lacks conditional writes \(If-None-Match: \*\).*set AWS_ENDPOINT_URL"
    ):
        await Bucket(aws, "device-results").write_over("k", b"x", content_type="application/json")
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("Part number must be\n  an integer.", "(InvalidArgument: Part number must be an integer)"),
        ("", "(InvalidArgument)"),
        ("x" * 5000, f"(InvalidArgument: {'x' * 300}…)"),
    ],
)
async def test_an_unknown_refusal_keeps_the_stores_sentence_in_one_line(
    script: Script, aws: Aws, message: str, sentence: str
) -> None:
    script.answers = [fault(400, "InvalidArgument", message)]
    with pytest.raises(UserError) as refused:
        await anext(Bucket(aws, "device-results").manifests(""))
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (503, "SlowDown"),
        (500, "InternalError"),
        (429, "TooManyRequests"),
        (400, "RequestTimeout"),
        (400, "ThrottlingException"),
        (502, "the words of a proxy"),
    ],
)
async def test_a_transient_error_is_tried_again_later(script: Script, aws: Aws, status: int, code: str) -> None:
    script.answers = [fault(status, code)]
    with pytest.raises(TryAgain, match="bucket device-results cannot be reached now"):
        await anext(Bucket(aws, "device-results").manifests(""))


async def test_a_service_that_is_busy_for_a_moment_is_asked_once_more(script: Script) -> None:
    aws = Aws(attempts=2)
    script.answers = [fault(503, "SlowDown"), fault(404, "NoSuchBucket")]
    with pytest.raises(UserError, match="does not exist"):
        await anext(Bucket(aws, "device-results").manifests(""))
    assert len(script.requests) == 2
    aws.close()


async def test_an_unreachable_endpoint_is_reported_without_its_address(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    point_to("http://127.0.0.1:9", monkeypatch)  # the discard port
    with pytest.raises(TryAgain) as away:
        await Bucket(aws, "device-results").head("results/manifest.json")
    assert str(away.value) == "bucket device-results cannot be reached now: EndpointConnectionError"


async def test_missing_credentials_are_reported_with_the_names_of_the_variables(
    aws: Aws, blank: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET"):
        await Bucket(aws, "device-results").head("results/manifest.json")


async def test_a_missing_profile_is_reported(aws: Aws, blank: pytest.MonkeyPatch) -> None:
    blank.setenv("AWS_PROFILE", "labs")
    with pytest.raises(UserError, match="AWS_PROFILE names a profile"):
        await Bucket(aws, "device-results").head("results/manifest.json")


async def test_an_invalid_region_is_a_permanent_error(aws: Aws, blank: pytest.MonkeyPatch) -> None:
    blank.setenv("AWS_DEFAULT_REGION", "us west")
    with pytest.raises(UserError, match="AWS_DEFAULT_REGION is not the name of a region"):
        await Bucket(aws, "device-results").head("results/manifest.json")


async def test_a_name_that_no_bucket_can_have_is_refused(script: Script, aws: Aws) -> None:
    with pytest.raises(UserError, match="correct the AWS_"):
        await Bucket(aws, "no bucket").head("results/manifest.json")
    assert script.requests == []


async def test_a_thread_returns_the_result_or_raises_the_error_of_its_call() -> None:
    def refuse() -> None:
        raise LookupError("not here")

    assert await in_thread(threading.current_thread) is not threading.current_thread()
    with pytest.raises(LookupError, match="not here"):
        await in_thread(refuse)


async def test_a_cancelled_caller_does_not_wait_for_its_thread() -> None:
    started, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def block() -> None:
        started.set()
        go_on.wait()
        ended.set()

    waiting = asyncio.create_task(in_thread(block))
    await in_thread(started.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not ended.is_set()
    go_on.set()
    await in_thread(ended.wait)


def test_a_closed_loop_gets_no_result_from_a_thread() -> None:
    go_on, threads = threading.Event(), list[threading.Thread]()

    def block() -> None:
        threads.append(threading.current_thread())
        go_on.wait()

    async def leave() -> None:
        task = asyncio.create_task(in_thread(block))
        await in_thread(lambda: None)
        task.cancel()

    asyncio.run(leave())
    go_on.set()
    for thread in threads:
        thread.join()
