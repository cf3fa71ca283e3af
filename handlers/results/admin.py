"""Ingest runs for an operator: those in a folder or below a prefix of the bucket, or all of the bucket again."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gidgethub import GitHubException
from nightjar_formats.model import MANIFEST, RunKey
from nightjar_formats.runs.manifest import run_key

from bot.aws.bucket import Arrival, Downloaded, ObjectHead, Small, Source, Writable
from bot.aws.folder import LocalFolder
from bot.core.errors import TryAgain, UserError
from bot.core.events import Repository
from bot.results.deliveries import CHECK_EVENT, check_event_in
from bot.results.service import RESULTS
from bot.results.state import RunState
from bot.results.store.lists.run_lists import list_runs
from bot.results.store.tables.runs import find_run
from bot.results.store.write.pending_checks import scheduled_checks
from handlers.results import texts
from handlers.results.config import LAB_RESULTS
from handlers.results.ingest import INGEST
from handlers.results.watch import WATCH

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig
    from bot.feature import Services

KEY_SEGMENTS = 7
"""Segments of a manifest's key below the prefix: OWNER, NAME, LAB, TARGET, SHA, RUN, manifest.json."""
NO_LIMIT = 2**31 - 1
"""The limit of a query for all rows."""
POLL = 0.5
"""Seconds between two checks of the server's progress."""

STORED, KNOWN, FAILED = "stored", "known", "failed"
GOOD = frozenset({STORED, KNOWN})


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A manifest in a folder or a bucket, with the key of its run (None if its path is not the path of a run).

    `place` is its path for people. `arrival` has the key that it would have in the bucket of app.yaml; `source` reads
    the run's files under such keys.
    """

    place: str
    arrival: Arrival
    key: RunKey | None
    source: Source


@dataclass(frozen=True, slots=True)
class IngestOutcome:
    """The result for a run: `state` is the state of the run, `known` if it was stored before, or `failed`."""

    place: str
    key: RunKey | None
    state: str
    reason: str = ""

    @property
    def good(self) -> bool:
        """Whether the store has the results that are in the bucket."""
        return self.state == STORED or (self.state == KNOWN and not self.reason)


class MovedSource:
    """A source whose folder `actual` is read under the name `apparent`; both end with a slash, or are empty.

    For example, with the folders `run-1/` and `results/octocat/compiler/lab/gpu/SHA/run-1/`, reading
    `results/octocat/compiler/lab/gpu/SHA/run-1/junit.xml` returns the content of `run-1/junit.xml`.
    """

    def __init__(self, source: Source, actual: str, apparent: str) -> None:
        self._source = source
        self._actual = actual
        self._apparent = apparent
        self.name = source.name

    def manifests(self, prefix: str) -> AsyncIterator[list[Arrival]]:
        """Yield the manifests, with their keys in the underlying source."""
        return self._source.manifests(self._actual_key(prefix))

    async def folders(self, prefix: str) -> list[str]:
        """Return the folders, with their names in the underlying source."""
        return await self._source.folders(self._actual_key(prefix))

    async def head(self, key: str) -> ObjectHead:
        """Return an object's size and version."""
        return await self._source.head(self._actual_key(key))

    async def read_small(self, key: str, limit: int) -> Small:
        """Return a small object's content."""
        return await self._source.read_small(self._actual_key(key), limit)

    async def download(self, key: str, into: Writable, *, limit: int) -> Downloaded:
        """Copy an object into a file."""
        return await self._source.download(self._actual_key(key), into, limit=limit)

    def _actual_key(self, key: str) -> str:
        return self._actual + key.removeprefix(self._apparent)


async def in_folder(path: Path, config: Config) -> AsyncIterator[FoundRun]:
    """Yield the runs below a folder, or the run whose own folder it is. Raises `UserError`."""
    if path.name == MANIFEST:
        path = path.parent
    is_run_folder = path.is_dir() and (path / MANIFEST).is_file()
    path = path.resolve()
    root, prefix = (path.parent, f"{path.name}/") if is_run_folder else (path, "")
    async for run in _runs_in_source(LocalFolder(root), prefix, root.parts, config):
        yield run


async def in_bucket(source: Source, prefix: str, config: Config) -> AsyncIterator[FoundRun]:
    """Yield the runs of a bucket whose keys begin with `prefix`. Raises `TryAgain` and `UserError`."""
    async for run in _runs_in_source(source, prefix, (), config):
        yield run


async def _runs_in_source(
    source: Source, prefix: str, parent_folders: Iterable[str], config: Config
) -> AsyncIterator[FoundRun]:
    async with aclosing(source.manifests(prefix)) as pages:  # type: ignore[type-var]
        async for page in pages:
            for arrival in page:
                # The operator's folder may lie below OWNER/NAME/…: its parent folders then complete the key.
                segments = (*parent_folders, *arrival.key.split("/"))[-KEY_SEGMENTS:]
                parsed = run_key("/".join(segments), "")
                if parsed is None:
                    yield FoundRun(arrival.key, arrival, None, source)
                    continue
                key = parsed[0]
                repository = config.repository(key.repository)
                results = repository.of(LAB_RESULTS) if repository is not None else None
                configured_prefix = results.prefix if results is not None else ""
                folder = f"{configured_prefix}{key.folder}"
                moved = MovedSource(source, arrival.key.removesuffix(MANIFEST), folder)
                expected = Arrival(arrival.bucket, f"{folder}{MANIFEST}", arrival.version)
                yield FoundRun(arrival.key, expected, key, moved)


class ResultsAdmin:
    """Ingests runs in this process, while a server may run."""

    def __init__(self, services: Services) -> None:
        self._config = services.config
        self._store = services.part(RESULTS).store
        self._watch = services.part(WATCH)
        self._ingest = services.part(INGEST)
        self._github_for = services.github_for
        self._journal = services.journal
        self._now = services.now

    async def ingest(self, run: FoundRun) -> IngestOutcome:
        """Ingest a run unless it is stored, even if it was refused or waits for files. No daily quota applies."""
        stored = await asyncio.to_thread(self._store.read, find_run, run.key) if run.key is not None else None
        if stored is not None and stored.state is RunState.STORED:
            return IngestOutcome(run.place, run.key, KNOWN)
        return await self._ingest_now(run)

    async def rebuild(self, run: FoundRun) -> IngestOutcome:
        """Read a run again. Refused runs stay refused, and admitted ones stay admitted."""
        # The head may have moved since: a new decision would differ (docs/decisions/run-admission.md).
        stored = await asyncio.to_thread(self._store.read, find_run, run.key) if run.key is not None else None
        if stored is not None and stored.state is RunState.REFUSED:
            return IngestOutcome(run.place, run.key, RunState.REFUSED.value, stored.reason)
        outcome = await self._ingest_now(run)
        # A run that can no longer be read does not replace its stored results, which are still good.
        if stored is not None and stored.state is RunState.STORED and outcome.state != STORED:
            return IngestOutcome(run.place, run.key, KNOWN, texts.STAYS_STORED.format(reason=outcome.reason))
        return outcome

    async def _ingest_now(self, run: FoundRun) -> IngestOutcome:
        """Ingest a run, whether or not it was read before. All errors become outcomes."""
        if run.key is None:
            return IngestOutcome(run.place, None, RunState.REFUSED.value, texts.NOT_A_RUN)
        config = self._config.repository(run.key.repository)
        if config is None or config.of(LAB_RESULTS) is None:
            reason = texts.NOT_OURS.format(repository=run.key.repository)
            return IngestOutcome(run.place, run.key, RunState.REFUSED.value, reason)
        try:
            return await self._ingest_configured(run, run.key, config)
        except (TryAgain, UserError) as error:
            return IngestOutcome(run.place, run.key, FAILED, str(error))
        except GitHubException as error:
            return IngestOutcome(run.place, run.key, FAILED, texts.GITHUB_ERROR.format(error=error))

    async def _ingest_configured(self, run: FoundRun, key: RunKey, config: RepositoryConfig) -> IngestOutcome:
        github = await self._github_for(key.repository)
        repository = Repository(await self._watch.repository_id(key.repository), key.repository, None)
        ingested = await self._ingest.ingest(run.arrival, github, repository, config, source=run.source, reread=True)
        return IngestOutcome(run.place, key, ingested.state.value, ingested.reason)

    async def missing(self, repository: str, present: Collection[RunKey]) -> list[RunKey]:
        """Return the stored runs of a repository that are not among those `present` in the bucket."""
        runs = await asyncio.to_thread(self._store.read, list_runs, repository, state=RunState.STORED, limit=NO_LIMIT)
        return [run.key for run in runs if run.key not in present]

    async def announce(self, keys: Iterable[RunKey]) -> None:
        """Request the check runs of these runs' commits now, without waiting for more results."""
        commits = {(key.about, key.sha) for key in keys}
        for repository in {target.repository for target, _ in commits}:
            # The settle time is zero, so the store returns all pending checks, even from this second. The deadline is
            # infinite, so no check counts as over just because its results are old.
            pending_checks = await asyncio.to_thread(
                self._store.read, scheduled_checks, repository, self._now() + 1, 0.0, math.inf
            )
            for pending_check in pending_checks:
                if (pending_check.target, pending_check.sha) in commits:
                    await self._watch.announce_check(pending_check)

    async def published(self, keys: Collection[RunKey], patience: float) -> bool:
        """Wait up to `patience` seconds for the check runs of these runs' commits; return whether they are written."""
        end = time.monotonic() + patience
        while await self._unsettled(keys):
            if time.monotonic() > end:
                return False
            await asyncio.sleep(POLL)
        return True

    async def _unsettled(self, keys: Collection[RunKey]) -> bool:
        """Return whether a check event of one of these runs' commits is not handled yet."""
        commits = {(key.about, key.sha) for key in keys}
        # The bot may have announced several revisions of each check meanwhile.
        deliveries = await self._journal.recent(4 * len(commits) + 100)
        guids = [
            delivery.guid for delivery in deliveries if delivery.event == CHECK_EVENT.name and not delivery.settled
        ]
        payloads = [payload for guid in guids if (payload := await self._journal.payload(guid)) is not None]
        check_events = map(check_event_in, payloads)
        return any((check_event.target, check_event.sha) in commits for check_event in check_events)
