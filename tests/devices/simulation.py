"""A deterministic simulation of people, labs and faults around the real queue of device tests. Nothing sleeps.

It runs the bot's own code: the transitions, the queue, the store on a dictionary or a database, the effects of
requests, pushes and approvals, the sweep with app.yaml, and the limits of writes to GitHub. Agents of labs follow
`docs/labs-on-request.md`: they send a heartbeat every minute, and stop a test when its lease ends.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import cast

from bot.engine.jobs.journal import Journal
from bot.plan.effect import EffectContext
from handlers.device_tests.effects import ApproveDeviceJobs, CancelDeviceJobs, announce_step
from handlers.device_tests.model import (
    APPROVAL_SECONDS,
    QUEUE_SECONDS,
    DeviceJob,
    DeviceJobState,
    JobEnd,
    JobOrigin,
)
from handlers.device_tests.pushes import lasting_requests
from handlers.device_tests.requesting import JobRequest, answer_request
from handlers.device_tests.store import JOBS, ClaimedJob, JobStore
from handlers.device_tests.sweep import JobSweep
from handlers.device_tests.targets import find_request_target
from handlers.device_tests.transitions import LeaseLost
from tests.devices.github import Checks
from tests.devices.memory import MemoryStore
from tests.devices.outcome import Outcome, Pull, wrong_ends
from tests.devices.world import BEGIN, DAY, HOUR, HOURS, MINUTE, REPOSITORIES, Rates, Size, Target, World

IDLE = float("inf")
"""Yielded by a process that sleeps until another one wakes it."""
SUITE = "operators"
LONGEST = APPROVAL_SECONDS + QUEUE_SECONDS + 6 * HOUR
"""The time after the last request by which every job must have ended, with any faults."""
Process = AsyncIterator[float]
"""A person or machine that acts, and yields the seconds until its next action."""


class Simulation:
    """One run. `replicas` are stores of one database; by default all is in memory, and replicas are simulated."""

    def __init__(self, size: Size, rates: Rates | None = None) -> None:
        self.size, self.rates = size, rates or Rates()
        self.chance = random.Random(size.seed)
        self.world = World(size, self.chance)
        self.now = BEGIN
        self.outcome = Outcome()
        self.requested: dict[str, str] = {}
        """The lab of each job."""
        self.uploaded: set[str] = set()
        self._queue: list[tuple[float, int, Process]] = []
        self._number = 0
        self._idle: dict[str, list[Process]] = defaultdict(list)
        self._idling: list[str] = []
        self._acting = 0
        """The number of open pull requests and of runs that are not ingested."""
        self._over = False
        self._running: Counter[str] = Counter()
        self._sweep_away_until = 0.0
        self._racing = False
        self._ends = BEGIN + size.days * DAY
        memory = MemoryStore(self.clock)
        memory.wake, memory.meanwhile = self.wake, self._race
        self.use([memory])

    def use(self, replicas: Sequence[JobStore]) -> None:
        """Use stores of one database."""
        self.replicas = replicas
        self.checks = Checks(replicas[0], self.clock, self.size.seed, self.rates.write_fails)
        self._configure(frozenset())

    def clock(self) -> float:
        """Return the current time."""
        return self.now

    @property
    def store(self) -> JobStore:
        """The store of the replica that answers."""
        return self.replicas[0] if len(self.replicas) == 1 else self.chance.choice(self.replicas)

    async def run(self) -> Outcome:
        """Run until all jobs have ended after the last pull request, or the time for that is over."""
        for target in self.world.targets:
            for _ in range(target.slots if target.tier < 3 else 0):
                self.spawn(self._device(target), self.chance.random() * MINUTE)
        for process in (self._pulls(), self._sweep(), self._absences(), self._changes()):
            self.spawn(process)
        while not self._over:
            due = self._queue[0][0]
            if self.checks.next <= due:
                self.now = max(self.now, self.checks.next)
                await self.checks.work()
                continue
            self.now, _, process = heapq.heappop(self._queue)
            pause = await anext(process, None)
            if pause == IDLE:
                self._idle[self._idling.pop()].append(process)
            elif pause is not None:
                self._at(pause, process)
        jobs = [await self.store.find(lab, name) for name, lab in self.requested.items()]
        self.outcome.wrong += wrong_ends(jobs, self.uploaded, self.checks)
        return self.outcome

    def spawn(self, process: Process, pause: float = 0.0) -> None:
        """Start a process."""
        self._at(pause, process)

    def wake(self, job: DeviceJob) -> None:
        """Wake the agents that wait for a job of this target."""
        if job.state is not DeviceJobState.LEASED:
            for process in self._idle.pop(job.target, ()):
                self._at(self.chance.random(), process)

    def _at(self, pause: float, process: Process) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now + pause, self._number, process))

    # The bot

    def _configure(self, removed: frozenset[str]) -> None:
        self.config = self.world.config(removed)
        journal = cast("Journal", self.checks)
        self.sweep = JobSweep(self.config, self.replicas[0], journal, accept=self.checks.accept, clock=self.clock)

    async def _sweep(self) -> Process:
        while True:
            if self.now >= self._sweep_away_until:
                await self.sweep.tick()
            if self.now > self._ends and not self._acting and self.checks.next == IDLE:
                self._over = not await self.store.open_targets() or self.now > self._ends + LONGEST
            yield self.size.tick

    async def _absences(self) -> Process:
        while True:
            yield self._exponential(DAY / self.rates.sweep_away)
            self.outcome.faults["hours without a sweep"] += (hours := self.chance.randrange(1, 7))
            self._sweep_away_until = self.now + hours * HOUR

    async def _changes(self) -> Process:
        while True:
            yield self._exponential(DAY / self.rates.config_changed)
            self.outcome.faults["changes of app.yaml"] += 1
            names = [target.name for target in self.world.targets]
            self._configure(frozenset(self.chance.sample(names, max(1, len(names) // 50))))
            yield DAY
            self._configure(frozenset())

    def _context(self, pull: Pull) -> EffectContext:
        parts = {JOBS: self.store}
        names = SimpleNamespace(canonical=lambda target: target)
        return cast(
            "EffectContext",
            SimpleNamespace(
                part=lambda key: parts.get(key, names),
                repository=SimpleNamespace(id=pull.repository_id, full_name=pull.repository),
                intent=f"{pull.repository}#{pull.number}:{self.now}",
                announce=self.checks.accept,
            ),
        )

    # People

    async def _pulls(self) -> Process:
        most, number = max(HOURS), 0
        while self.now < self._ends:
            # A day's pull requests by its hours: so many tries as in the busiest hour, of which some come to nothing.
            yield self._exponential(DAY / self.size.pulls_a_day * sum(HOURS) / len(HOURS) / most)
            hour = int((self.now - BEGIN) % DAY // HOUR)
            if self.chance.random() * most < HOURS[hour]:
                number += 1
                self.spawn(self._pull(number))

    async def _pull(self, number: int) -> Process:
        chance, rates = self.chance, self.rates
        repository = chance.choices(REPOSITORIES, [share for _, _, share in REPOSITORIES])[0]
        targets = [target for target in self.world.targets if target.repository == repository[0]]
        first = [target for target in targets if target.tier == 1]
        changed = [target for target in first if chance.random() < rates.tier_1 / max(1, len(first))]
        # A few people open most of them.
        author = self.world.people[int(len(self.world.people) * chance.random() ** 2)]
        pull = Pull(number, repository[0], repository[1], author, changed)
        self.outcome.pulls += 1
        self._acting += 1
        acts: list[tuple[float, str]] = [(self._exponential(DAY) + HOUR, "close")]
        while chance.random() < rates.pushes / (1 + rates.pushes):
            acts.append((self._exponential(2 * HOUR), "push"))
        if chance.random() < rates.requested:
            acts.append((self._exponential(HOUR), "request"))
        if chance.random() < rates.every_target:
            acts.append((self._exponential(HOUR), "request all"))
        if chance.random() < rates.cancelled:
            acts.append((self._exponential(3 * HOUR), "cancel"))
        await self._push(pull)
        began, on_request = self.now, [target for target in targets if target.tier == 2]
        for moment, act in sorted(acts):
            yield max(0.0, began + moment - self.now)
            if act == "push":
                await self._push(pull)
            elif act.startswith("request"):
                some = chance.sample(on_request, min(len(on_request), chance.choice((1, 1, 2, 4))))
                await self._request(pull, on_request if act == "request all" else some, JobOrigin.COMMAND)
            elif act == "cancel":
                cancel = CancelDeviceJobs(number, JobEnd.BY_PERSON.value, also_running=True)
                await cancel.apply(self._context(pull))
            else:
                await CancelDeviceJobs(number, JobEnd.CLOSED.value).apply(self._context(pull))
                break
        self._acting -= 1

    async def _push(self, pull: Pull) -> None:
        pull.heads += 1
        self.outcome.heads += 1
        pull.sha = f"{pull.repository_id:04x}{pull.number:026x}{pull.heads:010x}"
        lasting = lasting_requests(await self.store.of_pull(pull.repository_id, pull.number))
        sticky = [target for target in self.world.targets if target.sticky]
        sticky_requests = (
            [target for target in sticky if f"{pull.repository}/{target.lab}/{target.name}" in lasting]
            if lasting
            else []
        )
        cancel = CancelDeviceJobs(pull.number, JobEnd.PUSHED.value, other_than=pull.sha)
        await cancel.apply(self._context(pull))
        await self._request(pull, [*pull.paths, *sticky_requests], JobOrigin.PUSH)

    async def _request(self, pull: Pull, targets: Sequence[Target], origin: JobOrigin) -> None:
        stranger = pull.author.id / len(self.world.people) > self.rates.writers
        request = JobRequest(pull.number, pull.sha, origin, pull.author, self.now, approval_needed=stranger)
        was_asked = False
        for target in targets:
            known_target = find_request_target(self.config.repository(pull.repository), target.lab, target.name)
            if known_target is None:
                continue
            answer = await answer_request(self.store, pull.repository_id, request, known_target)
            if answer.effect:
                await answer.effect.apply(self._context(pull))
                was_asked = True
        for job in await self.store.of_pull(pull.repository_id, pull.number):
            self.requested[job.id] = job.lab
        if was_asked and stranger and self.chance.random() < self.rates.approved:
            self.spawn(self._approve(pull), self._exponential(HOUR))

    async def _approve(self, pull: Pull) -> Process:
        sha = pull.sha
        # Somebody reads the change, and meanwhile it may change.
        yield self._exponential(10 * MINUTE)
        if sha != pull.sha:
            self.outcome.faults["approvals of a head that was pushed away"] += 1
        await ApproveDeviceJobs(pull.number, sha, 1, "person-1").apply(self._context(pull))

    # Labs

    async def _device(self, target: Target) -> Process:
        while True:
            if not self._lost("claims that did not arrive"):
                claimed = await self.store.claim(target.lab, [target.name], self.sweep.limits_of)
                if claimed is None:
                    self._idling.append(target.name)
                    yield IDLE
                    continue
                await self._handed_out(target, claimed.job)
                if not self._lost("claims whose answer was lost"):
                    async for pause in self._test(target, claimed):
                        yield pause
                    continue
            yield 5.0

    async def _race(self, changed: DeviceJob) -> None:
        """Let another replica hand out a job of the same lab between this one's read and write."""
        if self._racing or changed.state is not DeviceJobState.LEASED or self.chance.random() >= self.rates.raced:
            return
        self._racing = True
        claimed = await self.store.claim(changed.lab, [changed.target], self.sweep.limits_of)
        self._racing = False
        if claimed is not None:
            self.outcome.faults["jobs handed out by another replica at the same moment"] += 1
            target = next(target_ for target_ in self.world.targets if target_.name == changed.target)
            await self._handed_out(target, claimed.job)
            self.spawn(self._test(target, claimed))

    async def _handed_out(self, target: Target, job: DeviceJob) -> None:
        if job.attempt == 1:
            self.outcome.waits[job.tier].append(self.now - job.queued_at)
        same_target = [job_ for job_ in await self.store.of_lab(job.lab) if job_.target == job.target]
        slots = [job_.slot for job_ in same_target if job_.state is DeviceJobState.LEASED]
        if len(slots) != len(set(slots)) or max(slots) >= target.slots:
            self.outcome.wrong.append(f"the devices of {target.name} have more than one job each")
        if any(_is_newer(job_, job) for job_ in same_target):
            self.outcome.wrong.append(f"{job.id} was handed out before a newer head of its pull request")

    async def _test(self, target: Target, claimed: ClaimedJob) -> Process:
        """Run a test as an agent does, which knows only the lease in the answers."""
        job, chance = claimed.job, self.chance
        self.outcome.tests += 1
        self._running[job.id] += 1
        if self._running[job.id] > 1:
            self.outcome.wrong.append(f"two agents test {job.id}")
        fate = self._fate()
        lasts = IDLE if fate == "tests that never end" else target.minutes * MINUTE * chance.uniform(0.7, 1.4)
        ends, expires = self.now + lasts, job.lease_expires_at
        strikes = self.now + min(lasts, HOUR) * chance.random()
        back = strikes + chance.uniform(5, 30) * MINUTE
        ended = ""
        while not ended:
            yield max(0.001, min(MINUTE, ends - self.now, expires - self.now))
            if fate in ("agents that died", "devices that broke") and self.now >= strikes:
                ended = fate
            elif self.now >= expires:
                ended = "leases that were lost"
            elif self.now >= ends:
                ended = "done"
            elif not (fate == "labs that were cut off" and strikes <= self.now < back) and not self._lost("calls"):
                try:
                    beat = await self.store.heartbeat(job.lab, job.id, claimed.lease, note="1 of 3")
                except LeaseLost:
                    ended = "leases that were lost"
                else:
                    await announce_step(self.checks.accept, beat)
                    expires = expires if self._lost("answers") else beat.lease_expires_at
        self._running[job.id] -= 1
        self.outcome.faults[ended] += ended != "done"
        if ended == "agents that died":
            yield 15 * MINUTE
        elif ended == "devices that broke":
            yield 2 * DAY
        elif ended == "done" and fate == "tests that failed":
            await self._fail(job, claimed.lease)
        elif ended == "done":
            self.uploaded.add(job.id)
            self._acting += 1
            self.spawn(self._ingest(job, chance.uniform(1, 30) if chance.random() < 0.99 else 2 * HOUR))

    def _fate(self) -> str:
        rates, remainder = self.rates, self.chance.random()
        for name, share in (
            ("agents that died", rates.agent_dies),
            ("devices that broke", rates.never_back),
            ("labs that were cut off", rates.partition),
            ("tests that failed", rates.device_fails),
            ("tests that never end", rates.too_long),
        ):
            remainder -= share
            if remainder < 0:
                self.outcome.faults[name] += name in (
                    "labs that were cut off",
                    "tests that failed",
                    "tests that never end",
                )
                return name
        return ""

    async def _fail(self, job: DeviceJob, lease: str) -> None:
        for _ in range(1 + self._lost("answers")):
            try:
                given_back = await self.store.fail(job.lab, job.id, lease, "the device does not answer")
            except LeaseLost:
                return
            await announce_step(self.checks.accept, given_back)

    async def _ingest(self, job: DeviceJob, pause: float) -> Process:
        """Ingest a run, sometimes twice: queues deliver at least once."""
        yield pause
        self._acting -= 1
        for _ in range(1 + self._lost("answers")):
            stored = await self.store.find(job.lab, job.id)
            await self.store.complete(job.lab, job.id, SUITE)
            if not stored.arrived:
                self.checks.add(job.lab, job.id)

    def _lost(self, fault: str) -> bool:
        lost = self.chance.random() < self.rates.lost_call
        self.outcome.faults[fault] += lost
        return lost

    def _exponential(self, mean: float) -> float:
        return self.chance.expovariate(1 / mean)


def _is_newer(queued: DeviceJob, job: DeviceJob) -> bool:
    of_one_pull = (queued.repository_id, queued.pull_request) == (job.repository_id, job.pull_request)
    return of_one_pull and queued.state is DeviceJobState.QUEUED and queued.requested_at > job.requested_at
