"""A limit on how many pages one address may ask for, or calls one lab may make, so that nobody holds up the others.

Each address has a bucket of tokens that fills at a steady pace. The addresses that asked least recently are forgotten,
so that memory is bounded whoever asks.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from aiohttp import web
from cachetools import LRUCache

MOST_ADDRESSES = 10_000
FORWARDED = "X-Forwarded-For"
NETWORK_BITS = 64
"""Of an IPv6 address: who has one address usually has all of such a network."""


class _Bucket(NamedTuple):
    tokens: float
    at: float


class RateLimit:
    """Allow `per_minute` requests a minute from one address, as many of them at once.

    `proxies` is how many reverse proxies of ours stand between the server and its clients; each appends the address
    that it was asked from to `X-Forwarded-For`. Anything before those was written by the client, and is not believed.
    `clock` is in seconds from anywhere.
    """

    def __init__(self, per_minute: int, proxies: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = per_minute
        self._proxies = proxies
        self._clock = clock
        self._buckets: LRUCache[str, _Bucket] = LRUCache(MOST_ADDRESSES)

    def wait(self, request: web.Request) -> int:
        """Count a request, and return 0; or return after how many seconds the next one is allowed."""
        return self.wait_for(self.client(request))

    def wait_for(self, client: str, *, count: bool = True) -> int:
        """Do the same for a client by its name; without `count`, only say whether one would be allowed now."""
        now, pace = self._clock(), self._most / 60
        before = self._buckets.get(client, _Bucket(self._most, now))
        tokens = min(float(self._most), before.tokens + (now - before.at) * pace)
        if tokens < 1:
            return max(1, math.ceil((1 - tokens) / pace))
        if count:
            self._buckets[client] = _Bucket(tokens - 1, now)
        return 0

    def client(self, request: web.Request) -> str:
        """Return the address, or the network, that asks."""
        asked_from = [request.remote or ""]
        if self._proxies:
            named = ",".join(request.headers.getall(FORWARDED, [])).split(",")
            asked_from = [*(name.strip() for name in named if name.strip()), *asked_from]
        return _network(asked_from[-1 - self._proxies] if len(asked_from) > self._proxies else asked_from[0])


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.strip("[]")[:64])
    except ValueError:
        return "unknown"
    if parsed.version == 4 or parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped if parsed.version == 6 else parsed)
    return str(ipaddress.ip_network((parsed, NETWORK_BITS), strict=False))
