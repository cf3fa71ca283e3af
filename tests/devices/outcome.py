"""The outcome of a simulation, with violations of its rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.github.limits.ledger import WRITES_PER_HOUR, WRITES_PER_MINUTE
from handlers.device_tests.model import DeviceJob, DeviceJobState, ShownStep, Someone
from tests.devices.github import MOST_WRITES, RESULTS, Checks
from tests.devices.world import Target

EVERY_STEP = [ShownStep.QUEUED, ShownStep.RUNNING, ShownStep.ENDED, RESULTS]
"""The only sequence with a fourth write."""


@dataclass(eq=False)
class Pull:
    """A pull request; `paths` are the targets of tier 1 whose files it changes."""

    number: int
    repository: str
    repository_id: int
    author: Someone
    paths: list[Target]
    sha: str = ""
    heads: int = 0


@dataclass
class Outcome:
    """The events of a simulation."""

    pulls: int = 0
    heads: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    waits: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Seconds from the queue to the first agent, by tier."""
    tests: int = 0
    """Tests that an agent began."""
    wrong: list[str] = field(default_factory=list)
    """Violations of the rules."""


def wrong_ends(jobs: Iterable[DeviceJob], uploaded: set[str], checks: Checks) -> list[str]:
    """Return what is wrong once everything should have ended; `uploaded` are the jobs whose results labs sent."""
    wrong = list[str]()
    for job in jobs:
        step = checks.said(job.id)
        if job.is_open:
            wrong.append(f"{job.id} is {job.state} for ever")
        if job.id in uploaded and job.state is not DeviceJobState.DONE:
            wrong.append(f"the results of {job.id} are lost")
        if job.state is DeviceJobState.DONE and step != RESULTS:
            wrong.append(f"the check run of {job.id} does not say its results")
        if job.shown < job.to_show or 0 < step < ShownStep.ENDED:
            wrong.append(f"the check run of {job.id} is pending for ever")
        steps = checks.steps.get(job.id, [])
        if len(steps) > MOST_WRITES and steps != EVERY_STEP:
            wrong.append(f"the check run of {job.id} was written for {steps}")
    if checks.most_in_minute > WRITES_PER_MINUTE or checks.most_in_hour > WRITES_PER_HOUR:
        wrong.append(f"{checks.most_in_minute} writes a minute, {checks.most_in_hour} an hour")
    return wrong
