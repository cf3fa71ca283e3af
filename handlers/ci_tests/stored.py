"""Read the results that CI uploaded to the bucket, as a lab of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.results.report.baseline import nearest_ancestors
from bot.results.report.findings import Baseline
from bot.results.service import RESULTS
from bot.results.state import SuiteState
from handlers.ci_tests.outcomes import BaseSuite, HeadAndBase, SuiteOutcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.plan.handler import Context


async def stored(context: Context, about: TargetKey, sha: str, *, over: bool) -> HeadAndBase | None:
    """Return the stored results of a commit on a target; None if there are none.

    Each suite is compared with the nearest ancestor on a branch that labs test which has complete results of it.
    `over`: everything has arrived, or nothing more is waited for.
    """
    about = context.part(RESULTS).canonical(about)
    state = await context.part(RESULTS).state(about, sha)
    if not state.suites:
        return None
    results, repository = context.part(RESULTS), context.repository.full_name
    found = await nearest_ancestors(results, context.github, repository, about, sha, state.suites, most=1)
    ancestors = {suite: nearest for suite, (nearest,) in found.items()}
    suites = {name: await _suite(context, about, sha, suite) for name, suite in state.suites.items()}
    runs = [run for suite in state.suites.values() for run in suite.runs]
    return HeadAndBase(
        sha=sha,
        at=max(run.received_at for run in runs),
        suites=suites,
        bases={suite: await _base(context, about, suite, found) for suite, found in ancestors.items()},
        vanished=await _vanished(context, about, state.suites, ancestors) if over else (),
        over=over,
    )


async def _suite(context: Context, about: TargetKey, sha: str, state: SuiteState) -> SuiteOutcomes:
    seconds = await context.part(RESULTS).durations(about, state.suite, sha)
    return SuiteOutcomes(state.seen, seconds, state.complete)


async def _base(context: Context, about: TargetKey, suite: str, found: Baseline) -> BaseSuite:
    seen = await context.part(RESULTS).seen(about, suite, found.sha)
    return BaseSuite(
        found.sha, found.url, SuiteOutcomes(seen, await context.part(RESULTS).durations(about, suite, found.sha))
    )


async def _vanished(
    context: Context, about: TargetKey, here: Mapping[str, SuiteState], ancestors: Mapping[str, Baseline]
) -> tuple[str, ...]:
    """Return the suites that one of the bases has and this commit does not."""
    there: set[str] = set()
    for sha in {found.sha for found in ancestors.values()}:
        there |= (await context.part(RESULTS).state(about, sha)).suites.keys()
    return tuple(sorted(there - here.keys()))
