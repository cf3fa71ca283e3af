"""GitHub and Jenkins have trouble at every kind of request: the end result is the same as without trouble."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sandbox import Fault, Repository
from sandbox.faults import When
from sandbox.journal import Request
from tests.robustness.conversation import SlowTests
from tests.robustness.crashes import Point, Undisturbed, in_groups, spread
from tests.robustness.place import BOT, Place, failures, jobs, open_place, tracebacks
from tests.robustness.side_by_side import SideBySide
from tests.waiting import until


@dataclass(frozen=True)
class Trouble:
    """One way in which a request can fail; `headers` come with `status`."""

    name: str
    side: When = "before"
    status: int | None = None
    lost: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)

    def inject(self, point: Point, place: Place, repository: Repository) -> Fault:
        """Make one request of a repository fail this way."""
        drop = self.side if self.lost else None
        return point.faults(place).add(
            point.method,
            point.pattern(repository),
            status=self.status,
            when=self.side,
            drop=drop,
            headers=self.headers,
            skip=point.number,
        )


def used_up(reset_time: float) -> dict[str, str]:
    """Return the headers of an installation whose quota is used up until a time, in seconds since 1970."""
    reset = str(int(reset_time))
    return {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}


BEFORE_EFFECT = [Trouble("500", status=500), Trouble("lost before", lost=True)]
AFTER_EFFECT = [Trouble("502 after", "after", 502), Trouble("lost after", "after", lost=True)]
LIMITS = [
    Trouble("403, retry-after 1", status=403, headers={"Retry-After": "1"}),
    Trouble("429, retry-after 1", status=429, headers={"Retry-After": "1"}),
    Trouble("429, retry-after 6", status=429, headers={"Retry-After": "6"}),
]


MOST_TROUBLES = 5
"""In one conversation."""


async def test_trouble_with_any_request_is_overcome_and_nothing_is_done_twice(
    undisturbed: Undisturbed, tmp_path: Path, sqlite_url: str
) -> None:
    writes = [point for point in undisturbed.points if point.writes]
    on_github = [point for point in writes if point.server == "github"]
    limits = [*LIMITS, Trouble("403, quota used up", status=403, headers=used_up(time.time() + 2))]
    cells = [(point, trouble) for point in writes for trouble in AFTER_EFFECT]
    cells += [(point, trouble) for trouble in BEFORE_EFFECT for point in spread(writes, 8)]
    cells += [(point, trouble) for trouble in limits for point in spread(on_github, 3)]
    cells += [(point, trouble) for trouble in [*BEFORE_EFFECT, *limits] for point in spread(undisturbed.at_reads, 3)]
    groups = in_groups(cells, undisturbed.points, lambda cell: cell[0], most=MOST_TROUBLES, apart=1)
    async with open_place(tmp_path, sqlite_url) as place:
        names = [" and ".join(f"{point}: {trouble.name}" for point, trouble in group) for group in groups]
        side_by_side = SideBySide(
            place, {name: group[0][0].conversation for name, group in zip(names, groups, strict=True)}
        )
        faults = [
            trouble.inject(point, place, conversation.repository)
            for conversation, group in zip(side_by_side.conversations.values(), groups, strict=True)
            for point, trouble in group
        ]
        await place.start()
        side_by_side.begin()
        await side_by_side.end()
        assert [fault.hits for fault in faults] == [1] * len(cells)
        assert side_by_side.differences(undisturbed.seen) == {}


@dataclass(frozen=True)
class Hold:
    """An answer that says to stay away; GitHub's documentation asks for a minute if it gives no time."""

    status: int
    headers: Mapping[str, str]

    def ends(self, answered: float) -> float:
        """Return the earliest end of the hold, given the time of the answer; both in seconds since 1970."""
        if reset := self.headers.get("X-RateLimit-Reset"):
            return float(reset)
        return answered + float(self.headers.get("Retry-After", "60"))


def holds(next_hour: float) -> list[Hold]:
    """Return the ways in which GitHub asks for a pause.

    `next_hour` is when GitHub gives new quotas, in seconds since 1970.
    """
    return [
        Hold(429, {}),
        Hold(429, {"Retry-After": "90"}),
        Hold(403, {"Retry-After": "90"}),
        Hold(403, used_up(next_hour)),
        Hold(429, used_up(next_hour)),
    ]


WAITS = ("retrying", "away")
"""What notes say about a job that is to be tried again."""
READ, WRITE = ("GET", "/repos/{owner}/{repo}/pulls/{pull_number}"), ("POST", "/repos/{owner}/{repo}/statuses/{sha}")


async def next_tries(place: Place, repository: Repository) -> list[float]:
    """Return when the failed jobs of a repository are tried again, in seconds since 1970."""
    return [
        datetime.fromisoformat(job["next_try"]).timestamp()
        for delivery in await place.deliveries()
        for job in jobs(delivery)
        if delivery["repository"] == repository.full_name and job["outcome"] in WAITS and job["state"] == "waiting"
    ]


async def unfinished_jobs(place: Place, repository: Repository) -> int:
    """Return how many jobs of a repository wait, or were running when the bot was killed."""
    return sum(
        job["state"] in ("waiting", "working")
        for delivery in await place.deliveries()
        for job in jobs(delivery)
        if delivery["repository"] == repository.full_name
    )


async def first_tries(place: Place, repository: Repository) -> list[float]:
    """Wait until a job of a repository waits for another try; return when each such job is tried again."""
    moments: list[float] = []

    async def scan() -> bool:
        moments[:] = await next_tries(place, repository)
        return bool(moments)

    await until(scan)
    return moments


async def held_back(place: Place, repositories: Sequence[Repository]) -> bool:
    """Return whether a job of two pull requests in each repository waits for another try."""
    waits = {
        (delivery["repository"], delivery["number"])
        for delivery in await place.deliveries()
        if any(job["outcome"] in WAITS and job["state"] == "waiting" for job in jobs(delivery))
    }
    return waits == {(repository.full_name, number) for repository in repositories for number in (1, 2)}


def requests_about(place: Place, repository: Repository) -> list[Request]:
    """Return the requests about a repository, except those of the App itself, which asks where it is installed.

    The installation's limits do not apply to those.
    """
    path = f"/repos/{repository.full_name}/"
    return [r for r in place.github.requests.records if r.path.startswith(path) and r.token != "app"]


def first_end(place: Place, repository: Repository, hold: Hold) -> float:
    """Return the end of the first pause that GitHub asked for, in seconds since 1970."""
    return hold.ends(
        next(r.received_at.timestamp() for r in requests_about(place, repository) if r.status == hold.status)
    )


def longest_wait(place: Place, repository: Repository, hold: Hold) -> float:
    """Return the longest pause that the answers so far ask for, in seconds.

    If they give no time, it doubles with each limited answer in a row, and on a busy machine, several may have come.
    """
    now, rounds, end = time.time(), 0, 0.0
    for request in requests_about(place, repository):
        if request.status == hold.status and (received_at := request.received_at.timestamp()) >= end:
            rounds, end = rounds + 1, hold.ends(received_at)
    return (hold.ends(now) - now) * (1 if hold.headers else 2 ** (rounds - 1))


def early_requests(place: Place, repository: Repository, hold: Hold, known_at: float) -> list[Request]:
    """Return the requests after `known_at`, when the bot knew of the first pause, and before the pause ended."""
    end = first_end(place, repository, hold)
    return [r for r in requests_about(place, repository) if known_at < r.received_at.timestamp() < end]


@pytest.mark.one_clock
async def test_a_limited_installation_waits_as_long_as_github_says_and_delays_no_other(
    undisturbed: Undisturbed, tmp_path: Path, sqlite_url: str
) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        next_hour = place.github.rate_limits.window("any").reset.timestamp()
        cells = [(hold, endpoint) for hold in holds(next_hour) for endpoint in (READ, WRITE)]
        limited = {place.add_repository(f"octocat-{n}"): hold for n, (hold, _) in enumerate(cells)}
        for number in place.app.installations:
            place.github.rate_limits.window(f"installation ID {number}").reset = datetime.fromtimestamp(next_hour, UTC)
        side_by_side = SideBySide(place, {"another installation": SlowTests}, beside=list(limited))
        await place.start()
        for repository, (hold, (method, route)) in zip(limited, cells, strict=True):
            pattern = Point(SlowTests, "github", method, route, 0).pattern(repository)
            place.github.faults.add(method, pattern, status=hold.status, headers=hold.headers, times=None)
            pull = repository.open_pull_request("hubot")
            pull.comment("hubot", "@ci rerun")
        side_by_side.begin()
        for repository, hold in limited.items():
            for moment in await first_tries(place, repository):
                assert moment >= first_end(place, repository, hold), hold
                assert moment - time.time() < longest_wait(place, repository, hold) * 1.3 + 15, hold
        await place.deliveries()  # meanwhile, what the bot sent before it read the answers arrives
        known_at = time.time()
        # Other requests of the installation wait as well, even in a process that does not know of the limit.
        for repository in limited:
            repository.open_pull_request("hubot")
        await place.github.delivered()
        await until(lambda: held_back(place, list(limited)), pause=0.1)
        await side_by_side.finish()
        assert side_by_side.differences(undisturbed.seen) == {}
        await place.bot.kill()
        waiting = {repository: await next_tries(place, repository) for repository in limited}
        unfinished = {repository: await unfinished_jobs(place, repository) for repository in limited}
        await place.start()
        conversation = SlowTests(place, side_by_side.conversations["another installation"].repository)
        await conversation.hold()
        for repository, moments in waiting.items():
            remaining_tries, current_time = await next_tries(place, repository), time.time()
            assert {moment for moment in moments if moment > current_time} <= set(remaining_tries)
            assert len(remaining_tries) <= unfinished[repository]
        for repository, hold in limited.items():
            assert early_requests(place, repository, hold, known_at) == [], hold
        assert tracebacks(place.bot) == []


async def test_a_missing_permission_is_reported_to_the_person_and_not_tried_again(
    tmp_path: Path, sqlite_url: str
) -> None:
    """A plain 403 is no limit."""
    async with open_place(tmp_path, sqlite_url) as place:
        repository = place.add_repository("octocat")
        place.configure([repository.full_name])
        await place.start()
        pull = repository.open_pull_request("hubot")
        await place.quiet()
        refused = place.github.faults.add("POST", WRITE[1], status=403, times=None)
        comment = pull.comment("hubot", "@ci run slow tests")
        deliveries = await place.quiet()
        assert pull.reactions(comment, by=BOT) == ["eyes", "confused"]
        assert "the App needs a permission" in pull.comments_by(BOT)[0].body
        assert refused.hits == 1
        assert len(failures(deliveries)) == 1
        assert tracebacks(place.bot) == []


@pytest.mark.one_clock
async def test_the_bot_asks_a_github_that_stays_down_less_and_less_often(tmp_path: Path, sqlite_url: str) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        repository = place.add_repository("octocat")
        place.configure([repository.full_name])
        await place.start()
        repository.open_pull_request("hubot")
        await place.quiet()
        place.github.faults.add("GET", re.compile(f"^/repos/{repository.full_name}/"), status=503, times=None)
        repository.pulls[0].push()
        waits: list[float] = []

        async def much_longer() -> bool:
            waits.extend([moment - time.time() for moment in await next_tries(place, repository)])
            return bool(waits) and max(waits) > max(2 * waits[0], 4)

        await until(much_longer)
        assert sum(r.status == 503 for r in requests_about(place, repository)) < 20
        times = [r.received_at for r in place.github.requests.records if r.status == 503]
        assert (times[-1] - times[-2]).total_seconds() >= 1
