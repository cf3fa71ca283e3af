"""GitHub's primary rate limit: requests per hour and installation.

https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sandbox.errors import ApiError
from sandbox.world import World

DEFAULT_LIMIT = 5000
WINDOW = timedelta(hours=1)


@dataclass
class Window:
    """The limit of one caller in one hour."""

    limit: int
    reset: datetime
    used: int = 0

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers that every answer carries."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(max(0, self.limit - self.used)),
            "X-RateLimit-Used": str(self.used),
            "X-RateLimit-Reset": str(int(self.reset.timestamp())),
            "X-RateLimit-Resource": "core",
        }


class RateLimits:
    """The limits of all callers. Tests lower `limit` to exhaust it."""

    def __init__(self, github: World) -> None:
        self._github = github
        self._windows: dict[str, Window] = {}
        self.limit = DEFAULT_LIMIT

    def window(self, caller: str) -> Window:
        """Return the caller's current hour."""
        moment = self._github.clock.now()
        window = self._windows.get(caller)
        if window is None or window.reset <= moment:
            window = self._windows[caller] = Window(self.limit, moment + WINDOW)
        window.limit = self.limit
        return window

    def spend(self, caller: str) -> Window:
        """Count one request. Raises GitHub's 403 `ApiError` if the limit is exhausted."""
        window = self.window(caller)
        if window.used >= window.limit:
            raise ApiError(403, f"API rate limit exceeded for {caller}.", headers=window.headers)
        window.used += 1
        return window
