"""What results need to know of the tests that people requested.

`handlers.device_tests` has these tests and imports this folder, so results get them under a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from nightjar_formats.model import RunKey, TargetKey

from bot.core.parts import PartKey

if TYPE_CHECKING:
    from bot.core.events import Repository
    from bot.engine.records import Records
    from bot.results.ingest.ingester import RequestedFewTests
    from bot.results.state import Run


class RequestedTests(Protocol):
    """The tests that people requested from labs."""

    async def pull_request_of(self, repository_id: int, target: TargetKey, sha: str) -> int | None:
        """Return the pull request for which a commit was handed out to a target's lab, or None."""
        ...

    async def requested_at(self, repository_id: int, pull_request: int, sha: str) -> list[float]:
        """Return when tests of a head were requested, in seconds since 1970."""
        ...

    async def few_tests_of(self, run: RunKey, repository: Repository) -> RequestedFewTests | None:
        """Return the job of a run of a few tests; None if the lab has no such job for this target and commit."""
        ...

    async def complete(self, run: Run, repository: Repository, *, reread: bool) -> None:
        """Note that the results of a test arrived; `reread` if an operator reads the run again."""
        ...

    async def target_notice(
        self, records: Records, repository_id: int, target: TargetKey, tier: int, moment: float
    ) -> str:
        """Return what check runs of a target of this tier say while it is paused or degraded, empty otherwise."""
        ...

    def benchmark_of(self, test: str, target: TargetKey) -> str:
        """Return the command, without a mention, that compares what a test measures at the head and its base."""
        ...


REQUESTED_TESTS = PartKey[RequestedTests]("requested-tests")
