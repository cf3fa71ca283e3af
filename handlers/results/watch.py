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
from functools import partial
from typing import TYPE_CHECKING

import structlog
from nightjar_formats.model import MANIFEST, RunKey, TargetKey, escaped_target
from nightjar_formats.runs.manifest import run_key

from bot.aws.bucket import SECONDS_PER_REQUEST, Arrival, BucketFolder, RunStore, Source, pause_after
from bot.aws.store_folder import StoreFolder
from bot.config.types import STORE_FOLDER, seconds
from bot.core.events import Repository
from bot.core.parts import PartKey
from bot.engine.internal import announce
from bot.engine.sweeps import HOUR, LastRun, hours_between, last_run, only_logged
from bot.github.pull_heads import find_repository_id
from bot.results.deliveries import CHECK_EVENT, RUN_ARRIVED, CheckEvent, RunArrived, check_event_in
from bot.results.state import PendingCheck
from bot.results.store.lists.run_lists import (
    commits_since,
    commits_with_runs,
    newest_arrivals,
    waiting_counts,
    waiting_runs,
)
from bot.results.store.tables.runs import processed_runs
from bot.results.store.write.pending_checks import (
    announced,
    repositories_with_open_checks,
    scheduled_checks,
    touch_check,
)
from handlers.results import texts
from handlers.results.config import LAB_RESULTS
from handlers.results.records import FAILED_CHECKS, LISTED, RECENTLY_LISTED, FailedChecks, Listed, RecentlyListed

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.internal import Announce
    from bot.engine.jobs.journal import Journal
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.results.settings.results import Results
    from bot.results.store.store import ResultsStore

TICK = "* * * * * */15"
"""When `tick` runs; the last field counts seconds."""
DAILY = "17 4 * * *"
"""When old files are removed from the folder beside the database."""
DAY = 86400.0
"""Seconds: between two full listings, the commits with a run of this age or younger are listed."""
LISTINGS, REQUESTS = 4, 8
"""The most repositories whose buckets are listed at a time, and the most folders of recent commits."""
MOST_COMMITS = 500
"""The most commits of one listing of recent commits; the full listing finds the runs of all others."""
MOST_KNOWN = 200_000
"""The most commits that a process remembers as having runs, in 60 bytes each."""
FIRST_CHECK = 30.0
"""Seconds after which the bot checks a run with missing files again; each later pause is twice as long."""

UNKNOWN_REPOSITORY_ID = 0
"""Stands for repositories outside app.yaml: the bot does not ask GitHub for their IDs."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


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

    `github_for` gives a client for `owner/name`, `source_for` the store of a name, `clock` seconds since 1970.
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
        source_for: Callable[[str], RunStore],
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
        self._listings, self._requests = asyncio.Semaphore(LISTINGS), asyncio.Semaphore(REQUESTS)
        self._known_commits: set[int] = set()
        """Hashes of the folders of commits with stored runs."""
        self._added_work: list[RepositoryWork] = []

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
            if results.queue is not None and results.bucket is not None:
                queues.setdefault(results.queue, []).append(BucketFolder(results.bucket, results.prefix))
        return queues

    def add_work(self, work: RepositoryWork) -> None:
        """Let `tick` do the work of another feature too, after its own."""
        self._added_work.append(work)

    async def health(self) -> ResultsHealth:
        """Return how current the results of each repository are.

        If something has never happened, its age counts from the start of this process, so that an alarm on it fires.
        """
        moment, health = self._clock(), ResultsHealth()
        keys = {repository: LISTED.of(repository.lower()) for repository in self._watched}
        listed = await self._records.get_some(keys.values())
        waiting = await asyncio.to_thread(self._store.read, waiting_counts)
        newest = await asyncio.to_thread(self._store.read, newest_arrivals, *self._watched)
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
            if arrival.lies_in(BucketFolder(results.store, results.prefix)):
                parsed = run_key(arrival.key, results.prefix)
                if parsed is not None and parsed[0].repository.lower() == repository.lower():
                    await self.announce_run(arrival, parsed[0])
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
        announced = await self._list_buckets()
        waiting = await asyncio.to_thread(self._store.read, waiting_counts)
        with_checks = await asyncio.to_thread(self._store.read, repositories_with_open_checks)
        tried = await self._records.get_some([FAILED_CHECKS.of(name.lower()) for name in self._watched])
        for repository, results in self._watched.items():
            last = tried.get(FAILED_CHECKS.of(repository.lower()).name, FailedChecks())
            is_retried = self._clock() >= last.next
            # Most repositories have nothing to do, and nothing is read for them.
            work_list: list[RepositoryWork] = [
                *([self._recheck_waiting_runs] if repository in waiting else []),
                *([partial(self._retry_failed_checks, last=last)] if is_retried else []),
                *([self._announce_checks] if is_retried or repository in with_checks else []),
                *self._added_work,
            ]
            for work in work_list:
                with only_logged(texts.WATCH_FAILED, repository=repository, bucket=results.store):
                    announced += await work(repository, results)
        return f"announced {announced}"

    async def remove_old_files(self) -> str:
        """Remove old files from the folder beside the database; return how many runs had any, for the log."""
        prefixes = {results.prefix for results in self.buckets if results.bucket is None}
        folder = self.source_for(STORE_FOLDER)
        assert isinstance(folder, StoreFolder)
        return texts.FILES_REMOVED.format(count=sum([await folder.remove_old(prefix) for prefix in prefixes]))

    async def _list_buckets(self) -> int:
        """Announce the runs in the buckets that the store lacks, of several repositories at a time; return how many."""
        moment = self._clock()
        listed = await self._records.get_some([LISTED.of(name.lower()) for name in self._watched])
        recently = await self._records.get_some([RECENTLY_LISTED.of(name.lower()) for name in self._watched])
        work: list[Awaitable[int]] = []
        for repository, results in self._watched.items():
            last = listed.get(LISTED.of(repository.lower()).name, Listed())
            recent = recently.get(RECENTLY_LISTED.of(repository.lower()).name, RecentlyListed())
            if moment >= last.next:
                work.append(self._listed(repository, results, partial(self._list_all, last=last)))
            # Everything is listed less often than app.yaml says, and no queue reports new runs.
            elif results.queue is None and last.next - last.at > results.poll_seconds and moment >= recent.next:
                work.append(self._listed(repository, results, self._list_recent))
        outcomes = await asyncio.gather(*work, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return sum(outcome for outcome in outcomes if isinstance(outcome, int))

    async def _listed(self, repository: str, results: Results, listing: RepositoryWork) -> int:
        """Return the result of a listing, 0 if it fails, once fewer than `LISTINGS` others run."""
        announced = 0
        async with self._listings:
            with only_logged(texts.WATCH_FAILED, repository=repository, bucket=results.store):
                announced = await listing(repository, results)
        return announced

    async def _list_all(self, repository: str, results: Results, last: Listed) -> int:
        """Announce the runs in the bucket that the store lacks; return how many. No other listing finds all runs."""
        pages = announced = 0
        source = self.source_for(results.store)
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
        await self._records.put(LISTED.of(repository.lower()), Listed(listed, listed + pause, searched))
        return announced

    async def _list_recent(self, repository: str, results: Results) -> int:
        """Announce new runs of commits of the last day, and of commits without a run so far; return how many.

        For each target in app.yaml, this reads the names of all commits, 1000 with a request, and then lists few of
        them. So its cost depends on the runs of a day, and hardly on those that are stored.
        """
        source = self.source_for(results.store)
        targets = [TargetKey(repository, lab, name) for lab, keys in results.labs.items() for name in keys.targets]
        recent = await asyncio.to_thread(self._store.read, commits_since, repository, self._clock() - DAY)
        folders = [_commit_folder(results.prefix, target, sha) for target, sha in sorted(recent)]
        requests = 0
        for new, names in await asyncio.gather(
            *(self._new_commits(source, results.prefix, target) for target in targets)
        ):
            folders += new
            requests += 1 + names // 1000
        listings = [self._manifests(source, folder) for folder in list(dict.fromkeys(folders))[:MOST_COMMITS]]
        pages = [page for listing in await asyncio.gather(*listings) for page in listing]
        announced = sum([await self._announce_new(page, results) for page in pages if page])
        pause = pause_after(requests + len(pages), results.poll_seconds, SECONDS_PER_REQUEST)
        await self._records.put(RECENTLY_LISTED.of(repository.lower()), RecentlyListed(self._clock() + pause))
        return announced

    async def _new_commits(self, source: Source, prefix: str, target: TargetKey) -> tuple[list[str], int]:
        """Return the folders of those commits of a target of which no run is stored, and the number of all commits."""
        async with self._requests:
            folders = await source.folders(_target_folder(prefix, target))
        unknown = {
            folder.rstrip("/").rpartition("/")[2]: folder
            for folder in folders
            if hash(folder) not in self._known_commits
        }
        stored = await asyncio.to_thread(self._store.read, commits_with_runs, target, unknown)
        if len(self._known_commits) > MOST_KNOWN:
            self._known_commits.clear()
        self._known_commits.update(hash(unknown[sha]) for sha in stored)
        return [folder for sha, folder in unknown.items() if sha not in stored], len(folders)

    async def _manifests(self, source: Source, folder: str) -> list[list[Arrival]]:
        async with self._requests, aclosing(source.manifests(folder)) as listing:  # type: ignore[type-var]
            return [page async for page in listing]

    async def _announce_new(self, page: Sequence[Arrival], results: Results) -> int:
        runs = [(arrival, parsed[0]) for arrival in page if (parsed := run_key(arrival.key, results.prefix))]
        # One query for a page of the listing: without it, each listing would announce every run of the bucket again.
        stored = await asyncio.to_thread(
            self._store.read, processed_runs, {key: arrival.version for arrival, key in runs}
        )
        new = [(arrival, key) for arrival, key in runs if key not in stored]
        for arrival, key in new:
            await self.announce_run(arrival, key)
        return len(new)

    async def announce_run(self, arrival: Arrival, key: RunKey) -> None:
        """Announce a run. Raises GitHub's errors, and those of the database."""
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
        waiting = await asyncio.to_thread(self._store.read, waiting_runs, repository)
        announced = 0
        for run in waiting:
            # The label is part of the GUID, so each check of a run is announced once.
            if label := recheck_label(run.received_at, self._clock(), seconds(results.deadline)):
                key = f"{results.prefix}{run.key.folder}{MANIFEST}"
                arrival = Arrival(results.store, key, run.version)
                repository_id = await self.repository_id(repository)
                announced += await self._announce(arrival, run.key, repository_id, label)
        return announced

    async def _retry_failed_checks(self, repository: str, _: Results, last: FailedChecks) -> int:
        """Mark check runs as pending whose jobs have failed for good, such as in an outage or without a permission.

        Nothing else would trigger them: their results are stored, and may never change again.
        """
        record = FAILED_CHECKS.of(repository.lower())
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
            await asyncio.to_thread(
                self._store.write, touch_check, check_event.target, check_event.sha, self._store.clock()
            )

    async def _announce_checks(self, repository: str, results: Results) -> int:
        pending_checks = await asyncio.to_thread(
            self._store.read,
            scheduled_checks,
            repository,
            self._clock(),
            seconds(results.settle),
            seconds(results.deadline),
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
        await asyncio.to_thread(self._store.write, announced, pending_check)

    async def repository_id(self, repository: str) -> int:
        """Return GitHub's ID of a repository. Raises GitHub's errors."""
        return await find_repository_id(self._records, self._github_for, repository)


def _target_folder(prefix: str, target: TargetKey) -> str:
    return f"{prefix}{target.repository}/{target.lab}/{escaped_target(target.target)}/"


def _commit_folder(prefix: str, target: TargetKey, sha: str) -> str:
    return f"{_target_folder(prefix, target)}{sha}/"


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
