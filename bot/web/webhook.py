"""`POST /webhook`: verify the signature, make the delivery durable, answer.

The order is size, signature, form, storage: nothing of a request is looked at before its signature has been found
good, and nothing is done about it before it is stored. GitHub wants an answer within ten seconds
(https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import structlog
from aiohttp import web
from pydantic_core import from_json

from bot.engine.service import StorageError
from bot.events import lock_key
from bot.web.problems import Problem

if TYPE_CHECKING:
    from bot.metrics import Metrics

MAX_BODY = 25 * 1024 * 1024
"""GitHub sends no larger payload (https://docs.github.com/en/webhooks/webhook-events-and-payloads#payload-cap)."""
LARGE_BODY = 1024 * 1024
"""Bodies above this many bytes are hashed and parsed in a thread, so that other requests go on."""
READ_SECONDS = 10.0
RETRY_AFTER = {"Retry-After": "30"}

SIGNATURE_HEADER = "X-Hub-Signature-256"
EVENT_HEADER = "X-GitHub-Event"
GUID_HEADER = "X-GitHub-Delivery"

TOO_LARGE = f"The body is larger than {MAX_BODY} bytes, which is the most that GitHub sends."
TOO_SLOW = f"The body did not arrive within {READ_SECONDS:.0f} seconds."
CUT_SHORT = "The body ended before all of it had arrived."
NO_SIGNATURE = (
    f"{SIGNATURE_HEADER} is missing; a SHA-1 signature is not accepted. "
    "Set a secret in the webhook's settings on GitHub, one of GITHUB_WEBHOOK_SECRET."
)
BAD_SIGNATURE = (
    f"{SIGNATURE_HEADER} does not fit the body. The webhook's secret on GitHub must be one of GITHUB_WEBHOOK_SECRET."
)
FORM_ENCODED = "The body is form-encoded. Set the webhook's content type on GitHub to application/json."
NOT_JSON = "The body is not a JSON object."
BAD_GUID = f"{GUID_HEADER} is missing, or is not 1 to 64 printable characters without a space."
BAD_EVENT = f"{EVENT_HEADER} is missing, or is not 1 to 64 of a-z, 0-9 and _."
NOT_STORED = "The delivery could not be stored. It is safe to send it again."

_SIGNATURE = re.compile(r"sha256=([0-9a-f]{64})")
_GUID = re.compile(r"[!-~]{1,64}")
_EVENT = re.compile(r"[a-z0-9_]{1,64}")
_ACCEPTED = b'{"status":"accepted"}'
_SEEN = b'{"status":"seen before"}'

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Inbox(Protocol):
    """Where deliveries become durable: the engine."""

    async def accept(self, guid: str, event: str, body: str, lock: str) -> bool:
        """Store a delivery and return True, or False if its GUID is known; durable when it returns.

        Raises `StorageError`, within the time that GitHub waits.
        """
        ...


def verify(body: bytes, header: str | None, secrets: Sequence[bytes]) -> bool:
    """Say whether `header` (X-Hub-Signature-256) signs `body` with one of `secrets`.

    Everything but a well-formed SHA-256 signature is refused, and an empty secret never fits. Each secret is tried,
    and in constant time, so that the time taken tells nothing.
    https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    """
    match = _SIGNATURE.fullmatch(header or "")
    if match is None:
        return False
    claimed = bytes.fromhex(match[1])
    fits = False
    for secret in secrets:
        if secret:
            fits |= hmac.compare_digest(hmac.digest(secret, body, "sha256"), claimed)
    return fits


def parse(body: bytes) -> tuple[str, dict[str, object]]:
    """Return a body as text and as the JSON object it holds; raise `ValueError` if it holds none."""
    text = body.decode()
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        # Stricter than GitHub's own encoder: half a surrogate pair, for one, is an error there and legal in JSON.
        try:
            value = json.loads(text)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("not an object")  # noqa: TRY004 (all that is wrong with a body is one error)
    return text, value


class Webhook:
    """The route of GitHub's webhooks; raises `ValueError` where there is no secret to verify them with."""

    def __init__(self, inbox: Inbox, secrets: Sequence[bytes], metrics: Metrics) -> None:
        if not any(secrets):
            raise ValueError("a webhook secret is required")
        self._inbox = inbox
        self._secrets = tuple(secrets)
        self._metrics = metrics

    async def answer(self, request: web.Request) -> web.Response:
        """Answer 202 once the delivery is durable; raise `Problem` otherwise."""
        try:
            response = web.Response(status=202, body=await self._take(request), content_type="application/json")
        except Problem as problem:
            self._metrics.webhook_answered(problem.status)
            log.warning(
                "webhook refused",
                status=problem.status,
                reason=problem.detail,
                delivery=request.headers.get(GUID_HEADER, "")[:64],
                remote=request.remote,
            )
            raise
        self._metrics.webhook_answered(202)
        return response

    async def _take(self, request: web.Request) -> bytes:
        body = await _read(request)
        header = request.headers.get(SIGNATURE_HEADER)
        if len(body) > LARGE_BODY:
            genuine = await asyncio.to_thread(verify, body, header, self._secrets)
        else:
            genuine = verify(body, header, self._secrets)
        if not genuine:
            raise Problem(401, BAD_SIGNATURE if header else NO_SIGNATURE)
        guid, event = _identity(request)
        try:
            text, value = await asyncio.to_thread(parse, body) if len(body) > LARGE_BODY else parse(body)
        except ValueError:
            raise Problem(400, NOT_JSON) from None
        new = await self._store(guid, event, text, lock_key(event, value))
        self._metrics.accepted(event, new)
        return _ACCEPTED if new else _SEEN

    async def _store(self, guid: str, event: str, text: str, lock: str) -> bool:
        try:
            return await self._inbox.accept(guid, event, text, lock)
        except StorageError as error:
            log.error("delivery not stored", delivery=guid, reason=str(error))  # noqa: TRY400
        except Exception:
            log.exception("delivery not stored", delivery=guid)
        raise Problem(503, NOT_STORED, headers=RETRY_AFTER)


async def _read(request: web.Request) -> bytes:
    """Read the whole body, as it was sent; the application's `client_max_size` ends it while it is read."""
    if (request.content_length or 0) > MAX_BODY:
        raise Problem(413, TOO_LARGE)
    try:
        async with asyncio.timeout(READ_SECONDS):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise Problem(413, TOO_LARGE) from None
    except TimeoutError:
        raise Problem(408, TOO_SLOW) from None
    except (ConnectionError, web.RequestPayloadError):
        raise Problem(400, CUT_SHORT) from None


def _identity(request: web.Request) -> tuple[str, str]:
    if request.content_type == "application/x-www-form-urlencoded":
        raise Problem(400, FORM_ENCODED)
    guid = request.headers.get(GUID_HEADER, "")
    if not _GUID.fullmatch(guid):
        raise Problem(400, BAD_GUID)
    event = request.headers.get(EVENT_HEADER, "")
    if not _EVENT.fullmatch(event):
        raise Problem(400, BAD_EVENT)
    return guid, event
