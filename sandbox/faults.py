"""Faults on demand: errors, delays and lost connections, before or after a request took effect."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sandbox.errors import NOT_ACCESSIBLE

When = Literal["before", "after"]


@dataclass(eq=False)
class Fault:
    """What happens to the next requests of a route; `hits` counts how often it did."""

    method: str
    route: str | re.Pattern[str]
    when: When
    status: int | None
    drop: bool
    headers: Mapping[str, str]
    message: str
    delay: float
    times: int | None
    skip: int = 0
    late: float = 0
    text: str | None = None
    hits: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    resumed: asyncio.Event | None = None
    abandoned: bool = False

    def matches(self, method: str, route: str, path: str) -> bool:
        """Say whether the fault applies to a request."""
        if self.method not in {"*", method} or (self.times is not None and self.hits >= self.times):
            return False
        if isinstance(self.route, str):
            return self.route in {"*", route}
        return self.route.search(path) is not None

    async def strike(self, when: When, transport: asyncio.BaseTransport | None) -> bool:
        """Apply the fault if it is time for it; return whether it replaces the answer."""
        if self.delay and when == "before":
            await asyncio.sleep(self.delay)
        if self.when != when:
            return False
        self.reached.set()
        if self.resumed is not None:
            await self.resumed.wait()
        lost = self.drop or self.abandoned
        if lost and isinstance(transport, asyncio.WriteTransport):
            transport.abort()
        return lost or self.status is not None

    def resume(self) -> None:
        """Let held requests continue."""
        assert self.resumed is not None, "only a pause can be resumed"
        self.resumed.set()

    def abandon(self) -> None:
        """Drop the held requests: no client gets an answer, and a request that was held *before* has no effect."""
        self.abandoned = True
        self.resume()


class Faults:
    """The faults that wait for their requests, oldest first; at most one applies to a request."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(
        self,
        method: str,
        route: str | re.Pattern[str],
        *,
        status: int | None = None,
        when: When = "before",
        drop: When | None = None,
        headers: Mapping[str, str] | None = None,
        message: str | None = None,
        delay: float = 0,
        times: int | None = 1,
        skip: int = 0,
        late: float = 0,
        text: str | None = None,
    ) -> Fault:
        """Add a fault for the next `times` requests of a route (None: for all), after `skip` requests without a fault.

        `route` is a template as in GitHub's documentation, a compiled pattern for the path, or `*`; `method` may be `*`
        too. `status` is the error to answer, `when` says whether before or after the request takes effect. `message` is
        GitHub's text, by default its usual one for a 403. `drop` closes the connection without an answer. `delay` waits
        for so many seconds first. `late`: the request takes effect so many seconds (of the sandbox's clock) after the
        fault replaced its answer, as on a server that lost only the answer; without a `status`, the connection is
        closed. `text` is a body that GitHub never sends with this status: HTML, or JSON of another shape.
        """
        if message is None:
            message = NOT_ACCESSIBLE if status == 403 else "Server Error"
        lost = drop is not None or (late > 0 and status is None)
        fault = Fault(method, route, drop or when, status, lost, headers or {}, message, delay, times, skip, late, text)
        self._faults.append(fault)
        return fault

    def pause(
        self, method: str, route: str | re.Pattern[str], *, when: When, times: int | None = 1, skip: int = 0
    ) -> Fault:
        """Hold the next requests of a route; await `reached.wait()`, do what the test is about, then `resume()`.

        If the test kills the client meanwhile, it calls `abandon()`, because nobody waits for the answer.
        """
        fault = self.add(method, route, when=when, times=times, skip=skip)
        fault.resumed = asyncio.Event()
        return fault

    def take(self, method: str, route: str, path: str) -> Fault | None:
        """Return the fault that applies to a request, and count it."""
        for fault in self._faults:
            if not fault.matches(method, route, path):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.hits += 1
            return fault
        return None

    def clear(self) -> None:
        """Remove all faults, and let held requests continue."""
        for fault in self._faults:
            if fault.resumed is not None:
                fault.resumed.set()
        self._faults.clear()
