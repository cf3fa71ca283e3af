"""Where a process can be killed: every request it makes, found by watching conversations that nothing disturbs."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sandbox import Fault, Repository
from sandbox.faults import When
from tests.robustness.conversation import CONVERSATIONS, Conversation
from tests.robustness.place import PATIENCE, Place, failures, place, tracebacks

OWNER = "example-lab"


@dataclass(frozen=True)
class Point:
    """The `number`-th request (from 0) of a method and route in a conversation, before or after it takes effect."""

    talk: type[Conversation]
    server: Literal["github", "jenkins"]
    method: str
    route: str
    number: int
    when: When = "before"

    @property
    def writes(self) -> bool:
        """Whether the request changes anything."""
        return self.method not in ("GET", "HEAD")

    def at(self, when: When) -> Point:
        """Return the same request at another moment."""
        return replace(self, when=when)

    def pause(self, here: Place, repository: Repository) -> Fault:
        """Hold the request when it is made in a repository."""
        faults = here.github.faults if self.server == "github" else here.jenkins.faults
        owner = re.escape(repository.owner.login)
        route = re.sub(r"\\\{[a-z_]+\\\}", "[^/]+", re.escape(self.route).replace(r"\{owner\}", owner))
        return faults.pause(self.method, re.compile(f"^{route}$"), when=self.when, skip=self.number)

    def __str__(self) -> str:
        return f"{self.talk.__name__}: {self.when} {self.method} {self.route} ({self.number + 1})"


@dataclass(frozen=True)
class Undisturbed:
    """The conversations where nothing happens: their requests, what is seen in the end, and what was used."""

    points: tuple[Point, ...]
    seen: Mapping[type[Conversation], dict[str, Any]]
    kinds: frozenset[str]

    @property
    def around_writes(self) -> list[Point]:
        """Return both sides of every write."""
        return [point.at(when) for point in self.points if point.writes for when in ("before", "after")]

    @property
    def at_reads(self) -> list[Point]:
        """Return every read: while a plan is made, and between it and its effects."""
        return [point for point in self.points if not point.writes]


def points_of(here: Place, talk: Conversation) -> list[Point]:
    """Return every request that was made about a conversation's repository, in order."""
    owner = talk.repository.owner.login
    records = here.github.requests.records
    made = [("github", r.method, r.route) for r in records if r.path.startswith(f"/repos/{owner}/")]
    made += [("jenkins", how, path.replace(owner, "{owner}")) for how, path in here.jenkins.requests if owner in path]
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for one in made:
        found.append(Point(type(talk), *one, number=seen[one]))  # type: ignore[arg-type]
        seen[one] += 1
    return found


async def watch(folder: Path) -> Undisturbed:
    """Hold the conversations once, undisturbed."""
    async with place(folder, f"sqlite:///{folder}/nightjar.db") as here:
        talks = [kind(here, here.add_repository(f"{OWNER}-{n}")) for n, kind in enumerate(CONVERSATIONS)]
        here.configure([talk.repository.full_name for talk in talks])
        await here.start()
        await asyncio.gather(*(talk.hold() for talk in talks))
        deliveries = await here.quiet()
        assert not failures(deliveries)
        kinds = {effect["kind"] for one in deliveries for plan in one["plans"] for effect in plan["effects"]}
        points = [point for talk in talks for point in points_of(here, talk)]
        return Undisturbed(tuple(points), {type(talk): talk.seen() for talk in talks}, frozenset(kinds))


class Crash:
    """Conversations side by side, each of them stopped at a point of its own, so that one kill hits all of them."""

    def __init__(self, here: Place, points: Sequence[Point]) -> None:
        self.here = here
        self.talks = {p: p.talk(here, here.add_repository(f"{OWNER}-{n}")) for n, p in enumerate(points)}
        self._pauses: list[Fault] = []
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def names(self) -> list[str]:
        """Return the repositories' names, for app.yaml."""
        return [talk.repository.full_name for talk in self.talks.values()]

    async def come_to_the_points(self) -> None:
        """Begin every conversation and wait until each is held at its point."""
        self._pauses = [point.pause(self.here, talk.repository) for point, talk in self.talks.items()]
        self._tasks = [asyncio.create_task(talk.hold()) for talk in self.talks.values()]
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(pause.reached.wait() for pause in self._pauses))
        except TimeoutError:
            missed = [str(p) for p, pause in zip(self.talks, self._pauses, strict=True) if not pause.reached.is_set()]
            raise AssertionError(f"never came to {missed}\n{self.here.github.transcript()}") from None
        await self.here.github.delivered()

    def lose_what_is_held(self) -> None:
        """Let go of the held requests of a process that is dead: none of them takes effect any more."""
        for pause in self._pauses:
            pause.abandon()

    async def end(self) -> None:
        """Wait until every conversation is over."""
        await asyncio.gather(*self._tasks)
        deliveries = await self.here.quiet()
        assert not failures(deliveries)
        assert not tracebacks(self.here.bot)

    def differences(self, undisturbed: Undisturbed) -> dict[str, Any]:
        """Return what differs from how an undisturbed conversation ends, by the point of the kill."""
        found = {}
        for point, talk in self.talks.items():
            now, then = talk.seen(), undisturbed.seen[point.talk]
            if now != then:
                found[str(point)] = {key: (now[key], then[key]) for key in then if now[key] != then[key]}
        return found


def spread(points: Iterable[Point], number: int) -> list[Point]:
    """Return so many of the points, evenly from first to last."""
    listed = list(points)
    return [listed[n * (len(listed) - 1) // (number - 1)] for n in range(number)]
