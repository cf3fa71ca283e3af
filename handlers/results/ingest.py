"""Ingest runs of labs from the bucket into the store, and announce their check runs.

A new run, and a pending check run, each become a delivery of the engine, so that they are durable, handled in order,
and shown by `nightjar deliveries`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from nightjar_formats.model import MANIFEST, RunKey, TargetKey
from nightjar_formats.runs.few_tests import is_few_tests
from nightjar_formats.runs.manifest import run_key

from bot.aws.bucket import Arrival, Source
from bot.core.errors import UserError
from bot.core.parts import PartKey
from bot.results.ingest.admission import Admissions, check_case, lab_of
from bot.results.ingest.ingester import IngestRequest, RunIngester
from bot.results.state import Admission, Run, RunState
from bot.results.store.write.pending_checks import complete_check
from handlers.results import texts
from handlers.results.config import LAB_RESULTS, TESTED_BRANCH

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Repository
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.results.service import ResultsService
    from handlers.results.requested_tests import RequestedTests
    from handlers.results.watch import Watch


class IngestService:
    """Ingests runs of all repositories that have labs."""

    def __init__(
        self,
        results: ResultsService,
        records: Records,
        watch: Watch,
        requested_tests: Callable[[], RequestedTests],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._requested_tests = requested_tests
        self._results = results
        self._watch = watch
        self._ingester = RunIngester(results.store, Admissions(records, clock), results.file_lists, results.pool, clock)

    async def ingest(
        self,
        arrival: Arrival,
        github: GitHub,
        repository: Repository,
        config: RepositoryConfig,
        *,
        source: Source | None = None,
        reread: bool = False,
    ) -> Run:
        """Ingest a run from its bucket, or another source, and announce its check run if no more results are expected.

        With `reread`, a stored or refused run is read again, without the daily quota. Raises `UserError` if the source
        is not a run.
        """
        request = await self._request(arrival, github, repository, config, source)
        key = request.key
        run = await self._ingester.ingest(request, force=reread)
        await self._requested_tests().complete(run, repository, reread=reread)
        # If no suite is missing, the check run need not wait for `results.settle`.
        if run.state is RunState.STORED:
            pending_check = await self._results.read(complete_check, key, key.sha)
            if pending_check is not None:
                await self._watch.announce_check(pending_check)
        return run

    async def check(
        self,
        key: RunKey,
        github: GitHub,
        repository: Repository,
        config: RepositoryConfig,
        *,
        pull_request: int | None = None,
        size: int = 0,
    ) -> Admission | None:
        """Decide, before a run is uploaded or even tested, whether it would be admitted with `size` bytes.

        Raises `Refused` with the reason, `UserError` without results in app.yaml, `TryAgain` and GitHub's errors.
        """
        arrival = self.arrival_of(key, config, "")
        request = await self._request(arrival, github, repository, config, None)
        return await self._ingester.check(request, pull_request, size)

    def check_names(self, key: RunKey, config: RepositoryConfig) -> None:
        """Raise `Refused` unless app.yaml has the run's lab and target for a repository of exactly this name."""
        results = config.of(LAB_RESULTS)
        assert results is not None, "the lab has results"
        check_case(key, self._results.canonical_name(key.repository), results.prefix)
        lab_of(key, results)

    @staticmethod
    def arrival_of(key: RunKey, config: RepositoryConfig, version: str) -> Arrival:
        """Return the arrival of a run's manifest of a version. Raises `UserError` without results in app.yaml."""
        results = config.of(LAB_RESULTS)
        if results is None:
            raise UserError(texts.RESULTS_OFF.format(repository=key.repository))
        return Arrival(results.store, f"{results.prefix}{key.folder}{MANIFEST}", version)

    async def _request(
        self,
        arrival: Arrival,
        github: GitHub,
        repository: Repository,
        config: RepositoryConfig,
        source: Source | None,
    ) -> IngestRequest:
        """Return what the ingester needs for a run. Raises `UserError` if the arrival is not of a run."""
        results = config.of(LAB_RESULTS)
        if results is None:
            raise UserError(texts.RESULTS_OFF.format(repository=repository.full_name))
        parsed = run_key(arrival.key, results.prefix)
        if parsed is None:
            raise UserError(texts.NOT_A_RUN_KEY.format(key=arrival.key, prefix=results.prefix))
        key = parsed[0]
        canonical_name = self._results.canonical_name(key.repository)
        target = TargetKey(canonical_name, key.lab, key.target)
        pull_request = await self._requested_tests().pull_request_of(repository.id, target, key.sha)
        few_tests = None
        if is_few_tests(key.run_id):
            few_tests = await self._requested_tests().few_tests_of(key, repository)
        return IngestRequest(
            source or self._results.source_for(arrival.bucket),
            arrival,
            key,
            canonical_name,
            results,
            config.tested_branches or (TESTED_BRANCH,) if results.branches is None else results.branches,
            github,
            repository.id,
            pull_request,
            few_tests,
        )


INGEST = PartKey[IngestService]("ingest")
