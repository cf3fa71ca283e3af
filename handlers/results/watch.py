"""Announce what the timer and the queues find: new runs, runs that still wait for files, pending check runs.

Each announcement is a delivery whose GUID names its subject. So any replica may find it any number of times, and it is
handled once.
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
    from bot.engine.journal import Journal
    from bot.engine.processor import Announce
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.results.settings.results import Results
    from bot.results.store.store import ResultsStore

TICK = "* * * * * */15"
"""When `tick` runs; the last field counts seconds."""
FIRST_CHECK = 30.0
"""Seconds after which a run with missing files is checked again, doubled each time."""

NOBODYS = 0
"""The ID that stands for repositories outside app.yaml: the bot does not ask GitHub for theirs."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Listed:
    """When a repository's results were listed last, and are listed next; when other letter cases were searched last.

    All are in seconds since 1970.
    """

    at: float = 0.0
    next: float = 0.0
    searched: float = 0.0


@dataclass(frozen=True, slots=True)
class FailedChecks:
    """The time of the next search for failed check runs, in seconds since 1970, and the newest job that was found."""

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
    """Notices what happens to the results of all repositories that have labs.

    `github_for` gives a client for `owner/name`, `source_for` the bucket of a name, `now` seconds since 1970.
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
        now: Callable[[], float] = time.time,
    ) -> None:
        self._watched = {
            name: results
            for name, settings in config.repositories.items()
            if (results := settings.of(LAB_RESULTS)) is not None
        }
        self._store = store
        self._records = records
        self._journal = journal
        self._accept = accept
        self._github_for = github_for
        self.source_for = source_for
        self._now = now
        self._began = now()
        self._work: list[RepositoryWork] = [
            self._list,
            self._check_again,
            self._check_failed_checks,
            self._announce_checks,
        ]

    @property
    def repositories(self) -> list[str]:
        """Return the repositories that have labs."""
        return list(self._watched)

    @property
    def queues(self) -> dict[str, list[BucketFolder]]:
        """Return the queues to listen to, each with the places that it may announce."""
        queues: dict[str, list[BucketFolder]] = {}
        for results in self._watched.values():
            if results.queue is not None:
                queues.setdefault(results.queue, []).append(BucketFolder(results.bucket, results.prefix))
        return queues

    def add_work(self, work: RepositoryWork) -> None:
        """Let `tick` do the work of another feature too, after its own."""
        self._work.append(work)

    async def health(self) -> ResultsHealth:
        """Return how current the results of each repository are.

        What has never happened counts from the start of this process, so that an alarm on its age fires too.
        """
        now, health = self._now(), ResultsHealth()
        for repository, results in self._watched.items():
            listed = await self._records.get(LISTED.of(repository.lower()))
            health.listed[repository] = now - (listed.at if listed else self._began)
            health.waiting[repository], newest = await asyncio.to_thread(self._issue_state, repository)
            for lab, settings in results.labs.items():
                for about in (TargetKey(repository, lab, target) for target in settings.targets):
                    health.newest[about] = now - newest.get(about, self._began)
        return health

    def _issue_state(self, repository: str) -> tuple[int, dict[TargetKey, float]]:
        return len(self._store.waiting(repository)), self._store.newest(repository)

    async def heard(self, arrival: Arrival) -> None:
        """Announce a run whose manifest a queue reported. Raises an error if the run could not be stored."""
        unknown: RunKey | None = None
        for repository, results in self._watched.items():
            if arrival.lies_in(BucketFolder(results.bucket, results.prefix)):
                found = run_key(arrival.key, results.prefix)
                if found is not None and found[0].repository.lower() == repository.lower():
                    await self._announce_run(arrival, found[0])
                    return
                unknown = found[0] if found is not None else unknown
        # A bucket may have other users, so a queue may report what is not ours. It must not fail: the queue would
        # deliver the message again and again.
        log.warning("a queue reported a run of no repository in app.yaml", bucket=arrival.bucket, key=arrival.key)
        if unknown is not None:
            # The journal then shows it, and why it had no effect.
            await self._announce(arrival, unknown, NOBODYS)

    async def tick(self) -> str:
        """Do all scheduled work. If it fails for one repository, that is logged, and the others continue."""
        announced = 0
        for repository, results in self._watched.items():
            for work in self._work:
                with only_logged(texts.WATCH_FAILED, repository=repository, bucket=results.bucket):
                    announced += await work(repository, results)
        return f"announced {announced}"

    async def _list(self, repository: str, results: Results) -> int:
        record = LISTED.of(repository.lower())
        before = await self._records.get(record) or Listed()
        if self._now() < before.next:
            return 0
        pages = announced = 0
        source = self.source_for(results.bucket)
        folders, searched = [f"{results.prefix}{repository}/"], before.searched
        # Rarely, because it lists the folders of every owner in the bucket.
        if self._now() >= searched + HOUR:
            folders += await _misspelled(source, results.prefix, repository)
            searched = self._now()
        for folder in folders:
            async with aclosing(source.manifests(folder)) as listing:  # type: ignore[type-var]
                async for page in listing:
                    pages += 1
                    announced += await self._announce_new(page, results)
        # Only after the whole listing: if the bucket fails in between, the next tick lists it again.
        listed = self._now()
        pause = pause_after(pages, results.poll_seconds)
        await self._records.put(record, Listed(listed, listed + pause, searched))
        return announced

    async def _announce_new(self, page: Sequence[Arrival], results: Results) -> int:
        found = [(arrival, run[0]) for arrival in page if (run := run_key(arrival.key, results.prefix))]
        # One query for a page of the listing: without it, each listing would announce every run of the bucket again.
        known = await asyncio.to_thread(self._store.known, {key: arrival.version for arrival, key in found})
        new = [(arrival, key) for arrival, key in found if key not in known]
        for arrival, key in new:
            await self._announce_run(arrival, key)
        return len(new)

    async def _announce_run(self, arrival: Arrival, key: RunKey) -> None:
        repository_id = await self.repository_id(key.repository)
        if not await self._announce(arrival, key, repository_id):
            # It was announced before. A run that the store lacks, although its jobs have ended, gets a new chance once
            # an hour.
            last = await last_run(self._journal, RunArrived(key.lab, key.target, arrival).guid)
            if last in (LastRun.FAILED, LastRun.DONE):
                await self._announce(arrival, key, repository_id, time=str(hours_between(0.0, self._now())))

    async def _announce(self, arrival: Arrival, key: RunKey, repository_id: int, time: str = "") -> bool:
        about = Repository(repository_id, key.repository, None)
        return await announce(self._accept, RUN_ARRIVED, about, RunArrived(key.lab, key.target, arrival, time))

    async def _check_again(self, repository: str, results: Results) -> int:
        waiting = await asyncio.to_thread(self._store.waiting, repository)
        scans = 0
        for run in waiting:
            # The time is part of the GUID, so each check of a run is announced once.
            if time_of_check := _scan(run.received_at, self._now(), seconds(results.deadline)):
                key = f"{results.prefix}{run.key.folder}{MANIFEST}"
                arrival = Arrival(results.bucket, key, run.version)
                repository_id = await self.repository_id(repository)
                scans += await self._announce(arrival, run.key, repository_id, time_of_check)
        return scans

    async def _check_failed_checks(self, repository: str, _: Results) -> int:
        """Write check runs again whose jobs have failed for good, such as in an outage or without a permission.

        Nothing else would trigger them: their results are stored, and may never change again.
        """
        record = FAILED_CHECKS.of(repository.lower())
        last = await self._records.get(record) or FailedChecks()
        if self._now() < last.next:
            return 0
        seen = newest = last.job
        # Newer than the last one that was found: a check run that fails again has a new job, with a higher number.
        for delivery in await self._journal.recent(failed=True):
            if delivery.event == CHECK_EVENT.name and delivery.repository == repository and delivery.job.job_id > seen:
                newest = max(newest, delivery.job.job_id)
                await self._touch(delivery.guid)
        # Last: after a crash in between, the same check runs are marked as pending again, which is harmless.
        await self._records.put(record, FailedChecks(self._now() + HOUR, newest))
        return 0

    async def _touch(self, guid: str) -> None:
        """Make the check run of a delivery pending again."""
        payload = await self._journal.payload(guid)
        if payload is not None:
            scheduled_checks = check_event_in(payload)
            await asyncio.to_thread(self._store.touch, scheduled_checks.about, scheduled_checks.sha)

    async def _announce_checks(self, repository: str, results: Results) -> int:
        scheduled_checks = await asyncio.to_thread(
            self._store.scheduled_checks, repository, self._now(), seconds(results.settle), seconds(results.deadline)
        )
        for one in scheduled_checks:
            await self.announce_check(one)
        return len(scheduled_checks)

    async def announce_check(self, scheduled_checks: PendingCheck) -> None:
        """Have the check run of a commit written, once for each revision of its results, and once more when over."""
        about = Repository(
            await self.repository_id(scheduled_checks.about.repository), scheduled_checks.about.repository, None
        )
        # The event before its mark: after a crash in between, the next tick announces the same GUID, which is handled
        # once. The other way round, the check run would never be written.
        await announce(self._accept, CHECK_EVENT, about, CheckEvent.of(scheduled_checks))
        await asyncio.to_thread(self._store.announced, scheduled_checks)

    async def announce_again(self, about: TargetKey, sha: str, repository_id: int, asked: str) -> bool:
        """Have the check run of a commit written again, once for each request; return whether this one is new."""
        scheduled_checks = CheckEvent(about.lab, about.target, sha, revision=0, again=True, asked=asked)
        return await announce(
            self._accept, CHECK_EVENT, Repository(repository_id, about.repository, None), scheduled_checks
        )

    async def repository_id(self, repository: str) -> int:
        """Return the number by which GitHub knows a repository. Raises GitHub's errors."""
        return await find_repository_id(self._records, self._github_for, repository)


async def _misspelled(source: Source, prefix: str, repository: str) -> list[str]:
    """Return a repository's folders in other letter case than in app.yaml: their runs are refused with a reason."""
    own = f"{prefix}{repository}/"
    owner = f"{prefix}{repository.partition('/')[0]}/"
    owners = [folder for folder in await source.folders(prefix) if folder.lower() == owner.lower()]
    found = [folder for one in owners for folder in await source.folders(one) if folder.lower() == own.lower()]
    return [folder for folder in found if folder != own]


def _scan(since: float, now: float, deadline: float) -> str:
    """Name the next check of a run that waits, empty before the first one; times are in seconds.

    After the deadline there is one last check. It fails if the bucket cannot be read, and is repeated every hour.
    """
    waited = now - since
    if waited >= deadline:
        return f"deadline-{hours_between(0.0, now)}"
    return f"look-{math.floor(math.log2(waited / FIRST_CHECK))}" if waited >= FIRST_CHECK else ""


WATCH = PartKey[Watch]("watch")
