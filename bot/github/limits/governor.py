"""Make every request to GitHub wait for its turn, or refuse it at once if the wait would be long."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Protocol

import structlog

from bot.engine.budget import WritePace
from bot.engine.sql.errors import DatabaseFailure
from bot.github.errors import Answer, RateLimited
from bot.github.limits.ledger import LIMITED, PACED, Allowance, Demand, Ledger, Quota, limit_in, quota_in

IN_FLIGHT = 100  # GitHub's limit on concurrent requests, REST and GraphQL together
SHORT_WAIT = 5.0  # seconds that a request waits here; for a longer wait, its job returns to the queue
BOOKING_TIMEOUT = 2.0  # seconds to wait for the database to book a write
SHARE_ALONE = 0.25  # part of the write limits for a process that cannot see the writes of others
ALONE_FOR = 10.0  # seconds after a failure before the process tries the database again
SPREAD = 10.0  # seconds over which requests that were refused together are spread

ALONE = "the shared write budget is unavailable: this process limits its own writes"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Timing:
    """Clocks and randomness, so that tests need not wait: monotonic and wall clock in seconds, a sleep, and [0, 1)."""

    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random


class SharedBudget(Protocol):
    """The budget of an installation that all processes share: `bot.engine.budget.WriteBudget`."""

    async def book(self, name: str, pace: WritePace, patience: float) -> float:
        """Return the seconds until the next request may be sent; book it if that is at most `patience`.

        Raises DatabaseFailure when the database cannot be reached.
        """
        ...


class Governor:
    """Keep every installation within GitHub's limits. Each process has one governor.

    Writes are booked in `shared`, so that the limits hold for all processes together. The process's own ledger limits
    everything else, and the writes too if `shared` is None. While the database is unavailable, a process may use a
    quarter of each write limit, by its own ledger.
    """

    def __init__(
        self,
        timing: Timing | None = None,
        allowance: Allowance | None = None,
        shared: SharedBudget | None = None,
        booking_timeout: float = BOOKING_TIMEOUT,
    ) -> None:
        self._timing = timing or Timing()
        self._allowance = allowance or Allowance()
        self._shared = shared
        self._booking_timeout = booking_timeout
        self._away_until = -inf
        self._booking: dict[str, asyncio.Lock] = {}
        self._ledgers = defaultdict[str, Ledger](lambda: Ledger(self._allowance))
        self._slots = asyncio.Semaphore(IN_FLIGHT)

    @asynccontextmanager
    async def turn(self, installation: str, demand: Demand) -> AsyncIterator[float]:
        """Wait until the request may be sent, and hold one of the slots for requests in flight; yield the time.

        Raises `RateLimited` at once if the wait would be longer than `SHORT_WAIT`.
        """
        ledger = self._ledgers[installation]
        # Check the limits before taking a slot, so that a request that must wait long never holds one.
        self._wait(ledger, demand)
        async with self._slots:
            shared_wait, share = await self._book(installation, ledger, demand)
            starts_at = self._timing.clock() + max(shared_wait, self._wait(ledger, demand, share))
            # Book before sleeping, so that the next request queues behind this one.
            ledger.book(starts_at, demand)
            while (seconds_left := starts_at - self._timing.clock()) > 0:
                await self._timing.sleep(seconds_left)
            # Meanwhile GitHub may have limited another request.
            while (blocked := ledger.blocked(self._timing.clock())) > 0:
                self._refuse_long(blocked, LIMITED, ledger, demand)
                await self._timing.sleep(blocked)
            yield self._timing.clock()

    def learn(self, installation: str, demand: Demand, answer: Answer) -> Quota | None:
        """Record the quota in an answer, even a failed one; return it, None if the answer has none."""
        moment = self._timing.clock()
        quota = quota_in(answer, demand.resource, moment)
        if quota is not None:
            self._ledgers[installation].learn(quota, moment)
        return quota

    def judge(self, installation: str, demand: Demand, answer: Answer, quota: Quota | None, sent_at: float) -> None:
        """Raise `RateLimited` if the answer reports a limit, and hold the installation's requests until it ends."""
        moment = self._timing.clock()
        ledger = self._ledgers[installation]
        limit = limit_in(answer, demand, quota, moment)
        if limit is None:
            ledger.succeed(sent_at)
            return
        # For a used-up quota, the ledger already holds back that resource. Any other limit stops all requests.
        retry_in = limit.ends_in if limit.ends_in is not None else ledger.strike(moment, sent_at, limit.retry_after)
        log.warning(
            "github rate limit reached", installation=installation, status=answer.status, retry_in=round(retry_in)
        )
        raise RateLimited(f"GitHub limited installation {installation}", retry_in=self._spread(retry_in))

    async def _book(self, installation: str, ledger: Ledger, demand: Demand) -> tuple[float, float]:
        """Book in the shared budget; return the wait, and the share of the limits that the own ledger may use."""
        shared, pace = self._shared, ledger.shared_pace(demand, self._timing.clock())
        if shared is None or pace is None:
            return 0.0, 1.0
        # All writes share one budget. Only anonymous reads are booked, in a budget of their own.
        name = installation if demand.write else f"{installation}/{demand.rank.name.lower()}"
        # Book one at a time, so that bookings of one process do not contend with each other.
        async with self._booking.setdefault(name, asyncio.Lock()):
            # Check this under the lock: while the database hangs, only the first request waits for the time-out.
            if self._timing.clock() < self._away_until:
                return 0.0, SHARE_ALONE
            try:
                async with asyncio.timeout(self._booking_timeout):
                    wait = await shared.book(name, pace, SHORT_WAIT)
            except (DatabaseFailure, TimeoutError) as error:
                self._away_until = self._timing.clock() + ALONE_FOR
                log.warning(ALONE, reason=type(error).__name__)
                return 0.0, SHARE_ALONE
        self._refuse_long(wait, PACED, ledger, demand)
        return wait, 1.0

    def _wait(self, ledger: Ledger, demand: Demand, share: float = 1.0) -> float:
        moment = self._timing.clock()
        allowed_at, reason = ledger.earliest(moment, demand, share)
        self._refuse_long(allowed_at - moment, reason, ledger, demand)
        return allowed_at - moment

    def _refuse_long(self, seconds: float, reason: str, ledger: Ledger, demand: Demand) -> None:
        if seconds > SHORT_WAIT:
            moment = self._timing.clock()
            retry_in = self._spread(ledger.turn(moment + seconds, demand, reason) - moment)
            ledger.put_off(moment + retry_in, demand)
            raise RateLimited(reason, retry_in=retry_in, ends_in=seconds)

    def _spread(self, seconds: float) -> float:
        return seconds + self._timing.jitter() * min(seconds, SPREAD) if seconds > SHORT_WAIT else seconds
