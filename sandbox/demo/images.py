"""Regenerate the screenshots of the README and docs/, which show the demo's own pages: `make images`.

It needs Chromium, a font with emoji and pngquant. It uses the DevTools protocol, which can capture a page that is
higher than the window (https://chromedevtools.github.io/devtools-protocol/tot/Page/#method-captureScreenshot).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import click

from bot.core.page_paths import measurement_path, pull_path, view_path
from sandbox.demo import two_weeks as story
from sandbox.demo.conversation import Conversation
from sandbox.demo.nightly_runs import NightlyRuns
from sandbox.demo.past import OPEN_PULL
from sandbox.demo.stage import REPOSITORY, DemoStage, stage
from sandbox.page.check import address

IMAGES = Path(__file__).parent.parent.parent / "docs" / "images"
WIDTH, MARGIN = 1000, 12
LIGHT, DARK = "light", "dark"
SUITE_IMAGE = "backend-suite"
"""The one that `make suite-demo` makes, because it needs ONNX Runtime and Apache TVM."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
PALETTE = ("pngquant", "--strip", "--speed", "1", "64", "-")
"""The command that makes a picture four times smaller (https://pngquant.org)."""
NO_PALETTE = "pngquant is not installed. Install it (Debian's package is pngquant), and run make images again."
NO_BROWSER = (
    "Chromium is not installed. Install it and a font with emoji (Debian's packages are chromium and "
    "fonts-noto-color-emoji), and run make images again."
)
NOT_LOADED = "The page {url} did not load."
LOAD_SECONDS = 30.0
SLOWER = measurement_path(REPOSITORY, f"{story.KERNEL_FILE}::{story.SLOWER}", "latency")
"""The page of a measurement that got worse."""


class Browser:
    """A Chromium that takes screenshots; `port` is that of the DevTools protocol."""

    def __init__(self, http: aiohttp.ClientSession, port: int) -> None:
        self._http = http
        self._api = f"http://127.0.0.1:{port}"

    async def screenshot(self, url: str, last: str = "footer", colors: str = LIGHT) -> bytes:
        """Return a PNG of a page, from its top to the end of what the CSS selector `last` matches."""
        async with self._http.put(f"{self._api}/json/new") as answer:
            tab = await answer.json()
        async with self._http.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            size = {"width": WIDTH, "height": 600, "deviceScaleFactor": 1, "mobile": False}
            await _call(socket, "Emulation.setDeviceMetricsOverride", size)
            media = {"features": [{"name": "prefers-color-scheme", "value": colors}]}
            await _call(socket, "Emulation.setEmulatedMedia", media)
            await _call(socket, "Page.enable")
            await _call(socket, "Page.navigate", {"url": url})
            await _until(socket, url, "Page.loadEventFired")
            end = {"expression": f"document.querySelector('{last}').getBoundingClientRect().bottom"}
            height = (await _call(socket, "Runtime.evaluate", end))["result"]["value"] + MARGIN
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
            shot = await _call(socket, "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
            return base64.b64decode(shot["data"])


async def _call(
    socket: aiohttp.ClientWebSocketResponse, method: str, parameters: dict[str, Any] | None = None
) -> dict[str, Any]:
    await socket.send_json({"id": 1, "method": method, "params": parameters or {}})
    while (message := await socket.receive_json()).get("id") != 1:
        pass
    assert "error" not in message, f"{method}: {message['error']}"
    result: dict[str, Any] = message["result"]
    return result


async def _until(socket: aiohttp.ClientWebSocketResponse, url: str, event: str) -> None:
    try:
        async with asyncio.timeout(LOAD_SECONDS):
            while (await socket.receive_json()).get("method") != event:
                pass
    except TimeoutError:
        raise click.ClickException(NOT_LOADED.format(url=url)) from None


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Start a headless Chromium with an empty profile; stop it at the end."""
    command = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if command is None:
        raise click.ClickException(NO_BROWSER)
    # Chromium does not run as root in its own sandbox; the pages are our own.
    rights = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="nightjar-images-", ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
        process = await asyncio.create_subprocess_exec(
            command,
            *options,
            *rights,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with aiohttp.ClientSession() as http:
                yield Browser(http, await _port(process))
        finally:
            # Debian's chromium-headless-shell is a shell script that waits for Chromium, so the signal is for both.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            await process.communicate()


async def _port(process: asyncio.subprocess.Process) -> int:
    """Return the port that Chromium prints when it is ready."""
    assert process.stderr is not None
    printed = []
    async for line in process.stderr:
        printed.append(line.decode(errors="replace"))
        if printed[-1].startswith("DevTools listening on ws://"):
            return int(printed[-1].split(":")[2].partition("/")[0])
    raise click.ClickException(f"Chromium did not start:\n{''.join(printed)}")


@dataclass(frozen=True)
class Picture:
    """A screenshot: its file's name, the page, the last element that it shows, and the colors."""

    name: str
    url: str
    last: str
    colors: str = LIGHT


def dashboard_pictures(bot_url: str) -> list[Picture]:
    """Return the pictures of the dashboard after the two weeks; the README shows the grid in the reader's colors."""
    grid = f"{bot_url}{view_path(REPOSITORY)}"
    return [
        Picture("grid", grid, ".legend"),
        Picture("grid-dark", grid, ".legend", DARK),
        Picture("overview", f"{bot_url}/", "main"),
        Picture("measurement", f"{bot_url}{SLOWER}", ".figure"),
        Picture("pull-request", f"{bot_url}{pull_path(REPOSITORY, OPEN_PULL)}", "#commands-given + ol"),
    ]


CONVERSATION, CHECK = "conversation", "hardware-check"
NAMES = (CONVERSATION, CHECK, *(picture.name for picture in dashboard_pictures("")))
"""The pictures that `make images` makes."""


async def take() -> None:
    """Play the demo; save screenshots of the dashboard, of a conversation and of a check run."""
    async with browser() as chromium, stage() as demo:
        for picture in dashboard_pictures(demo.bot.url):
            await _save(chromium, picture)
        await _save(chromium, await _conversation(demo))
        run = await NightlyRuns(demo).test_pull_request()
        await _save(chromium, Picture(CHECK, f"{demo.github.url}{address(run)}", ".annotation"))


async def _conversation(demo: DemoStage) -> Picture:
    conversation = Conversation(demo)
    await conversation.talk()
    number = conversation.pull.number
    return Picture(CONVERSATION, f"{demo.github.url}/{REPOSITORY}/pull/{number}", ".checks")


async def _save(chromium: Browser, picture: Picture) -> None:
    image = await chromium.screenshot(picture.url, picture.last, picture.colors)
    path = IMAGES / f"{picture.name}.png"
    await asyncio.to_thread(path.write_bytes, await with_palette(image))
    click.echo(f"saved {path}", err=True)


async def with_palette(image: bytes) -> bytes:
    """Return a PNG with at most 64 colors. Raises `ClickException` without pngquant."""
    if shutil.which(PALETTE[0]) is None:
        raise click.ClickException(NO_PALETTE)
    process = await asyncio.create_subprocess_exec(
        *PALETTE, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    smaller, _ = await process.communicate(image)
    assert process.returncode == 0, f"{PALETTE[0]} ended with {process.returncode}"
    return smaller


@click.command()
def main() -> None:
    """Regenerate docs/images."""
    asyncio.run(take())


if __name__ == "__main__":
    sys.exit(main())
