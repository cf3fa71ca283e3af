"""Writes that must happen exactly once and are not idempotent: a POST, a merge, a build.

A request whose answer is lost may still take effect seconds later. So each write is stored before it is sent. The next
try of the same job first checks whether the write took effect, as every effect does. It may send the write again only
after two checks that found nothing, `CHECK_AFTER` seconds apart: GitHub's lists lag. After such a second write, the
effect is applied twice more without permission to write, to find a twin and merge it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from bot.core.errors import TryAgain

CHECK_AFTER = 12.0
"""Seconds, by GitHub's clock, until a write that was sent shows in GitHub's lists, if it took effect at all."""
CHECKS_OF_WRITE = 2
"""Checks that must find nothing before a write is sent again; also checks for twins after that."""
MARGIN = 1.0
"""Seconds added to a wait: GitHub's `Date` header has whole seconds."""

ON_ITS_WAY = "{what} may still take effect; the bot checks again in {seconds:.0f} s"
MAY_BE_DOUBLE = "{what} was sent again; the bot checks for a duplicate in {seconds:.0f} s"


class UnclearWrite(TryAgain):
    """A write was sent, and nothing says whether it took effect: no answer came, or only a server error."""


class CheckAgain(TryAgain):
    """A write that may still take effect was not found yet. The job must check again before it may repeat the write."""


@dataclass(frozen=True, slots=True)
class SentWrite:
    """A write that was sent: `what` is its method and address, `since` the start of the wait, by GitHub's clock.

    `checks` counts the checks that did not find it; `again`: it was sent a second time.
    """

    what: str
    since: float
    checks: int = 0
    again: bool = False


Save = Callable[[Mapping[str, Any]], Awaitable[None]]


async def _store_nothing(_: Mapping[str, Any]) -> None:
    """Do nothing: an effect that is applied outside a job has no later try."""


class Writes:
    """The writes of one effect, over all tries of its job.

    `stored` is the `state` of an earlier try; `save` stores the state durably.
    """

    def __init__(
        self, stored: Mapping[str, Any] | None = None, save: Save = _store_nothing, check_after: float = CHECK_AFTER
    ) -> None:
        state = stored or {}
        self._earlier = {write["what"]: SentWrite(**write) for write in state.get("sent", ())}
        self._sent: dict[str, SentWrite] = {}
        self._save = save
        self._check_after = check_after
        self.checks_left: int | None = state.get("checks_left")
        """How many checks for twins are left; None if none are needed."""
        self.outcome: Mapping[str, Any] = state.get("outcome", {})
        """The outcome of the effect before the checks for twins began."""

    @property
    def state(self) -> dict[str, Any]:
        """The state for later tries, as JSON values."""
        sent = {**self._earlier, **self._sent}
        state: dict[str, Any] = {"sent": [asdict(write) for write in sent.values()]} if sent else {}
        if self.checks_left is not None:
            state |= {"checks_left": self.checks_left, "outcome": dict(self.outcome)}
        return state

    @property
    def may_have_twins(self) -> bool:
        """Whether an earlier try has sent a write, so that its result may exist twice."""
        return bool(self._earlier)

    @property
    def wait(self) -> float:
        """Seconds until the next check."""
        return self._check_after + MARGIN if self._check_after else 0.0

    @property
    def sent_again(self) -> Sequence[str]:
        """The writes that were sent a second time."""
        return [write.what for write in {**self._earlier, **self._sent}.values() if write.again]

    @asynccontextmanager
    async def once(self, request: str, clock: Callable[[], float]) -> AsyncIterator[None]:
        """Store the write `request`, then run the block, which sends it; `clock` returns GitHub's time (epoch seconds).

        The block raises `UnclearWrite` if the write may have taken effect; any other error means that it has not.
        Raises `CheckAgain` instead of entering the block while an earlier try of the same write may still take effect.
        """
        is_repeated = self._is_overdue(request, clock())
        sent_now = self._sent.get(request)
        self._sent[request] = sent_now or SentWrite(request, clock(), again=is_repeated)
        if sent_now is None:
            await self._save(self.state)
        try:
            yield
        except UnclearWrite:
            raise
        except Exception:
            if sent_now is None:
                # It took no effect, so it may be sent again. The stored state names it until this try ends.
                del self._sent[request]
            raise

    def _is_overdue(self, request: str, moment: float) -> bool:
        """Return whether an earlier try sent the write, and it must be sent again because no check has found it."""
        sent = self._earlier.get(request)
        if sent is None or request in self._sent:
            return False
        if self.checks_left is not None:
            raise CheckAgain(MAY_BE_DOUBLE.format(what=request, seconds=self.wait), retry_in=self.wait)
        seconds_left = sent.since + self._check_after - moment
        if seconds_left > 0:
            # A clock that was set back must not stretch the wait.
            seconds = min(seconds_left + MARGIN, self.wait)
            raise CheckAgain(ON_ITS_WAY.format(what=request, seconds=seconds), retry_in=seconds)
        if sent.checks + 1 < CHECKS_OF_WRITE:
            self._earlier[request] = replace(sent, checks=sent.checks + 1, since=moment)
            raise CheckAgain(ON_ITS_WAY.format(what=request, seconds=self.wait), retry_in=self.wait)
        return True

    def check_for_twins(self, outcome: Callable[[], Mapping[str, Any]]) -> CheckAgain | None:
        """Return the error that makes the job check for twins in another try; None if no check is left.

        `outcome` returns the outcome of the effect; the job ends with it after the last check.
        """
        if self.checks_left is None:
            if not self.sent_again:
                return None
            requests = ", ".join(self.sent_again)
            self.checks_left, self.outcome = CHECKS_OF_WRITE, outcome()
        else:
            requests = "a write"
            self.checks_left -= 1
        if not self.checks_left:
            return None
        return CheckAgain(MAY_BE_DOUBLE.format(what=requests, seconds=self.wait), retry_in=self.wait)
