"""The simulation's GitHub: check runs that are written within the limits, and the content of each."""

from __future__ import annotations

import heapq
import json
import random
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

from bot.engine.jobs.journal import DONE
from bot.github.limits.governor import SHORT_WAIT, SPREAD
from bot.github.limits.ledger import Allowance, Demand, HeadWrite, Ledger
from handlers.device_tests.effects import announce_step
from handlers.device_tests.model import ShownStep
from handlers.device_tests.store import JobStore

RESULTS = 4
"""The step of a check run that has the results."""
MOST_WRITES = 3
"""Of the check run of a job, unless its results come after the third one (docs/decisions/results-after-the-end.md)."""


@dataclass(order=True)
class PendingWrite:
    """A check run that must be written; `since` is the time of its announcement."""

    scheduled_at: float
    number: int
    lab: str = field(compare=False)
    job: str = field(compare=False)
    since: float = field(compare=False)
    guid: str = field(compare=False, default="")
    """The GUID of a delivery about a step; empty for one about results."""
    head: HeadWrite | None = field(compare=False, default=None)
    """The head, if the write was postponed."""


class Checks:
    """The engine's deliveries about check runs, which are processed as fast as the installation's limits allow.

    The limits are those of `bot.github.limits.ledger`. A write that would wait long returns to the queue for as long
    as the governor says, and is then made from the current state of the job.
    """

    def __init__(self, store: JobStore, clock: Callable[[], float], seed: int, fails: float) -> None:
        self.store = store
        self.steps: dict[str, list[int]] = defaultdict(list)
        """The steps for which the check run of each job was written, in order."""
        self.moments: list[float] = []
        self.waits: list[float] = []
        self.ahead = 0
        """Writes while one about a newer head waited for the limits."""
        self.most_in_minute = self.most_in_hour = 0
        self._now = clock
        # Separate, so that the number of tries of a write does not change what people and labs do.
        self._chance = random.Random(seed)
        self._fails = fails
        self._ledger = Ledger(Allowance())
        self._pending: list[PendingWrite] = []
        self._seen: set[str] = set()
        self._open: set[str] = set()
        self._number = 0
        self._minute: deque[float] = deque()
        self._hour: deque[float] = deque()

    @property
    def next(self) -> float:
        """Return the time of the next work; infinity if there is none."""
        return self._pending[0].scheduled_at if self._pending else float("inf")

    async def accept(self, guid: str, event: str, body: str, lock: str, *, not_before: float | None = None) -> bool:
        """Accept a delivery, as the engine does: once for each GUID."""
        if guid in self._seen:
            return False
        self._seen.add(guid)
        check = json.loads(body)["device-job"]
        self._open.add(guid)
        self.add(check["lab"], check["job"], guid)
        return True

    async def delivery(self, guid: str) -> object:
        """Return the outcome of a delivery, as the engine's journal does."""
        return SimpleNamespace(settled=guid not in self._open, state=DONE) if guid in self._seen else None

    def add(self, lab: str, job: str, guid: str = "") -> None:
        """Queue the write of a check run: for a step, or (without a GUID) for results."""
        self._number += 1
        moment = self._now()
        heapq.heappush(self._pending, PendingWrite(moment, self._number, lab, job, moment, guid))

    def said(self, job: str) -> int:
        """Return the step in the check run of a job, 0 if there is none."""
        return self.steps[job][-1] if job in self.steps else 0

    @property
    def fourth_writes(self) -> list[str]:
        """Return the jobs whose check run said queued, in progress and ended without results before results came."""
        return [job for job, steps in self.steps.items() if len(steps) > MOST_WRITES]

    @property
    def after_the_end(self) -> int:
        """Count the results that came after the check run said that there are none."""
        return sum({ShownStep.ENDED, RESULTS} <= {*steps} for steps in self.steps.values())

    async def work(self) -> None:
        """Do the work that is scheduled by now."""
        while self._pending and self._pending[0].scheduled_at <= self._now():
            await self._write(heapq.heappop(self._pending))

    async def _write(self, pending: PendingWrite) -> None:
        job, moment = await self.store.find(pending.lab, pending.job), self._now()
        if pending.guid and job.shown >= job.to_show:
            self._open.discard(pending.guid)
            return
        step = int(job.to_show) if pending.guid else RESULTS
        head = HeadWrite(f"check:{job.sha}:{job.about.check_name}", job.requested_at)
        demand = Demand(write=True, head=head)
        booked_at, _ = self._ledger.earliest(moment, demand)
        if booked_at - moment > SHORT_WAIT:
            pending.scheduled_at, pending.head = (
                booked_at + self._chance.random() * min(booked_at - moment, SPREAD),
                head,
            )
            self._ledger.put_off(pending.scheduled_at, demand)
            heapq.heappush(self._pending, pending)
            return
        self._ledger.book(booked_at, demand)
        self._open.discard(pending.guid)
        self._count(booked_at)
        self.waits.append(booked_at - pending.since)
        self.ahead += any(later.head is not None and later.head.since > head.since for later in self._pending)
        if pending.guid and self._chance.random() < self._fails:
            return  # the sweep announces it again an hour later
        if step <= self.said(job.id):
            raise AssertionError(f"the check run of {job.id} moved from {self.steps[job.id]} to {step}")
        self.steps[job.id].append(step)
        if pending.guid:
            await announce_step(self.accept, await self.store.show(job.lab, job.id, ShownStep(step)))

    def _count(self, moment: float) -> None:
        self.moments.append(moment)
        for window, length in ((self._minute, 60.0), (self._hour, 3600.0)):
            window.append(moment)
            while window[0] <= moment - length:
                window.popleft()
        self.most_in_minute = max(self.most_in_minute, len(self._minute))
        self.most_in_hour = max(self.most_in_hour, len(self._hour))
