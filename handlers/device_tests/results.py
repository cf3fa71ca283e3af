"""Complete the jobs of requested tests when their results arrive, and tell results about these tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bot.results.few_tests import FewTestsOutcome, job_of_run
from bot.results.ingest.ingester import RequestedFewTests
from bot.results.state import Run, RunState
from handlers.device_tests.benchmarks.texts import benchmark_command
from handlers.device_tests.degraded.targets import degraded_targets
from handlers.device_tests.degraded.texts import degraded_notice
from handlers.device_tests.effects import announce_step
from handlers.device_tests.paused.records import paused_targets
from handlers.device_tests.paused.texts import paused_notice
from handlers.device_tests.store import JobStore, UnknownJob
from handlers.device_tests.transitions import NotHandedOut

if TYPE_CHECKING:
    from nightjar_formats.model import RunKey, TargetKey

    from bot.core.events import Repository
    from bot.engine.internal import Announce
    from bot.engine.records import Records
    from bot.results.service import ResultsService

RefusedResults = Callable[[str, str, str], None]
"""Records that the results of a lab complete no job: gets the lab, the ID of the job, and the reason."""


class JobResults:
    """The `RequestedTests` of one process; `refused` is called for results that complete no job."""

    def __init__(self, store: JobStore, results: ResultsService, refused: RefusedResults, accept: Announce) -> None:
        self._store = store
        self._accept = accept
        self._results = results
        self._refused = refused

    async def pull_request_of(self, repository_id: int, target: TargetKey, sha: str) -> int | None:
        """Return the pull request for which a commit was handed out to a target's lab, or None."""
        return await self._store.tested_pull(repository_id, target, sha)

    async def requested_at(self, repository_id: int, pull_request: int, sha: str) -> list[float]:
        """Return when tests of a head were requested, in seconds since 1970."""
        jobs = await self._store.of_pull(repository_id, pull_request)
        return [job.requested_at for job in jobs if job.sha == sha and not job.purpose]

    async def target_notice(
        self, records: Records, repository_id: int, target: TargetKey, tier: int, moment: float
    ) -> str:
        """Return what check runs of a target of this tier say while it is paused or degraded, empty otherwise."""
        name, paused = target.full_name, await paused_targets(records, repository_id, moment)
        if name in paused:
            return paused_notice(paused[name])
        degraded = await degraded_targets(records, repository_id)
        return degraded_notice(degraded[name], tier) if name in degraded else ""

    def benchmark_of(self, test: str, target: TargetKey) -> str:
        """Return the command, without a mention, that compares what a test measures at the head and its base."""
        return benchmark_command(test, target)

    async def few_tests_of(self, run: RunKey, repository: Repository) -> RequestedFewTests | None:
        """Return the job of a run of a few tests; None if the lab has no such job for this target and commit."""
        target = self._results.canonical(run.about)
        try:
            job = await self._store.find(run.lab, job_of_run(run.run_id))
        except UnknownJob:
            return None
        if (job.repository_id, job.about, job.sha) != (repository.id, target, run.sha) or not job.was_handed_out:
            self._refused(run.lab, job.id, f"of {target.full_name} {run.sha}")
            return None

        async def complete(outcome: FewTestsOutcome, suite: str) -> None:
            done = await self._store.complete_few_tests(job.lab, job.id, suite, outcome)
            await announce_step(self._accept, done)

        async def complete_benchmark(report: str) -> None:
            done = await self._store.complete_benchmark(job.lab, job.id, report)
            await announce_step(self._accept, done)

        benchmark = complete_benchmark if job.few_tests.precision else None
        return RequestedFewTests(job.few_tests.tests, benchmark, complete)

    async def complete(self, run: Run, repository: Repository, *, reread: bool) -> None:
        """Note that the results of a job arrived, at any time. A manifest that names another job changes nothing.

        A run in which nothing could be read has a check run as well, so it completes its job too.
        """
        if run.claims is None or not run.claims.job or run.state not in (RunState.STORED, RunState.INCOMPLETE):
            return
        key, target = run.key, self._results.canonical(run.key.about)
        try:
            job = await self._store.find(key.lab, run.claims.job)
            if (job.repository_id, job.about, job.sha) != (repository.id, target, key.sha):
                self._refused(key.lab, job.id, f"of {target.full_name} {key.sha}")
                return
            await self._store.complete(key.lab, job.id, run.claims.suite)
        except UnknownJob:
            # A run that is read again may be older than all stored jobs, which are removed after 90 days.
            if not reread:
                self._refused(key.lab, run.claims.job, "not a job of this lab")
        except NotHandedOut:
            self._refused(key.lab, run.claims.job, "not handed out")
