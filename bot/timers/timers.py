"""Announce the timers of repositories: each scheduled time becomes one durable delivery of our own, in order.

A delivery gives a run plans, retries, replay and dry run. All deliveries of a timer share a lock, so that its runs
never overlap. The GUID contains the scheduled time, so that several replicas may announce it and only one succeeds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import structlog

from bot.config.repositories import is_pattern
from bot.core.errors import UserError
from bot.core.events import Delivery, Payload, Repository
from bot.core.schedule import FixedInterval
from bot.engine.internal import InternalEvent, announce
from bot.engine.jobs.journal import WAITING, WORKING
from bot.engine.records import Key, Record
from bot.engine.sweeps import LastRun, hours_between, last_runs, only_logged
from bot.github.pull_heads import find_repository_id, repository_ids
from bot.github.repositories.known import reasons_left_alone
from bot.timers.texts import NO_REPOSITORY_YET, NO_TIMER_IN_REPOSITORY, NO_TIMERS, TIMER_FAILED, UNKNOWN_TIMER

if TYPE_CHECKING:
    from bot.config import Config
    from bot.core.schedule import Schedule
    from bot.engine.internal import Announce
    from bot.engine.jobs.journal import Journal
    from bot.engine.records import Records
    from bot.github.client import GitHub

MINUTELY = "* * * * *"
"""The cron expression of the check for scheduled timers: every minute."""

MOST_AT_ONCE = 200
"""The most runs that are announced together, so that webhooks of the same moment wait for no more than these."""

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
    """All timers of app.yaml, by repository in lower case and name, as earlier releases stored them in one record."""

    timers: Mapping[str, AnnouncedTimer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TimerRun:
    """The last run of a timer: its delivery, and when it began, in seconds since 1970."""

    guid: str
    at: float


ANNOUNCED = Record("timers", 1, AnnouncedTimers, "the times of all timers, as earlier releases stored them", days=None)
ANNOUNCED_TIMER = Record("announced-timer", 1, AnnouncedTimer, "the last announced time of a timer", days=None)
TIMER_RUN = Record("timer", 1, TimerRun, "the last run of a timer", days=None)
RECORDS = (ANNOUNCED, ANNOUNCED_TIMER, TIMER_RUN)


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


@dataclass(frozen=True, slots=True)
class RepositoryTimer:
    """A timer of a repository in app.yaml, with its own offset if it runs every so often."""

    repository: str
    name: str
    schedule: Schedule

    @classmethod
    def of(cls, repository: str, name: str, schedule: Schedule) -> RepositoryTimer:
        """Return the timer with its own times, which are the same in every process."""
        return cls(repository, name, schedule.for_timer(f"{repository.lower()} {name}"))

    @property
    def announced_key(self) -> Key[AnnouncedTimer]:
        """The key of its last announced time."""
        return ANNOUNCED_TIMER.of(self.repository.lower(), self.name)

    @property
    def run_key(self) -> Key[TimerRun]:
        """The key of its last run."""
        return TIMER_RUN.of(self.repository.lower(), self.name)


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """A run to announce: `moment` identifies it, and `announced` is stored afterwards, with the GUID of the run."""

    timer: RepositoryTimer
    moment: str
    announced: AnnouncedTimer


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
        self._by_schedule: dict[Schedule, list[RepositoryTimer]] = {}
        self._generation: int | None = None
        """The generation of the repositories for which `_by_schedule` was made."""
        self._last_tick: float | None = None
        self._unidentified: set[RepositoryTimer] = set()
        """Timers whose run could not be announced, because GitHub did not return the ID of the repository."""

    @property
    def repositories(self) -> list[str]:
        """Return the repositories that have timers."""
        return list(dict.fromkeys(timer.repository for timer in timers_of(self._config)))

    async def has_work(self) -> bool:
        """Return whether `tick` may have something to do; it reads nothing."""
        return bool(self._candidates(self._clock()))

    async def tick(self) -> str:
        """Announce every timer whose time has come. An error of one timer is logged and does not stop the others.

        A timer that is new, or has a new schedule, starts at its next scheduled time. After a downtime, only the last
        scheduled time is announced. A run that failed for good, such as in an outage of GitHub, is announced again
        every hour. Costs nothing for timers whose time has not come.
        """
        moment = self._clock()
        candidates = self._candidates(moment)
        stored = await self._stored(candidates)
        changes: dict[Key[Any], AnnouncedTimer] = {}
        scheduled: list[tuple[ScheduledRun, str]] = []
        to_check: list[tuple[RepositoryTimer, AnnouncedTimer]] = []
        for timer, last in candidates.items():
            announced, schedule = stored.get(timer.announced_key.name), str(timer.schedule)
            if announced is None or announced.schedule != schedule:
                changes[timer.announced_key] = AnnouncedTimer(schedule, last)
            elif last > announced.moment:
                scheduled.append((ScheduledRun(timer, _iso(last), AnnouncedTimer(schedule, last)), announced.guid))
            elif announced.guid and (hours := hours_between(announced.moment, moment)) > announced.hours:
                to_check.append((timer, replace(announced, hours=hours)))
        runs = await self._without_open(scheduled)
        outcomes = await last_runs(self._journal, [announced.guid for _, announced in to_check])
        for timer, announced in to_check:
            match outcomes[announced.guid]:
                case LastRun.FAILED:
                    runs.append(ScheduledRun(timer, f"{_iso(announced.moment)}:{announced.hours}", announced))
                case LastRun.OPEN:
                    changes[timer.announced_key] = announced
                case _:
                    changes[timer.announced_key] = replace(announced, guid="")
        await self._records.put_all(changes)
        count = await self._announce_runs(runs, moment)
        # If this tick fails, the next one considers the same times again.
        self._last_tick = moment
        return f"announced {count}"

    async def _without_open(self, scheduled: Sequence[tuple[ScheduledRun, str]]) -> list[ScheduledRun]:
        """Return the runs that are to start, each given with the GUID of the timer's run before.

        A timer that runs every so often does not start while its run before waits or works: that one reads the newest
        state when its turn comes, so the queue has one run of each timer, however slow GitHub is.
        """
        guids = [guid for run, guid in scheduled if guid and isinstance(run.timer.schedule, FixedInterval)]
        states = await self._journal.states(guids) if guids else {}
        return [run for run, guid in scheduled if states.get(guid) not in (WAITING, WORKING)]

    def _candidates(self, moment: float) -> dict[RepositoryTimer, float]:
        """Return the timers about which a tick may have something to do, each with its last scheduled time.

        These are the timers whose time, or whose hourly check, has come since the last tick of this process; at first,
        all timers. Other processes may have announced them already: their records say so.
        """
        if self._generation != self._config.configured.generation:
            self._generation, self._by_schedule = self._config.configured.generation, {}
            for timer in timers_of(self._config):
                self._by_schedule.setdefault(timer.schedule, []).append(timer)
            # The times of a repository that has become known are stored at once, and one that is forgotten has none.
            self._last_tick, self._unidentified = None, set()
        candidates = dict[RepositoryTimer, float]()
        for schedule, timers in self._by_schedule.items():
            last, since = schedule.last_time(moment), self._last_tick
            if since is None or last > since or hours_between(last, moment) > hours_between(last, since):
                candidates.update(dict.fromkeys(timers, last))
        return candidates | {timer: timer.schedule.last_time(moment) for timer in self._unidentified}

    async def _stored(self, candidates: Collection[RepositoryTimer]) -> Mapping[str, AnnouncedTimer]:
        """Return the records of timers, by key."""
        if self._last_tick is None:
            await self._tidy({timer.announced_key.name for timer in candidates})
        return await self._records.get_some([timer.announced_key for timer in candidates])

    async def _tidy(self, keys: Collection[str]) -> None:
        """Remove the records of all other timers: they start over when they return. Take over those of older releases.

        `keys` are those of all timers of app.yaml.
        """
        stored = {ANNOUNCED_TIMER.of(key): timer for key, timer in (await self._records.under(ANNOUNCED_TIMER)).items()}
        older = await self._records.get(ANNOUNCED.of())
        if older is not None:
            timers = {ANNOUNCED_TIMER.of(*key.split(" ")): announced for key, announced in older.timers.items()}
            await self._records.put_all({key: announced for key, announced in timers.items() if key not in stored})
            await self._records.remove(ANNOUNCED.of())
            stored |= timers
        await self._records.remove_all([key for key in stored if key.name not in keys])

    async def _announce_runs(self, runs: Sequence[ScheduledRun], moment: float) -> int:
        """Announce runs, except those of repositories that the bot leaves alone; return how many.

        Nobody misses the runs that are left out. They are stored as announced: the timers continue with their next
        times after the repository is back.
        """
        ids = await repository_ids(self._records, [run.timer.repository.lower() for run in runs])
        away = await reasons_left_alone(self._records, ids)
        named = [(run.timer.repository.lower(), run) for run in runs]
        await self._records.put_all({run.timer.announced_key: run.announced for name, run in named if name in away})
        ready = [(run, ids[name]) for name, run in named if name in ids and name not in away]
        for start in range(0, len(ready), MOST_AT_ONCE):
            await self._announce_together(ready[start : start + MOST_AT_ONCE], moment)
        # A request each, so they go last.
        unknown = [run for name, run in named if name not in ids]
        self._unidentified = {run.timer for run in unknown}
        for run in unknown:
            with only_logged(TIMER_FAILED, repository=run.timer.repository, timer=run.timer.name):
                repository_id = await find_repository_id(self._records, self._github_for, run.timer.repository)
                await self._announce_together([(run, repository_id)], moment)
                self._unidentified.discard(run.timer)
        return len(ready) + len(unknown) - len(self._unidentified)

    async def _announce_together(self, runs: Sequence[tuple[ScheduledRun, int]], moment: float) -> None:
        """Announce runs, each with the ID of its repository. The engine stores concurrent announcements together."""
        announcements, changes = [], dict[Key[Any], object]()
        for run, repository_id in runs:
            event = TimerEvent(run.timer.name, run.moment, int(moment))
            repository = Repository(repository_id, run.timer.repository, None)
            announcements.append(announce(self._accept, TIMER_EVENT, repository, event))
            guid = TIMER_EVENT.guid(repository_id, event)
            changes[run.timer.announced_key] = replace(run.announced, guid=guid)
            changes[run.timer.run_key] = TimerRun(guid, moment)
        await asyncio.gather(*announcements)
        # Stored after the announcements, so that no record names a run that does not exist: after a crash in between,
        # the next tick repeats them with the same GUIDs, which are ignored.
        await self._records.put_all(changes)

    async def announce(self, repository: str, name: str, moment: str) -> str:
        """Announce a run of a timer, once for each `moment`; return the GUID of the delivery."""
        repository_id = await find_repository_id(self._records, self._github_for, repository)
        event = TimerEvent(name, moment, int(self._clock()))
        await announce(self._accept, TIMER_EVENT, Repository(repository_id, repository, None), event)
        guid = TIMER_EVENT.guid(repository_id, event)
        # After the announcement, so that the record never names a run that does not exist.
        await self._records.put(TIMER_RUN.of(repository.lower(), name), TimerRun(guid, self._clock()))
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


def timers_of(config: Config) -> Iterator[RepositoryTimer]:
    """Yield the timers of all repositories."""
    for repository, keys in config.repositories.items():
        for name, schedule in keys.timers.items():
            yield RepositoryTimer.of(repository, name, schedule)


def repositories_with(config: Config, name: str, only: str | None) -> list[str]:
    """Return the repositories with a timer of this name, or just `only`. Raises `UserError` if there is none."""
    repositories = [timer.repository for timer in timers_of(config) if timer.name == name]
    if not repositories:
        entries = config.configured.entries.items()
        patterns = [entry for entry, settings in entries if is_pattern(entry) and name in settings.timers]
        if patterns:
            raise UserError(NO_REPOSITORY_YET.format(patterns=", ".join(patterns), name=name))
        names = ", ".join(sorted({timer.name for timer in timers_of(config)})) or NO_TIMERS
        raise UserError(UNKNOWN_TIMER.format(name=name, known=names))
    selected = [repository for repository in repositories if only is None or repository.lower() == only.lower()]
    if not selected:
        raise UserError(NO_TIMER_IN_REPOSITORY.format(name=name, repository=only))
    return selected


async def timer_states(
    config: Config,
    records: Records,
    journal: Journal,
    moment: float,
    only: str | None = None,
    *,
    with_reasons: bool = True,
) -> list[TimerState]:
    """Return the states of all timers, or of the timers of one repository (`owner/name`), with five statements.

    Without reasons, which are in the notes of all jobs, this costs a third. A timer that is stopped has its reason.
    """
    timers = [timer for timer in timers_of(config) if only is None or timer.repository.lower() == only.lower()]
    runs = await records.get_some([timer.run_key for timer in timers])
    outcomes = await _outcomes(journal, [run.guid for run in runs.values()], with_reasons=with_reasons)
    away = await reasons_left_alone(
        records, await repository_ids(records, {timer.repository.lower() for timer in timers})
    )
    next_runs = {schedule: schedule.next_time(moment) for schedule in {timer.schedule for timer in timers}}
    return [
        _state(timer, runs.get(timer.run_key.name), outcomes, away.get(timer.repository.lower(), ""), next_runs)
        for timer in timers
    ]


async def _outcomes(journal: Journal, guids: Sequence[str], *, with_reasons: bool) -> dict[str, tuple[str, str]]:
    """Return the states of the deliveries that are still stored, and their reasons, by GUID."""
    if not with_reasons:
        return {guid: (state, "") for guid, state in (await journal.states(guids)).items()}
    return {guid: (record.state, record.reason) for guid, record in (await journal.deliveries(guids)).items()}


def _state(
    timer: RepositoryTimer,
    run: TimerRun | None,
    outcomes: Mapping[str, tuple[str, str]],
    away: str,
    next_runs: Mapping[Schedule, float],
) -> TimerState:
    guid = run.guid if run else ""
    outcome, reason = outcomes.get(guid, (FORGOTTEN if run else NEVER, ""))
    return TimerState(
        repository=timer.repository,
        name=timer.name,
        schedule=str(timer.schedule),
        last_run=run.at if run else None,
        guid=guid,
        outcome=STOPPED if away else outcome,
        reason=away or reason,
        next_run=next_runs[timer.schedule],
    )


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
