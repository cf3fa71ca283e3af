"""What a commit's results are compared with: the nearest of its ancestors that have any, and what that tells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.core.payload import Payload
from bot.core.untrusted.limits import OverLimit
from bot.core.untrusted.queue import Owner
from bot.github.pages import PER_PAGE
from bot.results.compare import texts
from bot.results.compare.diff import CONFIRMED_RUNS, Comparison, Counts
from bot.results.model import Seen
from bot.results.report.compared import compared_with, with_confirmed
from bot.results.report.findings import Baseline, ComparedSuite
from bot.results.state import SuiteState, TargetState

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.results.service import ResultsService

COMMITS = "/repos/{+repo}/commits{?sha}"
MOST_COMMITS = 1_000
"""Commits that are looked through for one to compare with: ten requests, where one is the rule."""


async def compared_suites(
    results: ResultsService, github: GitHub, repository: str, state: TargetState
) -> dict[str, ComparedSuite]:
    """Compare every suite of a commit, by name: GitHub tells its ancestors, and the store their results.

    `repository` is `owner/name` as GitHub knows it now.
    """
    about, sha = state.about, state.sha
    candidates = {s: set(await results.baseline_candidates(about, s, sha)) for s in state.suites}
    ancestors = await nearest(github, repository, sha, candidates)
    return {s: await _compared(results, state, found, ancestors.get(s, [])) for s, found in state.suites.items()}


async def _compared(
    results: ResultsService, state: TargetState, suite: SuiteState, ancestors: Sequence[Baseline]
) -> ComparedSuite:
    """Compare a suite with the nearest of its ancestors, and see with the next one what that confirms."""

    async def seen(ancestor: Baseline) -> Mapping[str, Seen]:
        return await results.seen(state.about, suite.suite, ancestor.sha)

    async def apart(function: Callable[..., ComparedSuite], *arguments: object) -> ComparedSuite:
        # How each test failed, which may be much, is not compared.
        bare = replace(suite, details={})
        pool = results.pool
        owner = Owner(state.about.repository.lower(), f"{state.about.check_name} {state.sha}")
        return await pool.run(owner, pool.limits.comparison, function, bare, *arguments)

    try:
        if not ancestors:
            return await apart(compared_with, None, None)
        before = await seen(ancestors[0])
        told = await apart(compared_with, ancestors[0], before)
        # What fails at a pull request's head and on the nightly branch before it is no news of the pull request.
        if len(ancestors) == 1 or not (state.mainline and told.comparison.still_failing):
            return told
        told = replace(told, good=ancestors[1])
        return await apart(with_confirmed, told, before, await seen(ancestors[1]))
    except OverLimit as error:
        return ComparedSuite(Comparison(Counts(), bool(ancestors), infra=texts.COMPARISON_COST.format(why=error)))


async def nearest(
    github: GitHub, repository: str, sha: str, candidates: Mapping[str, Collection[str]]
) -> dict[str, list[Baseline]]:
    """Return for each suite the nearest ancestors among its candidates, the nearest first; suites without are missing.

    The commits come newest first (https://docs.github.com/en/rest/commits/commits#list-commits), a hundred a request.
    As many requests are made as it takes to find one ancestor of each suite; more ancestors are taken out of those.
    """
    wanted = {suite: found for suite, found in candidates.items() if found}
    ancestors: dict[str, list[Baseline]] = {}
    if not wanted:
        return ancestors
    url_vars = {"repo": repository, "sha": sha}
    async with aclosing(github.getiter(COMMITS, url_vars=url_vars)) as commits:
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
