"""Observers of the requests to GitHub, for metrics."""

from __future__ import annotations

from typing import Protocol


class RequestObserver(Protocol):
    """Receives every request that the client makes: its methods must be quick and must not fail."""

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record one request: `route` is the URL's template, `status` is 0 without an answer."""
        ...

    def quota(self, installation: str, resource: str, remaining: int, limit: int, reset: int) -> None:
        """Record a primary quota: `installation` is its number or `app`, `reset` in seconds since the epoch."""
        ...


class Unobserved:
    """An observer that ignores everything."""

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Ignore the request."""

    def quota(self, installation: str, resource: str, remaining: int, limit: int, reset: int) -> None:
        """Ignore the quota."""
