"""Circuit breakers: while GitHub does not answer an installation, one request at a time probes; the others wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

FAILURES = 5
"""Failed requests in a row after which GitHub counts as unavailable."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two probes: doubled each time."""


@dataclass(slots=True)
class Breaker:
    """The state of one installation; moments are seconds on a monotonic clock."""

    failures: int = 0
    pause: float = 0.0
    next_probe: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether GitHub counts as unavailable."""
        return self.failures >= FAILURES

    def may_ask(self, moment: float) -> bool:
        """Return whether a request may be sent now.

        While GitHub is unavailable, one caller at a time may send a request, as a probe for all.
        """
        if not self.is_open:
            return True
        # Use a time instead of a flag: a probe whose task was cancelled never reports, and would leave a flag set.
        if moment < self.next_probe:
            return False
        self._wait(moment)
        return True

    def succeed(self) -> None:
        """Record that GitHub has answered."""
        self.failures, self.pause = 0, 0.0

    def fail(self, moment: float) -> None:
        """Record that GitHub gave no answer, or a 5xx."""
        self.failures += 1
        # `==` and not `>=`: requests that were in flight together fail together, and each would double the pause.
        if self.failures == FAILURES:
            self._wait(moment)

    def _wait(self, moment: float) -> None:
        self.pause = min(self.pause * 2, LONGEST_PAUSE) or FIRST_PAUSE
        self.next_probe = moment + self.pause


class Breakers:
    """The breakers of all installations."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._breakers: dict[str, Breaker] = {}

    def of(self, installation: str) -> Breaker:
        """Return the breaker of an installation."""
        return self._breakers.setdefault(installation, Breaker())

    def may_ask(self, installation: str) -> bool:
        """Return whether a request of an installation may be sent now."""
        return self.of(installation).may_ask(self._clock())

    def succeed(self, installation: str) -> None:
        """Record that GitHub has answered a request of an installation."""
        self.of(installation).succeed()

    def fail(self, installation: str) -> None:
        """Record that a request of an installation got no answer."""
        self.of(installation).fail(self._clock())
