"""Ingest runs by hand: those in a folder or below a prefix of the bucket, or all of the bucket again."""

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
from handlers.results import texts
from handlers.results.config import LAB_RESULTS
from handlers.results.ingest import INGEST
from handlers.results.watch import WATCH

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig
    from bot.feature import Services

KEY_PARTS = 7
"""Parts of a manifest's key below the prefix: OWNER, NAME, LAB, TARGET, SHA, RUN, manifest.json."""
ALL = 2**31 - 1
POLL = 0.5
"""Seconds between two checks of the server's progress."""

STORED, KNOWN, FAILED = "stored", "known", "failed"
GOOD = frozenset({STORED, KNOWN})


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A manifest that was found, with the key of its run (None if its path is not that of a run) and its source.

    `arrival` has the key that it would have in the bucket of app.yaml.
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
    """A source whose folder `here` is read as if it were the folder `there`; both end with a slash, or are empty."""

    def __init__(self, source: Source, here: str, there: str) -> None:
        self._source = source
        self._here = here
        self._there = there
        self.name = source.name

    def manifests(self, prefix: str) -> AsyncIterator[list[Arrival]]:
        """Yield the manifests with the keys that they have here."""
        return self._source.manifests(self._key(prefix))

    async def folders(self, prefix: str) -> list[str]:
        """Return the folders that they have here."""
        return await self._source.folders(self._key(prefix))

    async def head(self, key: str) -> ObjectHead:
        """Return an object's size and version."""
        return await self._source.head(self._key(key))

    async def read_small(self, key: str, limit: int) -> Small:
        """Return a small object's content."""
        return await self._source.read_small(self._key(key), limit)

    async def download(self, key: str, into: Writable, *, limit: int) -> Downloaded:
        """Copy an object into a file."""
        return await self._source.download(self._key(key), into, limit=limit)

    def _key(self, key: str) -> str:
        return self._here + key.removeprefix(self._there)


async def in_folder(path: Path, config: Config) -> AsyncIterator[FoundRun]:
    """Yield the runs of a folder, which is the folder of one run or holds any number of them. Raises `UserError`."""
    if path.name == MANIFEST:
        path = path.parent
    own = path.is_dir() and (path / MANIFEST).is_file()
    path = path.resolve()
    root, prefix = (path.parent, f"{path.name}/") if own else (path, "")
    async for found in _in_source(LocalFolder(root), prefix, root.parts, config):
        yield found


async def in_bucket(source: Source, prefix: str, config: Config) -> AsyncIterator[FoundRun]:
    """Yield the runs of a bucket whose keys begin with `prefix`. Raises `TryAgain` and `UserError`."""
    async for found in _in_source(source, prefix, (), config):
        yield found


async def _in_source(source: Source, prefix: str, above: Iterable[str], config: Config) -> AsyncIterator[FoundRun]:
    async with aclosing(source.manifests(prefix)) as pages:  # type: ignore[type-var]
        async for page in pages:
            for arrival in page:
                # A folder given by hand may lie below OWNER/NAME/…: the folders above it complete the key.
                parts = (*above, *arrival.key.split("/"))[-KEY_PARTS:]
                found = run_key("/".join(parts), "")
                if found is None:
                    yield FoundRun(arrival.key, arrival, None, source)
                    continue
                repository = config.repository(found[0].repository)
                results = repository.of(LAB_RESULTS) if repository is not None else None
                there = results.prefix if results is not None else ""
                moved = MovedSource(source, arrival.key.removesuffix(MANIFEST), f"{there}{found[0].folder}")
                key = f"{there}{found[0].folder}{MANIFEST}"
                yield FoundRun(arrival.key, Arrival(arrival.bucket, key, arrival.version), found[0], moved)


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

    async def ingest(self, found: FoundRun) -> IngestOutcome:
        """Ingest a run unless it is stored, even if it was refused or waits for files. No daily quota applies."""
        before = await asyncio.to_thread(self._store.run, found.key) if found.key is not None else None
        if before is not None and before.state is RunState.STORED:
            return IngestOutcome(found.place, found.key, KNOWN)
        return await self._take(found)

    async def rebuild(self, found: FoundRun) -> IngestOutcome:
        """Read a run again. Refused runs stay refused, and admitted ones stay admitted."""
        # The head may have moved since: a new decision would differ (docs/decisions/run-admission.md).
        before = await asyncio.to_thread(self._store.run, found.key) if found.key is not None else None
        if before is not None and before.state is RunState.REFUSED:
            return IngestOutcome(found.place, found.key, RunState.REFUSED.value, before.reason)
        outcome = await self._take(found)
        # A run that can no longer be read does not replace its stored results, which are still good.
        if before is not None and before.state is RunState.STORED and outcome.state != STORED:
            return IngestOutcome(found.place, found.key, KNOWN, texts.STAYS_STORED.format(reason=outcome.reason))
        return outcome

    async def _take(self, found: FoundRun) -> IngestOutcome:
        if found.key is None:
            return IngestOutcome(found.place, None, RunState.REFUSED.value, texts.NOT_A_RUN)
        config = self._config.repository(found.key.repository)
        if config is None or config.of(LAB_RESULTS) is None:
            reason = texts.NOT_OURS.format(repository=found.key.repository)
            return IngestOutcome(found.place, found.key, RunState.REFUSED.value, reason)
        try:
            return await self._taken(found, found.key, config)
        except (TryAgain, UserError) as error:
            return IngestOutcome(found.place, found.key, FAILED, str(error))
        except GitHubException as error:
            return IngestOutcome(found.place, found.key, FAILED, texts.GITHUB_ERROR.format(error=error))

    async def _taken(self, found: FoundRun, key: RunKey, config: RepositoryConfig) -> IngestOutcome:
        github = await self._github_for(key.repository)
        repository = Repository(await self._watch.repository_id(key.repository), key.repository, None)
        take = self._ingest.take
        run = await take(found.arrival, github, repository, config, source=found.source, again=True)
        return IngestOutcome(found.place, key, run.state.value, run.reason)

    async def missing(self, repository: str, there: Collection[RunKey]) -> list[RunKey]:
        """Return the runs of a repository that are stored, and were no longer found in the bucket."""
        runs = await asyncio.to_thread(self._store.runs, repository, state=RunState.STORED, limit=ALL)
        return [run.key for run in runs if run.key not in there]

    async def announce(self, keys: Iterable[RunKey]) -> None:
        """Request the check runs of these runs' commits now, without waiting for more results."""
        wanted = {(key.about, key.sha) for key in keys}
        for repository in {about.repository for about, _ in wanted}:
            # No time to settle, so all pending checks are scheduled, also those of this second. Without a deadline, no
            # check counts as over just because its results are old.
            scheduled_checks = await asyncio.to_thread(
                self._store.scheduled_checks, repository, self._now() + 1, 0.0, math.inf
            )
            for one in scheduled_checks:
                if (one.about, one.sha) in wanted:
                    await self._watch.announce_check(one)

    async def published(self, keys: Collection[RunKey], patience: float) -> bool:
        """Wait up to `patience` seconds for the check runs of these runs' commits; return whether they are written."""
        end = time.monotonic() + patience
        while await self._unsettled(keys):
            if time.monotonic() > end:
                return False
            await asyncio.sleep(POLL)
        return True

    async def _unsettled(self, keys: Collection[RunKey]) -> bool:
        wanted = {(key.repository, key.lab, key.target, key.sha) for key in keys}
        # Some revisions of each may have been announced meanwhile.
        records = await self._journal.recent(4 * len(wanted) + 100)
        waiting = [record.guid for record in records if record.event == CHECK_EVENT.name and not record.settled]
        payloads = [payload for guid in waiting if (payload := await self._journal.payload(guid)) is not None]
        pending_checks = map(check_event_in, payloads)
        return any(
            (
                scheduled_checks.about.repository,
                scheduled_checks.about.lab,
                scheduled_checks.about.target,
                scheduled_checks.sha,
            )
            in wanted
            for scheduled_checks in pending_checks
        )
