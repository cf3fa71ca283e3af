"""Where a process listens. It imports little, as `bot.core.ports`."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Self

from bot.app.texts import CANNOT_LISTEN
from bot.core.errors import StartError
from bot.core.ports import open_sockets

CANNOT_OPEN = (OSError, OverflowError, UnicodeError)
"""OverflowError: a port beyond 65535. UnicodeError: a host with a part of more than 63 characters."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 takes any that is free."""

    host: str
    port: int
    listening: tuple[socket.socket, ...] = ()
    """Sockets that already listen there, until the process stops."""

    def opened(self, held: ExitStack) -> Self:
        """Return the address with sockets that listen there, which `held` closes. Raises `StartError`."""
        try:
            return replace(self, listening=tuple(map(held.enter_context, open_sockets(self.host, self.port))))
        except CANNOT_OPEN as error:
            raise self.refused(error) from None

    def refused(self, error: Exception) -> StartError:
        """Return the error for people when nobody can listen there."""
        # asyncio's texts repeat the address, and a failed look-up has a negative error number.
        number = getattr(error, "errno", None) or 0
        reason = (os.strerror(number) if number > 0 else getattr(error, "strerror", None) or str(error)).lower()
        return StartError(CANNOT_LISTEN.format(host=self.host, port=self.port, reason=reason))
