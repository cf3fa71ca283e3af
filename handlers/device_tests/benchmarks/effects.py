"""Store the job of a benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nightjar_formats.model import TargetKey, escaped_target

from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext
from bot.results.service import RESULTS
from handlers.device_tests import texts
from handlers.device_tests.benchmarks.model import BENCHMARK
from handlers.device_tests.effects import announce_step
from handlers.device_tests.model import (
    DeviceJob,
    DeviceJobState,
    FewTests,
    JobOrigin,
    Someone,
    cut_tests,
    few_tests_id,
)
from handlers.device_tests.store import JOBS, digest_of


@dataclass(frozen=True, slots=True)
class SubmitBenchmark:
    """Ask a lab to run a head and its base in turn on a target (`on`), and to compare what `tests` measure.

    Without `tests`, all count. `precision` and `seconds` are those of `FewTests`. `at` is the time of the request, in
    seconds since 1970. Nothing new happens if the head has an open benchmark on the target.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    number: int
    sha: str
    base_sha: str
    lab: str
    on: str
    suites: tuple[str, ...]
    tier: int
    tests: tuple[str, ...]
    precision: float
    seconds: float
    by_id: int
    by: str
    at: float
    approval_needed: bool

    @property
    def effect_key(self) -> str:
        """The pull request and the lab's target."""
        return f"benchmark:{self.number}:{self.lab}/{escaped_target(self.on)}"

    async def apply(self, context: EffectContext) -> Applied:
        """Store the job, once for each plan."""
        target = context.part(RESULTS).canonical(TargetKey(context.repository.full_name, self.lab, self.on))
        job = DeviceJob(
            id=few_tests_id(digest_of(context.intent, target.full_name, self.sha)),
            repository_id=context.repository.id,
            repository=target.repository,
            pull_request=self.number,
            sha=self.sha,
            lab=self.lab,
            target=self.on,
            suites=self.suites,
            tier=self.tier,
            origin=JobOrigin.COMMAND,
            requested_by=Someone(self.by_id, self.by),
            requested_at=self.at,
            state=DeviceJobState.WAITING,
            expires_at=0.0,
            purpose=BENCHMARK,
            few_tests=FewTests(
                cut_tests(self.tests), base_sha=self.base_sha, precision=self.precision, seconds=self.seconds
            ),
        )
        stored, new = await context.part(JOBS).submit(job, approval_needed=self.approval_needed)
        await announce_step(context.announce, stored)
        outcome = texts.SUBMITTED if new else texts.ALREADY_SUBMITTED
        return Applied(outcome.format(target=target.full_name, sha=self.sha[:7], state=stored.state), changed=new)
