"""Ingest runs of labs from the bucket into the store, and announce their check runs.

A new run, and a pending check run, each become a delivery of the engine, so that they are durable, handled in order,
and shown by `nightjar deliveries`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from nightjar_formats.runs.manifest import run_key

from bot.aws.bucket import Arrival, Source
from bot.core.errors import UserError
from bot.core.parts import PartKey
from bot.results.ingest.admission import Admissions
from bot.results.ingest.ingester import IngestRequest, RunIngester
from bot.results.state import Run, RunState
from bot.results.store.write.pending_checks import complete_check
from handlers.results import texts
from handlers.results.config import LAB_RESULTS, lab_branches

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
        results = config.of(LAB_RESULTS)
        if results is None:
            raise UserError(texts.RESULTS_OFF.format(repository=repository.full_name))
        parsed = run_key(arrival.key, results.prefix)
        if parsed is None:
            raise UserError(texts.NOT_A_RUN_KEY.format(key=arrival.key, prefix=results.prefix))
        key = parsed[0]
        source = source or self._results.source_for(arrival.bucket)
        canonical_name = self._results.canonical_name(key.about.repository)
        pull_request = await self._requested_tests().pull_request_of(
            repository.id, replace(key.about, repository=canonical_name), key.sha
        )
        request = IngestRequest(
            source,
            arrival,
            key,
            canonical_name,
            results,
            lab_branches(config),
            github,
            repository.id,
            pull_request,
        )
        run = await self._ingester.ingest(request, force=reread)
        await self._requested_tests().complete(run, repository, reread=reread)
        # If no suite is missing, the check run need not wait for `results.settle`.
        if run.state is RunState.STORED:
            pending_check = await self._results.read(complete_check, key.about, key.sha)
            if pending_check is not None:
                await self._watch.announce_check(pending_check)
        return run


INGEST = PartKey[IngestService]("ingest")
