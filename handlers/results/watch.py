"""Announce new runs, runs that still wait for files, and pending check runs, for the timer and the queues.

Each announcement is a delivery whose GUID names the run or the check run. So any number of replicas may announce it,
and one handles it, once. While nothing arrives, nothing is stored: docs/decisions/idle-costs-nothing.md
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
from cachetools import TTLCache
from nightjar_formats.model import MANIFEST, RunKey, TargetKey, escaped_target
from nightjar_formats.runs.manifest import run_key

from bot.aws.bucket import Arrival, BucketFolder, RunStore, Source
from bot.aws.store_folder import StoreFolder
from bot.config.types import STORE_FOLDER, seconds
from bot.core.events import Repository
from bot.core.listing import counted
from bot.core.parts import PartKey
from bot.engine.internal import announce
from bot.engine.records import Key
from bot.engine.sweeps import HOUR, LastRun, hours_between, last_run, only_logged
from bot.github.pull_heads import find_repository_id
from bot.results.deliveries import CHECK_EVENT, RUN_ARRIVED, CheckEvent, RunArrived, check_event_in
from bot.results.settings.results import QUIET_POLL
from bot.results.state import PendingCheck, Run
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
    scheduled_checks,
    touch_check,
    unfinished,
)
from handlers.results import texts
from handlers.results.config import LAB_RESULTS
from handlers.results.records import FAILED_CHECKS, LISTED, RECENTLY_LISTED, FailedChecks, Listed, RecentlyListed

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.internal import Announce
    from bot.engine.jobs.journal import DeliveryRecord, Journal
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.results.settings.results import Results
    from bot.results.store.store import ResultsStore

TICK = "* * * * * */15"
"""When `tick` runs; the last field counts seconds."""
DAILY = "17 4 * * *"
"""When old files are removed from the folder beside the database."""
LONGEST_PAUSE = seconds(QUIET_POLL)
"""Seconds between two listings at most while no run arrives."""
QUIET_PER_PAUSE = 12.0
"""Seconds without a new run for each second between two listings: after an hour, the pause is five minutes."""
CHECK_SECONDS = 120.0
"""Seconds between two reads of unfinished work, while no run arrives."""
QUIET_SECONDS = 600.0
"""Seconds without a new run after which unfinished work is read less often."""
FAILURES_SECONDS = 600.0
"""Seconds between two searches for check runs that have failed for good."""
STORED_SECONDS = 1800.0
"""Seconds after which the time of a listing that found nothing is stored, for alarms and for other processes."""
REPEATED_SECONDS = 300.0
"""Seconds after which work that was announced, and has not been done, is announced again."""
MOST_ANNOUNCED = 10_000
"""Announced runs that a process remembers, in 200 bytes each."""
DAY = 86400.0
"""Seconds: between two full listings, the commits with a run of this age or younger are listed."""
SECONDS_PER_PAGE = 3.0
"""Seconds between listings, for each page of 1000 objects in the last one.

A page costs $0.000005, so a bucket of any size costs at most $0.15 a day.
"""
SECONDS_PER_REQUEST = 1.0
"""Seconds between listings of recent commits, for each request of the last one: at most $0.43 a day."""
LISTINGS, REQUESTS = 4, 8
"""The most repositories whose buckets are listed at a time, and the most folders of recent commits."""
MOST_COMMITS = 500
"""The most commits of one listing of recent commits; the full listing finds the runs of all others."""
MOST_KNOWN = 200_000
"""The most commits that a process remembers as having runs, in 60 bytes each."""
FIRST_RETRY = 10.0
"""Seconds before a bucket that could not be listed is listed again; each later pause is twice as long."""
FIRST_CHECK = 30.0
"""Seconds after which the bot checks a run with missing files again; each later pause is twice as long."""

UNKNOWN_REPOSITORY_ID = 0
"""Stands for repositories outside app.yaml: the bot does not ask GitHub for their IDs."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def pause_after(requests: int, poll: float, each: float = SECONDS_PER_PAGE) -> float:
    """Return how many seconds to wait after a listing of so many requests: `poll`, or `each` for every request.

    A run may be uploaded for any commit at any time, and keys sort by commit, not by time. So only a listing of the
    whole bucket finds all new runs. 500 objects a day, stored for 400 days, take 200 requests; this function then
    spaces the listings ten minutes apart. In between, `Watch` lists the commits of the last day. A queue costs as
    little and reports new objects within seconds.
    """
    return max(poll, requests * each)


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


@dataclass(frozen=True, slots=True)
class AddedWork:
    """Work of another feature in each tick; `pending` reads what there is to do, as values that can be compared."""

    work: RepositoryWork
    pending: Callable[[], Awaitable[Sequence[object]]]


class Retry(NamedTuple):
    """A listing that failed: the pause before the next one, in seconds, and when that is, in seconds since 1970."""

    pause: float
    next: float


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
        self._added_work: list[AddedWork] = []
        self._testing: Callable[[], Awaitable[Collection[str]]] = _no_repositories
        self._expected: Collection[str] = ()
        """The repositories for which labs test on request."""
        self._listed: dict[str, Listed] = {}
        self._recently: dict[str, RecentlyListed] = {}
        """Listings of this process, of which those that found nothing are seldom stored."""
        self._stored_at: dict[str, float] = {}
        """The time of the stored listing of each repository, as far as this process knows it."""
        self._arrived_at: dict[str, float] = {}
        """When this process last saw a new run of each repository."""
        self._retries: dict[str, Retry] = {}
        """When to list again the buckets of the repositories whose last listing failed."""
        self._announced = TTLCache[object, bool](MOST_ANNOUNCED, REPEATED_SECONDS, timer=clock)
        """Work for which this process had a tick run."""
        self._next_check = self._next_failures = 0.0

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

    def add_work(self, work: RepositoryWork, pending: Callable[[], Awaitable[Sequence[object]]]) -> None:
        """Let `tick` do the work of another feature too, after its own, if there is anything `pending`."""
        self._added_work.append(AddedWork(work, pending))

    def expect(self, testing: Callable[[], Awaitable[Collection[str]]]) -> None:
        """List the buckets of some repositories as often as `poll` says: `testing` reads for which labs test now."""
        self._testing = testing

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
            stored_at = listing.at if listing else self._began
            health.listed[repository] = moment - max(stored_at, self._listed.get(repository, Listed()).at)
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
                    self._arrived_at[repository] = self._clock()
                    await self.announce_run(arrival, parsed[0])
                    return
                unknown = parsed[0] if parsed is not None else unknown
        # A bucket may have other users, so a queue may report files of theirs. That must raise no error: the queue
        # would deliver the message again and again.
        log.warning("a queue reported a run of no repository in app.yaml", bucket=arrival.bucket, key=arrival.key)
        if unknown is not None:
            # The journal then shows the run, and why it had no effect.
            await self._announce(arrival, unknown, UNKNOWN_REPOSITORY_ID)

    async def has_work(self) -> bool:
        """List the buckets whose time has come; return whether `tick` has anything to announce or to store.

        A bucket is listed until the first new run, so that `tick` finds it again; a listing without any is not stored.
        """
        moment = self._clock()
        if await self._list_buckets(until_new=True) or await self._must_store(moment):
            return True
        if moment < self._next_check:
            return False
        if await self._has_unfinished(moment):
            return True
        await self._read_expected()
        is_quiet = all(moment - self._last_arrival(repository) >= QUIET_SECONDS for repository in self._watched)
        self._next_check = moment + (CHECK_SECONDS if is_quiet else 0.0)
        return False

    async def _must_store(self, moment: float) -> bool:
        """Return whether the stored time of a listing is so old that alarms would go off."""
        old = [
            repository
            for repository, listed in self._listed.items()
            if listed.at - self._stored_at.get(repository, 0.0) >= STORED_SECONDS
        ]
        await self._read_listed(old)
        return any(moment - self._stored_at.get(repository, 0.0) >= STORED_SECONDS for repository in old)

    async def _has_unfinished(self, moment: float) -> bool:
        """Return whether something that is stored must be announced: by its age, or because its jobs have failed."""
        waiting, with_checks = await asyncio.to_thread(self._store.read, unfinished)
        for repository, results in self._watched.items():
            if repository in waiting and self._first_time(await self._rechecks(repository, results)):
                return True
            if repository in with_checks and await self._scheduled_checks(repository, results):
                return True
        if moment >= self._next_failures:
            self._next_failures = moment + FAILURES_SECONDS
            if await self._failed_checks():
                return True
        return any([self._first_time(await added.pending()) for added in self._added_work])

    async def _read_expected(self) -> None:
        """Read for which repositories labs test on request: their recent commits are listed at once, then as usual."""
        earlier, self._expected = self._expected, await self._testing()
        for repository in self._expected:
            if repository not in earlier:
                self._recently.pop(repository, None)

    def _first_time(self, work: Sequence[object]) -> bool:
        """Return whether any of this work was not announced a short time ago; remember all of it."""
        new = [item for item in work if item not in self._announced]
        self._announced.update(dict.fromkeys(new, True))
        return bool(new)

    def _last_arrival(self, repository: str) -> float:
        return self._arrived_at.get(repository, self._began)

    def _poll(self, repository: str, results: Results) -> float:
        """Return the shortest pause between two listings: longer if no run has arrived for a while, or is expected."""
        usual = results.poll_seconds
        if results.poll is not None or results.queue is not None or repository in self._expected:
            return usual
        quiet = self._clock() - self._last_arrival(repository)
        return max(usual, min(quiet / QUIET_PER_PAUSE, LONGEST_PAUSE))

    async def tick(self) -> str:
        """Do all work of all repositories; log the work that fails, and continue. Return a line for the log."""
        announced = await self._list_buckets()
        await self._store_listed()
        waiting, with_checks = await asyncio.to_thread(self._store.read, unfinished)
        failed = await self._failed_checks()
        for repository, results in self._watched.items():
            # Most repositories have nothing to do, and nothing is read for them.
            work_list: list[RepositoryWork] = [
                *([self._recheck_waiting_runs] if repository in waiting else []),
                *([partial(self._retry_failed_checks, failed=failed[repository])] if repository in failed else []),
                *([self._announce_checks] if repository in failed or repository in with_checks else []),
                *(added.work for added in self._added_work),
            ]
            for work in work_list:
                with only_logged(texts.WATCH_FAILED, repository=repository, bucket=results.store):
                    announced += await work(repository, results)
        return f"announced {announced}"

    async def remove_old_files(self) -> str:
        """Remove old files from the folder beside the database; return how many runs had any, for the log."""
        kept_seconds: dict[str, dict[str, float]] = {}
        for repository, results in self._watched.items():
            if results.bucket is None:
                kept_seconds.setdefault(results.prefix, {})[repository] = seconds(results.keep_files)
        folder = self.source_for(STORE_FOLDER)
        assert isinstance(folder, StoreFolder)
        removed = sum([await folder.remove_old(*kept) for kept in kept_seconds.items()])
        return texts.FILES_REMOVED.format(runs=counted(removed, "run"))

    async def _store_listed(self) -> None:
        """Store the listings of this process that are newer than the stored ones."""
        newer = [name for name, listed in self._listed.items() if listed.at > self._stored_at.get(name, 0.0)]
        changes: dict[Key[Any], Any] = {LISTED.of(name.lower()): self._listed[name] for name in newer}
        for name in newer:
            if (recently := self._recently.get(name)) is not None:
                changes[RECENTLY_LISTED.of(name.lower())] = recently
        await self._records.put_all(changes)
        self._stored_at |= {name: self._listed[name].at for name in newer}

    async def _read_listed(self, repositories: Collection[str]) -> None:
        """Read the stored listings of some repositories: other processes may have listed them later than this one."""
        keys = {name: LISTED.of(name.lower()) for name in repositories}
        stored = await self._records.get_some(keys.values()) if keys else {}
        for name, key in keys.items():
            listed = stored.get(key.name, Listed())
            self._stored_at[name] = listed.at
            if listed.at > self._listed.get(name, Listed()).at:
                self._listed[name] = listed

    async def _list_buckets(self, *, until_new: bool = False) -> int:
        """Announce the runs in the buckets that the store lacks, of several repositories at a time; return how many.

        With `until_new`, announce nothing, and stop the listing of a repository at its first new run.
        """
        # Nothing is read before the time of a listing has come, as far as this process knows.
        await self._read_listed([name for name, results in self._watched.items() if self._listing_of(name, results)])
        work: list[Awaitable[int]] = []
        for repository, results in self._watched.items():
            if (listing := self._listing_of(repository, results)) is not None:
                work.append(self._listed_with(repository, results, partial(listing, until_new=until_new)))
        outcomes = await asyncio.gather(*work, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return sum(outcome for outcome in outcomes if isinstance(outcome, int))

    def _listing_of(self, repository: str, results: Results) -> Callable[..., Awaitable[int]] | None:
        """Return the listing of a repository whose time has come, if any."""
        moment, last = self._clock(), self._listed.get(repository, Listed())
        if repository in self._retries and moment < self._retries[repository].next:
            return None
        if moment >= last.next:
            return self._list_all
        # Everything is listed less often than app.yaml says, or than runs arrive now, and no queue reports new runs.
        is_rare = last.next - last.at > self._poll(repository, results)
        if results.queue is None and is_rare and moment >= self._recently.get(repository, RecentlyListed()).next:
            return self._list_recent
        return None

    async def _listed_with(self, repository: str, results: Results, listing: RepositoryWork) -> int:
        """Return the result of a listing, 0 if it fails, once fewer than `LISTINGS` others run."""
        announced, earlier = 0, self._retries.get(repository)
        pause = min(2 * earlier.pause, LONGEST_PAUSE) if earlier else FIRST_RETRY
        self._retries[repository] = Retry(pause, self._clock() + pause)
        async with self._listings:
            with only_logged(texts.WATCH_FAILED, repository=repository, bucket=results.store):
                announced = await listing(repository, results)
                self._retries.pop(repository, None)
        return announced

    async def _list_all(self, repository: str, results: Results, *, until_new: bool) -> int:
        """Announce the runs in the bucket that the store lacks; return how many. No other listing finds all runs."""
        pages = announced = 0
        began, source = self._clock(), self.source_for(results.store)
        folders, searched = [f"{results.prefix}{repository}/"], self._listed.get(repository, Listed()).searched
        # The search is rare, because it lists the folders of every owner in the bucket.
        if began >= searched + HOUR:
            folders += await _misspelled_folders(source, results.prefix, repository)
            searched = began
        for folder in folders:
            async with aclosing(source.manifests(folder)) as listing:  # type: ignore[type-var]
                async for page in listing:
                    pages += 1
                    announced += await self._handle_new(repository, page, results, until_new=until_new)
                    if announced and until_new:
                        return announced
        # Only after the whole listing: if the bucket fails in between, the next tick lists it again.
        pause = pause_after(pages, self._poll(repository, results))
        # One reading of the clock: `_listing_of` compares the pause with `poll`.
        ended = self._clock()
        self._listed[repository] = Listed(ended, ended + pause, searched)
        return announced

    async def _list_recent(self, repository: str, results: Results, *, until_new: bool) -> int:
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
        new_runs = [await self._handle_new(repository, page, results, until_new=until_new) for page in pages if page]
        if not (until_new and any(new_runs)):
            pause = pause_after(requests + len(pages), self._poll(repository, results), SECONDS_PER_REQUEST)
            self._recently[repository] = RecentlyListed(self._clock() + pause)
        return sum(new_runs)

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

    async def _handle_new(self, repository: str, page: Sequence[Arrival], results: Results, *, until_new: bool) -> int:
        """Announce the runs of a page that the store lacks; return how many.

        With `until_new`, announce nothing, and don't count those that were counted a short time ago.
        """
        runs = [(arrival, parsed[0]) for arrival in page if (parsed := run_key(arrival.key, results.prefix))]
        if not runs:
            return 0
        # One query for a page of the listing: without it, each listing would announce every run of the bucket again.
        stored = await asyncio.to_thread(
            self._store.read, processed_runs, {key: arrival.version for arrival, key in runs}
        )
        new = [(arrival, key) for arrival, key in runs if key not in stored]
        if until_new:
            return int(self._first_time([arrival for arrival, _ in new]))
        for arrival, key in new:
            self._arrived_at[repository] = self._clock()
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

    async def _rechecks(self, repository: str, results: Results) -> list[tuple[Run, str]]:
        """Return the runs whose files may have arrived by now, each with the label of its newest check."""
        moment, deadline = self._clock(), seconds(results.deadline)
        waiting = await asyncio.to_thread(self._store.read, waiting_runs, repository)
        labels = [(run, recheck_label(run.received_at, moment, deadline)) for run in waiting]
        return [(run, label) for run, label in labels if label]

    async def _recheck_waiting_runs(self, repository: str, results: Results) -> int:
        """Announce runs again whose files may have arrived by now; return how many."""
        announced = 0
        for run, label in await self._rechecks(repository, results):
            # The label is part of the GUID, so each check of a run is announced once.
            key = f"{results.prefix}{run.key.folder}{MANIFEST}"
            arrival = Arrival(results.store, key, run.version)
            repository_id = await self.repository_id(repository)
            announced += await self._announce(arrival, run.key, repository_id, label)
        return announced

    async def _failed_checks(self) -> dict[str, list[DeliveryRecord]]:
        """Return the deliveries of check runs that have failed for good and must be tried again, by repository.

        Those of one repository are tried again once an hour at most, and each an hour after it was announced.
        Repositories without any are left out.
        """
        moment = self._clock()
        failures: dict[str, list[DeliveryRecord]] = defaultdict(list)
        for delivery in await self._journal.recent(failed=True):
            if delivery.event == CHECK_EVENT.name and moment - delivery.received_at >= HOUR:
                failures[delivery.repository].append(delivery)
        watched = {name: FAILED_CHECKS.of(name.lower()) for name in self._watched if name in failures}
        stored = await self._records.get_some(watched.values()) if watched else {}
        handled = {name: stored.get(key.name, FailedChecks()) for name, key in watched.items()}
        # A check run that fails again has a new job, with a higher number.
        new = {
            name: [delivery for delivery in failures[name] if delivery.job.job_id > last.job]
            for name, last in handled.items()
            if moment >= last.next
        }
        return {name: deliveries for name, deliveries in new.items() if deliveries}

    async def _retry_failed_checks(self, repository: str, _: Results, failed: Sequence[DeliveryRecord]) -> int:
        """Mark check runs as pending whose jobs have failed for good, such as in an outage or without a permission.

        Nothing else would trigger them: their results are stored, and may never change again.
        """
        for delivery in failed:
            await self._mark_pending(delivery.guid)
        newest = max(delivery.job.job_id for delivery in failed)
        # The record is written last: after a crash, the same check runs are marked as pending again, which is harmless.
        await self._records.put(FAILED_CHECKS.of(repository.lower()), FailedChecks(self._clock() + HOUR, newest))
        return 0

    async def _mark_pending(self, guid: str) -> None:
        """Mark the check run of a delivery as pending."""
        payload = await self._journal.payload(guid)
        if payload is not None:
            check_event = check_event_in(payload)
            await asyncio.to_thread(
                self._store.write, touch_check, check_event.target, check_event.sha, self._store.clock()
            )

    async def _scheduled_checks(self, repository: str, results: Results) -> list[PendingCheck]:
        return await asyncio.to_thread(
            self._store.read,
            scheduled_checks,
            repository,
            self._clock(),
            seconds(results.settle),
            seconds(results.deadline),
        )

    async def _announce_checks(self, repository: str, results: Results) -> int:
        pending_checks = await self._scheduled_checks(repository, results)
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


async def _no_repositories() -> Collection[str]:
    return ()


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
