"""Which addresses are public, and that connections go to no others."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver

from bot.core.public_hosts import PrivateAddress, PublicResolver, check_literal, is_public

PRIVATE = [
    "127.0.0.1",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2001:0:1::1",
    "fe80::1",
    "fe80::1%eth0",
    "fd00::1",
    "ff02::1",
    "no address",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "140.82.112.3", "2606:50c0:8000::153", "::ffff:8.8.8.8"])
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)
    check_literal(address)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "::ffff:10.0.0.1"])
def test_an_address_in_place_of_a_name_is_checked(host: str) -> None:
    with pytest.raises(PrivateAddress):
        check_literal(host)


class Resolver(AbstractResolver):
    """Resolves every name to these addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> Any:
        return [{"hostname": host, "host": address, "port": port} for address in self.addresses]

    async def close(self) -> None: ...


async def test_a_name_with_one_private_address_is_refused() -> None:
    assert len(await PublicResolver(Resolver("8.8.8.8", "8.8.4.4")).resolve("a.example.org", 443)) == 2
    with pytest.raises(PrivateAddress):
        await PublicResolver(Resolver("8.8.8.8", "10.0.0.1")).resolve("a.example.org", 443)


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f.1", "127.1"])
async def test_every_notation_of_the_loopback_address_is_refused(host: str) -> None:
    resolver = PublicResolver()
    with pytest.raises(OSError):
        await resolver.resolve(host, 443, socket.AF_UNSPEC)
    await resolver.close()
