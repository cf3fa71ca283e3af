"""Allow connections to addresses that others name only if the addresses are public.

The resolver resolves a name once and checks all its addresses, and the connection goes to one of these. So a name that
resolves to another address a moment later has no effect.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
"""IPv6 addresses that lead to IPv4 ones, as do 6to4 and Teredo (RFC 6052, RFC 8215)."""


class PrivateAddress(OSError):
    """The host is not a public one. An OSError, so that aiohttp reports it like any failed look-up."""


def is_public(text: str) -> bool:
    """Return whether an IP address, and an IPv4 address that it contains, are of the public internet (RFC 6890)."""
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif address.sixtofour is not None or address.teredo is not None or any(address in net for net in NAT64):
            return False
    return address.is_global and not address.is_multicast


def check_literal(host: str) -> None:
    """Raise `PrivateAddress` for an IP address that is not public. Ignores names: `PublicResolver` checks those.

    aiohttp connects to such an address without a look-up.
    """
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return
    if not is_public(host.strip("[]")):
        raise PrivateAddress(host)


class PublicResolver(AbstractResolver):
    """Resolves names by the system; raises `PrivateAddress` for one with an address that is not public."""

    def __init__(self, resolver: AbstractResolver | None = None) -> None:
        self._resolver = resolver or ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name."""
        addresses = await self._resolver.resolve(host, port, family)
        if not all(is_public(address["host"]) for address in addresses):
            raise PrivateAddress(host)
        return addresses

    async def close(self) -> Any:
        """Close the resolver beneath."""
        await self._resolver.close()
