"""Deliver webhooks: signed, recorded, once, and in the order that a test asks for.

https://docs.github.com/webhooks/using-webhooks/handling-failed-webhook-deliveries
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import aiohttp

from sandbox.model.apps import App, Installation
from sandbox.model.home import Home
from sandbox.model.hooks import Hook
from sandbox.world import World

Json = dict[str, Any]
ANSWER_WITHIN = 10.0
NO_ANSWER, NOT_CONNECTED = 504, 502
HOOK_ID = 4242


FORM = "application/x-www-form-urlencoded"


@dataclass(eq=False)
class SentDelivery:
    """One attempt to deliver one event to one receiver. A redelivery is a new one with the same GUID."""

    id: int
    guid: str
    event: str
    action: str | None
    payload: bytes
    target: App | Hook
    installation_id: int | None
    repository_id: int | None
    created_at: datetime
    redelivery: bool = False
    duration: float = 0.0
    status_code: int | None = None
    status: str = "queued"
    request_headers: dict[str, str] = field(default_factory=dict)
    response_headers: dict[str, str] = field(default_factory=dict)
    response: str = ""

    @property
    def body(self) -> Json:
        """Return the payload as JSON."""
        body: Json = json.loads(self.payload)
        return body

    def __repr__(self) -> str:
        return f"<delivery {self.event}.{self.action} {self.guid} {self.status}>"


class Courier:
    """Sends deliveries, by default one after another in the order of the changes.

    GitHub guarantees no order and never repeats a delivery by itself. Tests get other orders and repetitions with
    `hold`, `release`, `lose`, `duplicate` and `send_under_new_guid`.
    """

    def __init__(self, github: World) -> None:
        self._github = github
        self.deliveries: list[SentDelivery] = []
        self.held: list[SentDelivery] = []
        self.timeout = ANSWER_WITHIN
        self._waiting: asyncio.Queue[SentDelivery] = asyncio.Queue()
        self._open = 0
        self._holding = False
        self._lose: list[Callable[[SentDelivery], bool]] = []
        self._copies = 1

    @property
    def idle(self) -> bool:
        """Return whether everything that is not held back was answered."""
        return self._open == 0

    def queue_app(
        self,
        app: App,
        event: str,
        action: str | None,
        body: Json,
        installation: Installation,
        repository: Home | None,
    ) -> None:
        """Queue an event for an App."""
        self._queue(app, event, action, body, installation.id, repository)

    def queue_hook(self, hook: Hook, event: str, action: str | None, body: Json, repository: Home) -> None:
        """Queue an event for a repository's own hook."""
        self._queue(hook, event, action, body, None, repository)

    def _queue(
        self,
        target: App | Hook,
        event: str,
        action: str | None,
        body: Json,
        installation_id: int | None,
        repository: Home | None,
    ) -> None:
        payload = json.dumps(body, separators=(",", ":")).encode()
        if content_type_of(target) == FORM:
            payload = urlencode({"payload": payload}).encode()
        repository_id = repository.id if repository else None
        number, moment = self._github.new_id(), self._github.clock.now()
        made = SentDelivery(
            number, str(uuid.uuid4()), event, action, payload, target, installation_id, repository_id, moment
        )
        self.deliveries.append(made)
        if any(take(made) for take in self._lose):
            self._end(made, NOT_CONNECTED, "failed to connect to host")
            return
        if self._holding:
            self.held.append(made)
            return
        self._send(made)
        for _ in range(self._copies - 1):
            self._send(made)

    def _send(self, delivery: SentDelivery) -> None:
        self._open += 1
        self._waiting.put_nowait(delivery)

    # What tests ask for

    def hold(self) -> None:
        """Hold back every new delivery until `release`."""
        self._holding = True

    def release(self, order: Callable[[list[SentDelivery]], Iterable[SentDelivery]] = list) -> None:
        """Send the held deliveries, in the order that a function such as `reversed` gives them."""
        held, self.held, self._holding = self.held, [], False
        for delivery in order(held):
            self._send(delivery)

    def lose(self, event: str = "", times: int = 1) -> None:
        """Let the next deliveries (of one event) fail as if the receiver were down; GitHub still records them."""
        remaining = [times]

        def take(delivery: SentDelivery) -> bool:
            if remaining[0] == 0 or event not in {"", delivery.event}:
                return False
            remaining[0] -= 1
            return True

        self._lose.append(take)

    def duplicate(self, times: int = 2) -> None:
        """Send every delivery from now on several times, with the same GUID."""
        self._copies = times

    def find(self, event: str, action: str | None = None) -> list[SentDelivery]:
        """Return the deliveries of an event, oldest first."""
        return [d for d in self.deliveries if d.event == event and action in {None, d.action}]

    def redeliver(self, delivery: SentDelivery) -> SentDelivery:
        """Redeliver a delivery, as the button in the App's settings does: with a new ID and the same GUID."""
        moment = self._github.clock.now()
        redelivery = replace(delivery, id=self._github.new_id(), created_at=moment, redelivery=True, status="queued")
        self.deliveries.append(redelivery)
        self._send(redelivery)
        return redelivery

    def send_under_new_guid(self, delivery: SentDelivery) -> SentDelivery:
        """Send the same body with another GUID, as a second hook for the same events does."""
        copy = replace(delivery, id=self._github.new_id(), guid=str(uuid.uuid4()), status="queued")
        self.deliveries.append(copy)
        self._send(copy)
        return copy

    # Sending

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send in the background while the block runs."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
            task = asyncio.create_task(self._run(session))
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _run(self, session: aiohttp.ClientSession) -> None:
        while True:
            delivery = await self._waiting.get()
            try:
                await self._attempt(session, delivery)
            finally:
                self._open -= 1
                self._github.changed()

    async def _attempt(self, session: aiohttp.ClientSession, delivery: SentDelivery) -> None:
        url = delivery.target.webhook_url if isinstance(delivery.target, App) else delivery.target.url
        delivery.request_headers = headers_of(delivery)
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.timeout):
                async with session.post(
                    str(url), data=delivery.payload, headers=delivery.request_headers, allow_redirects=False
                ) as answer:
                    delivery.response = await answer.text(errors="replace")
                    delivery.response_headers = dict(answer.headers)
                    self._end(delivery, answer.status, "OK" if answer.ok else answer.reason or "failed")
        except TimeoutError:
            self._end(delivery, NO_ANSWER, "timed out")
        except (aiohttp.ClientError, OSError):
            self._end(delivery, NOT_CONNECTED, "failed to connect to host")
        delivery.duration = round(time.monotonic() - began, 2)

    def _end(self, delivery: SentDelivery, code: int, status: str) -> None:
        delivery.status_code, delivery.status = code, status


def content_type_of(target: App | Hook) -> str:
    """Return the content type in which a receiver gets the bodies.

    https://docs.github.com/webhooks/types-of-webhooks#content-type
    """
    return FORM if isinstance(target, App) and target.hook_content_type == "form" else "application/json"


def headers_of(delivery: SentDelivery) -> dict[str, str]:
    """Return a delivery's headers, signed with the receiver's secret if it has one."""
    target = delivery.target
    app = isinstance(target, App)
    secret = target.webhook_secret if isinstance(target, App) else target.secret
    target_id = target.id if app else delivery.repository_id
    headers = {
        "Accept": "*/*",
        "Content-Type": content_type_of(target),
        "User-Agent": "GitHub-Hookshot/5ad4b0x",
        "X-GitHub-Delivery": delivery.guid,
        "X-GitHub-Event": delivery.event,
        "X-GitHub-Hook-ID": str(HOOK_ID if app else target.id),
        "X-GitHub-Hook-Installation-Target-ID": str(target_id),
        "X-GitHub-Hook-Installation-Target-Type": "integration" if app else "repository",
    }
    if secret:
        for name, digest in (("X-Hub-Signature", hashlib.sha1), ("X-Hub-Signature-256", hashlib.sha256)):
            signature = hmac.new(secret.encode(), delivery.payload, digest).hexdigest()
            headers[name] = f"{digest().name}={signature}"
    return headers
