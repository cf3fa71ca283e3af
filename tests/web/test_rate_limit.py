"""The limit on pages: in whose bucket a request counts, and how it fills."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from bot.web.rate_limit import RateLimit


@dataclass
class Clock:
    moment: float = 0.0

    def __call__(self) -> float:
        return self.moment


@dataclass
class Client:
    limit: RateLimit
    clock: Clock = field(default_factory=Clock)

    def asks(self, *forwarded: str) -> int:
        headers = CIMultiDict[str](("X-Forwarded-For", address) for address in forwarded)
        return self.limit.wait(make_mocked_request("GET", "/", headers=headers))


def client(per_minute: int, proxies: int = 1) -> Client:
    clock = Clock()
    return Client(RateLimit(per_minute, proxies, clock), clock)


def test_a_bucket_fills_at_a_steady_pace() -> None:
    limited = client(30)
    assert [limited.asks("192.0.2.1") for _ in range(31)] == [0] * 30 + [2]
    limited.clock.moment += 2
    assert [limited.asks("192.0.2.1") for _ in range(2)] == [0, 2]


@pytest.mark.parametrize(
    ("proxies", "forwarded", "counted_as"),
    [
        (1, ["192.0.2.1"], "192.0.2.1"),
        (1, ["10.0.0.1, 192.0.2.1"], "192.0.2.1"),
        (2, ["192.0.2.1, 10.0.0.1"], "192.0.2.1"),
        (1, ["::ffff:192.0.2.1"], "192.0.2.1"),
        (1, ["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::/64"),
        (1, ["<script>"], "unknown"),
        (1, ["10.0.0.1", "192.0.2.1"], "192.0.2.1"),
    ],
)
def test_the_address_is_the_one_that_our_outermost_proxy_saw(
    proxies: int, forwarded: list[str], counted_as: str
) -> None:
    limit = RateLimit(10, proxies)
    headers = CIMultiDict[str](("X-Forwarded-For", address) for address in forwarded)
    assert limit.client(make_mocked_request("GET", "/", headers=headers)) == counted_as


def test_without_proxies_the_header_is_ignored() -> None:
    limit = RateLimit(10)
    request = make_mocked_request("GET", "/", headers=CIMultiDict({"X-Forwarded-For": "192.0.2.1"}))
    assert limit.client(request) != "192.0.2.1"
