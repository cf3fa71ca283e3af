"""Sockets that listen on a port. It imports little: the bot listens before it has loaded the rest of itself."""

from __future__ import annotations

import errno
import socket

BACKLOG = 64
"""The most connections that wait to be accepted, and the most that are accepted at once."""
UNUSABLE = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
"""Errors of one address of a host, such as that of IPv6 on a machine without it."""


def open_sockets(host: str, port: int) -> list[socket.socket]:
    """Return a socket that listens for each address of a host, which it looks up. Raises OSError or OverflowError."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    unusable: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(addresses):
        try:
            sockets.append(socket.create_server(address[:2], family=family, backlog=BACKLOG))
        except (OSError, OverflowError) as error:
            if not (isinstance(error, OSError) and error.errno in UNUSABLE):
                for opened in sockets:
                    opened.close()
                raise
            unusable = error
    if unusable is not None and not sockets:
        raise unusable
    return sockets
