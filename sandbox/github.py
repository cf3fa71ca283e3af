"""The sandbox itself: one GitHub, in memory, behind HTTP on 127.0.0.1."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sandbox.server import Server
from sandbox.state import GitHubState


class GitHubSandbox(GitHubState):
    """A simulated GitHub: people act through these methods, Apps over HTTP.

    Attributes for tests: `requests` (every request, with counts and points), `faults`, `webhooks` (deliveries, and how
    they are sent), `violations` (what a correct client or sandbox would not have sent), `clock`. Lists show a change
    only after `lists_lag` seconds of that clock; a single object is found by its number at once.
    """

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[str]:
        """Serve API and pages and deliver webhooks while the block runs; yields the base address.

        Raises AssertionError at the end if the sandbox itself ever sent what GitHub's schema forbids.
        """
        async with Server(self).running(port), self.webhooks.running():
            yield self.url
        own_violations = [violation for violation in self.violations if violation.kind != "request"]
        assert not own_violations, f"the sandbox broke GitHub's schema: {own_violations[0]}"
