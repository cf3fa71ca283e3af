"""Rows of `benchmarks.scale` by a simulated clock: their seconds are those of GitHub and of the bot's own schedule.

The bot, GitHub's sandbox and their sockets are in one process, whose clock jumps whenever everybody waits. So a row is
the same on every machine, except that a busy one wakes threads more often.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from benchmarks.many_repositories import LATENCY, WRITER, ManyRepositories, many_repositories
from benchmarks.scaling import ScalePlace
from benchmarks.timer_rounds import TimerRound, simulated_round
from bot.app.address import Address
from bot.app.load import parse_config
from bot.app.serve import running
from bot.github.repositories.visibility import FRESH_SECONDS
from tests.app.idle_hour import HOUR, idle_hour
from tests.processes import lent_pool
from tests.simulated_hours import SimulatedLoop, in_simulated_time

OWNERS = 10
LOOK_EVERY = 0.01


def command_after_start(place: ScalePlace, size: int) -> float:
    """Return the seconds from a comment in the first moment of a bot with so many repositories to its first answer."""
    return in_simulated_time(lambda loop: _until_reaction(place.folder, loop, size))


async def _until_reaction(folder: Path, loop: SimulatedLoop, size: int) -> float:
    async with _started(folder, loop, size) as (many, url):
        many.app.webhook_url = f"{url}/webhook"
        pull = many.github.repositories[_name(size - 1)].open_pull_request("octocat")
        began = loop.clock.time()
        comment = pull.comment(WRITER, "@ci help")
        while not pull.reactions(comment):  # noqa: ASYNC110  # it waits for another part of this process
            await asyncio.sleep(LOOK_EVERY)
        return loop.clock.time() - began


def first_page(place: ScalePlace, size: int) -> float:
    """Return the seconds that the first visitor of `/` waits after a start with so many repositories."""
    return in_simulated_time(lambda loop: _until_page(place.folder, loop, size))


def expired_page(place: ScalePlace, size: int) -> float:
    """Return the most seconds that a visitor of `/` waits every ten minutes, when what the last one saw has expired."""
    return in_simulated_time(lambda loop: _until_page(place.folder, loop, size, visits=4, pause=2 * FRESH_SECONDS))


async def _until_page(folder: Path, loop: SimulatedLoop, size: int, visits: int = 0, pause: float = 0.0) -> float:
    """Return what the first visitor waits, or the most that any of some later ones does."""
    waits = []
    async with _started(folder, loop, size) as (_, url), aiohttp.ClientSession() as session:
        for _ in range(1 + visits):
            began = loop.clock.time()
            async with session.get(f"{url}/") as answer:
                assert _name(0) in await answer.text(), "no repository is listed"
            waits.append(loop.clock.time() - began)
            await asyncio.sleep(pause)
    return max(waits[1:] if visits else waits)


@asynccontextmanager
async def _started(folder: Path, loop: SimulatedLoop, size: int) -> AsyncIterator[tuple[ManyRepositories, str]]:
    """Start a bot with so many repositories of one owner; yield GitHub and the bot's address at once."""
    names = list(map(_name, range(size)))
    config = parse_config(("repositories:\n" + "".join(f"  {name}:\n" for name in names)).encode(), "app.yaml")
    async with many_repositories(folder, names) as many, lent_pool() as pool:
        many.github.faults.add("*", "*", delay=LATENCY, times=None)
        address = Address("127.0.0.1", 0)
        async with running(config, many.settings, address, clock=loop.clock.time, pool=pool) as at_work:
            yield many, f"http://127.0.0.1:{at_work.port}"


def _name(number: int) -> str:
    return f"octo-org/compiler-{number}"


def last_good_round(place: ScalePlace, size: int) -> float:
    """Return by how many seconds the latest timer runs of so many repositories with one every 15 minutes."""
    return _latest(simulated_round(place.folder, size, OWNERS, 0), "last-good", size)


def nightly_minute(place: ScalePlace, size: int) -> float:
    """Return by how many seconds the latest nightly branch is moved of so many with the same minute."""
    return _latest(simulated_round(place.folder, size, min(size, OWNERS), size), "nightly", size)


def _latest(timers: TimerRound, name: str, size: int) -> float:
    # A round in which each runs once: none is later than a whole round, which its time alone would not show.
    assert len(timers.late[name]) == size, len(timers.late[name])
    return max(timers.late[name])


def idle_rows(place: ScalePlace, size: int) -> float:
    """Return the rows that a bot with so many repositories changes in an hour in which nothing happens."""
    url = f"sqlite:///{place.folder}/nightjar.db"
    return float(in_simulated_time(lambda loop: idle_hour(url, loop, size)).rows)


def idle_wakes(place: ScalePlace, size: int) -> float:
    """Return how often a second such a bot wakes up."""
    url = f"sqlite:///{place.folder}/nightjar.db"
    return in_simulated_time(lambda loop: idle_hour(url, loop, size)).wakes / HOUR
