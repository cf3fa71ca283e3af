"""Dry runs of jobs for a few tests: a person reproduces a failure, and a feature asks for one run after the other."""

from __future__ import annotations

from nightjar_formats.model import TargetKey

from bot.plan.handler import Context, Handler, Plan
from bot.results.few_tests import FailureKind, FewTestsOutcome, TestAttempts
from handlers.device_tests.commit_jobs import commit_job, request_commit_job
from handlers.device_tests.effects import FEW_TESTS_ENDED, NoteShownStep, announce_step
from handlers.device_tests.model import DeviceJob, DeviceJobState, ShownStep
from handlers.device_tests.store import JOBS
from tests.conversations.devices import Devices, device_town
from tests.conversations.dry_runs import DryFirst, Scene, SceneFixtures
from tests.conversations.lab import LAB
from tests.handlers.device_tests.cases import few_tests_job

PURPOSE, TEST = "example:", "tests/test_ops.py::test_add"
FAILED = FewTestsOutcome({TEST: TestAttempts(9, 1, 0, (FailureKind(1, "device lost", "text"),))})


async def plan_next(context: Context) -> Plan:
    """Plan another run at the same commit, as a search does, until there are three."""
    ended = FEW_TESTS_ENDED.read(context.delivery.payload)
    job = await context.part(JOBS).find(ended.lab, ended.job)
    note = NoteShownStep(job.lab, job.id, int(ShownStep.ENDED))
    number = int(job.purpose.removeprefix(PURPOSE)) + 1
    if number > 3:
        return Plan((note,))
    target, moment = TargetKey(job.repository, job.lab, job.target), context.delivery.received_at
    key = f"{PURPOSE}{number}"
    return Plan((request_commit_job(target, job.sha, [TEST], 10, "an example", key=key, moment=moment), note))


EXAMPLE = Handler(
    "example",
    frozenset({(FEW_TESTS_ENDED.name, "*")}),
    plan_next,
    accepts=lambda delivery, _: FEW_TESTS_ENDED.read(delivery.payload).purpose.startswith(PURPOSE),
)


async def a_failure_is_reproduced_and_a_feature_asks_again(fixtures: SceneFixtures) -> DryFirst:
    """Somebody reproduces a failure; then a handler asks for runs at a commit of the branch, one after the other."""
    async with device_town(fixtures.database, fixtures.bucket) as devices:
        town = devices.place.town
        town.bot.pipeline.router.add(EXAMPLE)
        dry = DryFirst.attached(town.bot)
        pull = devices.pull("hubot")
        await dry.quiet(town)
        await devices.says(pull, "hubot", f"@ci reproduce {TEST} on hexagon-v73")
        await end(devices, (await devices.claim()).job)
        await dry.quiet(town)
        repository, sha = town.repo, town.repo.branch("main")
        first = few_tests_job(f"{PURPOSE}1", repository_id=repository.id, repository=repository.full_name, sha=sha)
        await devices.store.submit(first, approval_needed=False)
        for number in (1, 2, 3):
            claimed = await devices.claim(is_able=True)
            assert claimed.job.purpose == f"{PURPOSE}{number}"
            await end(devices, claimed.job)
            await dry.quiet(town)
        last = await commit_job(devices.store, repository.id, LAB, f"{PURPOSE}3")
        assert last is not None
        assert (last.state, last.shown) == (DeviceJobState.DONE, ShownStep.ENDED)
    return dry


async def end(devices: Devices, job: DeviceJob) -> None:
    """Let the results of a job arrive."""
    done = await devices.store.complete_few_tests(LAB, job.id, "operators", FAILED)
    await announce_step(devices.place.town.bot.services.announce, done)


SCENES: dict[Scene, str] = {
    a_failure_is_reproduced_and_a_feature_asks_again: "reproduced SubmitCommitJob NoteShownStep"
}
