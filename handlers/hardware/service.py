"""Results in one process: what handlers and effects ask of them, and what a clock and a queue set going.

What happens (a run that has appeared, a check that is due) becomes a delivery of the engine, so that it is durable,
handled in order, and seen in `nightjar deliveries`. The store blocks, so every call of it goes to a thread.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bot.aws.bucket import Arrival, Source
from bot.core.errors import UserError
from bot.results.ingest.admission import Admissions
from bot.results.ingest.files import FileLists
from bot.results.ingest.manifest import run_key
from bot.results.ingest.take import Intake, Taking
from bot.results.model import Seen, TargetKey
from bot.results.state import Admission, Run, RunState, TargetState
from handlers.ci_tests.artifacts import Artifacts

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.config.results import Results
    from bot.core.events import Repository
    from bot.core.untrusted.pool import Pool
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.results.store.store import ResultsStore
    from handlers.hardware.watch import Watch

SWITCHED_OFF = "app.yaml has no results for {repository} any more"
NO_RUN = "{key} is not laid out as a run below {prefix}"


class ResultsService:
    """The results of all repositories that have labs."""

    def __init__(
        self, store: ResultsStore, records: Records, watch: Watch, pool: Pool, now: Callable[[], float] = time.time
    ) -> None:
        self.pool = pool
        self._store = store
        self._watch = watch
        self._files = FileLists()
        self.artifacts = Artifacts(self._files, pool)
        self._intake = Intake(store, Admissions(records, now), self._files, pool, now)

    # What handlers ask

    def spelled(self, about: TargetKey) -> TargetKey:
        """Return a target with its repository's name as app.yaml has it, for so the bucket's keys have it.

        GitHub tells names in their owners' spelling, and takes them in any.
        """
        known = {name.lower(): name for name in self._watch.repositories}
        return replace(about, repository=known.get(about.repository.lower(), about.repository))

    async def targets(self, repository: str, sha: str) -> list[TargetKey]:
        """Return the targets of which something is known at a commit."""
        named = self.spelled(TargetKey(repository, "", "")).repository
        return await asyncio.to_thread(self._store.targets, named, sha)

    async def admission(self, repository: str, sha: str) -> Admission | None:
        """Return what is known of a commit that labs tested."""
        return await asyncio.to_thread(self._store.admission, repository, sha)

    async def state(self, about: TargetKey, sha: str) -> TargetState:
        """Return what is known of a commit on a target."""
        return await asyncio.to_thread(self._store.state, about, sha)

    async def baseline_candidates(self, about: TargetKey, suite: str, sha: str) -> list[str]:
        """Return the commits that another one may be compared with if they are ancestors of it."""
        return await asyncio.to_thread(self._store.baselines, about, suite, sha)

    async def seen(self, about: TargetKey, suite: str, sha: str) -> Mapping[str, Seen]:
        """Return the verdict of every test of a suite at a commit."""
        return await asyncio.to_thread(self._store.seen, about, suite, sha)

    async def durations(self, about: TargetKey, suite: str, sha: str) -> Mapping[str, float]:
        """Return how many seconds each test of a suite took at a commit, as far as its runs told it."""
        return await asyncio.to_thread(self._store.durations, about, suite, sha)

    async def files(self, github: GitHub, repository: str, sha: str) -> frozenset[str]:
        """Return the paths of all files at a commit."""
        return await self._files.of(github, repository, sha)

    # What effects do

    async def publish(self, repository: str, results: Results, name: str, document: Mapping[str, Any]) -> bool:
        """Have a JSON file beside the folders of a repository's labs say this; return whether it was written now.

        Raises `TryAgain` while the bucket is away, `UserError` where it may not be written.
        """
        named = self.spelled(TargetKey(repository, "", "")).repository
        bucket, key = self._watch.source_for(results.bucket), f"{results.prefix}{named}/{name}"
        body = json.dumps(document, indent=2).encode() + b"\n"
        return await bucket.write_over(key, body, content_type="application/json")

    async def ask_for_check(self, about: TargetKey, sha: str, repository_id: int, asked: str) -> bool:
        """Announce that a check is to be computed again; false if it was announced for the same wish, `asked`."""
        return await self._watch.announce_again(self.spelled(about), sha, repository_id, asked)

    async def take(
        self,
        arrival: Arrival,
        github: GitHub,
        repository: Repository,
        config: RepositoryConfig,
        *,
        source: Source | None = None,
        again: bool = False,
    ) -> Run:
        """Take a run out of its bucket, or another source, and announce its check where nothing more is expected.

        With `again` one that is stored or refused already is read once more, whatever the lab has sent today. Raises
        `UserError` for what is no run.
        """
        if config.results is None:
            raise UserError(SWITCHED_OFF.format(repository=repository.full_name))
        found = run_key(arrival.key, config.results.prefix)
        if found is None:
            raise UserError(NO_RUN.format(key=arrival.key, prefix=config.results.prefix))
        key = found[0]
        source = source or self._watch.source_for(arrival.bucket)
        named = self.spelled(key.about).repository
        taking = Taking(source, arrival, key, named, config.results, config.lab_branches, github, repository.id)
        run = await self._intake.take(taking, again=again)
        if run.state is RunState.STORED:
            due = await asyncio.to_thread(self._store.whole, key.about, key.sha)
            if due is not None:
                await self._watch.announce_check(due)
        return run
