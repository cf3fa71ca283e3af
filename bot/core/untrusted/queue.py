"""Decide whose job gets the next free place: repositories take turns, as do the pull requests and labs of each."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field

from bot.core.errors import TryAgain
from bot.core.untrusted.limits import BUSY, COME_BACK, MOST_WAITING, MOST_WAITING_OF_OWNER, MOST_WAITING_OF_REPOSITORY


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a job: a repository, and within it a pull request's head or a lab's target."""

    repository: str
    part: str


Waiting = OrderedDict[str, deque[asyncio.Future[None]]]


@dataclass(slots=True)
class Turns:
    """Gives out `places`. One owner gets at most all but one of them, so that another can always begin soon."""

    places: int
    _running: Counter[Owner] = field(default_factory=Counter)
    _waiting: OrderedDict[str, Waiting] = field(default_factory=OrderedDict)

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return sum(len(queue) for queues in self._waiting.values() for queue in queues.values())

    def check(self, owner: Owner) -> None:
        """Raise `TryAgain` if no more jobs of this owner may wait, so that it costs nobody else a place."""
        queues = self._waiting.get(owner.repository, OrderedDict())
        own_count = len(queues.get(owner.part, ()))
        if (
            self.waiting >= MOST_WAITING
            or sum(map(len, queues.values())) >= MOST_WAITING_OF_REPOSITORY
            or own_count >= MOST_WAITING_OF_OWNER
        ):
            raise TryAgain(BUSY, retry_in=COME_BACK)

    async def take(self, owner: Owner) -> None:
        """Wait for a place. Raises `TryAgain` like `check`."""
        self.check(owner)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner.repository, OrderedDict()).setdefault(owner.part, deque()).append(turn)
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(owner)  # the place came at the same moment
            else:
                self._leave(owner, turn)
            raise

    def _leave(self, owner: Owner, turn: asyncio.Future[None]) -> None:
        """Remove a waiting job that was cancelled: it would count as waiting until a place is free."""
        queue = self._waiting.get(owner.repository, OrderedDict()).get(owner.part, deque())
        if turn in queue:
            queue.remove(turn)
            self._tidy(owner.repository, owner.part)

    def give_back(self, owner: Owner) -> None:
        """Return a place."""
        self._running[owner] -= 1
        self._running += Counter()  # removes owners without a place
        self._give()

    def _give(self) -> None:
        while self._running.total() < self.places and self._give_one():
            pass

    def _give_one(self) -> bool:
        for repository in list(self._waiting):
            queues = self._waiting[repository]
            for part in list(queues):
                queue, owner = queues[part], Owner(repository, part)
                while queue and queue[0].done():
                    queue.popleft()  # cancelled
                if queue and self._running[owner] < max(1, self.places - 1):
                    queue.popleft().set_result(None)
                    self._running[owner] += 1
                    queues.move_to_end(part)
                    self._waiting.move_to_end(repository)
                    self._tidy(repository, part)
                    return True
                self._tidy(repository, part)
        return False

    def _tidy(self, repository: str, part: str) -> None:
        queues = self._waiting[repository]
        if not queues[part]:
            del queues[part]
        if not queues:
            del self._waiting[repository]
