"""A simulated Discord and Slack on this machine, over real HTTP. They check and record posts to their webhooks."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from aiohttp import web

from sandbox.channel_rules import discord_faults, discord_text, slack_faults, slack_text
from sandbox.faults import Faults


class ChannelSandbox:
    """One channel and its webhook, which is at `url`.

    `messages` are the accepted bodies, `said` the text that people see of them, `refused` the faults of the others,
    `requests` the paths of all requests. Routes of `faults` are patterns for the path, or `*`; a fault's `message` is
    the answer. If the webhook is `removed`, nothing is accepted.
    """

    def __init__(self, path: str, rules: Callable[[Any], list[str]], text: Callable[[Mapping[str, Any]], str]) -> None:
        self.faults = Faults()
        self.messages: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.requests: list[str] = []
        self.removed = False
        self.path = f"{path}/{secrets.token_urlsafe(32)}"
        self._origin = "http://127.0.0.1:0"
        self._rules = rules
        self._text = text
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Return the webhook's address, a secret."""
        return self._origin + self.path

    @property
    def said(self) -> list[str]:
        """Return the lines of the messages as people see them, without markup and addresses."""
        return [self._text(message) for message in self.messages]

    async def answer(self, request: web.Request) -> web.Response:
        """Accept a message, or refuse it as the real service does."""
        self.requests.append(request.path_qs)
        fault = self.faults.take(request.method, request.path, request.path)
        if fault is not None and await fault.strike("before", request.transport):
            return self.refusal(fault.status or 500, fault.message, fault.headers)
        answer = await self._take(request)
        if fault is not None and await fault.strike("after", request.transport):
            return self.refusal(fault.status or 500, fault.message, fault.headers)
        return answer

    async def _take(self, request: web.Request) -> web.Response:
        if self.removed or request.path != self.path or request.method != "POST":
            return self.not_found()
        try:
            body = await request.json()
        except ValueError:
            body = None
        wrong = self._rules(body)
        if wrong:
            self.refused += wrong
            return self.refusal(400, "invalid_payload", {})
        self.messages.append(body)
        return self.taken(request)

    def taken(self, request: web.Request) -> web.Response:
        """Return the answer to an accepted message."""
        return web.Response(text="ok")

    def not_found(self) -> web.Response:
        """Return the answer to a post to an unknown webhook."""
        return self.refusal(404, "no_service", {})

    def refusal(self, status: int, message: str, headers: Mapping[str, str]) -> web.Response:
        """Return a refusal."""
        return web.Response(status=status, text=message, headers=headers)

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Serve on 127.0.0.1 while the block runs; yields the webhook's address."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._runner = runner
        self._origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self.url
        finally:
            self.faults.clear()
            await self.stop()

    async def stop(self) -> None:
        """Stop: from now on, connections fail."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


class SlackSandbox(ChannelSandbox):
    """A Slack channel with an incoming webhook, which answers in one word.

    https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
    """

    def __init__(self) -> None:
        super().__init__("/services/T0000/B0000", slack_faults, slack_text)


class DiscordSandbox(ChannelSandbox):
    """A Discord channel with a webhook, which answers in JSON.

    https://docs.discord.com/developers/resources/webhook#execute-webhook,
    https://docs.discord.com/developers/topics/opcodes-and-status-codes#json
    """

    PAUSE = 0.75
    """Seconds that it asks for, in the answer alone, where a fault says 429 and names none."""
    CODES: ClassVar = {400: 50035, 401: 50027, 403: 50013, 404: 10015}

    def __init__(self) -> None:
        super().__init__("/api/webhooks/223704706495545344", discord_faults, discord_text)

    def taken(self, request: web.Request) -> web.Response:
        """Return the message if the caller asked to wait for it, else nothing."""
        if request.query.get("wait") != "true":
            return web.Response(status=204)
        return _json(200, {"id": str(10**18 + len(self.messages)), "type": 0, **self.messages[-1]})

    def not_found(self) -> web.Response:
        """Return Discord's answer for a webhook that was removed."""
        return self.refusal(404, "Unknown Webhook", {})

    def refusal(self, status: int, message: str, headers: Mapping[str, str]) -> web.Response:
        """Return a refusal; for too many requests, it contains the seconds to wait."""
        body: dict[str, Any] = {"message": message, "code": self.CODES.get(status, 0)}
        if status == 429:
            wait = float(headers.get("Retry-After", self.PAUSE))
            body = {"message": "You are being rate limited.", "retry_after": wait, "global": False}
        return _json(status, body, headers)


def _json(status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=json.dumps(body), content_type="application/json", headers=headers)
