"""GitHub's clock, learnt from its answers: JWTs must have GitHub's time, even if this machine's clock is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache

TOLERANCE = 30.0
"""Seconds that clocks may differ before the bot reports it. A JWT is back-dated by 60 s and may last 10 minutes."""

WRONG = (
    "this machine's clock is {seconds:.0f} s {direction} GitHub's; the bot corrects what it signs, but not timers and "
    "logs: synchronize the clock (NTP)"
)
AHEAD, BEHIND = "ahead of", "behind"


class GitHubClock:
    """The difference between this machine's clock and GitHub's. `wall` gives seconds since 1970, as this machine says.

    `ahead` is in seconds, negative if our clock is behind; 0 until an answer shows a difference.
    """

    def __init__(self, wall: Callable[[], float]) -> None:
        self.wall = wall
        self.ahead = 0.0

    def now(self) -> float:
        """Return GitHub's time, in seconds since 1970."""
        return self.wall() - self.ahead

    def learn(self, headers: Mapping[str, str], sent: float) -> None:
        """Learn from the `Date` header of an answer that has just arrived; `sent` is our time of the request.

        `Date` has whole seconds and was written at some moment while we waited, so it only gives a range. A known
        difference within the range stays unchanged. https://www.rfc-editor.org/rfc/rfc9110#name-date
        """
        date = seconds_of(headers.get("date"))
        if date is None or "age" in headers:  # from a proxy's cache
            return
        received = self.wall()
        least, most = sent - date - 1, received - date
        if least > most or least <= self.ahead <= most:
            return
        self.ahead = 0.0 if least <= 0 <= most else (least + most) / 2

    @property
    def problem(self) -> str | None:
        """What is wrong with this machine's clock and how to fix it; None if the clock is right."""
        if abs(self.ahead) <= TOLERANCE:
            return None
        return WRONG.format(seconds=abs(self.ahead), direction=AHEAD if self.ahead > 0 else BEHIND)


@lru_cache(maxsize=8)  # the answers of one second have the same date
def seconds_of(date: str | None) -> float | None:
    """Return a `Date` header as seconds since 1970, None if it is missing or no date."""
    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except ValueError:
        return None
