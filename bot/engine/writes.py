"""Writes that must happen exactly once and are not idempotent: a POST, a merge, a build.

A request whose answer is lost may still take effect seconds later. So each write is noted before it is sent. Another
try of the same job first checks whether the write took effect, as every effect does. It may send the write again only
after two checks that found nothing, `CHECK_AFTER` seconds apart: GitHub's lists lag. If the write had to be sent again,
the effect is applied twice more without permission to write, to find a twin and merge it.
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
    """A write that may still take effect was not found yet. The job must check again before it may send it again."""


@dataclass(frozen=True, slots=True)
class SentWrite:
    """A write that was sent: `what` is its method and address, `since` the moment (of GitHub's clock) to count from.

    `checks` counts the checks that did not find it, `again` says that it was sent a second time.
    """

    what: str
    since: float
    checks: int = 0
    again: bool = False


Save = Callable[[Mapping[str, Any]], Awaitable[None]]


async def _store_nothing(_: Mapping[str, Any]) -> None:
    """Store nothing: an effect that is applied outside a job has no later try."""


class Writes:
    """The writes of one effect, over all tries of its job.

    `stored` is what `state` returned in an earlier try, `save` makes the state durable.
    """

    def __init__(
        self, stored: Mapping[str, Any] | None = None, save: Save = _store_nothing, check_after: float = CHECK_AFTER
    ) -> None:
        known = stored or {}
        self._earlier = {one["what"]: SentWrite(**one) for one in known.get("sent", ())}
        self._now: dict[str, SentWrite] = {}
        self._save = save
        self._check_after = check_after
        self.checks_left: int | None = known.get("checks_left")
        """How many checks for twins are left; None: there was no reason to check for any."""
        self.outcome: Mapping[str, Any] = known.get("outcome", {})
        """How the effect ended before the checks for twins began."""

    @property
    def state(self) -> dict[str, Any]:
        """What another try must know, as JSON values."""
        sent = {**self._earlier, **self._now}
        state: dict[str, Any] = {"sent": [asdict(one) for one in sent.values()]} if sent else {}
        if self.checks_left is not None:
            state |= {"checks_left": self.checks_left, "outcome": dict(self.outcome)}
        return state

    @property
    def may_have_twins(self) -> bool:
        """Whether an earlier try has sent something that may now be there twice."""
        return bool(self._earlier)

    @property
    def wait(self) -> float:
        """Seconds until the next check."""
        return self._check_after + MARGIN if self._check_after else 0.0

    @property
    def sent_again(self) -> Sequence[str]:
        """The writes that were sent a second time."""
        return [one.what for one in {**self._earlier, **self._now}.values() if one.again]

    @asynccontextmanager
    async def once(self, what: str, now: Callable[[], float]) -> AsyncIterator[None]:
        """Note a write, then run the block, which sends it; `now` returns GitHub's time, in seconds since 1970.

        The block raises `UnclearWrite` if the write may have taken effect; any other error means that it has not.
        Raises `CheckAgain` instead of entering the block while an earlier try of the same write may still take effect.
        """
        again = self._is_overdue(what, now())
        known = self._now.get(what)
        self._now[what] = known or SentWrite(what, now(), again=again)
        if known is None:
            await self._save(self.state)
        try:
            yield
        except UnclearWrite:
            raise
        except Exception:
            if known is None:
                # It took no effect, so it may be sent. The stored state names it until the note at the end of this try.
                del self._now[what]
            raise

    def _is_overdue(self, what: str, now: float) -> bool:
        """Return whether an earlier try sent the write and, after all checks, it must be sent again."""
        sent = self._earlier.get(what)
        if sent is None or what in self._now:
            return False
        if self.checks_left is not None:
            raise CheckAgain(MAY_BE_DOUBLE.format(what=what, seconds=self.wait), retry_in=self.wait)
        left = sent.since + self._check_after - now
        if left > 0:
            # A clock that was set back must not stretch the wait.
            seconds = min(left + MARGIN, self.wait)
            raise CheckAgain(ON_ITS_WAY.format(what=what, seconds=seconds), retry_in=seconds)
        if sent.checks + 1 < CHECKS_OF_WRITE:
            self._earlier[what] = replace(sent, checks=sent.checks + 1, since=now)
            raise CheckAgain(ON_ITS_WAY.format(what=what, seconds=self.wait), retry_in=self.wait)
        return True

    def check_for_twins(self, outcome: Mapping[str, Any]) -> CheckAgain | None:
        """Return the error that makes the job come back to check for twins, None if no check is left.

        `outcome` is how the effect has ended; the job ends with it after the last check.
        """
        if self.checks_left is None:
            if not self.sent_again:
                return None
            what = ", ".join(self.sent_again)
            self.checks_left, self.outcome = CHECKS_OF_WRITE, outcome
        else:
            what = "a write"
            self.checks_left -= 1
        if not self.checks_left:
            return None
        return CheckAgain(MAY_BE_DOUBLE.format(what=what, seconds=self.wait), retry_in=self.wait)
