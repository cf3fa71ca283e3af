"""`POST /webhook`: verify the signature, store the delivery, answer.

The checks run in this order: headers, size, signature, JSON, storage. A request without the headers of a delivery is
refused before its body is read, no body is parsed before its signature is verified, and no delivery is processed before
it is stored. GitHub requires an answer within ten seconds
(https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks).
"""

from __future__ import annotations

import asyncio
import hmac
import string
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import structlog
from aiohttp import web
from nightjar_formats.strict_json import read_json
from pydantic_core import from_json  # noqa: TID251  # GitHub writes no 1e999, and `read_json` takes longer

from bot.core.events import Delivery, Payload, lock_key
from bot.core.rarely import Rarely
from bot.engine.jobs.store import note_of_ignored
from bot.engine.service import StorageError
from bot.web.bodies import Bodies, HeldBody
from bot.web.problems import Problem
from bot.web.texts import (
    FORM_ENCODED,
    INVALID_EVENT,
    INVALID_GUID,
    MALFORMED_SIGNATURE,
    NO_SIGNATURE,
    NOT_JSON,
    NOT_STORED,
    WRONG_SIGNATURE,
)
from bot.web.urgency import is_urgent

if TYPE_CHECKING:
    from bot.core.metrics import Metrics

MAX_BODY = 25 * 1024 * 1024
"""GitHub sends no larger payload (https://docs.github.com/en/webhooks/webhook-events-and-payloads#payload-cap)."""
LARGE_BODY = 1024 * 1024
"""Bodies with more bytes are hashed and parsed in a thread, so that they do not block other requests."""
LARGEST_REMEMBERED = 32 * 1024
"""Bytes of a body up to which the parsed payload stays in memory for the delivery's job. It takes ten times as much."""
RETRY_AFTER = {"Retry-After": "30"}

SIGNATURE_HEADER = "X-Hub-Signature-256"
EVENT_HEADER = "X-GitHub-Event"
GUID_HEADER = "X-GitHub-Delivery"


SIGNATURE_PREFIX = "sha256="
SIGNATURE_LENGTH = 64
LONGEST_NAME = 64
HEX = "0123456789abcdef"
VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
"""The characters of a GUID."""
EVENT_CHARACTERS = string.ascii_lowercase + string.digits + "_"
_ACCEPTED = b'{"status":"accepted"}'
_SEEN = b'{"status":"seen before"}'

Result = TypeVar("Result")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class OpenedDelivery(NamedTuple):
    """A verified delivery: its lock, whether a person waits for it, and its stored note if no handler accepts it.

    `payload` is None if the body is so large that its object should not stay in memory until it is stored.
    """

    payload: Payload | None
    lock: str
    urgent: bool
    ignored: Mapping[str, Any] | None


class Inbox(Protocol):
    """Stores deliveries; the engine implements it."""

    async def accept(
        self,
        guid: str,
        event: str,
        body: bytearray,
        lock: str,
        *,
        urgent: bool,
        ignored: Mapping[str, Any] | None,
        payload: Payload | None,
    ) -> bool:
        """Store a delivery durably and return True; return False if its GUID is already known.

        `payload` is the parsed body, if it is small. `urgent` deliveries are processed before others; those that are
        `ignored`, with a note that says why, are not processed. Raises `StorageError` before GitHub's time limit.
        """
        ...


def verify(body: bytes | bytearray, header: str | None, secrets: Sequence[bytes]) -> bool:
    """Say whether `header` (X-Hub-Signature-256) signs `body` with one of `secrets`.

    Only a well-formed SHA-256 signature is accepted, and an empty secret never matches. Every secret is compared, in
    constant time, so that the duration reveals nothing.
    https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    """
    if header is None or not _is_signature(header):
        return False
    claimed = bytes.fromhex(header.removeprefix(SIGNATURE_PREFIX))
    matches = False
    for secret in secrets:
        if secret:
            matches |= hmac.compare_digest(hmac.digest(secret, body, "sha256"), claimed)
    return matches


def _is_signature(header: str) -> bool:
    digest = header.removeprefix(SIGNATURE_PREFIX)
    return len(digest) == SIGNATURE_LENGTH == len(header) - len(SIGNATURE_PREFIX) and _consists_of(HEX, digest)


def _is_name(characters: str, text: str) -> bool:
    return 0 < len(text) <= LONGEST_NAME and _consists_of(characters, text)


def _consists_of(characters: str, text: str) -> bool:
    """Return whether a text has only these characters. Takes a tenth of the time of a pattern."""
    return not text.strip(characters)


WhyIgnored = Callable[[Delivery], str]
"""Says why a delivery certainly has no effect; empty if that is not certain. Called from any thread."""


def never_ignore(_: Delivery) -> str:
    """Let every delivery get a job."""
    return ""


def parse(body: bytes | bytearray) -> dict[str, object]:
    """Return a body as a JSON object. Raises `ValueError` if it is not a JSON object in UTF-8."""
    try:
        value = from_json(body, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        # pydantic_core is stricter than GitHub's encoder: it rejects, for example, a lone surrogate, which JSON allows.
        value = read_json(body.decode())
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 (one error class for every malformed body)
    return value


class Webhook:
    """The route for GitHub's webhooks. Raises `ValueError` if there is no secret."""

    def __init__(
        self,
        inbox: Inbox,
        bodies: Bodies,
        secrets: Sequence[bytes],
        metrics: Metrics,
        mentions: Sequence[str],
        why_ignored: WhyIgnored = never_ignore,
        *,
        log_ignored: bool = False,
    ) -> None:
        if not any(secrets):
            raise ValueError("a webhook secret is required")
        self._inbox = inbox
        self._bodies = bodies
        self._secrets = tuple(secrets)
        self._metrics = metrics
        self._mentions = mentions
        self._why_ignored = why_ignored
        self._log_ignored = log_ignored
        self._rarely = Rarely()

    async def answer(self, request: web.Request) -> web.Response:
        """Answer 202 once the delivery is durable; raise `Problem` otherwise."""
        try:
            response = web.Response(status=202, body=await self._take(request), content_type="application/json")
        except Problem as problem:
            self._metrics.webhook_answered(problem.status)
            # Anybody can cause refusals, so the log is rate-limited; the metric counts all of them.
            if (held_back := self._rarely.ready(problem.status)) is not None:
                log.warning(
                    "webhook refused",
                    status=problem.status,
                    reason=problem.detail,
                    delivery=request.headers.get(GUID_HEADER, "")[:64],
                    remote=request.remote,
                    held_back=held_back,
                )
            raise
        self._metrics.webhook_answered(202)
        return response

    async def _take(self, request: web.Request) -> bytes:
        guid, event, signature = _headers(request)
        # The body counts against the memory limit until it is stored, also while a database hangs.
        async with HeldBody(self._bodies, request) as body:
            opened = await _in_a_thread_if_large(body, lambda: self._open(guid, event, body, signature))
            new = await self._store(guid, event, body, opened)
        self._metrics.accepted(event, new)
        if new and opened.ignored is not None and self._log_ignored:
            log.info("delivery ignored", delivery=guid, event_name=event, text=opened.ignored["text"])
        return _ACCEPTED if new else _SEEN

    def _open(self, guid: str, event: str, body: bytearray, signature: str) -> OpenedDelivery:
        """Verify the signature of a body, then parse it. Raises `Problem`."""
        if not verify(body, signature, self._secrets):
            raise Problem(401, WRONG_SIGNATURE.format(header=SIGNATURE_HEADER))
        try:
            value = parse(body)
        except ValueError:
            raise Problem(400, NOT_JSON) from None
        delivery, lock = Delivery(guid, event, Payload(value), time.time()), lock_key(event, value)
        payload = delivery.payload if len(body) <= LARGEST_REMEMBERED else None
        reason = self._why_ignored(delivery)
        if reason:
            return OpenedDelivery(payload, lock, urgent=False, ignored=note_of_ignored(delivery, reason))
        return OpenedDelivery(payload, lock, is_urgent(event, value, self._mentions), ignored=None)

    async def _store(self, guid: str, event: str, body: bytearray, opened: OpenedDelivery) -> bool:
        try:
            return await self._inbox.accept(guid, event, body, **opened._asdict())
        except StorageError as error:
            # Log no traceback: it could show the body.
            log.error("delivery not stored", delivery=guid, reason=str(error))  # noqa: TRY400
        except Exception:
            log.exception("delivery not stored", delivery=guid)
        raise Problem(503, NOT_STORED, headers=RETRY_AFTER)


def _headers(request: web.Request) -> tuple[str, str, str]:
    """Return the GUID, event and signature of a request. Raises `Problem`: 401 for a bad signature, 400 otherwise."""
    signature = request.headers.get(SIGNATURE_HEADER, "")
    if not _is_signature(signature):
        detail = MALFORMED_SIGNATURE if signature else NO_SIGNATURE
        raise Problem(401, detail.format(header=SIGNATURE_HEADER))
    # The default of a webhook: https://docs.github.com/en/rest/repos/webhooks#create-a-repository-webhook
    if request.content_type == "application/x-www-form-urlencoded":
        raise Problem(400, FORM_ENCODED)
    guid = request.headers.get(GUID_HEADER, "")
    if not _is_name(VISIBLE, guid):
        raise Problem(400, INVALID_GUID.format(header=GUID_HEADER))
    event = request.headers.get(EVENT_HEADER, "")
    if not _is_name(EVENT_CHARACTERS, event):
        raise Problem(400, INVALID_EVENT.format(header=EVENT_HEADER))
    return guid, event, signature


async def _in_a_thread_if_large(body: bytearray, work: Callable[[], Result]) -> Result:
    return await asyncio.to_thread(work) if len(body) > LARGE_BODY else work()
