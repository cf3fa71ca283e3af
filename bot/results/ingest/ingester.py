"""Ingest a run: from its manifest in the bucket to its results in the store, or the reason why it is refused.

Everything here may run again at any time, after a crash, a second notification or for a rebuild. A stored run stays
unchanged, and all other decisions have the same result each time.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, cast

import structlog
from nightjar_formats.limits import MAX_FILE_BYTES, MAX_MANIFEST_BYTES
from nightjar_formats.model import RunKey
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.runs.few_tests import FEW_TESTS, is_few_tests
from nightjar_formats.runs.manifest import ArtifactEntry, FileEntry, Manifest, read_manifest
from nightjar_formats.runs.texts import FILE_MISSING, FILE_OF_OTHER_CONTENT, FILE_OF_OTHER_SIZE, FILE_TOO_LARGE

from bot.aws.bucket import Arrival, NotThere, Source
from bot.config.types import seconds
from bot.core.errors import UserError
from bot.core.untrusted.limits import OverLimit
from bot.core.untrusted.pool import Pool
from bot.core.untrusted.queue import Owner
from bot.results.compare.searching import write_in_thread
from bot.results.few_tests import FewTestsOutcome, job_of_run
from bot.results.ingest import texts
from bot.results.ingest.admission import Admissions, check_case, check_quota, lab_of
from bot.results.ingest.attempts import read_attempts, read_benchmark
from bot.results.ingest.files import FileLists
from bot.results.ingest.parse import parse_run
from bot.results.state import Admission, Run, RunState
from bot.results.store.lists.run_lists import admission_of_commit, lab_usage
from bot.results.store.tables.runs import find_run

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.results.settings.results import Lab, Results
    from bot.results.store.store import ResultsStore

MOST_NAMED = 5
"""Files whose faults a reason names; the others are counted."""
HEADS_AT_ONCE = 16

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


_Content = tuple[Owner, Sequence[tuple[str, str | None]], frozenset[str], list[BinaryIO]]
"""Whose run it is, the names and formats of its files, the files of the repository, and the open files."""


class Incomplete(Exception):
    """Files are missing, or are not those that the manifest describes; the text is for the lab."""


@dataclass(frozen=True, slots=True)
class RequestedFewTests:
    """The only tests of a run that count, and what stores their outcome and the run's suite with the job."""

    tests: tuple[str, ...]
    benchmark: Callable[[str], Awaitable[None]] | None
    """For a benchmark, what stores its report, as JSON; empty if it cannot be read."""
    complete: Callable[[FewTestsOutcome, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """One run to ingest: its place in the bucket, its repository, and the client to ask about its commit.

    `repository` is its name as app.yaml has it, whereas the folder may have other letter cases; labs test the
    `branches`.
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
    """The pull request for which we asked the lab to test this commit: its run counts even if the head has moved."""
    few_tests: RequestedFewTests | None = None
    """The job of a run of a few tests; None for any other run."""

    def file_key(self, name: str) -> str:
        """Return the key of a file in the manifest's folder."""
        return self.arrival.key.rpartition("/")[0] + "/" + name


class RunIngester:
    """Ingests runs, one after the other or several at once; `clock` returns the time in seconds since 1970."""

    def __init__(
        self,
        store: ResultsStore,
        admissions: Admissions,
        files: FileLists,
        pool: Pool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._pool = pool
        self._admissions = admissions
        self._files = files
        self._clock = clock

    async def ingest(self, request: IngestRequest, *, force: bool = False) -> Run:
        """Ingest a run, and return its new state.

        A stored run stays unchanged, and so does a refused one whose manifest has not changed. With `force`, both are
        read again, and the daily quota does not apply.

        Raises `TryAgain` or `UserError` if the bucket or GitHub does not answer; then nothing has changed.
        """
        known_run = await asyncio.to_thread(self._store.read, find_run, request.key)
        if known_run is not None and not force and _is_settled(known_run, request.arrival.version):
            return known_run
        # The time of the first notification: if each retry moved the deadline, it would never pass.
        received_at = known_run.received_at if known_run is not None else self._clock()
        run = Run(request.key, request.arrival.version, RunState.REFUSED, "", received_at)
        try:
            check_case(request.key, request.repository, request.config.prefix)
            with _adding_remedy(texts.ONCE_NAMED):
                lab = lab_of(request.key, request.config)
            _check_job(request)
            manifest_file = await request.source.read_small(request.arrival.key, MAX_MANIFEST_BYTES)
            with _adding_remedy(texts.ONCE_CORRECTED):
                manifest = read_manifest(manifest_file.body, request.key)
            # The manifest may have been overwritten since the notification.
            run = replace(run, version=manifest_file.version, claims=manifest.claims, bytes=manifest.bytes)
            claimed_pull, size = manifest.claims.pull_request, manifest.bytes
            admission = await self._admit(request, lab, claimed_pull, size, known_run, force=force)
            run = replace(run, admission=admission)
        except NotThere:
            if known_run is not None and known_run.state is RunState.WAITING:
                return await self._store_waiting(
                    known_run, texts.MANIFEST_REMOVED.format(key=request.arrival.key), seconds(request.config.deadline)
                )
            raise UserError(texts.MANIFEST_REMOVED.format(key=request.arrival.key)) from None
        except Refused as error:
            return await self._store_failure(replace(run, reason=str(error)))
        waited = known_run is not None and known_run.state is RunState.WAITING
        return await self._read_and_store(request, run, manifest, force=force, waited=waited)

    async def check(self, request: IngestRequest, claimed_pull: int | None, size: int) -> Admission | None:
        """Return the admission that a run of `size` bytes would get; `claimed_pull` is as in its manifest.

        A run of a few tests gets none. Nothing is stored or read from the bucket. Raises `Refused`, and `TryAgain` or
        gidgethub's errors.
        """
        check_case(request.key, request.repository, request.config.prefix)
        lab = lab_of(request.key, request.config)
        known_run = await asyncio.to_thread(self._store.read, find_run, request.key)
        return await self._admit(request, lab, claimed_pull, size, known_run, force=False)

    async def _admit(
        self,
        request: IngestRequest,
        lab: Lab,
        claimed_pull: int | None,
        size: int,
        known_run: Run | None,
        *,
        force: bool,
    ) -> Admission | None:
        """Return the admission of the run's commit. The first one is final, although branches and heads move.

        So a shard that arrives after the head has moved is ingested like the earlier ones. A run of a few tests has
        none: the bot handed out a job for exactly this commit, which may be on no branch that labs test.
        """
        if known_run is not None and known_run.admission is not None:
            return known_run.admission
        key = request.key
        if not force:  # a rebuild ingests the runs of months on one day
            today = datetime.fromtimestamp(self._clock(), UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            runs, sent_bytes = await asyncio.to_thread(
                self._store.read, lab_usage, key.repository, key.lab, today.timestamp()
            )
            check_quota(lab, runs, sent_bytes, size)
        if request.few_tests is not None:
            return None
        try:
            return await self._admissions.admit(
                request.github,
                key,
                request.repository_id,
                request.branches,
                claimed_pull,
                tested_pull=request.tested_pull,
                afresh=force,
            )
        except Refused:
            known_admission = await asyncio.to_thread(self._store.read, admission_of_commit, key.repository, key.sha)
            if known_admission is None or claimed_pull not in (None, known_admission.pull_request):
                raise
            return known_admission

    async def _read_and_store(
        self, request: IngestRequest, run: Run, manifest: Manifest, *, force: bool, waited: bool
    ) -> Run:
        owner = _owner_of(request.key)
        self._pool.check(owner)  # before fetching anything for a blocked owner
        names = [(entry.name, entry.format) for entry in manifest.files]
        try:
            if waited:  # otherwise each check would download all files that are there
                await _check_arrived(request, manifest.files)
            with ExitStack() as folder:
                files = await self._fetch_all(request, manifest.files, folder)
                listed = (await self._files.read(request.github, request.key.repository, request.key.sha)).paths
                limits = self._pool.limits.run
                if request.few_tests is not None:
                    return await self._complete_few_tests(request.few_tests, run, (owner, names, listed, files))
                columns, repaired = await self._pool.run(owner, limits, parse_run, names, listed, files=files)
        except Incomplete as error:
            return await self._store_waiting(run, str(error), seconds(request.config.deadline), manifest.artifacts)
        except OverLimit as error:
            reason = texts.READING_COST.format(why=error)
            return await self._store_failure(replace(run, state=RunState.INCOMPLETE, reason=reason), manifest.artifacts)
        except Refused as error:
            # The lab's results exist, but we cannot read them, so show it in the check run.
            return await self._store_failure(
                replace(run, state=RunState.INCOMPLETE, reason=str(error)), manifest.artifacts
            )
        run = replace(run, state=RunState.STORED, reason=repaired)
        try:
            await write_in_thread(
                partial(self._store.put, run, columns, replace=force, artifacts=manifest.artifacts), self._pool, owner
            )
        except TooMuch as error:
            return await self._store_failure(
                replace(run, state=RunState.INCOMPLETE, reason=str(error)), manifest.artifacts
            )
        log.info("run stored", run=run.key.folder, suite=manifest.claims.suite, tests=len(columns))
        return run

    async def _complete_few_tests(self, requested: RequestedFewTests, run: Run, content: _Content) -> Run:
        """Store the outcome of a few tests with their job, then the run, without results. Raises `Refused`."""
        owner, names, listed, files = content
        assert run.claims is not None, "the manifest was read"
        seconds_taken = _seconds_between(run.claims.started_at, run.claims.finished_at)
        stored = replace(run, state=RunState.FEW_TESTS)
        if requested.benchmark is not None:
            try:
                report = await self._pool.run(owner, self._pool.limits.run, read_benchmark, names, files=files)
            except (OverLimit, Refused) as error:
                report, stored = "", replace(run, reason=str(error))
            await requested.benchmark(report)
            return await self._store_failure(stored)
        try:
            outcome = await self._pool.run(
                owner, self._pool.limits.run, read_attempts, names, listed, requested.tests, seconds_taken, files=files
            )
        except (OverLimit, Refused) as error:
            # Another attempt would have the same files, so the job ends without any evidence.
            outcome, stored = FewTestsOutcome(seconds=seconds_taken), replace(run, reason=str(error))
        # The job comes first: if the process dies in between, the run is read again.
        await requested.complete(outcome, run.claims.suite)
        return await self._store_failure(stored)

    async def _fetch_all(
        self, request: IngestRequest, entries: Sequence[FileEntry], folder: ExitStack
    ) -> list[BinaryIO]:
        for entry in entries:
            if entry.bytes > MAX_FILE_BYTES:
                raise TooMuch(FILE_TOO_LARGE.format(name=entry.name))
        try:
            return [await self._fetch(request, entry, folder) for entry in entries]
        except Incomplete:
            await _check_arrived(request, entries)  # report every missing file, not only the first
            raise

    async def _fetch(self, request: IngestRequest, entry: FileEntry, folder: ExitStack) -> BinaryIO:
        """Download a file of the run, verify its size and digest, and return it. Raises `Incomplete`."""
        file = cast("BinaryIO", folder.enter_context(tempfile.TemporaryFile()))  # noqa: SIM115  # the stack closes it
        try:
            # At most as many bytes as the manifest says, because the daily quota counts those.
            download = await request.source.download(request.file_key(entry.name), file, limit=entry.bytes)
        except NotThere:
            raise Incomplete(FILE_MISSING.format(name=entry.name)) from None
        except TooMuch:
            raise Incomplete(texts.LARGER.format(name=entry.name, expected=entry.bytes)) from None
        if download.bytes != entry.bytes:
            raise Incomplete(FILE_OF_OTHER_SIZE.format(name=entry.name, found=download.bytes, expected=entry.bytes))
        if download.sha256 != entry.sha256:
            raise Incomplete(FILE_OF_OTHER_CONTENT.format(name=entry.name, found=download.sha256))
        file.seek(0)
        return file

    async def _store_waiting(
        self, run: Run, missing: str, deadline: float, artifacts: Sequence[ArtifactEntry] = ()
    ) -> Run:
        """Store the run as waiting; as incomplete once `deadline` seconds have passed since the first notification."""
        if self._clock() - run.received_at < deadline:
            return await self._store_failure(replace(run, state=RunState.WAITING, reason=missing), artifacts)
        reason = texts.NEVER_ARRIVED.format(missing=missing)
        return await self._store_failure(replace(run, state=RunState.INCOMPLETE, reason=reason), artifacts)

    async def _store_failure(self, run: Run, artifacts: Sequence[ArtifactEntry] = ()) -> Run:
        """Store a run without results: its state, the reason for the lab, and the artifacts, which may say more.

        A run of a few tests is stored without its suite and its admission, so that no reader takes it for a run of the
        commit, whatever became of it.
        """
        if is_few_tests(run.key.run_id):
            state = RunState.REFUSED if run.state is RunState.INCOMPLETE else run.state
            run, artifacts = replace(run, state=state, claims=None, admission=None), ()
        await write_in_thread(partial(self._store.put_state, run, artifacts=artifacts), self._pool, _owner_of(run.key))
        log.info("run not stored", run=run.key.folder, state=run.state.value, reason=run.reason)
        return run


def _owner_of(key: RunKey) -> Owner:
    return Owner(key.repository.lower(), f"{key.lab}/{key.target}")


@contextmanager
def _adding_remedy(remedy: str) -> Generator[None]:
    """Add a remedy to the text of a refusal."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{error}; {remedy}") from error


def _check_job(request: IngestRequest) -> None:
    """Raise `Refused` for a run of a few tests that no job asked for."""
    if request.few_tests is None and is_few_tests(request.key.run_id):
        raise Refused(texts.NO_SUCH_JOB.format(prefix=FEW_TESTS, job=job_of_run(request.key.run_id)))


def _is_settled(run: Run, version: str) -> bool:
    is_stored = run.state in (RunState.STORED, RunState.FEW_TESTS)
    return is_stored or (run.state is RunState.REFUSED and run.version == version)


def _seconds_between(started_at: str, finished_at: str) -> float:
    """Return the seconds between two times of a manifest; 0.0 if one is missing."""
    if not started_at or not finished_at:
        return 0.0
    return max(0.0, (datetime.fromisoformat(finished_at) - datetime.fromisoformat(started_at)).total_seconds())


async def _check_arrived(request: IngestRequest, entries: Sequence[FileEntry]) -> None:
    """Raise `Incomplete` unless all files are there, with their sizes in the manifest. Uses HEAD requests only."""
    at_once = asyncio.Semaphore(HEADS_AT_ONCE)

    async def fault_of(entry: FileEntry) -> str:
        try:
            async with at_once:
                size = (await request.source.head(request.file_key(entry.name))).bytes
        except NotThere:
            return FILE_MISSING.format(name=entry.name)
        same_size = size == entry.bytes
        return "" if same_size else FILE_OF_OTHER_SIZE.format(name=entry.name, found=size, expected=entry.bytes)

    faults = list(filter(None, await asyncio.gather(*map(fault_of, entries))))
    if faults:
        unlisted = f"; and {len(faults) - MOST_NAMED} more files" if len(faults) > MOST_NAMED else ""
        raise Incomplete("; ".join(faults[:MOST_NAMED]) + unlisted)
