"""Limits as a caller sees them: short waits inside, long ones back to the queue, and no hammering."""

from __future__ import annotations

import asyncio

import pytest
from gidgethub import BadRequest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.github.app import GitHubApp
from bot.github.client import GitHub
from bot.github.errors import Answer, RateLimited, is_forbidden
from bot.github.limits.governor import IN_FLIGHT, SHORT_WAIT, Governor
from bot.github.limits.ledger import WRITE_BURST, Allowance, Demand
from bot.github.limits.ranks import Rank, ranked
from tests.github.scripted import Say, ScriptedGitHub
from tests.github.support import INSTALLATION, Seen, client_of, quota, refused
from tests.github.test_limits import most_within
from tests.github.virtual import JumpingTime, SharedTime

PATH = "/repos/octocat/compiler/issues/1"
OK = Say(body={"id": 1})
POINTING = "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#about-secondary-rate-limits"


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_long_retry_after_goes_to_the_queue_and_others_send_nothing(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime, status: int, method: str
) -> None:
    scripted.will(method, PATH, refused(status, "slow down", retry_after="30"), OK)

    async def send() -> object:
        return await (gh.getitem(PATH) if method == "GET" else gh.post(PATH, data={}))

    for _ in range(3):
        with pytest.raises(RateLimited) as raised:
            await send()
        assert raised.value.ends_in == 30
        assert 30 <= raised.value.retry_in < 31
    assert len(scripted.requests_for(method, PATH)) == 1
    jumping.now += 31
    assert await send() == {"id": 1}


async def test_a_short_retry_after_is_waited_for_and_a_post_sent_again(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime
) -> None:
    scripted.will("POST", PATH, refused(429, "slow down", retry_after="2"), OK)
    assert await gh.post(PATH, data={}) == {"id": 1}
    assert sum(jumping.slept) == 2


@pytest.mark.parametrize("limited", [Say(429), Say(403, {"message": "m", "documentation_url": POINTING})])
async def test_a_limit_without_a_time_is_a_minute_then_two(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime, limited: Say
) -> None:
    scripted.will("GET", PATH, limited)
    waits = []
    for _ in range(3):
        with pytest.raises(RateLimited) as raised:
            await gh.getitem(PATH)
        waits.append(raised.value.retry_in)
        jumping.now += raised.value.retry_in + 1
    assert waits == [60, 120, 240]


async def test_a_used_up_quota_waits_for_its_reset(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, Say(403, {"message": "API rate limit exceeded"}, quota(0)))
    scripted.will("GET", "/search/issues", Say(body={"items": []}))
    for _ in range(2):
        with pytest.raises(RateLimited) as raised:
            await gh.getitem(PATH)
        assert raised.value.retry_in > 3600
    assert len(scripted.requests_for("GET", PATH)) == 1
    assert await gh.getitem("/search/issues") == {"items": []}


async def test_after_the_last_request_of_a_quota_the_next_one_waits(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, Say(body={}, headers=quota(0)))
    await gh.getitem(PATH)
    with pytest.raises(RateLimited, match="quota is used up"):
        await gh.getitem(PATH)


async def test_a_missing_permission_stays_a_refusal_and_stops_nobody(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, Say(403, {"message": "Resource not accessible by integration"}, quota(4000)), OK)
    with pytest.raises(BadRequest, match="not accessible") as raised:
        await gh.getitem(PATH)
    assert is_forbidden(raised.value)
    assert await gh.getitem(PATH) == {"id": 1}


async def test_the_quota_in_a_failed_answer_counts(scripted: ScriptedGitHub, gh: GitHub, seen: Seen) -> None:
    scripted.will("GET", PATH, Say(404, {"message": "Not Found"}, quota(17)))
    with pytest.raises(BadRequest):
        await gh.getitem(PATH)
    assert seen.quotas == [(str(INSTALLATION), "core", 17, 5000, 4_102_444_800)]
    with ranked(Rank.SWEEP), pytest.raises(RateLimited, match="reserved for webhooks"):
        await gh.getitem(PATH)


async def test_sweeps_stop_at_the_reserve_and_webhooks_go_on(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("GET", PATH, Say(body={"id": 1}, headers=quota(900)))
    await gh.getitem(PATH)
    with ranked(Rank.SWEEP), pytest.raises(RateLimited) as raised:
        await gh.getitem(PATH)
    assert raised.value.retry_in > 0
    assert await gh.getitem(PATH) == {"id": 1}


async def test_one_limited_installation_leaves_the_others_alone(
    scripted: ScriptedGitHub, scripted_app: GitHubApp
) -> None:
    scripted.will("GET", PATH, refused(429, "slow down", retry_after="60"), OK)
    with pytest.raises(RateLimited):
        await client_of(scripted_app, 1).getitem(PATH)
    assert await client_of(scripted_app, 2).getitem(PATH) == {"id": 1}


async def test_one_event_is_answered_at_once_and_many_a_second_apart(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime
) -> None:
    scripted.will("POST", PATH, OK)
    with ranked(Rank.WRITER):
        for _ in range(WRITE_BURST):
            await gh.post(PATH, data={})
        assert jumping.slept == []
        for _ in range(3):
            await gh.post(PATH, data={})
    assert jumping.slept == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("crowd", [Rank.STRANGER, Rank.SWEEP, Rank.EVENT])
async def test_a_crowd_leaves_room_for_people_with_the_write_role(crowd: Rank) -> None:
    """A stranger's sixty comments used to silence the bot for everybody for more than a minute."""
    shared = SharedTime()
    governor = Governor(shared.timing())
    sent: list[float] = []

    async def stranger() -> None:
        while shared.now < 60:
            try:
                async with governor.turn("42", Demand(write=True, rank=crowd)):
                    pass
            except RateLimited as limit:
                await shared.sleep(limit.retry_in)

    async def maintainer() -> None:
        await shared.sleep(30)
        for _ in range(5):
            async with governor.turn("42", Demand(write=True, rank=Rank.WRITER)) as sent_at:
                sent.append(sent_at)

    await shared.run([*(stranger() for _ in range(60)), maintainer()])
    assert len(sent) == 5
    assert max(sent) <= 30 + SHORT_WAIT


async def test_after_the_hourly_writes_are_used_up_reads_go_on(
    scripted: ScriptedGitHub, gh: GitHub, jumping: JumpingTime
) -> None:
    scripted.will("POST", PATH, OK)
    scripted.will("GET", PATH, OK)
    with ranked(Rank.WRITER):
        for _ in range(450):
            await gh.post(PATH, data={})
            jumping.now += 1
        with pytest.raises(RateLimited) as raised:
            await gh.post(PATH, data={})
        assert raised.value.retry_in == pytest.approx(3600 - 450, abs=2)
        assert await gh.getitem(PATH) == {"id": 1}
        jumping.now += raised.value.retry_in
        await gh.post(PATH, data={})


async def test_creating_tokens_does_not_count_as_a_write(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    scripted.will("GET", PATH, OK)
    for installation in range(50):
        await client_of(scripted_app, installation).getitem(PATH)
    assert scripted.tokens_made == 50


async def test_requests_refused_together_do_not_come_back_together(jumping: JumpingTime) -> None:
    chances = iter([0.0, 0.5, 0.9])
    timing = jumping.timing()
    governor = Governor(type(timing)(timing.clock, timing.wall, timing.sleep, lambda: next(chances)))
    for _ in range(450):
        async with governor.turn("42", Demand(write=True, rank=Rank.WRITER)):
            jumping.now += 1
    waits = []
    for _ in range(3):
        with pytest.raises(RateLimited) as raised:
            async with governor.turn("42", Demand(write=True, rank=Rank.WRITER)):
                pass
        waits.append(raised.value.retry_in)
    assert waits == sorted(set(waits))


crowds = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.2, 3.0]),  # seconds between two requests
        st.integers(1, 250),  # how many arrive in this way
        st.booleans(),  # whether they write
        st.sampled_from([0.1, 1.0, 25.0]),  # seconds until GitHub answers
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=15, deadline=None)
@given(crowds=crowds, installations=st.sampled_from([1, 3]))
async def test_the_governor_never_exceeds_the_limits(
    crowds: list[tuple[float, int, bool, float]], installations: int
) -> None:
    """Any crowd of requests that arrive at any time, take any time, and come back when the governor says so."""
    shared = SharedTime()
    governor = Governor(shared.timing())
    in_flight, most = 0, 0
    writes: dict[str, list[float]] = {}

    async def request(starts: float, installation: str, write: bool, takes: float) -> None:
        nonlocal in_flight, most
        await shared.sleep(starts)
        for _ in range(5):
            try:
                async with governor.turn(installation, Demand(points=5 if write else 1, write=write)) as sent_at:
                    in_flight += 1
                    most = max(most, in_flight)
                    if write:
                        writes.setdefault(installation, []).append(sent_at)
                    await shared.sleep(takes)
                    in_flight -= 1
                    return
            except RateLimited as limit:
                await shared.sleep(limit.retry_in)

    clock, work = 0.0, []
    for gap, count, write, takes in crowds:
        for number in range(count):
            clock += gap
            work.append(request(clock, str(number % installations), write, takes))
    await shared.run(work)
    assert in_flight == 0
    assert 0 < most <= IN_FLIGHT
    for moments in writes.values():
        assert most_within(60, moments) <= 80
        assert most_within(3600, moments) <= 450


async def test_a_hundred_requests_are_in_flight_and_the_next_waits() -> None:
    governor = Governor()
    leave = asyncio.Event()
    inside = 0

    async def request(number: int) -> None:
        nonlocal inside
        async with governor.turn(str(number), Demand()):
            inside += 1
            await leave.wait()

    tasks = [asyncio.ensure_future(request(number)) for number in range(IN_FLIGHT + 20)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert inside == IN_FLIGHT
    leave.set()
    await asyncio.gather(*tasks)
    assert inside == IN_FLIGHT + 20


async def test_a_request_that_was_waiting_when_a_limit_came_is_not_sent() -> None:
    shared = SharedTime()
    governor = Governor(shared.timing())
    outcome: list[str] = []

    async def write() -> None:
        try:
            async with governor.turn("42", Demand(write=True, rank=Rank.WRITER)):
                outcome.append("sent")
        except RateLimited:
            outcome.append("refused")

    async def limit() -> None:
        await shared.sleep(0.5)
        with pytest.raises(RateLimited):
            governor.judge("42", Demand(), Answer(429, {"retry-after": "60"}, b""), None, sent_at=0.0)

    await shared.run([*(write() for _ in range(WRITE_BURST + 2)), limit()])
    assert outcome == ["sent"] * WRITE_BURST + ["refused"] * 2


async def test_requests_that_wait_for_points_are_tried_again_as_fast_as_points_come_back() -> None:
    """Each of 10,000 waiting timers tried again once a minute, although points came back for 450 of them."""
    shared, tries = SharedTime(), 0
    governor = Governor(shared.timing(), Allowance(rest_points_per_minute=60))

    async def read() -> None:
        nonlocal tries
        while True:
            tries += 1
            try:
                async with governor.turn("42", Demand(rank=Rank.SWEEP)):
                    return
            except RateLimited as error:
                await shared.sleep(error.retry_in)

    await shared.run(read() for _ in range(10 * 30))
    assert tries < 2 * 10 * 30
    # The first half minute's points are spent at once, and the others come back every two seconds.
    assert 9 * 60 <= shared.now < 11 * 60


async def test_a_command_is_sent_at_once_while_a_sweep_of_many_repositories_waits_for_points(
    jumping: JumpingTime,
) -> None:
    """After a start with 1,000 repositories, a command waited for a minute behind their tokens."""
    governor = Governor(jumping.timing())

    async def request(times: int, demand: Demand) -> None:
        for _ in range(times):
            async with governor.turn("app", demand):
                pass

    with pytest.raises(RateLimited):
        await request(1000, Demand(points=5, rank=Rank.SWEEP))
    began = jumping.now
    await request(80, Demand(points=5))
    assert jumping.now == began
