"""The points at which a process can be killed: each of its requests, found by observing undisturbed conversations."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from sandbox import Fault, Repository
from sandbox.faults import Faults, When
from tests.bucket import World
from tests.robustness.conversation import CONVERSATIONS, Conversation, NightlyMoves
from tests.robustness.place import PATIENCE, Place, place
from tests.robustness.side_by_side import SideBySide

BY_THE_CLOCK = ("/contents/{path}", "/installation", "/repos/{owner}/{repo}")
"""Routes that the bot also requests for all repositories at its start, so they belong to no conversation."""


class Hold(Protocol):
    """An action of the bot that is held; `reached` is set once the bot gets there."""

    reached: asyncio.Event

    def resume(self) -> None:
        """Let the action continue."""

    def abandon(self) -> None:
        """Release it after the process died; an action that is held *before* it takes effect is lost."""


class Boundary(Protocol):
    """An action of the bot in a conversation at which the bot can be held and killed."""

    @property
    def talk(self) -> type[Conversation]:
        """Hold the conversation."""

    def pause(self, here: Place, repository: Repository) -> Hold:
        """Hold the action if it belongs to a repository."""


@dataclass(frozen=True)
class Point:
    """The `number`-th request (from 0) of a method and route in a conversation, before or after it takes effect."""

    talk: type[Conversation]
    server: Literal["github", "jenkins", "s3"]
    method: str
    route: str
    number: int
    when: When = "before"

    @property
    def writes(self) -> bool:
        """Whether the request changes anything."""
        return self.method not in ("GET", "HEAD")

    def at(self, when: When) -> Point:
        """Return the same request, on the other or the same side of its effect."""
        return replace(self, when=when)

    def faults(self, here: Place) -> Faults:
        """Return the faults of the server that receives the request."""
        if self.server == "s3":
            assert here.gate is not None
            return here.gate.faults
        return here.github.faults if self.server == "github" else here.jenkins.faults

    @property
    def place(self) -> tuple[type[Conversation], str]:
        """Return the conversation and the server: requests to different servers have no defined order."""
        return self.talk, self.server

    def pattern(self, repository: Repository) -> re.Pattern[str]:
        """Return the pattern of such a request's path in a repository."""
        owner = re.escape(repository.owner.login)
        # The name of a ref contains slashes, as in heads/nightly, and so may a path.
        route = re.escape(self.route).replace(r"\{owner\}", owner).replace(r"\{ref\}", ".+").replace(r"\{path\}", ".+")
        route = re.sub(r"\\\{[a-z_]+\\\}", "[^/]+", route)
        return re.compile(f"^{route}$")

    def pause(self, here: Place, repository: Repository) -> Fault:
        """Hold the request when it is made for a repository."""
        faults = self.faults(here)
        return faults.pause(self.method, self.pattern(repository), when=self.when, skip=self.number)

    def __str__(self) -> str:
        return f"{self.talk.__name__}: {self.when} {self.method} {self.route} ({self.number + 1})"


@dataclass(frozen=True)
class Undisturbed:
    """Undisturbed conversations: their requests, their visible results, and the kinds of effects that they used."""

    points: tuple[Point, ...]
    seen: Mapping[type[Conversation], dict[str, Any]]
    kinds: frozenset[str]

    @property
    def around_writes(self) -> list[Point]:
        """Return the points on both sides of every write."""
        return [point.at(when) for point in self.points if point.writes for when in ("before", "after")]

    @property
    def at_reads(self) -> list[Point]:
        """Return the points at every read: while a plan is made, and between the plan and its effects."""
        return [point for point in self.points if not point.writes]


def points_of(here: Place, talk: Conversation) -> list[Point]:
    """Return every request about a conversation's repository, in order."""
    owner = talk.repository.owner.login
    records = here.github.requests.records
    made = [
        ("github", r.method, r.route)
        for r in records
        if r.path.startswith(f"/repos/{owner}/") and not r.route.endswith(BY_THE_CLOCK)
    ]
    made += [("jenkins", how, path.replace(owner, "{owner}")) for how, path in here.jenkins.requests if owner in path]
    made += [("s3", how, path) for how, path in _objects(here, owner)]
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for one in made:
        found.append(Point(type(talk), *one, number=seen[one]))  # type: ignore[arg-type]
        seen[one] += 1
    return found


def _objects(here: Place, owner: str) -> Iterator[tuple[str, str]]:
    """Yield the reads of a repository's objects in the bucket, without listings, which depend on the clock."""
    for method, path in here.gate.requests if here.gate else ():
        if f"/{owner}/" in path and "list-type=" not in path:
            key = path.removeprefix("/").partition("/")[2]
            yield method, re.sub("[0-9a-f]{40}", "{sha}", f"/{{bucket}}/{key.replace(owner, '{owner}')}")


async def watch(
    folder: Path, kinds: Sequence[type[Conversation]] = (*CONVERSATIONS, NightlyMoves), bucket: World | None = None
) -> Undisturbed:
    """Hold each conversation once, undisturbed."""
    async with place(folder, f"sqlite:///{folder}/nightjar.db", bucket=bucket) as here:
        side_by_side = SideBySide(here, {kind.__name__: kind for kind in kinds})
        await here.start()
        side_by_side.begin()
        deliveries = await side_by_side.end()
        talks = side_by_side.talks.values()
        effects = {effect["kind"] for one in deliveries for plan in one["plans"] for effect in plan["effects"]}
        points = [point for talk in talks for point in points_of(here, talk)]
        return Undisturbed(tuple(points), {type(talk): talk.seen() for talk in talks}, frozenset(effects))


T = TypeVar("T")
KILLS = 2
"""Kills of one bot. A job that is hit by more kills runs alone, and would wait for the other held jobs to end."""
APART = 6
"""The fewest requests between two points of a conversation: hardly any job makes so many."""


B = TypeVar("B", bound=Boundary)


def alone(points: Iterable[B]) -> list[list[B]]:
    """Return one group for each point."""
    return [[point] for point in points]


def packed(points: Iterable[Point], trace: Sequence[Point]) -> list[list[Point]]:
    """Return points in groups, one conversation for each group, of as many points as there are kills:

    see `in_groups`.
    """
    return in_groups(points, trace, lambda point: point, most=KILLS, apart=APART)


def in_groups(
    items: Iterable[T], trace: Sequence[Point], point_of: Callable[[T], Point], *, most: int, apart: int
) -> list[list[T]]:
    """Return items in groups, one conversation for each group, such that each item still means the same request.

    `trace` has all requests. A group has at most `most` items, at least `apart` requests from each other. A repeated
    request shifts the numbers of later ones, so no item of a group has the route of an earlier item, or of a read by
    that item's job.
    """
    where = {point: number for number, point in enumerate(trace)}

    def position(item: T) -> int:
        return where[point_of(item).at("before")]

    def fits(group: list[T], item: T) -> bool:
        point, before = point_of(item), [point_of(one) for one in group]
        return (
            len(group) < most
            and before[0].place == point.place
            and position(item) - position(group[-1]) >= apart
            and not any(_route(point) in _done_again(trace, one) for one in before)
        )

    groups: list[list[T]] = []
    for item in sorted(items, key=position):
        group = next((group for group in groups if fits(group, item)), None)
        if group is None:
            groups.append([item])
        else:
            group.append(item)
    return groups


def _route(point: Point) -> tuple[str, str]:
    return point.method, point.route


def _done_again(trace: Sequence[Point], point: Point) -> set[tuple[str, str]]:
    """Return the routes that a job requests again if it is killed at a request: this one, and the reads before it."""
    found = {_route(point)}
    here = [one for one in trace if one.place == point.place]
    for one in reversed(here[: here.index(point.at("before"))]):
        if one.writes:
            break
        found.add(_route(one))
    return found


class Crash:
    """Parallel conversations, each held at its own points, one after another; each kill hits all of them."""

    def __init__(self, here: Place, groups: Sequence[Sequence[Boundary]]) -> None:
        self.here = here
        self.talks = SideBySide(here, {" and ".join(map(str, group)): group[0].talk for group in groups})
        self._groups = groups
        self._ahead: list[list[tuple[Boundary, Hold]]] = []
        self._held: list[Hold] = []

    async def kill_at_every_point(self) -> None:
        """Begin the conversations; kill the bot at each of their points, and restart it each time."""
        await self.reach_points()
        while True:
            # Other tests cover what the bot misses while it is down: webhooks of conversations that go on wait
            # meanwhile.
            self.here.github.webhooks.hold()
            await self.here.github.delivered()
            await self.here.bot.kill()
            self.lose_what_is_held()
            await self.here.start()
            self.here.github.webhooks.release()
            if not any(self._ahead):
                return
            await self._reach_next_points()

    async def reach_points(self) -> None:
        """Begin every conversation and wait until each is held at its first point."""
        self._ahead = [
            [(point, point.pause(self.here, talk.repository)) for point in group]
            for group, talk in zip(self._groups, self.talks.talks.values(), strict=True)
        ]
        self.talks.begin()
        await self._reach_next_points()
        await self.here.github.delivered()

    async def _reach_next_points(self) -> None:
        coming = [ahead.pop(0) for ahead in self._ahead if ahead]
        self._held = [pause for _, pause in coming]
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*(pause.reached.wait() for pause in self._held))
        except TimeoutError:
            untouched = [str(point) for point, pause in coming if not pause.reached.is_set()]
            raise AssertionError(f"never came to {untouched}\n{self.here.github.transcript()}") from None

    def release_held(self) -> None:
        """Release the held requests of a running process."""
        for pause in self._held:
            pause.resume()

    def lose_what_is_held(self) -> None:
        """Drop the held requests of a dead process, so that none takes effect later."""
        for pause in self._held:
            pause.abandon()


def spread(points: Iterable[Point], number: int) -> list[Point]:
    """Return `most` of the points, evenly spread from first to last."""
    listed = list(points)
    return [listed[n * (len(listed) - 1) // (number - 1)] for n in range(number)]
