"""Observers of the requests to GitHub, for metrics."""

from __future__ import annotations

from typing import Protocol


class RequestObserver(Protocol):
    """Who wants to know what the client does; called for every request, so it must be quick and must not fail."""

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Take in one request: `route` is the URL's template, `status` 0 where no answer came."""
        ...

    def quota(self, installation: str, resource: str, remaining: int, limit: int, reset: int) -> None:
        """Take in a primary quota: `installation` is its number or `app`, `reset` in seconds since the epoch."""
        ...


class Unobserved:
    """Ignore the request."""

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Forget it."""

    def quota(self, installation: str, resource: str, remaining: int, limit: int, reset: int) -> None:
        """Forget it."""
