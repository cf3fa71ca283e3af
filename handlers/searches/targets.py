"""Jobs of a search on its targets: which may run one now, and what those say that ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.results.service import RESULTS
from handlers.device_tests.availability import Availability
from handlers.device_tests.commit_jobs import commit_job, searches_left
from handlers.device_tests.store import JOBS
from handlers.device_tests.targets import request_targets
from handlers.results.config import LAB_RESULTS
from handlers.searches.decide import settled
from handlers.searches.records import AskedRun, CulpritSearch, SearchRunState

if TYPE_CHECKING:
    from bot.plan.handler import Context


async def idle_targets(
    context: Context, names: Sequence[str], runs: Iterable[AskedRun], moment: float
) -> tuple[list[str], bool]:
    """Return which of some targets (LAB/TARGET) may get a job now, and whether none takes jobs any more.

    `runs` are those that were asked for: a target has one at a time. A target that is paused or degraded gets none, but
    may later.
    """
    waiting = {run.target for run in runs if run.state is SearchRunState.WAITING}
    targets = request_targets(context.config.of(LAB_RESULTS))
    able = {target.full_name for target in (await Availability.of(context, moment)).accepting(targets)}
    lefts = {
        name: await searches_left(
            context.part(JOBS), context.config, context.repository.id, named_target(context, name), moment
        )
        for name in names
    }
    idle = [
        name
        for name, left in lefts.items()
        if left and name not in waiting and named_target(context, name).full_name in able
    ]
    return idle, all(left is None for left in lefts.values())


async def settled_runs(
    context: Context, search: CulpritSearch, runs: Iterable[AskedRun], purpose: Callable[[int], str], moment: float
) -> tuple[AskedRun, ...]:
    """Return runs of a search, or of the revert of its culprit, with what their jobs say now.

    A run without results may get late ones. `purpose` returns that of the job of a run, by its number.
    """
    results = list[AskedRun]()
    for run in runs:
        if run.state is SearchRunState.RESULTS:
            results.append(run)
            continue
        lab = run.target.partition("/")[0]
        job = await commit_job(context.part(JOBS), context.repository.id, lab, purpose(run.number))
        results.append(settled(search, run, job, moment))
    return tuple(results)


def named_target(context: Context, name: str) -> TargetKey:
    """Return the target that a search names LAB/TARGET."""
    lab, _, target = name.partition("/")
    return context.part(RESULTS).canonical(TargetKey(context.repository.full_name, lab, target))
