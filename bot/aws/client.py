"""Call S3 and SQS: one client of each per process, calls in threads, errors in our own words.

Where the services are and who we are there, boto3 reads from its own `AWS_*` variables and files:
https://docs.aws.amazon.com/boto3/latest/guide/configuration.html. No text of this module repeats a value of theirs.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from nightjar_formats.store_errors import KMS, NOT_IMPLEMENTED, denied_action, refusal_reason

from bot.aws import texts
from bot.core.errors import SettingsError, TryAgain, UserError
from bot.core.parts import PartKey
from bot.core.patterns import Pattern
from bot.core.urls import http_url

if TYPE_CHECKING:
    from boto3 import Session
    from botocore.loaders import Loader

CONNECT_TIMEOUT, READ_TIMEOUT = 5, 30
"""Seconds; the second bounds a silence, not the whole answer, and is longer than a long poll of SQS (20 s)."""
CONNECTIONS = 32
"""The most connections of one client."""
ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_SQS")
KEY_ID, SECRET_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"


_ACTIONS = {
    "ListObjectsV2": "s3:ListBucket",
    "HeadObject": "s3:GetObject",
    "ReceiveMessage": "sqs:ReceiveMessage",
    "DeleteMessageBatch": "sqs:DeleteMessage",
}
"""What a policy calls an operation, where that is not `s3:` and its name."""
_DENIED_TEXTS = {"s3:PutObject": texts.DENIED_UPLOAD}
# https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html; a HEAD has the status alone.
_DENIED = {"AccessDenied", "AccessDeniedException", "AllAccessDisabled", "Forbidden", "403"}
_NOWHERE = {"NoSuchBucket", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "InvalidAddress"}
_BAD_CREDENTIALS = {
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidToken",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
_OTHER_REGION = {"301", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}
_WRONG_CLOCK = {"RequestTimeTooSkewed", "RequestExpired"}
_TRANSIENT = Pattern(
    r"Throttl|SlowDown|TooManyRequests|RequestLimitExceeded|OverLimit|RequestTimeout$|ConditionalRequestConflict"
    r"|OperationAborted|InternalError|ServiceUnavailable"
)
"""Codes of transient errors, whatever their status; 408, 429 and every 5xx are transient too."""

_QUEUE_REGION = Pattern(r"https?://sqs\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)/")

Result = TypeVar("Result")


class Aws:
    """The clients of one process, each made when it is first used; safe in any thread.

    `attempts` is how often a call is tried before its error shows: few, where the caller tries again itself.
    """

    def __init__(self, *, attempts: int = 2) -> None:
        self._attempts = attempts
        self._lock = threading.Lock()
        self._clients: dict[tuple[str, str | None], Any] = {}

    def s3(self) -> Any:
        """Return the client of S3. Blocks, and raises botocore's errors: call it inside `explained`."""
        return self._client("s3", None, self._attempts)

    def sqs(self, queue_url: str) -> Any:
        """Return the client for a queue, with one attempt a call; blocks likewise."""
        # `Notifications.run` tries again by itself, with pauses that grow.
        return self._client("sqs", region_of(queue_url), 1)

    def close(self) -> None:
        """Close every connection that is not in use; later calls make new clients."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client in clients.values():
            client.close()

    def _client(self, service: str, region: str | None, attempts: int) -> Any:
        with self._lock:  # making clients is not thread-safe; using them is
            client = self._clients.get((service, region))
            if client is None:
                from boto3 import __version__ as boto3_version
                from botocore.config import Config

                session = _session()
                make: Any = session.client  # typed for every service of AWS, by packages that are not installed
                client = make(
                    service,
                    # boto3 reads AWS_DEFAULT_REGION; AWS's own services and its other tools set AWS_REGION.
                    region_name=region or session.region_name or os.environ.get("AWS_REGION"),
                    config=Config(
                        # Otherwise boto3 would sign permissions to upload with version 2, which newer regions refuse.
                        signature_version="s3v4" if service == "s3" else None,
                        connect_timeout=CONNECT_TIMEOUT,
                        read_timeout=READ_TIMEOUT,
                        # `legacy`, the default, knows fewer transient errors:
                        # https://docs.aws.amazon.com/boto3/latest/guide/retries.html
                        retries={"mode": "standard", "total_max_attempts": attempts},
                        max_pool_connections=CONNECTIONS,
                        # Otherwise botocore describes this process anew for each request, which takes 0.3 ms.
                        user_agent=f"nightjar boto3/{boto3_version}",
                    ),
                )
                self._clients[service, region] = client
        return client


def _session() -> Session:
    """Return a session that reuses the loaded data about AWS's services: loading them takes 50 ms."""
    import boto3  # takes 0.15 s, and many commands need no bucket
    import botocore.session

    session = botocore.session.Session()
    session.register_component("data_loader", _loader())
    # Nobody reads the times in answers, and parsing them takes half of the time of a listing.
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=str)
    return boto3.Session(botocore_session=session)


@cache
def _loader() -> Loader:
    import botocore.session

    loader: Loader = botocore.session.Session().get_component("data_loader")
    return loader


def region_of(queue_url: str) -> str | None:
    """Return the region in a queue's URL, if there is one."""
    match = _QUEUE_REGION.match(queue_url)
    return match[1] if match else None


def check_environment(queue_urls: Iterable[str] = ()) -> None:
    """Raise `SettingsError`, with a line for each variable that is missing or malformed. Sends no request.

    Only the first use shows whether there are credentials at all, because the machine itself may have a role.
    """
    import boto3
    from botocore.exceptions import ProfileNotFound

    problems = []
    for name in ENDPOINTS:
        try:
            http_url(os.environ.get(name) or "https://localhost")
        except ValueError as error:
            problems.append(texts.BAD_ENDPOINT.format(name=name, problem=error))
    for missing, present in ((KEY_ID, SECRET_KEY), (SECRET_KEY, KEY_ID)):
        if os.environ.get(present) and not os.environ.get(missing):
            problems.append(texts.HALF_A_KEY.format(missing=missing, given=present))
    try:
        region = boto3.Session().region_name or os.environ.get("AWS_REGION")
    except ProfileNotFound:
        problems.append(texts.NO_PROFILE)
    else:
        unknown = next((url for url in queue_urls if not (region or region_of(url))), None)
        if unknown is not None:
            problems.append(texts.NO_REGION.format(place=f"the queue {unknown}"))
    if problems:
        raise SettingsError(problems)


async def in_thread(call: Callable[[], Result]) -> Result:
    """Return the result of a blocking call, made in a thread of its own; once we are cancelled, nobody waits for it.

    Not in asyncio's pool: others need its few threads, and the process ends only after their work; a long poll takes 20
    s.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Result] = loop.create_future()

    def settle(settled: Callable[[Any], None], value: object) -> None:
        if not outcome.done():
            settled(value)

    def run() -> None:
        settled: Callable[[Any], None] = outcome.set_result
        value: object
        try:
            value = call()
        # Catch everything: otherwise the caller would wait forever.
        except BaseException as error:
            settled, value = outcome.set_exception, error
        with suppress(RuntimeError):  # the loop is closed, so nobody waits for the result
            loop.call_soon_threadsafe(settle, settled, value)

    threading.Thread(target=run, name="aws", daemon=True).start()
    return await outcome


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Turn botocore's errors into ours: `TryAgain` for transient ones, `UserError` with a remedy for all others.

    `place` is what the texts name, as in `bucket device-results`. Other errors pass through.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raise _error_of_answer(place, error) from None
    except BotoCoreError as error:
        raise _error_without_answer(place, error) from None


def code_of(error: Any) -> tuple[str, int]:
    """Return the code and the status of botocore's `ClientError`."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code, int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _error_of_answer(place: str, error: Any) -> Exception:
    """Return our error for one that the service answered with (a `ClientError`)."""
    code, status = code_of(error)
    message = str(error.response.get("Error", {}).get("Message") or "")
    reason = code or str(status)
    action = denied_action(message, _ACTIONS.get(error.operation_name, f"s3:{error.operation_name}"))
    if status == NOT_IMPLEMENTED:
        missing = texts.NO_CONDITIONAL_WRITES if error.operation_name == "PutObject" else texts.NOT_IMPLEMENTED
        return UserError(missing.format(place=place, action=action))
    # Check the status first: it means another try, whatever code comes with it.
    if status >= 500 or status in (408, 429) or _TRANSIENT.search(code):
        return TryAgain(texts.AWAY.format(place=place, reason=reason))
    by_code = (
        (_DENIED, _DENIED_TEXTS.get(action, texts.DENIED_KEY if action.startswith(KMS) else texts.DENIED)),
        (_NOWHERE, texts.NOWHERE),
        (_BAD_CREDENTIALS, texts.BAD_CREDENTIALS),
        (_OTHER_REGION, texts.OTHER_REGION),
        (_WRONG_CLOCK, texts.WRONG_CLOCK),
    )
    for codes, text in by_code:
        if code in codes:
            return UserError(text.format(place=place, action=action, reason=reason))
    return UserError(texts.REFUSED.format(place=place, action=action, reason=refusal_reason(reason, message)))


def _error_without_answer(place: str, error: Exception) -> Exception:
    """Return our error for a request without an answer. It only names the kind: the text may contain an address."""
    from botocore import exceptions as of

    kind = type(error).__name__
    if isinstance(error, of.NoRegionError):
        return UserError(texts.NO_REGION.format(place=place))
    if isinstance(error, of.InvalidRegionError):
        return UserError(texts.BAD_REGION)
    if isinstance(error, of.NoCredentialsError | of.PartialCredentialsError):
        return UserError(f"{place}: {texts.NO_CREDENTIALS}")
    if isinstance(error, of.ProfileNotFound):
        return UserError(texts.NO_PROFILE)
    if isinstance(error, of.ParamValidationError | of.ConfigParseError):
        return UserError(texts.REFUSED.format(place=place, action="the request", reason=kind))
    return TryAgain(texts.AWAY.format(place=place, reason=kind))


AWS = PartKey[Aws]("aws")
