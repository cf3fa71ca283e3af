"""Ingest a run: from its manifest in the bucket to its results in the store, or the reason why it is refused.

Everything here may run again at any time, after a crash, a second notification or for a rebuild. A stored run stays
unchanged, and all other decisions have the same result each time.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, cast

import structlog
from nightjar_formats.limits import MAX_FILE_BYTES, MAX_MANIFEST_BYTES
from nightjar_formats.model import RunKey
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.runs.manifest import FileEntry, Manifest, read_manifest
from nightjar_formats.runs.texts import FILE_MISSING, FILE_OF_OTHER_CONTENT, FILE_OF_OTHER_SIZE, FILE_TOO_LARGE

from bot.aws.bucket import Arrival, NotThere, Source
from bot.config.types import seconds
from bot.core.errors import UserError
from bot.core.untrusted.limits import OverLimit
from bot.core.untrusted.pool import Pool
from bot.core.untrusted.queue import Owner
from bot.results.compare.searching import written_apart
from bot.results.ingest import texts
from bot.results.ingest.admission import Admissions, check_quota, lab_of
from bot.results.ingest.files import FileLists
from bot.results.ingest.parse import parse_run
from bot.results.state import Admission, Run, RunState

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.results.settings.results import Results
    from bot.results.store.store import ResultsStore

MOST_NAMED = 5
"""Files whose faults a reason names; the others are counted."""
HEADS_AT_ONCE = 16

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Incomplete(Exception):
    """Files are missing, or are not those that the manifest describes; the text is for the lab."""


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """One run to ingest: its place in the bucket, its owner, and the source to ask about its commit.

    `repository` is its name as app.yaml has it, which the folder may spell otherwise; `branches` are those that labs
    test.
    """

    source: Source
    arrival: Arrival
    key: RunKey
    repository: str
    config: Results
    branches: Sequence[str]
    github: GitHub
    repository_id: int
    tested_pull: int | None = None
    """The pull request for which we asked the lab to test this commit: then it may be tested, though the head moved."""

    def file_key(self, name: str) -> str:
        """Return the key of a file in the manifest's folder."""
        return self.arrival.key.rpartition("/")[0] + "/" + name


class RunIngester:
    """Takes runs, one after the other or several at once; `now` is the time in seconds since 1970."""

    def __init__(
        self,
        store: ResultsStore,
        admissions: Admissions,
        files: FileLists,
        pool: Pool,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._pool = pool
        self._admissions = admissions
        self._files = files
        self._now = now

    async def take(self, request: IngestRequest, *, again: bool = False) -> Run:
        """Ingest a run, and return its new state.

        A stored run stays unchanged, and so does a refused one whose manifest has not changed. With `again`, both are
        read again, and the daily quota does not apply.

        Raises `TryAgain` or `UserError` if the bucket or GitHub does not answer; then nothing has changed.
        """
        before = await asyncio.to_thread(self._store.run, request.key)
        if before is not None and not again and _is_settled(before, request.arrival.version):
            return before
        # Of the first notification: a deadline that each retry moved would never come.
        since = before.received_at if before is not None else self._now()
        run = Run(request.key, request.arrival.version, RunState.REFUSED, "", since)
        try:
            _check_case(request)
            with _adding(texts.ONCE_NAMED):
                lab_of(request.key, request.config)
            small = await request.source.read_small(request.arrival.key, MAX_MANIFEST_BYTES)
            with _adding(texts.ONCE_CORRECTED):
                manifest = read_manifest(small.body, request.key)
            # The manifest may have been written once more since the notification.
            run = replace(run, version=small.version, claims=manifest.claims, bytes=manifest.bytes)
            run = replace(run, admission=await self._admit(request, manifest, before, again=again))
        except NotThere:
            if before is not None and before.state is RunState.WAITING:
                return await self._wait(
                    before, texts.MANIFEST_REMOVED.format(key=request.arrival.key), seconds(request.config.deadline)
                )
            raise UserError(texts.MANIFEST_REMOVED.format(key=request.arrival.key)) from None
        except Refused as error:
            return await self._note(replace(run, reason=str(error)))
        waited = before is not None and before.state is RunState.WAITING
        return await self._read(request, run, manifest, again=again, waited=waited)

    async def _admit(self, request: IngestRequest, manifest: Manifest, before: Run | None, *, again: bool) -> Admission:
        """Return the admission of the run's commit. The first one is final, although branches and heads move.

        So a shard that arrives after the head has moved is ingested like the earlier ones.
        """
        if before is not None and before.admission is not None:
            return before.admission
        key, claimed = request.key, manifest.claims.pull_request
        lab = lab_of(key, request.config)
        if not again:  # a rebuild reads months of a bucket on one day
            today = datetime.fromtimestamp(self._now(), UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            usage = partial(self._store.usage, key.repository, key.lab, today.timestamp())
            runs, sent = await asyncio.to_thread(usage)
            check_quota(lab, runs, sent, manifest.bytes)
        try:
            return await self._admissions.admit(
                request.github,
                key,
                request.repository_id,
                request.branches,
                claimed,
                asked_for=request.tested_pull,
                afresh=again,
            )
        except Refused:
            known = await asyncio.to_thread(self._store.admission, key.repository, key.sha)
            if known is None or claimed not in (None, known.pull_request):
                raise
            return known

    async def _read(self, request: IngestRequest, run: Run, manifest: Manifest, *, again: bool, waited: bool) -> Run:
        owner = _owner_of(request.key)
        self._pool.check(owner)  # before anything is fetched for it
        names = [(entry.name, entry.format) for entry in manifest.files]
        try:
            if waited:  # and each check would read all that is there
                await _check_arrived(request, manifest.files)
            with ExitStack() as folder:
                files = await self._fetch_all(request, manifest.files, folder)
                listed = await self._files.of(request.github, request.key.repository, request.key.sha)
                limits = self._pool.limits.run
                columns, repaired = await self._pool.run(owner, limits, parse_run, names, listed, files=files)
        except Incomplete as error:
            return await self._wait(run, str(error), seconds(request.config.deadline))
        except OverLimit as error:
            reason = texts.READING_COST.format(why=error)
            return await self._note(replace(run, state=RunState.INCOMPLETE, reason=reason))
        except Refused as error:
            # The lab's results exist, and nobody can read them: that is to be seen, not passed over.
            return await self._note(replace(run, state=RunState.INCOMPLETE, reason=str(error)))
        run = replace(run, state=RunState.STORED, reason=repaired)
        try:
            await written_apart(partial(self._store.put, run, columns, replace=again), self._pool, owner)
        except TooMuch as error:
            return await self._note(replace(run, state=RunState.INCOMPLETE, reason=str(error)))
        log.info("run stored", run=run.key.folder, suite=manifest.claims.suite, tests=len(columns))
        return run

    async def _fetch_all(
        self, request: IngestRequest, entries: Sequence[FileEntry], folder: ExitStack
    ) -> list[BinaryIO]:
        for entry in entries:
            if entry.bytes > MAX_FILE_BYTES:
                raise TooMuch(FILE_TOO_LARGE.format(name=entry.name))
        try:
            return [await self._fetch(request, entry, folder) for entry in entries]
        except Incomplete:
            await _check_arrived(request, entries)  # of what is missing the lab is to know all
            raise

    async def _fetch(self, request: IngestRequest, entry: FileEntry, folder: ExitStack) -> BinaryIO:
        """Return a file of the run after its size and digest were verified; it is not parsed before."""
        file = cast("BinaryIO", folder.enter_context(tempfile.TemporaryFile()))  # noqa: SIM115  # the stack closes it
        try:
            # No more than the manifest says, for that is what the day's quota counts.
            got = await request.source.download(request.file_key(entry.name), file, limit=entry.bytes)
        except NotThere:
            raise Incomplete(FILE_MISSING.format(name=entry.name)) from None
        except TooMuch:
            raise Incomplete(texts.LARGER.format(name=entry.name, expected=entry.bytes)) from None
        if got.bytes != entry.bytes:
            raise Incomplete(FILE_OF_OTHER_SIZE.format(name=entry.name, found=got.bytes, expected=entry.bytes))
        if got.sha256 != entry.sha256:
            raise Incomplete(FILE_OF_OTHER_CONTENT.format(name=entry.name, found=got.sha256))
        file.seek(0)
        return file

    async def _wait(self, run: Run, missing: str, deadline: float) -> Run:
        if self._now() - run.received_at < deadline:
            return await self._note(replace(run, state=RunState.WAITING, reason=missing))
        reason = texts.NEVER_ARRIVED.format(missing=missing)
        return await self._note(replace(run, state=RunState.INCOMPLETE, reason=reason))

    async def _note(self, run: Run) -> Run:
        await written_apart(partial(self._store.note, run), self._pool, _owner_of(run.key))
        log.info("run not stored", run=run.key.folder, state=run.state.value, reason=run.reason)
        return run


def _owner_of(key: RunKey) -> Owner:
    return Owner(key.repository.lower(), f"{key.lab}/{key.target}")


@contextmanager
def _adding(remedy: str) -> Generator[None]:
    """Return a further remedy for a refusal."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{error}; {remedy}") from error


def _check_case(request: IngestRequest) -> None:
    # GitHub ignores the case of a name and folders do not: there would be two histories, each with half of the runs.
    if request.key.repository != request.repository:
        found, prefix = request.key.repository, request.config.prefix
        raise Refused(texts.OTHER_CASE.format(found=found, repository=request.repository, prefix=prefix))


def _is_settled(run: Run, version: str) -> bool:
    return run.state is RunState.STORED or (run.state is RunState.REFUSED and run.version == version)


async def _check_arrived(request: IngestRequest, entries: Sequence[FileEntry]) -> None:
    """Raise `Incomplete` unless all files are there in the sizes that the manifest gives; nothing is read for that."""
    at_once = asyncio.Semaphore(HEADS_AT_ONCE)

    async def fault(entry: FileEntry) -> str:
        try:
            async with at_once:
                found = (await request.source.head(request.file_key(entry.name))).bytes
        except NotThere:
            return FILE_MISSING.format(name=entry.name)
        same = found == entry.bytes
        return "" if same else FILE_OF_OTHER_SIZE.format(name=entry.name, found=found, expected=entry.bytes)

    faults = list(filter(None, await asyncio.gather(*map(fault, entries))))
    if faults:
        more = f"; and {len(faults) - MOST_NAMED} more files" if len(faults) > MOST_NAMED else ""
        raise Incomplete("; ".join(faults[:MOST_NAMED]) + more)
