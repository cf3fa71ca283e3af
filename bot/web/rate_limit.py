"""A limit on the pages that one address may request, or the calls of one lab, so that nobody delays the others.

Each address has a bucket of tokens that fills at a steady pace. The bot forgets the addresses whose last request is the
oldest, so that memory is bounded.
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
"""Bits of an IPv6 address that name its network: whoever has one address usually has its whole network."""


class _Bucket(NamedTuple):
    tokens: float
    filled_at: float


class RateLimit:
    """Allow `per_minute` requests a minute from one address, as many of them at once.

    `proxies` is the number of our reverse proxies between the server and its clients. Each appends the address of its
    own client to `X-Forwarded-For`. The client may have written everything before those addresses, so it is ignored.
    `clock` is in seconds from any starting point.
    """

    def __init__(self, per_minute: int, proxies: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = per_minute
        self._proxies = proxies
        self._clock = clock
        self._buckets: LRUCache[str, _Bucket] = LRUCache(MOST_ADDRESSES)

    def wait(self, request: web.Request) -> int:
        """Count a request and return 0; above the limit, return the seconds until the next request is allowed."""
        return self.wait_for(self.client(request))

    def wait_for(self, client: str, *, count: bool = True) -> int:
        """Do the same for a client by its name. Without `count`, a request is not counted."""
        current_time, pace = self._clock(), self._most / 60
        bucket = self._buckets.get(client, _Bucket(self._most, current_time))
        tokens = min(float(self._most), bucket.tokens + (current_time - bucket.filled_at) * pace)
        if tokens < 1:
            return max(1, math.ceil((1 - tokens) / pace))
        if count:
            self._buckets[client] = _Bucket(tokens - 1, current_time)
        return 0

    def client(self, request: web.Request) -> str:
        """Return the address, or the IPv6 network, of a request's sender."""
        addresses = [request.remote or ""]
        if self._proxies:
            forwarded = ",".join(request.headers.getall(FORWARDED, [])).split(",")
            addresses = [*(name.strip() for name in forwarded if name.strip()), *addresses]
        return _network(addresses[-1 - self._proxies] if len(addresses) > self._proxies else addresses[0])


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.strip("[]")[:64])
    except ValueError:
        return "unknown"
    if parsed.version == 4 or parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped if parsed.version == 6 else parsed)
    return str(ipaddress.ip_network((parsed, NETWORK_BITS), strict=False))
