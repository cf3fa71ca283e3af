"""Deliveries that never reached us: which they are, and how they are requested from GitHub."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from bot.app.redelivery import (
    ATTEMPTS,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    MISSING,
    MOST_PARTS,
    OVERLAP,
    PAGES_OF_ALL,
    PER_NOTE,
    PER_SWEEP,
    READING_SECONDS,
    WINDOW,
    DeliveryAttempt,
    MissingDelivery,
    Redelivery,
    UnreadPart,
    _joined,
    still_missing,
)
from bot.core.errors import TryAgain
from bot.core.metrics import Metrics
from bot.engine.database import Database
from bot.engine.records import Records
from bot.github.app import GitHubApp
from bot.github.client import GitHub
from bot.github.limits.ledger import WRITE_BURST, WRITE_SPACING
from sandbox.github import GitHubSandbox
from sandbox.model.apps import App
from tests.github.virtual import JumpingTime
from tests.tables import with_tables

NOW = 1_800_000_000.0


def attempt(guid: str, number: int, ago: float, *, arrived: bool = False) -> DeliveryAttempt:
    return DeliveryAttempt(id=number, guid=guid, at=NOW - ago, arrived=arrived)


def test_a_guid_whose_attempts_all_failed_is_missing_under_its_newest_attempt() -> None:
    missing = still_missing({}, [attempt("a", 7, 10), attempt("a", 3, 60)], (), NOW)
    assert missing == {"a": MissingDelivery("a", id=7, first=NOW - 60, last=NOW - 10)}


@pytest.mark.parametrize("order", [1, -1])
def test_one_successful_attempt_is_enough_whatever_the_order(order: int) -> None:
    attempts = [attempt("a", 7, 10), attempt("a", 3, 60, arrived=True), attempt("b", 4, 50)][::order]
    assert list(still_missing({}, attempts, (), NOW)) == ["b"]


def test_a_delivery_in_our_inbox_is_not_missing_even_if_github_got_no_answer() -> None:
    assert still_missing({}, [attempt("timed-out", 1, 10)], {"timed-out"}, NOW) == {}


def test_a_missing_delivery_stays_missing_until_it_arrives_or_github_forgets_it() -> None:
    before = {
        guid: MissingDelivery(guid, 1, NOW - age, NOW - age, asked=2) for guid, age in [("a", 60), ("b", WINDOW + 1)]
    }
    assert still_missing(before, (), (), NOW) == {"a": before["a"]}
    assert still_missing(before, [attempt("a", 2, 5, arrived=True)], (), NOW) == {}


def test_the_oldest_are_requested_first() -> None:
    attempts = [attempt(guid, number, ago) for number, (guid, ago) in enumerate([("b", 20), ("c", 10), ("a", 30)])]
    assert list(still_missing({}, attempts, (), NOW)) == ["a", "b", "c"]


def test_deliveries_that_people_wait_for_come_before_the_others() -> None:
    events = [("a", "push"), ("b", "check_suite"), ("c", "issue_comment"), ("d", "status"), ("e", "pull_request")]
    attempts = [
        replace(attempt(guid, number, 100 - number), event=event) for number, (guid, event) in enumerate(events)
    ]
    assert list(still_missing({}, attempts, (), NOW)) == ["c", "e", "a", "b", "d"]


def test_a_guid_is_requested_at_once_and_then_less_and_less_often() -> None:
    pauses = [MissingDelivery("a", 1, NOW, NOW, asked=asked).askable - NOW for asked in range(1_100)]
    assert pauses[:4] == [0, FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
    assert pauses[-1] == LONGEST_PAUSE


@dataclass
class World:
    """A GitHub with an App whose webhooks reach nobody, and our sweep on a real database."""

    github: GitHubSandbox
    app: App
    bot: GitHub
    sweeper: Redelivery
    metrics: Metrics
    records: Records
    time: JumpingTime
    inbox: set[str] = field(default_factory=set)
    looked_up: list[Sequence[str]] = field(default_factory=list)

    async def known(self, guids: Sequence[str]) -> set[str]:
        self.looked_up.append(guids)
        return self.inbox.intersection(guids)

    def sweeper_with(self, **options: Any) -> Redelivery:
        """Return a sweep that uses GitHub's own clock."""
        known: dict[str, Any] = {"now": self.github.clock.seconds, **options}
        return Redelivery(self.bot, self.records, self.known, self.metrics, **known)

    def redelivered(self) -> list[str]:
        return [d.guid for d in self.github.webhooks.deliveries if d.redelivery]

    def lose(self, count: int) -> list[str]:
        """Let GitHub fail to deliver this many pushes; return their GUIDs, oldest first."""
        self.github.webhooks.lose(event="push", times=count)
        repository = self.github.repositories["octocat/compiler"]
        before = len(self.github.webhooks.find("push"))
        for _ in range(count):
            repository.push("main", by="octocat")
        lost = self.github.webhooks.find("push")[before:]
        return [delivery.guid for delivery in lost]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    github = GitHubSandbox()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(github.serve())
        app = github.create_app(webhook_secret="0123456789abcdef", events=["push"])
        repository = github.create_repository("octocat/compiler")
        app.install(repository)
        app.webhook_url = "http://127.0.0.1:9/webhook"  # the discard port, where nothing listens
        session = await stack.enter_async_context(aiohttp.ClientSession())
        database = Database(with_tables(f"sqlite:///{tmp_path / 'nightjar.db'}"))
        await database.open()
        stack.push_async_callback(database.close)
        time = JumpingTime()
        bot = GitHubApp(session, app_id=app.id, private_key=app.private_key, api_url=url, timing=time.timing())
        metrics, records = Metrics("1.0"), Records(database.connector)
        world = World(github, app, bot.as_app(), None, metrics, records, time)  # type: ignore[arg-type]  # the two know each other
        world.sweeper = world.sweeper_with()
        yield world


@pytest.mark.one_clock
async def test_a_lost_delivery_is_requested_once_and_not_again_in_the_next_sweep(world: World) -> None:
    lost = world.lose(3)
    assert (await world.sweeper.sweep()).asked == 3
    await world.github.delivered()
    assert world.redelivered() == lost
    assert (await world.sweeper.sweep()).asked == 0
    assert world.redelivered() == lost


async def test_deliveries_in_our_inbox_are_not_requested_and_looked_up_in_one_query(world: World) -> None:
    lost = world.lose(3)
    world.inbox.update(lost[:2])
    assert (await world.sweeper.sweep()).asked == 1
    await world.github.delivered()
    assert world.redelivered() == lost[2:]
    assert world.looked_up == [sorted(lost)]


async def test_a_delivery_that_arrives_after_the_request_counts_as_recovered(world: World) -> None:
    lost = world.lose(1)
    await world.sweeper.sweep()
    world.inbox.update(lost)
    swept = await world.sweeper.sweep()
    assert (swept.recovered, swept.missing, await world.sweeper.missing()) == (1, 0, 0)
    text = world.metrics.exposition()[0].decode()
    assert "nightjar_missed_deliveries_asked_total 1.0" in text
    assert "nightjar_missed_deliveries_recovered_total 1.0" in text


@pytest.mark.exhaustive
async def test_two_sweeps_request_what_ten_minutes_of_freeze_lost_at_githubs_pace(world: World) -> None:
    """When a sweep requested 25 every five minutes, 389 were still missing after ten."""
    lost = world.lose(400)
    for place, delivery in enumerate(world.github.webhooks.deliveries):
        delivery.created_at -= timedelta(seconds=1000 - place)  # GitHub reports whole seconds
    began = world.time.now
    assert (await world.sweeper.sweep()).asked == PER_SWEEP
    assert (await world.sweeper.sweep()).asked == len(lost) - PER_SWEEP
    assert (len(lost) - 2 * WRITE_BURST) * WRITE_SPACING <= world.time.now - began < 600
    await world.github.delivered()
    assert world.redelivered() == lost
    assert "nightjar_missed_deliveries_asked_total 400.0" in world.metrics.exposition()[0].decode()


async def test_a_sweep_that_ends_early_has_recorded_its_progress(world: World) -> None:
    world.lose(PER_NOTE + 5)
    world.github.faults.add("POST", ATTEMPTS, status=429, headers={"Retry-After": "90"}, skip=PER_NOTE + 2)
    assert (await world.sweeper.sweep()).asked == PER_NOTE + 2
    remaining = await world.records.get(MISSING.of())
    assert remaining is not None
    assert sorted(one.asked for one in remaining.missing) == [0] * 3 + [1] * (PER_NOTE + 2)


async def test_a_delivery_that_github_refuses_does_not_delay_the_others(world: World) -> None:
    lost = world.lose(2)
    world.github.faults.add("POST", ATTEMPTS, status=422)
    assert (await world.sweeper.sweep()).asked == 1
    await world.github.delivered()
    assert len(world.redelivered()) == 1
    assert set(world.redelivered()) < set(lost)


async def test_a_delivery_that_could_not_be_requested_is_remembered_although_its_page_is_not_read_again(
    world: World,
) -> None:
    [old] = world.lose(1)
    world.github.webhooks.deliveries[0].created_at -= timedelta(hours=2)
    world.github.faults.add("POST", ATTEMPTS, status=429, headers={"Retry-After": "90"}, times=None)
    world.lose(1)
    assert (await world.sweeper.sweep()).asked == 0
    world.github.faults.clear()
    world.time.now += 90
    # The second sweep ends before the page on which the first found it.
    world.github.requests.records.clear()
    assert (await world.sweeper.sweep()).asked == 2
    await world.github.delivered()
    assert old in world.redelivered()


async def test_a_delivery_at_which_github_always_fails_does_not_delay_the_others(world: World) -> None:
    """The first request of each sweep got a 500, and everything behind it waited for ever."""
    lost = world.lose(3)
    first = str(world.github.webhooks.deliveries[0].id)
    world.github.faults.add("POST", re.compile(f"/app/hook/deliveries/{first}/attempts"), status=500, times=None)
    assert (await world.sweeper.sweep()).asked == 2
    await world.github.delivered()
    assert world.redelivered() == lost[1:]
    remaining = await world.records.get(MISSING.of())
    assert remaining is not None
    assert {one.guid: one.asked for one in remaining.missing}[lost[0]] == 1, "it is requested again after a pause"


async def test_an_outage_ends_the_requests_and_does_not_count_as_a_try(world: World) -> None:
    world.lose(4)
    world.github.faults.add("POST", ATTEMPTS, drop="before", times=None)
    assert (await world.sweeper.sweep()).asked == 0
    remaining = await world.records.get(MISSING.of())
    assert remaining is not None
    assert [one.asked for one in remaining.missing] == [1, 0, 0, 0], (
        "after five failed requests, GitHub counts as unavailable"
    )


def listed(world: World, count: int, *, failed: Collection[int] = (), began: float = 60.0) -> list[str]:
    """Let GitHub list as many deliveries of the last seconds; those at the places `failed` did not arrive.

    Return the GUIDs of the failed ones, oldest first.
    """
    if not world.github.webhooks.deliveries:
        world.lose(1)
        world.github.webhooks.deliveries[0].status_code = 202
    delivery, moment, lost = world.github.webhooks.deliveries[0], world.github.clock.now(), []
    for place in range(count):
        code = 502 if place in failed else 202
        created_at = moment - timedelta(seconds=round(began * (1 - place / count)))
        copy = replace(
            delivery, id=world.github.new_id(), guid=f"{began}-{place}", created_at=created_at, status_code=code
        )
        world.github.webhooks.deliveries.append(copy)
        lost += [copy.guid] if place in failed else []
    return lost


async def swept_pages(world: World, sweeper: Redelivery) -> int:
    """Sweep, and return how many pages of the list it read."""
    world.github.requests.clear()
    await sweeper.sweep()
    await world.github.delivered()
    return world.github.requests.count("GET", "/app/hook/deliveries")


@pytest.mark.parametrize("count", [10, 100, 990, 3_000, 12_000])
async def test_a_sweep_reads_ten_pages_and_the_failures_however_many_deliveries_arrived(
    world: World, count: int
) -> None:
    """It read all deliveries of eleven minutes, and could not keep up with 136 a second."""
    await world.sweeper.sweep()
    listed(world, 1, began=3600.0)
    await world.sweeper.sweep()
    lost = listed(world, count, failed=[0, count // 2, count - 1])
    assert await swept_pages(world, world.sweeper) <= min(count // 100 + 1, PAGES_OF_ALL + 1)
    assert set(lost) <= set(world.redelivered())


async def test_a_list_that_takes_too_long_is_read_to_its_end_by_later_sweeps(world: World) -> None:
    """A job is cancelled after 15 minutes: a sweep that reads longer would never record anything."""
    lost = listed(world, 1_000, failed=range(0, 1_000, 100), began=3600.0)
    ticks = count(0, READING_SECONDS / 3)
    pages = []
    for _ in range(10):
        sweeper = world.sweeper_with(clock=lambda: float(next(ticks)))  # another process has no other state
        pages.append(await swept_pages(world, sweeper))
    assert set(lost) <= set(world.redelivered())
    assert all(number <= 4 for number in pages)
    remaining = await world.records.get(MISSING.of())
    assert remaining is not None
    assert remaining.unread == ()


async def test_a_sweep_that_github_limits_goes_on_where_it_was(world: World) -> None:
    lost = listed(world, 1_000, failed=[3, 503, 950])
    world.github.faults.add("GET", "/app/hook/deliveries", status=429, headers={"Retry-After": "90"}, skip=4)
    assert await swept_pages(world, world.sweeper) == 5
    remaining = await world.records.get(MISSING.of())
    assert remaining is not None
    assert [missing.guid for missing in remaining.missing] == [lost[2]]
    world.time.now += 90
    # All deliveries are from the last two minutes, so the newest pages are read again.
    assert await swept_pages(world, world.sweeper) == 11 + 7
    assert set(lost) <= set(world.redelivered())


@pytest.mark.parametrize("status", [400, 422])
async def test_a_cursor_that_github_no_longer_knows_loses_nothing(world: World, status: int) -> None:
    lost = listed(world, 1_000, failed=[3, 503, 950])
    world.github.faults.add("GET", "/app/hook/deliveries", status=429, headers={"Retry-After": "90"}, skip=4)
    await world.sweeper.sweep()
    world.time.now += 90
    world.github.faults.clear()
    # The first request of the sweep is for the newest page, the second one has the cursor.
    world.github.faults.add("GET", "/app/hook/deliveries", status=status, skip=1)
    await swept_pages(world, world.sweeper)
    assert set(lost) <= set(world.redelivered())


async def test_a_cursor_of_a_delivery_that_github_has_deleted_loses_nothing(world: World) -> None:
    lost = listed(world, 1_000, failed=[3, 503, 950])
    await world.sweeper.sweep()
    noted = await world.records.get(MISSING.of())
    assert noted is not None
    world.github.webhooks.deliveries = [sent for sent in world.github.webhooks.deliveries if not sent.redelivery]
    await world.records.put(MISSING.of(), replace(noted, missing=(), unread=(UnreadPart(0.0, "v1_1"),)))
    await swept_pages(world, world.sweeper)
    assert set(lost) <= set(world.redelivered())


@pytest.mark.parametrize("count", [5, 3_000])
async def test_a_failure_that_is_listed_late_among_older_deliveries_is_found(world: World, count: int) -> None:
    """GitHub waits for an answer for ten seconds, while it lists newer deliveries that have ended."""
    listed(world, count)
    await world.sweeper.sweep()
    await world.sweeper.sweep()
    late = replace(world.github.webhooks.deliveries[-1], id=0, guid="late", status_code=504)
    late.created_at -= timedelta(seconds=OVERLAP - 20)
    world.github.webhooks.deliveries.insert(len(world.github.webhooks.deliveries) - 2, late)
    await swept_pages(world, world.sweeper)
    noted = await world.records.get(MISSING.of())
    assert noted is not None
    assert "late" in [missing.guid for missing in noted.missing]


async def test_after_the_database_was_lost_successes_count_however_long_the_list_is(world: World) -> None:
    """Otherwise the bot would run commands again that it had missed and carried out."""
    [lost] = listed(world, 3_000, failed=[0])
    first = next(sent for sent in world.github.webhooks.deliveries if sent.guid == lost)
    neighbour = world.github.webhooks.deliveries[1_500]
    arrived = replace(first, id=neighbour.id, redelivery=True, status_code=202)
    world.github.webhooks.deliveries.insert(1_500, arrived)
    await world.sweeper.sweep()
    assert world.redelivered() == [lost]  # by hand, before


def test_many_unread_parts_are_joined_into_one_that_covers_them() -> None:
    parts = [UnreadPart(100.0 - number, f"v1_{number}", failures=number != 25) for number in range(MOST_PARTS + 10)]
    joined = _joined(parts)
    assert joined[:-1] == tuple(parts[: MOST_PARTS - 1])
    assert joined[-1] == UnreadPart(100.0 - (MOST_PARTS + 9), "", failures=False)
    assert _joined(parts[:3]) == tuple(parts[:3])


async def test_deliveries_beyond_the_limit_of_memory_are_found_again_by_later_sweeps(world: World) -> None:
    lost = world.lose(5)
    for place, delivery in enumerate(world.github.webhooks.deliveries):
        delivery.created_at -= timedelta(hours=5 - place)
    sweeper = world.sweeper_with(most=2)
    for sweeps in range(1, 4):
        with capture_logs() as logs:
            await sweeper.sweep()
        assert [one["others"] for one in logs if "others" in one] == [left for left in (5 - 2 * sweeps,) if left > 0]
        await world.github.delivered()
        assert world.redelivered() == lost[: 2 * sweeps]
        world.inbox.update(world.redelivered())


async def test_a_sweep_that_cannot_ask_github_raises_and_forgets_nothing(world: World) -> None:
    world.lose(1)
    world.github.faults.add("GET", "/app/hook/deliveries", status=503, times=10)
    with pytest.raises(TryAgain):
        await world.sweeper.sweep()
    world.github.faults.clear()
    assert (await world.sweeper.sweep()).asked == 1


async def test_deliveries_older_than_three_days_are_left_alone(world: World) -> None:
    world.lose(1)
    world.github.webhooks.deliveries[0].created_at -= timedelta(seconds=WINDOW + 60)
    swept = await world.sweeper.sweep()
    assert (swept.asked, swept.missing) == (0, 0)
