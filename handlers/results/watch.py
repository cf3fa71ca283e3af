"""Announce new runs, runs that still wait for files, and pending check runs, for the timer and the queues.

Each announcement is a delivery whose GUID names the run or the check run. So any number of replicas may announce it,
and one handles it, once.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog
from nightjar_formats.model import MANIFEST, RunKey, TargetKey
from nightjar_formats.runs.manifest import run_key

from bot.aws.bucket import Arrival, Bucket, BucketFolder, Source, pause_after
from bot.config.types import seconds
from bot.core.events import Repository
from bot.core.parts import PartKey
from bot.engine.internal import announce
from bot.engine.records import Record
from bot.engine.sweeps import HOUR, LastRun, hours_between, last_run, only_logged
from bot.github.pull_heads import find_repository_id
from bot.results.deliveries import CHECK_EVENT, RUN_ARRIVED, CheckEvent, RunArrived, check_event_in
from bot.results.state import PendingCheck
from handlers.results import texts
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.jobs.journal import Journal
    from bot.engine.processor import Announce
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.results.settings.results import Results
    from bot.results.store.store import ResultsStore

TICK = "* * * * * */15"
"""When `tick` runs; the last field counts seconds."""
FIRST_CHECK = 30.0
"""Seconds after which the bot checks a run with missing files again; each later pause is twice as long."""

UNKNOWN_REPOSITORY_ID = 0
"""Stands for repositories outside app.yaml: the bot does not ask GitHub for their IDs."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Listed:
    """Times of the last listing of a repository's results (`at`) and of the `next`, in seconds since 1970.

    `searched` is when the bot last searched for folders whose letter case differs from the name in app.yaml.
    """

    at: float = 0.0
    next: float = 0.0
    searched: float = 0.0


@dataclass(frozen=True, slots=True)
class FailedChecks:
    """The time of the next search for failed check runs, in seconds since 1970, and the newest failed `job`."""

    next: float = 0.0
    job: int = 0


LISTED = Record("results-listed", 1, Listed, "when the results of a repository were listed", days=None)
FAILED_CHECKS = Record("results-failed", 1, FailedChecks, "the failed check runs that were tried again", days=None)


@dataclass(frozen=True, slots=True)
class ResultsHealth:
    """Seconds since buckets were listed and runs stored, and how many runs wait for their files."""

    listed: dict[str, float] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    newest: dict[TargetKey, float] = field(default_factory=dict)


RepositoryWork = Callable[[str, "Results"], Awaitable[int]]
"""Work of each tick for a repository: gets `owner/name` and its `results` of app.yaml.

Returns how many deliveries it announced.
"""


class Watch:
    """Watches the results of all repositories that have labs, and announces what must be handled.

    `github_for` gives a client for `owner/name`, `source_for` the bucket of a name, `clock` seconds since 1970.
    """

    def __init__(
        self,
        config: Config,
        store: ResultsStore,
        records: Records,
        journal: Journal,
        *,
        accept: Announce,
        github_for: Callable[[str], Awaitable[GitHub]],
        source_for: Callable[[str], Bucket],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._store = store
        self._records = records
        self._journal = journal
        self._accept = accept
        self._github_for = github_for
        self.source_for = source_for
        self._clock = clock
        self._began = clock()
        self._work: list[RepositoryWork] = [
            self._list_bucket,
            self._recheck_waiting_runs,
            self._retry_failed_checks,
            self._announce_checks,
        ]

    @property
    def _watched(self) -> dict[str, Results]:
        """Return the repositories that have labs, each with its settings."""
        return dict(self._config.configured.with_feature(LAB_RESULTS))

    @property
    def buckets(self) -> list[Results]:
        """Return the settings with labs in app.yaml, those of patterns too."""
        entries = self._config.configured.entries.values()
        return [results for settings in entries if (results := settings.of(LAB_RESULTS)) is not None]

    @property
    def queues(self) -> dict[str, list[BucketFolder]]:
        """Return the queues to listen to, each with the folders of buckets that it may announce."""
        queues: dict[str, list[BucketFolder]] = {}
        for results in self.buckets:
            if results.queue is not None:
                queues.setdefault(results.queue, []).append(BucketFolder(results.bucket, results.prefix))
        return queues

    def add_work(self, work: RepositoryWork) -> None:
        """Let `tick` do the work of another feature too, after its own."""
        self._work.append(work)

    async def health(self) -> ResultsHealth:
        """Return how current the results of each repository are.

        If something has never happened, its age counts from the start of this process, so that an alarm on it fires.
        """
        moment, health = self._clock(), ResultsHealth()
        keys = {repository: LISTED.of(repository.lower()) for repository in self._watched}
        listed = await self._records.get_some(keys.values())
        waiting = await asyncio.to_thread(self._store.waiting_counts)
        newest = await asyncio.to_thread(self._store.newest, *self._watched)
        for repository, results in self._watched.items():
            listing = listed.get(keys[repository].name)
            health.listed[repository] = moment - (listing.at if listing else self._began)
            health.waiting[repository] = waiting.get(repository, 0)
            for lab, settings in results.labs.items():
                for target in (TargetKey(repository, lab, name) for name in settings.targets):
                    health.newest[target] = moment - newest.get(target, self._began)
        return health

    async def announce_arrival(self, arrival: Arrival) -> None:
        """Announce a run whose manifest a queue reported. Raises an error if the announcement could not be stored."""
        unknown: RunKey | None = None
        for repository, results in self._watched.items():
            if arrival.lies_in(BucketFolder(results.bucket, results.prefix)):
                parsed = run_key(arrival.key, results.prefix)
                if parsed is not None and parsed[0].repository.lower() == repository.lower():
                    await self._announce_run(arrival, parsed[0])
                    return
                unknown = parsed[0] if parsed is not None else unknown
        # A bucket may have other users, so a queue may report files of theirs. That must raise no error: the queue
        # would deliver the message again and again.
        log.warning("a queue reported a run of no repository in app.yaml", bucket=arrival.bucket, key=arrival.key)
        if unknown is not None:
            # The journal then shows the run, and why it had no effect.
            await self._announce(arrival, unknown, UNKNOWN_REPOSITORY_ID)

    async def tick(self) -> str:
        """Do all work of all repositories; log the work that fails, and continue. Return a line for the log."""
        announced = 0
        for repository, results in self._watched.items():
            for work in self._work:
                with only_logged(texts.WATCH_FAILED, repository=repository, bucket=results.bucket):
                    announced += await work(repository, results)
        return f"announced {announced}"

    async def _list_bucket(self, repository: str, results: Results) -> int:
        """Announce the runs in the bucket that the store lacks; return how many."""
        record = LISTED.of(repository.lower())
        last = await self._records.get(record) or Listed()
        if self._clock() < last.next:
            return 0
        pages = announced = 0
        source = self.source_for(results.bucket)
        folders, searched = [f"{results.prefix}{repository}/"], last.searched
        # The search is rare, because it lists the folders of every owner in the bucket.
        if self._clock() >= searched + HOUR:
            folders += await _misspelled_folders(source, results.prefix, repository)
            searched = self._clock()
        for folder in folders:
            async with aclosing(source.manifests(folder)) as listing:  # type: ignore[type-var]
                async for page in listing:
                    pages += 1
                    announced += await self._announce_new(page, results)
        # Only after the whole listing: if the bucket fails in between, the next tick lists it again.
        listed = self._clock()
        pause = pause_after(pages, results.poll_seconds)
        await self._records.put(record, Listed(listed, listed + pause, searched))
        return announced

    async def _announce_new(self, page: Sequence[Arrival], results: Results) -> int:
        runs = [(arrival, parsed[0]) for arrival in page if (parsed := run_key(arrival.key, results.prefix))]
        # One query for a page of the listing: without it, each listing would announce every run of the bucket again.
        stored = await asyncio.to_thread(self._store.processed, {key: arrival.version for arrival, key in runs})
        new = [(arrival, key) for arrival, key in runs if key not in stored]
        for arrival, key in new:
            await self._announce_run(arrival, key)
        return len(new)

    async def _announce_run(self, arrival: Arrival, key: RunKey) -> None:
        repository_id = await self.repository_id(key.repository)
        if not await self._announce(arrival, key, repository_id):
            # The run was announced before. If its jobs have ended but the store lacks it, it gets a new chance once an
            # hour.
            last = await last_run(self._journal, RunArrived(key.lab, key.target, arrival).guid)
            if last in (LastRun.FAILED, LastRun.DONE):
                await self._announce(arrival, key, repository_id, time=str(hours_between(0.0, self._clock())))

    async def _announce(self, arrival: Arrival, key: RunKey, repository_id: int, time: str = "") -> bool:
        repository = Repository(repository_id, key.repository, None)
        return await announce(self._accept, RUN_ARRIVED, repository, RunArrived(key.lab, key.target, arrival, time))

    async def _recheck_waiting_runs(self, repository: str, results: Results) -> int:
        """Announce runs again whose files may have arrived by now; return how many."""
        waiting = await asyncio.to_thread(self._store.waiting, repository)
        announced = 0
        for run in waiting:
            # The label is part of the GUID, so each check of a run is announced once.
            if label := recheck_label(run.received_at, self._clock(), seconds(results.deadline)):
                key = f"{results.prefix}{run.key.folder}{MANIFEST}"
                arrival = Arrival(results.bucket, key, run.version)
                repository_id = await self.repository_id(repository)
                announced += await self._announce(arrival, run.key, repository_id, label)
        return announced

    async def _retry_failed_checks(self, repository: str, _: Results) -> int:
        """Mark check runs as pending whose jobs have failed for good, such as in an outage or without a permission.

        Nothing else would trigger them: their results are stored, and may never change again.
        """
        record = FAILED_CHECKS.of(repository.lower())
        last = await self._records.get(record) or FailedChecks()
        if self._clock() < last.next:
            return 0
        handled = newest = last.job
        # Jobs up to `handled` were retried before. A check run that fails again has a new job, with a higher number.
        for delivery in await self._journal.recent(failed=True):
            if (
                delivery.event == CHECK_EVENT.name
                and delivery.repository == repository
                and delivery.job.job_id > handled
            ):
                newest = max(newest, delivery.job.job_id)
                await self._mark_pending(delivery.guid)
        # The record is written last: after a crash, the same check runs are marked as pending again, which is harmless.
        await self._records.put(record, FailedChecks(self._clock() + HOUR, newest))
        return 0

    async def _mark_pending(self, guid: str) -> None:
        """Mark the check run of a delivery as pending."""
        payload = await self._journal.payload(guid)
        if payload is not None:
            check_event = check_event_in(payload)
            await asyncio.to_thread(self._store.touch, check_event.target, check_event.sha)

    async def _announce_checks(self, repository: str, results: Results) -> int:
        pending_checks = await asyncio.to_thread(
            self._store.scheduled_checks, repository, self._clock(), seconds(results.settle), seconds(results.deadline)
        )
        for pending_check in pending_checks:
            await self.announce_check(pending_check)
        return len(pending_checks)

    async def announce_check(self, pending_check: PendingCheck) -> None:
        """Have a check run written: once for each revision of the results, and once when no more are expected."""
        name = pending_check.target.repository
        repository = Repository(await self.repository_id(name), name, None)
        # The event is stored before its mark: after a crash in between, the next tick announces the same GUID, which is
        # handled once. In the opposite order, the check run would never be written.
        await announce(self._accept, CHECK_EVENT, repository, CheckEvent.of(pending_check))
        await asyncio.to_thread(self._store.announced, pending_check)

    async def repository_id(self, repository: str) -> int:
        """Return GitHub's ID of a repository. Raises GitHub's errors."""
        return await find_repository_id(self._records, self._github_for, repository)


async def _misspelled_folders(source: Source, prefix: str, repository: str) -> list[str]:
    """Return a repository's folders in other letter case than in app.yaml: their runs are refused with a reason."""
    expected = f"{prefix}{repository}/"
    owner = f"{prefix}{repository.partition('/')[0]}/"
    owner_folders = [folder for folder in await source.folders(prefix) if folder.lower() == owner.lower()]
    folders = [folder for owner_folder in owner_folders for folder in await source.folders(owner_folder)]
    return [folder for folder in folders if folder.lower() == expected.lower() and folder != expected]


def recheck_label(received_at: float, moment: float, deadline: float) -> str:
    """Return the label of the newest check of a run that waits for files, empty before the first one.

    The first check is after 30 seconds, and each pause is twice as long as the one before. After the deadline there is
    one last check. It fails if the bucket cannot be read, and is then repeated every hour. All times are in seconds.
    """
    waited = moment - received_at
    if waited >= deadline:
        return f"deadline-{hours_between(0.0, moment)}"
    return f"look-{math.floor(math.log2(waited / FIRST_CHECK))}" if waited >= FIRST_CHECK else ""


WATCH = PartKey[Watch]("watch")
