"""The points at which a process can be killed: each of its requests, found by observing undisturbed conversations."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from sandbox import Fault, Repository
from sandbox.faults import Faults, When
from tests.bucket import World
from tests.of_features import constants
from tests.robustness.conversation import CONVERSATIONS, Conversation, NightlyMoves
from tests.robustness.place import Place, open_place
from tests.robustness.side_by_side import SideBySide
from tests.waiting import DEADLINE

BY_THE_CLOCK = ("/contents/{path}", "/installation", "/repos/{owner}/{repo}")
"""Routes that the bot also requests for all repositories at its start, so they belong to no conversation."""


OF_FEATURES: tuple[type[Conversation], ...] = tuple(chain.from_iterable(constants("crashes", "CONVERSATIONS")))
"""The conversations in `tests/handlers/<feature>/crashes.py`."""


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
    def conversation(self) -> type[Conversation]:
        """Return the kind of the conversation."""

    def pause(self, place: Place, repository: Repository) -> Hold:
        """Hold the action if it belongs to a repository."""


@dataclass(frozen=True)
class Point:
    """The `number`-th request (from 0) of a method and route in a conversation, before or after it takes effect."""

    conversation: type[Conversation]
    server: Literal["github", "jenkins", "s3"]
    method: str
    route: str
    number: int
    side: When = "before"

    @property
    def writes(self) -> bool:
        """Whether the request changes anything."""
        return self.method not in ("GET", "HEAD")

    def at(self, side: When) -> Point:
        """Return the same request, on the other or the same side of its effect."""
        return replace(self, side=side)

    def faults(self, place: Place) -> Faults:
        """Return the faults of the server that receives the request."""
        if self.server == "s3":
            assert place.gate is not None
            return place.gate.faults
        return place.github.faults if self.server == "github" else place.jenkins.faults

    @property
    def sequence(self) -> tuple[type[Conversation], str]:
        """Return the conversation and the server: requests to different servers have no defined order."""
        return self.conversation, self.server

    def pattern(self, repository: Repository) -> re.Pattern[str]:
        """Return the pattern of such a request's path in a repository."""
        owner = re.escape(repository.owner.login)
        # The name of a ref contains slashes, as in heads/nightly, and so may a path.
        route = re.escape(self.route).replace(r"\{owner\}", owner).replace(r"\{ref\}", ".+").replace(r"\{path\}", ".+")
        route = re.sub(r"\\\{[a-z_]+\\\}", "[^/]+", route)
        return re.compile(f"^{route}$")

    def pause(self, place: Place, repository: Repository) -> Fault:
        """Hold the request when it is made for a repository."""
        faults = self.faults(place)
        return faults.pause(self.method, self.pattern(repository), when=self.side, skip=self.number)

    def __str__(self) -> str:
        return f"{self.conversation.__name__}: {self.side} {self.method} {self.route} ({self.number + 1})"


@dataclass(frozen=True)
class Undisturbed:
    """Undisturbed conversations: their requests, their visible results, and the kinds of effects that they used."""

    points: tuple[Point, ...]
    seen: Mapping[type[Conversation], dict[str, Any]]
    kinds: frozenset[str]

    @property
    def around_writes(self) -> list[Point]:
        """Return the points on both sides of every write."""
        return [point.at(side) for point in self.points if point.writes for side in ("before", "after")]

    @property
    def at_reads(self) -> list[Point]:
        """Return the points at every read: while a plan is made, and between the plan and its effects."""
        return [point for point in self.points if not point.writes]


def points_of(place: Place, conversation: Conversation) -> list[Point]:
    """Return every request about a conversation's repository, in order."""
    owner = conversation.repository.owner.login
    records = place.github.requests.records
    requests = [
        ("github", r.method, r.route)
        for r in records
        if r.path.startswith(f"/repos/{owner}/") and not r.route.endswith(BY_THE_CLOCK)
    ]
    requests += [
        ("jenkins", method, path.replace(owner, "{owner}")) for method, path in place.jenkins.requests if owner in path
    ]
    requests += [("s3", method, path) for method, path in _objects(place, owner)]
    seen: Counter[tuple[str, str, str]] = Counter()
    points = []
    for request in requests:
        points.append(Point(type(conversation), *request, number=seen[request]))  # type: ignore[arg-type]
        seen[request] += 1
    return points


def _objects(place: Place, owner: str) -> Iterator[tuple[str, str]]:
    """Yield the reads of a repository's objects in the bucket, without listings, which depend on the clock."""
    for method, path in place.gate.requests if place.gate else ():
        if f"/{owner}/" in path and "list-type=" not in path:
            key = path.removeprefix("/").partition("/")[2]
            yield method, re.sub("[0-9a-f]{40}", "{sha}", f"/{{bucket}}/{key.replace(owner, '{owner}')}")


async def watch(
    folder: Path,
    kinds: Sequence[type[Conversation]] = (*CONVERSATIONS, NightlyMoves, *OF_FEATURES),
    bucket: World | None = None,
) -> Undisturbed:
    """Hold each conversation once, undisturbed."""
    async with open_place(folder, f"sqlite:///{folder}/nightjar.db", bucket=bucket) as place:
        side_by_side = SideBySide(place, {kind.__name__: kind for kind in kinds})
        await place.start()
        side_by_side.begin()
        deliveries = await side_by_side.end()
        conversations = side_by_side.conversations.values()
        effects = {
            effect["kind"] for delivery in deliveries for plan in delivery["plans"] for effect in plan["effects"]
        }
        points = [point for conversation in conversations for point in points_of(place, conversation)]
        return Undisturbed(
            tuple(points),
            {type(conversation): conversation.seen() for conversation in conversations},
            frozenset(effects),
        )


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
    """Return points in groups of at most `KILLS`, one conversation for each group; see `in_groups`."""
    return in_groups(points, trace, lambda point: point, most=KILLS, apart=APART)


def in_groups(
    items: Iterable[T], trace: Sequence[Point], point_of: Callable[[T], Point], *, most: int, apart: int
) -> list[list[T]]:
    """Return items in groups, one conversation for each group, such that each item still means the same request.

    `trace` has all requests. A group has at most `most` items, at least `apart` requests from each other. A repeated
    request shifts the numbers of later ones, so no item of a group has the route of an earlier item, or of a read by
    that item's job.
    """
    positions = {point: number for number, point in enumerate(trace)}

    def position(item: T) -> int:
        return positions[point_of(item).at("before")]

    def fits(group: list[T], item: T) -> bool:
        point, earlier_points = point_of(item), [point_of(member) for member in group]
        return (
            len(group) < most
            and earlier_points[0].sequence == point.sequence
            and position(item) - position(group[-1]) >= apart
            and not any(_route(point) in _done_again(trace, earlier_point) for earlier_point in earlier_points)
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
    routes = {_route(point)}
    requests = [request for request in trace if request.sequence == point.sequence]
    for request in reversed(requests[: requests.index(point.at("before"))]):
        if request.writes:
            break
        routes.add(_route(request))
    return routes


class Crash:
    """Parallel conversations, each held at its own points, one after another; each kill hits all of them."""

    def __init__(self, place: Place, groups: Sequence[Sequence[Boundary]]) -> None:
        self.place = place
        self.side_by_side = SideBySide(
            place, {" and ".join(map(str, group)): group[0].conversation for group in groups}
        )
        self._groups = groups
        self._ahead: list[list[tuple[Boundary, Hold]]] = []
        self._held: list[Hold] = []

    async def kill_at_every_point(self) -> None:
        """Begin the conversations; kill the bot at each of their points, and restart it each time."""
        await self.reach_points()
        while True:
            # Other tests cover what the bot misses while it is down: webhooks of conversations that go on wait
            # meanwhile.
            self.place.github.webhooks.hold()
            await self.place.github.delivered()
            await self.place.bot.kill()
            self.lose_what_is_held()
            await self.place.start()
            self.place.github.webhooks.release()
            if not any(self._ahead):
                return
            await self._reach_next_points()

    async def reach_points(self) -> None:
        """Begin every conversation and wait until each is held at its first point."""
        self._ahead = [
            [(point, point.pause(self.place, conversation.repository)) for point in group]
            for group, conversation in zip(self._groups, self.side_by_side.conversations.values(), strict=True)
        ]
        self.side_by_side.begin()
        await self._reach_next_points()
        await self.place.github.delivered()

    async def _reach_next_points(self) -> None:
        next_points = [ahead.pop(0) for ahead in self._ahead if ahead]
        self._held = [pause for _, pause in next_points]
        try:
            async with asyncio.timeout(DEADLINE):
                await self.side_by_side.during(asyncio.gather(*(pause.reached.wait() for pause in self._held)))
        except TimeoutError:
            missed_points = [str(point) for point, pause in next_points if not pause.reached.is_set()]
            raise AssertionError(f"never came to {missed_points}\n{self.place.github.transcript()}") from None

    def release_held(self) -> None:
        """Release the held requests of a running process."""
        for pause in self._held:
            pause.resume()

    def lose_what_is_held(self) -> None:
        """Drop the held requests of a dead process, so that none takes effect later."""
        for pause in self._held:
            pause.abandon()


def spread(points: Iterable[Point], number: int) -> list[Point]:
    """Return `number` of the points, evenly spread from first to last."""
    listed = list(points)
    return [listed[n * (len(listed) - 1) // (number - 1)] for n in range(number)]
