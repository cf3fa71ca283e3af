"""Show benchmarks that have ended in the sticky comment of their pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.effects.sections import ShowSection
from bot.plan.handler import ConcludeStage, Context, Plan, Router
from handlers.device_tests.benchmarks.model import BENCHMARK
from handlers.device_tests.benchmarks.texts import WHY_NO_BENCHMARK, WHY_SHOWN, section_text
from handlers.device_tests.check_runs import WrittenStep, note_step
from handlers.device_tests.effects import FEW_TESTS_ENDED
from handlers.device_tests.model import DeviceJobState, ShownStep
from handlers.device_tests.store import JOBS

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery

SECTION = "benchmarks"

router = Router()


def is_of_benchmark(delivery: Delivery, _: RepositoryConfig) -> bool:
    """Return whether the job that has ended is a benchmark."""
    return FEW_TESTS_ENDED.read(delivery.payload).purpose == BENCHMARK


@router.on(
    FEW_TESTS_ENDED.name,
    name=SECTION,
    accepts=is_of_benchmark,
    conclude=ConcludeStage(WrittenStep, note_step),
    after_removal=True,
)
async def show_benchmarks(context: Context) -> Plan:
    """Write the section with all benchmarks of the commit; those that were cancelled are left out."""
    ended = FEW_TESTS_ENDED.read(context.delivery.payload)
    jobs = await context.part(JOBS).of_pull(context.repository.id, ended.pull_request)
    sha = next((job.sha for job in jobs if job.id == ended.job), "")
    shown = [
        job for job in jobs if job.purpose == BENCHMARK and job.sha == sha and job.state is not DeviceJobState.CANCELLED
    ]
    if not sha:
        return Plan(why=WHY_NO_BENCHMARK.format(job=ended.job))
    effect = ShowSection(SECTION, ended.pull_request, sha, section_text(shown), context.delivery.received_at)
    written = WrittenStep(ended.lab, ended.job, int(ShownStep.ENDED))
    return Plan((effect,), why=WHY_SHOWN.format(sha=sha[:7], count=len(shown)), conclusion_basis=written)
