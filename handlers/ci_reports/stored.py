"""Read the results that CI uploaded to the bucket, as a lab of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.results.report.baseline import nearest_ancestors
from bot.results.report.findings import Baseline
from bot.results.service import RESULTS
from bot.results.state import SuiteState
from bot.results.store.commit import commit_state, durations_of_commit, seen_tests
from handlers.ci_reports.outcomes import BaseSuite, HeadAndBase, SuiteOutcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.plan.handler import Context


async def stored_outcomes(context: Context, target: TargetKey, sha: str, *, has_all_suites: bool) -> HeadAndBase | None:
    """Return the stored results of a commit on a target; None if there are none.

    Each suite is compared with the nearest ancestor on a branch that labs test which has complete results of it.
    `has_all_suites`: everything has arrived, or the bot no longer waits for more.
    """
    target = context.part(RESULTS).canonical(target)
    state = await context.part(RESULTS).read(commit_state, target, sha)
    if not state.suites:
        return None
    results, repository = context.part(RESULTS), context.repository.full_name
    ancestors = await nearest_ancestors(results, context.github, repository, target, sha, state.suites, most=1)
    baselines = {suite: nearest for suite, (nearest,) in ancestors.items()}
    suites = {name: await _read_suite(context, target, sha, suite) for name, suite in state.suites.items()}
    runs = [run for suite in state.suites.values() for run in suite.runs]
    return HeadAndBase(
        sha=sha,
        tested_at=max(run.received_at for run in runs),
        suites=suites,
        bases={suite: await _read_base(context, target, suite, baseline) for suite, baseline in baselines.items()},
        vanished=await _vanished_suites(context, target, state.suites, baselines) if has_all_suites else (),
        has_all_suites=has_all_suites,
    )


async def _read_suite(context: Context, target: TargetKey, sha: str, state: SuiteState) -> SuiteOutcomes:
    seconds = await context.part(RESULTS).read(durations_of_commit, target, state.suite, sha)
    # Each test is looked up several times, which is quicker in a dictionary.
    return SuiteOutcomes(dict(state.seen.items()), seconds, state.complete)


async def _read_base(context: Context, target: TargetKey, suite: str, baseline: Baseline) -> BaseSuite:
    seen = await context.part(RESULTS).read(seen_tests, target, suite, baseline.sha)
    seconds = await context.part(RESULTS).read(durations_of_commit, target, suite, baseline.sha)
    return BaseSuite(baseline.sha, baseline.url, SuiteOutcomes(dict(seen.items()), seconds))


async def _vanished_suites(
    context: Context, target: TargetKey, head_suites: Mapping[str, SuiteState], baselines: Mapping[str, Baseline]
) -> tuple[str, ...]:
    """Return the suites that one of the bases has and this commit does not."""
    base_suites: set[str] = set()
    for sha in {baseline.sha for baseline in baselines.values()}:
        base_suites |= (await context.part(RESULTS).read(commit_state, target, sha)).suites.keys()
    return tuple(sorted(base_suites - head_suites.keys()))
