"""Run the set-up until credentials and app.yaml exist, then hand its port over to the bot.

The listening socket stays open in between: whoever connects then, a browser or GitHub, waits for the bot to start.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
from aiohttp import web

from bot.app.address import CANNOT_OPEN, Address
from bot.app.serve import VERSION, listen, stop_signals
from bot.app.setup.addresses import GITHUB
from bot.app.setup.checks import SetupChecks
from bot.app.setup.files import PLAIN_MODE, SECRET_MODE, NewFile
from bot.app.setup.gate import LOCALHOST, SetupGate
from bot.app.setup.shown import TEMPLATES, SetupFiles
from bot.app.setup.site import LARGEST_CONFIG, SetupSite
from bot.config.environment import Settings
from bot.core.http import open_session
from bot.github.repositories.visibility import PublicRepositories
from bot.web.connections import Connections
from bot.web.pages import Pages
from bot.web.problems import answer_problems
from bot.web.rate_limit import RateLimit

MOST_CONNECTIONS = 64
PAGES_PER_MINUTE = 600
FORM_BYTES = 4 * LARGEST_CONFIG
"""The largest body: a text that is escaped in a form is up to three times as long."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SetupPlace:
    """Where the set-up runs, what it writes, and how it prints an address.

    `remote`: others than this machine may reach it, as an operator has asked for.
    """

    host: str
    port: int
    env: Path
    config: Path
    announce: Callable[[str], None]
    announce_again: Callable[[str], None]
    load_settings: Callable[[], Settings]
    remote: bool = False


@dataclass(frozen=True, slots=True)
class FinishedSetup:
    """The parts of a finished set-up that the bot uses: the open port, and the page that watches the start."""

    address: Address
    pages: SetupChecks


def is_this_machine(host: str) -> bool:
    """Return whether only this machine reaches a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == LOCALHOST


async def set_up(place: SetupPlace, settings: Settings | None = None) -> FinishedSetup | None:
    """Serve the pages until everything is there; None if the process was asked to stop before.

    `settings` are the credentials of an earlier set-up that ended before app.yaml was written. Raises `StartError`.
    """
    listening = open_port(place.host, place.port)
    with stop_signals() as stop:
        async with setup_site(place, listening, settings) as site:
            waits = [asyncio.create_task(stop.wait()), asyncio.create_task(site.ready.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        if stop.is_set():
            listening.close()
            return None
    return FinishedSetup(Address(place.host, site.files.gate.port, (listening,)), SetupChecks(site.files))


@asynccontextmanager
async def setup_site(
    place: SetupPlace, listening: socket.socket, settings: Settings | None = None
) -> AsyncIterator[SetupSite]:
    """Serve the pages of the set-up on an open port while the block runs."""
    address = Address(place.host, listening.getsockname()[1], (listening,))
    gate = SetupGate(place.host, address.port, place.announce_again, remote=place.remote)
    files = SetupFiles(gate, NewFile(place.env, SECRET_MODE), NewFile(place.config, PLAIN_MODE))
    async with open_session() as http:
        site = SetupSite(files, http, place.load_settings, settings)
        app, connections = _application(site)
        runner = await listen(app, address, connections)
        site.stop_listening = partial(_stop_listening, runner)
        log.info("setting up", version=VERSION, host=place.host, port=address.port)
        place.announce(gate.address)
        try:
            yield site
        finally:
            await runner.cleanup()


def open_port(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises `StartError`."""
    try:
        family, _, _, _, socket_address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(socket_address[:2], family=family)
    except CANNOT_OPEN as error:
        raise Address(host, port).refused(error) from None


async def _stop_listening(runner: web.AppRunner) -> None:
    for listener in list(runner.sites):
        await listener.stop()


def _application(site: SetupSite) -> tuple[web.Application, Connections]:
    async def nobody(_: str) -> bool:
        return False

    async def no_repositories() -> PublicRepositories:
        return PublicRepositories([], incomplete=False)

    connections = Connections(MOST_CONNECTIONS)
    app = web.Application(middlewares=[connections.middleware(), answer_problems], client_max_size=FORM_BYTES)
    pages = Pages(
        {"version": VERSION, "github": GITHUB}, RateLimit(PAGES_PER_MINUTE), nobody, no_repositories, [TEMPLATES]
    )
    for asset in pages.assets.operations():
        app.router.add_get(asset.path, asset.handler)
    site.join(app)
    pages.join(app)
    return app, connections
