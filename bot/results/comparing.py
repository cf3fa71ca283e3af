"""What a commit's results are compared with: the nearest of its ancestors that have any, and what that tells."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.github.pages import PER_PAGE
from bot.payload import Payload
from bot.results.compare import CONFIRMED_RUNS, Told, compare, confirmed
from bot.results.findings import Baseline, Compared
from bot.results.model import Seen
from bot.results.state import SuiteState, TargetState

if TYPE_CHECKING:
    from bot.plan import Context

COMMITS = "/repos/{+repo}/commits{?sha}"
MOST_COMMITS = 1_000
"""Commits that are looked through for one to compare with: ten requests, where one is the rule."""


async def compared_suites(context: Context, state: TargetState) -> dict[str, Compared]:
    """Compare every suite of a commit, by name: GitHub tells its ancestors, and the store their results."""
    about, sha = state.about, state.sha
    candidates = {s: set(await context.results.baseline_candidates(about, s, sha)) for s in state.suites}
    ancestors = await nearest(context, sha, candidates)
    return {s: await _compared(context, state, found, ancestors.get(s, [])) for s, found in state.suites.items()}


async def _compared(context: Context, state: TargetState, suite: SuiteState, ancestors: Sequence[Baseline]) -> Compared:
    """Compare a suite with the nearest of its ancestors, and see with the next one what that confirms."""

    async def seen(ancestor: Baseline) -> Mapping[str, Seen]:
        return await context.results.seen(state.about, suite.suite, ancestor.sha)

    if not ancestors:
        return await asyncio.to_thread(compared_with, suite, None, None)
    before = await seen(ancestors[0])
    told = await asyncio.to_thread(compared_with, suite, ancestors[0], before)
    # What fails at a pull request's head and on the nightly branch before it is no news of the pull request.
    if len(ancestors) == 1 or not (state.mainline and told.comparison.still_failing):
        return told
    told = replace(told, good=ancestors[1])
    return await asyncio.to_thread(with_confirmed, told, suite, before, await seen(ancestors[1]))


def compared_with(suite: SuiteState, baseline: Baseline | None, before: Mapping[str, Seen] | None) -> Compared:
    """Compare a suite with its baseline. Of what may still come, nothing is told as gone."""
    comparison = compare(suite.seen, before, exit_status=exit_status(suite))
    if not suite.complete:
        comparison = replace(comparison, gone=())
    return Compared(comparison, baseline)


def with_confirmed(
    told: Compared, suite: SuiteState, before: Mapping[str, Seen], earlier: Mapping[str, Seen]
) -> Compared:
    """Add which failures are confirmed by this run, its baseline (`before`) and the baseline's own (`earlier`)."""
    first = compare(before, earlier, exit_status=None)
    now = dict(told.comparison.renamed)
    runs = (
        Told(_renamed(_renamed(earlier, dict(first.renamed)), now)),
        Told(_renamed(before, now), mass=first.mass),
        Told(suite.seen, mass=told.comparison.mass),
    )
    return replace(told, confirmed=confirmed(runs))


def _renamed(seen: Mapping[str, Seen], names: Mapping[str, str]) -> Mapping[str, Seen]:
    return {names.get(test, test): one for test, one in seen.items()} if names else seen


def exit_status(suite: SuiteState) -> int | None:
    """Return the worst exit status of a suite's shards, each as its last run told it; None where none told.

    A negative one is a signal's, and worse than any other.
    """
    last = {run.claims.shard_index: run.claims.exit_status for run in suite.runs if run.claims is not None}
    told = [status for status in last.values() if status is not None]
    return max(told, key=lambda status: (status < 0, status), default=None)


async def nearest(context: Context, sha: str, candidates: Mapping[str, Collection[str]]) -> dict[str, list[Baseline]]:
    """Return for each suite the nearest ancestors among its candidates, the nearest first; suites without are missing.

    The commits come newest first (https://docs.github.com/en/rest/commits/commits#list-commits), a hundred a request.
    As many requests are made as it takes to find one ancestor of each suite; more ancestors are taken out of those.
    """
    wanted = {suite: found for suite, found in candidates.items() if found}
    ancestors: dict[str, list[Baseline]] = {}
    if not wanted:
        return ancestors
    url_vars = {"repo": context.repository.full_name, "sha": sha}
    async with aclosing(context.github.getiter(COMMITS, url_vars=url_vars)) as commits:
        looked_at = 0
        async for item in commits:
            commit = Payload(item, "commit")
            ancestor = commit.string("sha")
            for suite in [s for s, found in wanted.items() if ancestor in found and ancestor != sha]:
                found = ancestors.setdefault(suite, [])
                found.append(Baseline(ancestor, commit.string("html_url")))
                if len(found) == min(CONFIRMED_RUNS, len(wanted[suite])):
                    del wanted[suite]
            looked_at += 1
            page_ends = looked_at % PER_PAGE == 0
            if not wanted or looked_at == MOST_COMMITS or (page_ends and wanted.keys() <= ancestors.keys()):
                break
    return ancestors
