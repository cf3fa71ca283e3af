"""Tell systemd how this process is: sd_notify(3). Elsewhere, nothing happens."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"
MICROSECONDS = 1_000_000


def notify(state: str) -> None:
    """Send a state to systemd, if it started this process with `Type=notify`."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        datagrams.setblocking(False)
        # An @ stands for the NUL of an abstract address.
        datagrams.sendto(state.encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)


async def report_life() -> None:
    """Tell systemd that the event loop runs, twice in each `WatchdogSec`, until cancelled."""
    interval = int(os.environ.get("WATCHDOG_USEC") or 0) / MICROSECONDS
    while interval:
        notify(ALIVE)
        await asyncio.sleep(interval / 2)
