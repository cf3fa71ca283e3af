"""Scheduled times are announced once each, by any number of replicas, and once for all times during an absence."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import LiteralString

import pytest
from prometheus_client import CollectorRegistry

from bot.app.load import parse_config
from bot.config import Config
from bot.core.errors import TryAgain, UserError
from bot.engine.service import Engine, StorageError
from bot.github.client import GitHub
from bot.github.pull_heads import REPOSITORY_ID, RepositoryId
from bot.github.repositories.known import LeftAlone, Repositories
from bot.timers.metrics import TimerGauges
from bot.timers.timers import (
    ANNOUNCED,
    ANNOUNCED_TIMER,
    AnnouncedTimer,
    AnnouncedTimers,
    RepositoryTimers,
    TimerState,
    repositories_with,
    timer_states,
)
from tests.counted import Work, counted
from tests.statements import collected
from tests.tables import with_tables

CONFIG = "repositories:\n  octocat/compiler:\n    nightly: {%s}\n  octocat/other:\n"
EVENING = datetime(2026, 3, 6, 20, tzinfo=UTC).timestamp()
"""In Los Angeles it is noon."""
HOUR, DAY = 3600.0, 86400.0
ALL_DONE: LiteralString = "UPDATE procrastinate_jobs SET status = 'succeeded'"


def config(nightly: str = "", name: str = "octocat/compiler") -> Config:
    return parse_config((CONFIG % nightly).replace("octocat/compiler", name).encode(), "app.yaml")


async def nobody(repository: str) -> GitHub:
    raise AssertionError(f"GitHub was asked for {repository}")


@dataclass
class Desk:
    """An engine that only stores, with a clock set by the test."""

    engine: Engine
    now: float = EVENING
    accepted: list[str] = field(default_factory=list)
    away: bool = False

    async def accept(self, guid: str, event: str, body: str, lock: str, *, not_before: float | None = None) -> bool:
        if self.away:
            raise StorageError("away")
        new = await self.engine.accept(guid, event, body, lock)
        if new:
            self.accepted.append(guid)
        return new

    def timers(self, keys: str = "", name: str = "octocat/compiler") -> RepositoryTimers:
        """Return the timers of one replica."""
        return RepositoryTimers(
            config(keys, name),
            self.engine.records,
            self.engine.journal,
            accept=self.accept,
            github_for=nobody,
            clock=lambda: self.now,
        )


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with Engine(with_tables(f"sqlite:///{tmp_path}/nightjar.db")) as engine:
        await engine.records.put(REPOSITORY_ID.of("octocat/compiler"), RepositoryId(7))
        yield Desk(engine)


async def test_a_timer_with_an_interval_does_not_start_while_its_run_before_waits(desk: Desk) -> None:
    """Otherwise an outage of a day, or a round that takes longer than the interval, leaves a queue of equal runs."""
    timers = desk.timers("}\n    last_good: {every: 15m, require: [ci]")
    for minute in range(24 * 60):
        desk.now = EVENING + 60 * minute
        await timers.tick()
    of_interval = [guid for guid in desk.accepted if ":last-good:" in guid]
    assert len(of_interval) == 1, of_interval
    # The nightly run of each day counts: labs are told the day.
    assert len(desk.accepted) == 2
    await desk.engine.database.connector.execute_query_async(ALL_DONE)
    desk.now += 15 * 60
    await timers.tick()
    assert len(desk.accepted) == 3


async def test_a_new_timer_waits_for_its_next_scheduled_time(desk: Desk) -> None:
    timers = desk.timers()
    for desk.now in (EVENING, EVENING + 8.9 * HOUR):
        await timers.tick()
    assert desk.accepted == []
    desk.now = EVENING + 9 * HOUR
    await timers.tick()
    assert desk.accepted == ["timer:7:nightly:2026-03-07T05:00:00Z"]


async def test_under_a_new_name_in_app_yaml_a_timer_starts_over_and_repeats_nothing(desk: Desk) -> None:
    """Timers are stored by name: a renamed repository has its next run at the next scheduled time."""
    new = "octocat/compiler-next"
    await desk.timers().tick()
    desk.now = EVENING + 9 * HOUR
    await desk.timers().tick()
    await desk.engine.records.put(REPOSITORY_ID.of(new), RepositoryId(7))
    for desk.now in (EVENING + 9 * HOUR, EVENING + 9 * HOUR + DAY):
        await desk.timers(name=new).tick()
        outcomes = [
            state.outcome
            for state in await timer_states(config(name=new), desk.engine.records, desk.engine.journal, desk.now)
        ]
        assert outcomes == ["never" if desk.now < EVENING + DAY else "waiting"]
    assert desk.accepted == ["timer:7:nightly:2026-03-07T05:00:00Z", "timer:7:nightly:2026-03-08T05:00:00Z"]


async def test_each_scheduled_time_is_announced_once_across_a_change_of_the_clocks(desk: Desk) -> None:
    timers = desk.timers()
    for minute in range(0, 3 * 24 * 60, 7):
        desk.now = EVENING + minute * 60
        await timers.tick()
    # Summer time begins on 8 March.
    moments = ("2026-03-07T05:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z")
    assert desk.accepted == [f"timer:7:nightly:{moment}" for moment in moments]


async def test_several_replicas_announce_a_scheduled_time_once(desk: Desk) -> None:
    replicas = [desk.timers() for _ in range(3)]
    for desk.now in (EVENING, EVENING + DAY, EVENING + DAY + 60):
        for timers in replicas:
            await timers.tick()
    assert len(desk.accepted) == 1


async def test_after_a_week_of_absence_only_the_last_scheduled_time_is_caught_up(desk: Desk) -> None:
    await desk.timers().tick()
    desk.now += 7 * DAY
    for _ in range(2):
        await desk.timers().tick()
    assert desk.accepted == ["timer:7:nightly:2026-03-13T04:00:00Z"]


@pytest.mark.parametrize("schedule_keys", ["at: '10:00'", "timezone: Europe/Berlin"])
async def test_a_new_schedule_applies_from_its_next_time_on(desk: Desk, schedule_keys: str) -> None:
    await desk.timers().tick()
    desk.now += HOUR
    changed = desk.timers(schedule_keys)
    await changed.tick()
    assert desk.accepted == []
    desk.now += DAY
    await changed.tick()
    assert len(desk.accepted) == 1


async def test_a_timer_that_was_switched_off_for_a_while_starts_as_new(desk: Desk) -> None:
    await desk.timers().tick()
    timers_without_keys = RepositoryTimers(
        parse_config(b"repositories:\n  octocat/other:\n", "app.yaml"),
        desk.engine.records,
        desk.engine.journal,
        accept=desk.accept,
        github_for=nobody,
        clock=lambda: desk.now,
    )
    await timers_without_keys.tick()
    desk.now += 3 * DAY
    await desk.timers().tick()
    assert desk.accepted == []


async def test_a_time_that_could_not_be_stored_is_announced_by_the_next_tick(desk: Desk) -> None:
    timers = desk.timers()
    await timers.tick()
    desk.now += DAY
    desk.away = True
    with pytest.raises(StorageError):
        await timers.tick()
    desk.away = False
    await timers.tick()
    assert len(desk.accepted) == 1


async def test_all_runs_of_a_timer_are_handled_in_order(desk: Desk) -> None:
    timers = desk.timers()
    await timers.tick()
    desk.now += DAY
    await timers.tick()
    await timers.announce("octocat/compiler", "nightly", "asked-1")
    records = await desk.engine.journal.recent()
    assert {(record.event, record.lock) for record in records} == {("nightjar.timer", "timer:7:nightly")}
    assert len(records) == 2


async def test_a_timer_returns_its_last_run_and_its_next(desk: Desk) -> None:
    timers, engine = desk.timers(), desk.engine
    (state,) = await timer_states(config(), engine.records, engine.journal, desk.now)
    assert (state.outcome, state.last_run, state.next_run) == ("never", None, EVENING + 9 * HOUR)
    await timers.announce("octocat/compiler", "nightly", "asked-1")
    (state,) = await timer_states(config(), engine.records, engine.journal, desk.now, "Octocat/Compiler")
    assert (state.guid, state.outcome, state.last_run) == ("timer:7:nightly:asked-1", "waiting", EVENING)
    assert await timer_states(config(), engine.records, engine.journal, desk.now, "octocat/other") == []


async def test_the_delivery_that_would_start_a_run_is_shown_and_not_stored(desk: Desk) -> None:
    delivery = await desk.timers().delivery("octocat/compiler", "nightly")
    assert (delivery.event, delivery.action, delivery.repository_name) == (
        "nightjar.timer",
        "nightly",
        "octocat/compiler",
    )
    assert json.dumps(delivery.payload.raw)
    assert await desk.engine.journal.recent() == []


def test_an_unknown_timer_is_answered_with_the_existing_ones() -> None:
    assert repositories_with(config(), "nightly", None) == ["octocat/compiler"]
    assert repositories_with(config(), "nightly", "Octocat/Compiler") == ["octocat/compiler"]
    with pytest.raises(UserError, match=r"Unknown timer `last-good`\. Available: nightly\."):
        repositories_with(config(), "last-good", None)
    with pytest.raises(UserError, match=r"octocat/other has no timer `nightly` in app\.yaml\."):
        repositories_with(config(), "nightly", "octocat/other")
    without = parse_config(b"repositories: {octocat/compiler: }", "app.yaml")
    with pytest.raises(UserError, match=r"Available: none, as app\.yaml enables no feature that has a timer\."):
        repositories_with(without, "nightly", None)


def test_a_timer_of_a_pattern_without_a_known_repository_is_not_called_unknown() -> None:
    """A bot that has just been set up said that there is no such timer."""
    patterns = parse_config(b"repositories: {'octo-org/*': {nightly: {}}}", "app.yaml")
    with pytest.raises(
        UserError, match=r"No repository of octo-org/\* is known yet, so timer `nightly` has nothing to"
    ):
        repositories_with(patterns, "nightly", None)
    with pytest.raises(UserError, match=r"Unknown timer `last-good`\."):
        repositories_with(patterns, "last-good", None)


MANY = 1_000


def many(keys: str, count: int = MANY) -> Config:
    repositories = "".join(f"  octocat/r{number}: {{{keys}}}\n" for number in range(count))
    return parse_config(f"repositories:\n{repositories}".encode(), "app.yaml")


async def crowd(desk: Desk, settings: Config) -> RepositoryTimers:
    """Return the timers of many repositories, whose IDs are known, after a first tick."""
    ids = {REPOSITORY_ID.of(name): RepositoryId(number) for number, name in enumerate(settings.repositories, 1)}
    await desk.engine.records.put_all(ids)
    timers = RepositoryTimers(
        settings,
        desk.engine.records,
        desk.engine.journal,
        accept=desk.accept,
        github_for=nobody,
        clock=lambda: desk.now,
    )
    await timers.tick()
    return timers


@pytest.fixture
async def any_desk(url_with_tables: str) -> AsyncIterator[Desk]:
    async with Engine(url_with_tables) as engine:
        yield Desk(engine)


@pytest.fixture
def insertions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the statements that insert deliveries, at the database driver."""
    texts: list[str] = []
    note = collected.note

    def noting(database: str, text: object, values: object) -> None:
        if "INTO nightjar_inbox" in str(text):
            texts.append(str(text))
        note(database, text, values)

    monkeypatch.setattr(collected, "note", noting)
    return texts


LAST_GOOD = 'last_good: {every: 15m, require: ["*/branch"]}'


async def test_timers_of_many_repositories_are_spread_over_their_interval(any_desk: Desk) -> None:
    timers = await crowd(any_desk, many(LAST_GOOD))
    began: list[int] = []
    for minute in range(1, 16):
        any_desk.now = EVENING + minute * 60
        before = len(any_desk.accepted)
        with counted(any_desk.engine.database.connector) as work:
            await timers.tick()
        began.append(len(any_desk.accepted) - before)
        # The announcements, which the driver puts into one statement, and five statements beside them.
        assert work.statements <= began[-1] + 5
        assert work.rows <= 5 * began[-1]
    assert len(set(any_desk.accepted)) == len(any_desk.accepted) == MANY
    assert max(began) <= 100
    any_desk.now += 60
    await any_desk.engine.database.connector.execute_query_async(ALL_DONE)
    await timers.tick()
    assert len(any_desk.accepted) == MANY + began[0]


async def test_all_nightly_timers_of_a_minute_are_announced_in_that_minute_with_few_statements(
    any_desk: Desk, insertions: list[str]
) -> None:
    timers = await crowd(any_desk, many('nightly: {at: "21:00"}'))
    any_desk.now = EVENING + 9 * HOUR
    with counted(any_desk.engine.database.connector) as work:
        await timers.tick()
    assert len(any_desk.accepted) == MANY
    assert work.statements - MANY <= 12  # one reads or writes at most 500 records
    # PostgreSQL gets 200 deliveries in a statement, SQLite 32.
    assert len(insertions) <= 40


async def test_a_tick_reads_and_writes_nothing_for_timers_whose_time_has_not_come(any_desk: Desk) -> None:
    timers = await crowd(any_desk, many("nightly: {}", 20))
    any_desk.now += 60
    with counted(any_desk.engine.database.connector) as work:
        await timers.tick()
    assert work == Work(statements=0, rows=0)


async def test_the_shown_next_run_is_the_minute_in_which_the_timer_runs(any_desk: Desk) -> None:
    settings = many(LAST_GOOD, 20)
    timers, engine = await crowd(any_desk, settings), any_desk.engine
    shown = await timer_states(settings, engine.records, engine.journal, any_desk.now)
    for any_desk.now in (EVENING + minute * 60 for minute in range(1, 16)):
        await timers.tick()
    states = await timer_states(settings, engine.records, engine.journal, any_desk.now)
    assert [state.last_run for state in states] == [state.next_run for state in shown]


async def test_the_states_of_any_number_of_timers_take_five_statements(any_desk: Desk) -> None:
    settings = many(LAST_GOOD, 200)
    timers, engine = await crowd(any_desk, settings), any_desk.engine
    any_desk.now += 900
    await timers.tick()
    with counted(engine.database.connector) as work:
        states = await timer_states(settings, engine.records, engine.journal, any_desk.now)
    assert {state.outcome for state in states} == {"waiting"}
    assert work.statements == 5


async def test_metrics_of_any_number_of_timers_take_five_statements_and_no_reasons(any_desk: Desk) -> None:
    settings = many(LAST_GOOD, 200)
    timers, engine = await crowd(any_desk, settings), any_desk.engine
    any_desk.now += 900
    await timers.tick()
    registry = CollectorRegistry()

    async def states() -> Sequence[TimerState]:
        return await timer_states(settings, engine.records, engine.journal, any_desk.now, with_reasons=False)

    gauges = TimerGauges(states, lambda: any_desk.now, registry)
    with counted(engine.database.connector) as work:
        await gauges.refresh()
    # A row for each run, its state, and its repository's ID.
    assert work == Work(statements=4, rows=600)
    labels = {"repository": "octocat/r7", "timer": "last-good"}
    assert registry.get_sample_value("nightjar_timer_last_outcome", {**labels, "outcome": "waiting"}) == 1
    assert registry.get_sample_value("nightjar_timer_last_run_age_seconds", labels) == 0
    upcoming = registry.get_sample_value("nightjar_timer_next_run_seconds", labels)
    assert upcoming is not None
    assert 0 < upcoming <= 900
    gauges.clear()
    assert registry.get_sample_value("nightjar_timer_next_run_seconds", labels) is None


async def test_a_failed_run_of_each_of_many_repositories_is_looked_up_with_two_statements(any_desk: Desk) -> None:
    timers = await crowd(any_desk, many("nightly: {}", 50))
    any_desk.now = EVENING + 9 * HOUR
    await timers.tick()
    any_desk.now += HOUR
    with counted(any_desk.engine.database.connector) as work:
        await timers.tick()
    assert work.statements == 4
    assert len(any_desk.accepted) == 50


async def test_the_times_that_an_earlier_release_has_stored_are_taken_over(desk: Desk) -> None:
    name = "octocat/compiler nightly"
    moment = EVENING - 15 * HOUR
    timers = {
        name: AnnouncedTimer("21:00 America/Los_Angeles", moment),
        "octocat/removed nightly": AnnouncedTimer("", 0),
    }
    await desk.engine.records.put(ANNOUNCED.of(), AnnouncedTimers(timers))
    desk.now = EVENING + 9 * HOUR
    await desk.timers().tick()
    assert desk.accepted == ["timer:7:nightly:2026-03-07T05:00:00Z"]
    assert await desk.engine.records.get(ANNOUNCED.of()) is None
    assert list(await desk.engine.records.under(ANNOUNCED_TIMER)) == ["octocat/compiler:nightly"]


async def test_a_time_that_a_repository_misses_while_it_is_archived_is_not_caught_up(desk: Desk) -> None:
    repositories = Repositories(config(), desk.engine.records)
    await repositories.see(7, "octocat/compiler")
    timers = desk.timers()
    await timers.tick()
    await repositories.see(7, "octocat/compiler", away=LeftAlone.ARCHIVED)
    desk.now = EVENING + 9 * HOUR
    await timers.tick()
    await repositories.see(7, "octocat/compiler", away=LeftAlone.NO)
    for desk.now in (EVENING + 10 * HOUR, EVENING + 9 * HOUR + DAY):
        await timers.tick()
    assert desk.accepted == ["timer:7:nightly:2026-03-08T05:00:00Z"]


async def test_a_repository_whose_id_github_does_not_return_holds_up_no_other_and_is_tried_each_minute(
    desk: Desk,
) -> None:
    requests: list[str] = []

    async def refuse(repository: str) -> GitHub:
        requests.append(repository)
        raise TryAgain("GitHub is away")

    settings = many("nightly: {}", 2)
    await desk.engine.records.put(REPOSITORY_ID.of("octocat/r1"), RepositoryId(8))
    timers = RepositoryTimers(
        settings,
        desk.engine.records,
        desk.engine.journal,
        accept=desk.accept,
        github_for=refuse,
        clock=lambda: desk.now,
    )
    for desk.now in (EVENING, EVENING + 9 * HOUR, EVENING + 9 * HOUR + 60):
        await timers.tick()
    assert desk.accepted == ["timer:8:nightly:2026-03-07T05:00:00Z"]
    assert requests == ["octocat/r0", "octocat/r0"]
    await desk.engine.records.put(REPOSITORY_ID.of("octocat/r0"), RepositoryId(9))
    await timers.tick()
    assert desk.accepted[1:] == ["timer:9:nightly:2026-03-07T05:00:00Z"]


async def test_a_repository_that_becomes_known_under_a_pattern_has_its_timers_without_a_restart(desk: Desk) -> None:
    await desk.engine.records.put(REPOSITORY_ID.of("octocat/late"), RepositoryId(8))
    patterns = parse_config(b'repositories:\n  "octocat/*":\n    nightly:\n', "app.yaml")
    timers = RepositoryTimers(
        patterns,
        desk.engine.records,
        desk.engine.journal,
        accept=desk.accept,
        github_for=nobody,
        clock=lambda: desk.now,
    )
    await timers.tick()
    assert not await timers.has_work()
    patterns.configured.know(8, "octocat/late")
    assert await timers.has_work()
    await timers.tick()
    patterns.configured.know(8, "octocat/late")
    assert not await timers.has_work()
    desk.now = EVENING + 9 * HOUR
    await timers.tick()
    assert desk.accepted == ["timer:8:nightly:2026-03-07T05:00:00Z"]


async def test_a_repository_that_is_forgotten_before_its_id_was_found_leaves_no_work(desk: Desk) -> None:
    async def away(_: str) -> GitHub:
        raise TryAgain("GitHub does not answer")

    patterns = parse_config(b'repositories:\n  "octocat/*":\n    nightly:\n', "app.yaml")
    timers = RepositoryTimers(
        patterns,
        desk.engine.records,
        desk.engine.journal,
        accept=desk.accept,
        github_for=away,
        clock=lambda: desk.now,
    )
    patterns.configured.know(9, "octocat/unidentified")
    await timers.tick()
    desk.now = EVENING + 9 * HOUR
    await timers.tick()
    assert await timers.has_work()  # GitHub did not say the ID
    patterns.configured.forget(9)
    await timers.tick()
    assert not await timers.has_work()
