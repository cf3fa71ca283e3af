"""Limit the calls of labs, and count them in a metric; refused ones are also logged."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection

import structlog
from aiohttp import hdrs, web
from cachetools import TTLCache
from prometheus_client import CollectorRegistry, Counter

from bot.core.metrics import OTHER
from bot.core.parts import PartKey
from bot.core.rarely import Rarely
from bot.web.problems import Problem
from bot.web.rate_limit import RateLimit
from handlers.labs import texts

CALLS_PER_MINUTE = 300
"""The most calls of one lab: enough for the heartbeats and claims of a hundred devices."""
FILES, FILES_PER_MINUTE = "files", 600
"""The call that sends a file, and the most files of one lab: two runs of the most files."""
REFUSALS_PER_MINUTE = 30
"""Refused tokens of one address, after which only tokens that were accepted before are checked."""
ACCEPTED_SECONDS = 86_400.0
"""Seconds for which an accepted token is remembered."""
MOST_ACCEPTED = 10_000
"""The most accepted tokens that are remembered: each machine of a large lab may have its own."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LabCalls:
    """The calls of all labs to one process; `labs` and `proxies` are the settings of app.yaml.

    `clock` returns seconds since any fixed moment.
    """

    def __init__(self, labs: Collection[str], proxies: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._labs = frozenset(labs)
        self._calls = RateLimit(CALLS_PER_MINUTE, clock=lambda: self.clock())
        self._files = RateLimit(FILES_PER_MINUTE, clock=lambda: self.clock())
        self._refusals = RateLimit(REFUSALS_PER_MINUTE, proxies, clock=lambda: self.clock())
        self._accepted: TTLCache[tuple[str, bytes], None] = TTLCache(MOST_ACCEPTED, ACCEPTED_SECONDS)
        self._rarely = Rarely()
        self._counter = Counter(
            "nightjar_lab_calls",
            "API calls of labs, by outcome; `refused`: the caller may not act as the lab.",
            ["lab", "call", "outcome"],
            registry=None,
        )

    def measure(self, registry: CollectorRegistry) -> None:
        """Add the metric to a registry."""
        registry.register(self._counter)

    def admit_address(self, request: web.Request, lab: str) -> None:
        """Raise `Problem` for an address from which too many tokens were refused.

        A token that was accepted for this lab before is always admitted: a stranger may share the address of a lab, and
        behind a proxy that app.yaml does not name, all callers share one address.
        """
        if (lab, _digest(request)) in self._accepted:
            return
        seconds = self._refusals.wait_for(self._refusals.client(request), count=False)
        if seconds:
            raise _too_many(texts.TOO_MANY_REFUSED.format(seconds=seconds), seconds)

    def accept(self, request: web.Request, lab: str) -> None:
        """Remember the token of a call as a valid one of this lab, until it is refused."""
        self._accepted[lab, _digest(request)] = None

    def refuse(self, request: web.Request, lab: str) -> None:
        """Forget the token of a call: it was revoked, has expired, or belongs to another lab."""
        self._accepted.pop((lab, _digest(request)), None)

    def admit_lab(self, lab: str, call: str) -> None:
        """Count a call of a lab. Raises `Problem` if there were too many."""
        # Files count apart: while a lab uploads, the heartbeats of its other tests must get through.
        is_file = call == FILES
        if seconds := (self._files if is_file else self._calls).wait_for(lab):
            text = texts.TOO_MANY_FILES if is_file else texts.TOO_MANY_CALLS
            raise _too_many(text.format(lab=lab, seconds=seconds), seconds)

    def refused(self, request: web.Request, lab: str, call: str, reason: str) -> None:
        """Record that a caller may not act for a lab, or not for that job."""
        self._refusals.wait(request)
        self.count(lab, call, "refused")
        # Strangers can cause any number of refusals, so there is one line a second.
        if (held_back := self._rarely.ready(call)) is not None:
            client = self._refusals.client(request)
            log.warning("lab call refused", lab=lab[:64], call=call, why=reason, client=client, held_back=held_back)

    def results_refused(self, lab: str, job: str, reason: str) -> None:
        """Record that a manifest names a job that its results do not complete."""
        self.count(lab, "results", "refused")
        if (held_back := self._rarely.ready("results")) is not None:
            log.warning("results refused", lab=lab, job=job[:64], why=reason, held_back=held_back)

    def count(self, lab: str, call: str, outcome: str) -> None:
        """Count a call."""
        # Anybody may call with an invented name; each would become a time series of its own.
        self._counter.labels(lab if lab in self._labs else OTHER, call, outcome).inc()


def _digest(request: web.Request) -> bytes:
    authorization = request.headers.get(hdrs.AUTHORIZATION, "")
    return hashlib.sha256(authorization.encode("utf-8", "surrogateescape")).digest()


def _too_many(detail: str, seconds: int) -> Problem:
    return Problem(429, detail, headers={"Retry-After": str(seconds)})


LAB_CALLS = PartKey[LabCalls]("lab-calls")
