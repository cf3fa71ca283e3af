"""Announce the timers of repositories: each scheduled time becomes one durable delivery of our own, in order.

A delivery gives a run plans, retries, replay and dry run. All deliveries of a timer share a lock, so that its runs
never overlap. The GUID contains the scheduled time, so that several replicas may announce it and only one succeeds.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from bot.core.errors import UserError
from bot.core.events import Delivery, Repository
from bot.core.payload import Payload
from bot.engine.internal import InternalEvent, announce
from bot.engine.jobs.journal import DeliveryRecord
from bot.engine.records import Key, Record
from bot.engine.sweeps import LastRun, hours_between, last_run, only_logged
from bot.github.pull_heads import find_repository_id
from bot.github.repositories.known import Repositories, away_by_name
from bot.timers.texts import NO_TIMER_IN_REPOSITORY, NO_TIMERS, TIMER_FAILED, UNKNOWN_TIMER

if TYPE_CHECKING:
    from bot.config import Config
    from bot.core.schedule import Schedule
    from bot.engine.jobs.journal import Journal
    from bot.engine.processor import Announce
    from bot.engine.records import Records
    from bot.github.client import GitHub

MINUTELY = "* * * * *"
"""The cron expression of the check for scheduled timers: every minute."""

STOPPED = "stopped"
"""The outcome of a timer whose repository is archived or removed."""
NEVER = "never"
"""The outcome of a timer that has not run yet."""
FORGOTTEN = "forgotten"
"""The outcome of a run that is so old that its jobs are no longer stored."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TimerEvent:
    """One run of a repository's timer. `at` is its time in seconds since 1970; `moment` identifies the run."""

    name: str
    moment: str
    at: int


TIMER_EVENT = InternalEvent(
    "nightjar.timer",
    TimerEvent,
    guid=lambda repository, event: f"timer:{repository}:{event.name}:{event.moment}",
    lock=lambda repository, event: f"timer:{repository}:{event.name}",
    action=lambda event: event.name,
)


@dataclass(frozen=True, slots=True)
class AnnouncedTimer:
    """The last announced moment of a timer, in seconds since 1970, and the delivery of its run.

    `guid` is empty if the run needs no further try; `hours` are the hours between the moment and the last try.
    """

    schedule: str
    moment: float
    guid: str = ""
    hours: int = 0


@dataclass(frozen=True, slots=True)
class AnnouncedTimers:
    """All timers of app.yaml, by repository in lower case and name."""

    timers: Mapping[str, AnnouncedTimer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TimerRun:
    """The last run of a timer: its delivery, and when it began, in seconds since 1970."""

    guid: str
    at: float


ANNOUNCED = Record("timers", 1, AnnouncedTimers, "the last announced time of each timer", days=None)
TIMER_RUN = Record("timer", 1, TimerRun, "the last run of a timer", days=None)
RECORDS = (ANNOUNCED, TIMER_RUN)


@dataclass(frozen=True, slots=True)
class TimerState:
    """The state of a timer. Moments are seconds since 1970; `last_run` is None if it has not run yet.

    `outcome` is never, waiting, working, done, ignored, refused, failed, forgotten or stopped; `reason` says why.
    """

    repository: str
    name: str
    schedule: str
    last_run: float | None
    guid: str
    outcome: str
    reason: str
    next_run: float


class RepositoryTimers:
    """Announces the timers of all repositories.

    `github_for` returns a client for `owner/name`, `clock` the time in seconds since 1970.
    """

    def __init__(
        self,
        config: Config,
        records: Records,
        journal: Journal,
        *,
        accept: Announce,
        github_for: Callable[[str], Awaitable[GitHub]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._records = records
        self._journal = journal
        self._accept = accept
        self._github_for = github_for
        self._clock = clock

    @property
    def repositories(self) -> list[str]:
        """Return the repositories that have timers."""
        return list(dict.fromkeys(repository for repository, _, _ in timers_of(self._config)))

    async def has_work(self) -> bool:
        """Return whether `tick` would announce a timer, or store that one was added, changed or removed."""
        stored, away = (await self._records.get(ANNOUNCED.of()) or AnnouncedTimers()).timers, await self._away()
        current = {
            f"{repository.lower()} {name}": schedule
            for repository, name, schedule in timers_of(self._config)
            if repository.lower() not in away
        }
        moment = self._clock()
        return stored.keys() != current.keys() or any(
            stored[key].schedule != str(schedule)
            or schedule.last_time(moment) > stored[key].moment
            or (stored[key].guid and hours_between(stored[key].moment, moment) > stored[key].hours)
            for key, schedule in current.items()
        )

    async def tick(self) -> str:
        """Announce every timer whose time has come. An error of one timer is logged and does not stop the others."""
        stored, away = (await self._records.get(ANNOUNCED.of()) or AnnouncedTimers()).timers, await self._away()
        updated: dict[str, AnnouncedTimer] = {}
        for repository, name, schedule in timers_of(self._config):
            key = f"{repository.lower()} {name}"
            if repository.lower() in away:
                # The timer starts over when the repository is back; nobody misses the runs skipped meanwhile.
                continue
            # If announcing fails, the entry stays, so the next minute tries the same moment again.
            if key in stored:
                updated[key] = stored[key]
            with only_logged(TIMER_FAILED, repository=repository, timer=name):
                updated[key] = await self._announce_if_scheduled(repository, name, schedule, stored.get(key))
        # Timers that are off, or whose repository is unavailable, are left out: they start over when they return.
        # Stored after the announcements: a crash in between repeats them with the same GUIDs, which are ignored.
        if updated != stored:
            await self._records.put(ANNOUNCED.of(), AnnouncedTimers(updated))
        return f"announced {sum(updated[key] != stored.get(key) for key in updated)}"

    async def _announce_if_scheduled(
        self, repository: str, name: str, schedule: Schedule, stored: AnnouncedTimer | None
    ) -> AnnouncedTimer:
        """Announce a timer's last scheduled time if it was not announced yet; return the timer's record.

        A timer that is new, or has a new schedule, starts at its next scheduled time. After a downtime, only the last
        scheduled time is announced.
        """
        moment = self._clock()
        last = schedule.last_time(moment)
        if stored is None or stored.schedule != str(schedule):
            return AnnouncedTimer(str(schedule), last)
        if last > stored.moment:
            guid = await self.announce(repository, name, _iso(last))
            return AnnouncedTimer(stored.schedule, last, guid)
        hours = hours_between(stored.moment, moment)
        if not stored.guid or hours <= stored.hours:
            return stored
        return replace(stored, guid=await self._retry_failed_run(repository, name, stored, hours), hours=hours)

    async def _retry_failed_run(self, repository: str, name: str, stored: AnnouncedTimer, hours: int) -> str:
        """Announce a run again if it failed for good during an outage of GitHub; return the GUID to check next."""
        state = await last_run(self._journal, stored.guid)
        if state is LastRun.FAILED:
            return await self.announce(repository, name, f"{_iso(stored.moment)}:{hours}")
        return stored.guid if state is LastRun.OPEN else ""

    async def _away(self) -> Mapping[str, str]:
        return away_by_name(await Repositories(self._config, self._records).all())

    async def announce(self, repository: str, name: str, moment: str) -> str:
        """Announce a run of a timer, once for each `moment`; return the GUID of the delivery."""
        repository_id = await find_repository_id(self._records, self._github_for, repository)
        event = TimerEvent(name, moment, int(self._clock()))
        await announce(self._accept, TIMER_EVENT, Repository(repository_id, repository, None), event)
        guid = TIMER_EVENT.guid(repository_id, event)
        # After the announcement, so that the record never names a run that does not exist.
        await self._records.put(_last_run_key(repository, name), TimerRun(guid, self._clock()))
        return guid

    async def delivery(self, repository: str, name: str) -> Delivery:
        """Return the delivery of a run that would start now; write nothing."""
        repository_id = await find_repository_id(self._records, self._github_for, repository, remember=False)
        event = TimerEvent(name, manual_run(), int(self._clock()))
        body = Payload(TIMER_EVENT.body(Repository(repository_id, repository, None), event))
        return Delivery(TIMER_EVENT.guid(repository_id, event), TIMER_EVENT.name, body, self._clock())


def moment_of(payload: Payload) -> float:
    """Return the time of the run in a `TIMER_EVENT` payload, in seconds since 1970."""
    return float(TIMER_EVENT.read(payload).at)


def manual_run() -> str:
    """Return a unique name for a run that an operator starts."""
    return f"asked-{time.time_ns()}"


def timers_of(config: Config) -> Iterator[tuple[str, str, Schedule]]:
    """Yield the timers of all repositories: `owner/name`, the timer's name and its schedule."""
    for repository, keys in config.repositories.items():
        for name, schedule in keys.timers.items():
            yield repository, name, schedule


def repositories_with(config: Config, name: str, only: str | None) -> list[str]:
    """Return the repositories with a timer of this name, or just `only`. Raises `UserError` if there is none."""
    repositories = [repository for repository, timer, _ in timers_of(config) if timer == name]
    if not repositories:
        names = ", ".join(sorted({timer for _, timer, _ in timers_of(config)})) or NO_TIMERS
        raise UserError(UNKNOWN_TIMER.format(name=name, known=names))
    selected = [repository for repository in repositories if only is None or repository.lower() == only.lower()]
    if not selected:
        raise UserError(NO_TIMER_IN_REPOSITORY.format(name=name, repository=only))
    return selected


async def timer_states(
    config: Config, records: Records, journal: Journal, moment: float, only: str | None = None
) -> list[TimerState]:
    """Return the states of all timers, or of the timers of one repository (`owner/name`)."""
    timers = [timer for timer in timers_of(config) if only is None or timer[0].lower() == only.lower()]
    runs = {timer[:2]: await records.get(_last_run_key(*timer[:2])) for timer in timers}
    stored = await journal.deliveries([run.guid for run in runs.values() if run])
    away = away_by_name(await Repositories(config, records).all())
    return [_state(timer, runs[timer[:2]], stored, moment, away.get(timer[0].lower(), "")) for timer in timers]


def _state(
    timer: tuple[str, str, Schedule],
    run: TimerRun | None,
    stored: Mapping[str, DeliveryRecord],
    moment: float,
    away: str,
) -> TimerState:
    repository, name, schedule = timer
    guid = run.guid if run else ""
    record = stored.get(guid)
    return TimerState(
        repository=repository,
        name=name,
        schedule=str(schedule),
        last_run=run.at if run else None,
        guid=guid,
        outcome=STOPPED if away else record.state if record else FORGOTTEN if run else NEVER,
        reason=away or (record.reason if record else ""),
        next_run=schedule.next_time(moment),
    )


def _last_run_key(repository: str, name: str) -> Key[TimerRun]:
    return TIMER_RUN.of(repository.lower(), name)


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
