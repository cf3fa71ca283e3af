"""A lab that accepts connections gets a signed webhook for each job; no other machine gets one."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bot.core.errors import SettingsError, TryAgain, UserError
from handlers.labs import texts
from handlers.labs.webhooks import LAB_WEBHOOKS, send_webhook
from tests.bucket import World
from tests.conversations.device_lab import LAB, TARGET, DeviceLab, device_lab
from tests.serving import served
from tests.waiting import until

SECRET = "a secret of the lab and the bot"


@dataclass
class Listener:
    """A lab's machine; it answers with `statuses` first, then always with 204."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.heard.append((dict(request.headers), await request.read()))
        status = self.statuses.pop(0) if self.statuses else 204
        return web.Response(status=status, headers={"Location": f"{self.url}/elsewhere"} if status == 302 else {})


@asynccontextmanager
async def listening() -> AsyncIterator[Listener]:
    listener = Listener()
    app = web.Application()
    app.router.add_post("/{path:.*}", listener.answer)
    async with served(app) as listener.url:
        yield listener


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    async with listening() as listener:
        yield listener


def webhook(url: str, *, allow_private: bool) -> str:
    return f'webhook: {{url: "{url}", secret_env: LAB_SECRET, allow_private: {str(allow_private).lower()}}}'


async def ticked(lab: DeviceLab) -> None:
    await lab.town.bot.services.part(LAB_WEBHOOKS).tick()


async def test_each_queued_job_is_announced_once_per_attempt(
    tmp_path: Path, aws_world: World, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_SECRET", SECRET)
    extra = webhook(listener.url, allow_private=True)
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world, extra=extra) as lab:
        await lab.asked_for("hidden", sha="b" * 40, approval_needed=True)
        await lab.asked_for()
        for _ in range(3):
            await ticked(lab)
            await lab.town.quiet()
        ((headers, body),) = listener.heard
        signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        assert headers["X-Hub-Signature-256"] == f"sha256={signature}"
        assert (headers["X-Nightjar-Event"], headers["X-Nightjar-Delivery"]) == ("job", "job-1")
        payload = json.loads(body)
        assert (payload["job"], payload["lab"], payload["target"], payload["sha"]) == (
            "job",
            LAB,
            TARGET,
            lab.pull.head_sha,
        )
        assert "lease" not in payload
        claimed_job = await lab.claim()
        await lab.call("jobs/job/failed", {"lease": claimed_job["lease"], "reason": "x"})
        await ticked(lab)
        await until(lambda: len(listener.heard) == 2)
        assert listener.heard[1][0]["X-Nightjar-Delivery"] == "job-2"
        await lab.town.quiet()  # the bot counts it once the lab has answered
        assert 'nightjar_lab_calls_total{call="webhook",lab="example-lab",outcome="sent"} 2.0' in lab.metrics()


async def test_a_job_that_waits_costs_nothing_at_the_next_ticks(
    tmp_path: Path, aws_world: World, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_SECRET", SECRET)
    extra = webhook(listener.url, allow_private=True)
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world, extra=extra) as lab:
        webhooks, announced = lab.town.bot.services.part(LAB_WEBHOOKS), list[object]()
        accept = webhooks._accept

        async def counted(*arguments: Any, **options: Any) -> bool:
            announced.append(arguments)
            return await accept(*arguments, **options)

        monkeypatch.setattr(webhooks, "_accept", counted)
        await lab.asked_for()
        for _ in range(3):
            await webhooks.tick()
        assert len(announced) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_private_address_or_name_is_refused_and_recorded(
    tmp_path: Path, aws_world: World, listener: Listener, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("LAB_SECRET", SECRET)
    extra = webhook(listener.url.replace("127.0.0.1", host), allow_private=False)
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world, extra=extra) as lab:
        await lab.asked_for()
        await ticked(lab)
        await lab.town.quiet()
        assert await lab.town.failures() == [texts.WEBHOOK_PRIVATE.format(host=host)]
        assert 'nightjar_lab_calls_total{call="webhook",lab="example-lab",outcome="refused"} 1.0' in lab.metrics()
    assert listener.heard == []


async def test_a_redirection_to_a_private_address_is_refused_and_recorded(
    tmp_path: Path, aws_world: World, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_SECRET", SECRET)
    listener.statuses = [302]
    extra = webhook(listener.url, allow_private=True)
    async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world, extra=extra) as lab:
        await lab.asked_for()
        await ticked(lab)
        await lab.town.quiet()
        assert await lab.town.failures() == [texts.WEBHOOK_MOVED.format(host="127.0.0.1", status=302)]
        assert 'nightjar_lab_calls_total{call="webhook",lab="example-lab",outcome="refused"} 1.0' in lab.metrics()
    assert len(listener.heard) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1"])
async def test_no_notation_of_the_loopback_address_reaches_this_machine(listener: Listener, host: str) -> None:
    url = listener.url.replace("127.0.0.1", host)
    with pytest.raises((UserError, TryAgain)):
        await send_webhook(url, b"{}", {}, allow_private=False)
    assert listener.heard == []


PUBLIC = "8.8.8.8"


@dataclass
class Names:
    """The system's DNS lookups and connections; each lookup of a host returns its next address."""

    addresses: list[str]
    looked_up: int = 0
    connected: list[str] = field(default_factory=list)

    def look_up(self, host: str, port: int, *_: object, **__: object) -> list[tuple[Any, ...]]:
        address = self.addresses[min(self.looked_up, len(self.addresses) - 1)]
        self.looked_up += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    async def connect(self, _: socket.socket, address: tuple[str, int]) -> None:
        self.connected.append(address[0])
        raise OSError("no test reaches the internet")


@pytest.fixture
async def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Make the first lookup of a name return a public address, and each later one this machine."""
    names = Names([PUBLIC, "127.0.0.1"])
    monkeypatch.setattr(socket, "getaddrinfo", names.look_up)
    return names


async def test_a_name_that_resolves_elsewhere_after_the_check_gains_nothing(
    names: Names, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the connection goes to the checked address, and a second message is checked again."""
    url = listener.url.replace("127.0.0.1", "rebinding.example.org")
    with monkeypatch.context() as patch:
        patch.setattr(asyncio.get_running_loop(), "sock_connect", names.connect)
        with pytest.raises(TryAgain):
            await send_webhook(url, b"{}", {}, allow_private=False)
    assert (names.looked_up, names.connected) == (1, [PUBLIC])
    with pytest.raises(UserError) as caught:
        await send_webhook(url, b"{}", {}, allow_private=False)
    assert str(caught.value) == texts.WEBHOOK_PRIVATE.format(host="rebinding.example.org")
    assert (names.looked_up, listener.heard) == (2, [])


async def test_redirects_are_not_followed_and_the_labs_answer_decides_about_another_try(listener: Listener) -> None:
    listener.statuses = [302, 404, 503, 429]
    for error, text in ((UserError, "redirects (302)"), (UserError, "(404)"), (TryAgain, "503"), (TryAgain, "429")):
        with pytest.raises(error) as caught:
            await send_webhook(listener.url, b"{}", {}, allow_private=True)
        assert text in str(caught.value)
    assert len(listener.heard) == 4


async def test_the_bot_does_not_start_without_the_webhooks_secret(tmp_path: Path, aws_world: World) -> None:
    extra = webhook("https://lab.example.org", allow_private=False)
    with pytest.raises(SettingsError) as caught:
        async with device_lab(f"sqlite:///{tmp_path}/nightjar.db", aws_world, extra=extra):
            raise AssertionError
    assert "LAB_SECRET, the secret of a lab's webhook in app.yaml, is not set" in str(caught.value)
