"""Request jobs that the bot wants itself: a few tests at a commit of a branch that labs test.

Such a job needs no approval, because the code is trusted. A lab gets it when no person's job waits for the target, and
loses it when a person asks for one meanwhile. Each target has a budget of its own for them (`searches` in app.yaml).

A feature plans `request_commit_job(…)`. When the job has ended, the event `FEW_TESTS_ENDED` (`effects`) has the job's
`purpose`; `JobStore.find` then returns the job, and `FewTestsOutcome.load(job.outcome)` what the tests did.
`commit_job` finds it at any time by its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from nightjar_formats.model import TargetKey

from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext
from bot.results.service import RESULTS
from bot.results.settings.targets import NIGHTLY_ONLY, per_day
from handlers.device_tests import texts
from handlers.device_tests.effects import announce_step
from handlers.device_tests.model import (
    MOST_REPEATS,
    NOBODY,
    DeviceJob,
    DeviceJobState,
    FewTests,
    JobEnd,
    JobOrigin,
    cut_tests,
    few_tests_id,
)
from handlers.device_tests.requesting import day_of
from handlers.device_tests.store import JOBS, UnknownJob, digest_of
from handlers.device_tests.targets import find_request_target
from handlers.results.config import labs_of

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from handlers.device_tests.store import JobStore


@dataclass(frozen=True, slots=True)
class SubmitCommitJob:
    """Ask a lab to run `tests` at a commit of a branch on a target (`on`), each `repeat` times.

    `key` identifies the job in its repository: the same key is stored once, whoever plans it and however often.
    `suites` are those that have the tests; empty lets the lab decide. `reason` is for the audit log. `at` is the time
    of the request, in seconds since 1970.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    key: str
    sha: str
    lab: str
    on: str
    suites: tuple[str, ...]
    tests: tuple[str, ...]
    repeat: int
    reason: str
    at: float

    @property
    def effect_key(self) -> str:
        """The key of the job."""
        return f"commit-job:{self.key}"

    async def apply(self, context: EffectContext) -> Applied:
        """Store the job. Without a target or budget for it, the job ends at once, which is announced like any end."""
        target = context.part(RESULTS).canonical(TargetKey(context.repository.full_name, self.lab, self.on))
        store = context.part(JOBS)
        job = DeviceJob(
            id=commit_job_id(context.repository.id, self.key),
            repository_id=context.repository.id,
            repository=target.repository,
            pull_request=0,
            sha=self.sha,
            lab=self.lab,
            target=self.on,
            suites=self.suites,
            tier=NIGHTLY_ONLY,
            origin=JobOrigin.BOT,
            requested_by=NOBODY,
            requested_at=self.at,
            state=DeviceJobState.IDLE,
            expires_at=0.0,
            purpose=self.key,
            few_tests=FewTests(cut_tests(self.tests), max(1, min(MOST_REPEATS, self.repeat))),
        )
        left = await searches_left(store, context.config, context.repository.id, target, self.at)
        refused = JobEnd.TARGET_REMOVED if left is None else JobEnd.NONE if left else JobEnd.OVER_BUDGET
        stored, new = await store.submit(job, approval_needed=False, refused=refused)
        await announce_step(context.announce, stored)
        outcome = texts.SUBMITTED if new else texts.ALREADY_SUBMITTED
        text = outcome.format(target=target.full_name, sha=self.sha[:7], state=stored.state)
        return Applied(texts.WITH_REASON.format(text=text, reason=self.reason), changed=new)


def request_commit_job(
    target: TargetKey,
    sha: str,
    tests: Sequence[str],
    repeat: int,
    reason: str,
    *,
    key: str,
    suites: Sequence[str] = (),
    moment: float,
) -> SubmitCommitJob:
    """Return the effect that requests tests (IDs) at a commit of the tracked branch, each `repeat` times.

    The plan must be one of the target's repository. `key` is the job's purpose, as in `search:12:3`: at most 200
    characters, new for each run that is wanted, and the same when the same run is planned again. At most `MOST_TESTS`
    tests and `MOST_REPEATS` repeats count. `moment` is in seconds since 1970: the delivery's, so that a plan is the
    same when it is made again.
    """
    return SubmitCommitJob(key, sha, target.lab, target.target, tuple(suites), tuple(tests), repeat, reason, moment)


def commit_job_id(repository_id: int, key: str) -> str:
    """Return the ID of the job of a key: the same for everybody who requests it."""
    return few_tests_id(digest_of(str(repository_id), key))


async def commit_job(store: JobStore, repository_id: int, lab: str, key: str) -> DeviceJob | None:
    """Return the job of a key, whatever its state; None if it was never requested, or ended more than 90 days ago."""
    try:
        return await store.find(lab, commit_job_id(repository_id, key))
    except UnknownJob:
        return None


async def searches_left(
    store: JobStore, config: RepositoryConfig, repository_id: int, target: TargetKey, moment: float
) -> int | None:
    """Return how many jobs the bot may still request for a target on the day (UTC) of a moment.

    None if the target accepts no requests, or its lab runs no tests for searches (`searches: false`).
    """
    known = find_request_target(config, target.lab, target.target)
    if known is None or not labs_of(config)[target.lab].searches:
        return None
    used = await store.requests(repository_id, target.lab, target.target, NOBODY.id, day_of(moment))
    most = per_day(known.settings.searches.budget)
    assert most is not None, "the budget of searches has a default"
    return max(0, most - used.by_person)
