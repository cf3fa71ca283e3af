"""Find the baseline of a commit, the nearest ancestor with results, and compare with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from nightjar_formats.model import Counts, SeenTest, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.core.payload import Payload
from bot.core.untrusted.limits import OverLimit
from bot.core.untrusted.queue import Owner
from bot.github.errors import is_not_found
from bot.results.compare import texts
from bot.results.compare.ancestors import AncestorSearch, Candidate, Relation
from bot.results.compare.diff import CONFIRMED_RUNS, Comparison
from bot.results.report.compared import compared_with, with_confirmed, with_flaky
from bot.results.report.findings import Baseline, ComparedSuite
from bot.results.state import SuiteState, TargetState

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.results.service import ResultsService

# From the second page on, GitHub leaves out the files, which are most of the answer.
COMPARE = "/repos/{+repo}/compare/{base}...{head}?per_page=1&page=2"
AHEAD = "ahead"
Pair = tuple[Mapping[str, SeenTest], Mapping[str, SeenTest] | None]


async def compared_suites(
    results: ResultsService, github: GitHub | None, repository: str, state: TargetState, aliases: Aliases = NO_ALIASES
) -> dict[str, ComparedSuite]:
    """Compare every suite of a commit, by name: GitHub says which commits are its ancestors, the store has the results.

    Without `github`, only those count that were asked about before, when the check run was written.
    `repository` is `owner/name` as GitHub knows it now; `aliases` are the names of tests that maintainers renamed.
    """
    about, sha = state.about, state.sha
    # What fails at a pull request's head is not confirmed, so one ancestor is enough.
    wanted = CONFIRMED_RUNS if state.mainline else 1
    ancestors = await nearest_ancestors(results, github, repository, about, sha, state.suites, wanted=wanted)
    return {
        suite: await _without_flaky(
            results, state, await _compared(results, state, found, ancestors.get(suite, []), aliases), suite, aliases
        )
        for suite, found in state.suites.items()
    }


async def _without_flaky(
    results: ResultsService, state: TargetState, comparison_: ComparedSuite, suite: str, aliases: Aliases
) -> ComparedSuite:
    """Find the new failures that the flakiness of their tests explains; other failures are not checked."""
    tests = {*comparison_.comparison.new_failures, *comparison_.confirmed}
    if not tests:
        return comparison_
    now = {test: state.suites[suite].seen[test] for test in tests}
    return with_flaky(comparison_, await results.flakiness(state.about, suite, state.sha, now, aliases))


async def _compared(
    results: ResultsService, state: TargetState, suite: SuiteState, ancestors: Sequence[Baseline], aliases: Aliases
) -> ComparedSuite:
    """Compare a suite with the nearest of its ancestors, and see with the next one what that confirms."""

    async def seen(ancestor: Baseline) -> Mapping[str, SeenTest]:
        return await results.seen(state.about, suite.suite, ancestor.sha)

    async def apart(pair: Pair, function: Callable[..., ComparedSuite], *arguments: object) -> ComparedSuite:
        # How each test failed, which may be much, is not compared.
        bare = replace(suite, details={})
        owner = Owner(state.about.repository.lower(), f"{state.about.check_name} {state.sha}")
        return await results.compare(owner, pair, function, bare, *arguments)

    try:
        if not ancestors:
            return await apart((suite.seen, None), compared_with, None, None)
        before = await seen(ancestors[0])
        comparison_ = await apart((suite.seen, before), compared_with, ancestors[0], before, aliases)
        # What fails at a pull request's head and on the nightly branch before it is no news of the pull request.
        if len(ancestors) == 1 or not (state.mainline and comparison_.comparison.still_failing):
            return comparison_
        comparison_ = replace(comparison_, good=ancestors[1])
        earlier = await seen(ancestors[1])
        return await apart((before, earlier), with_confirmed, comparison_, before, earlier, aliases)
    except OverLimit as error:
        return ComparedSuite(Comparison(Counts(), bool(ancestors), infra=texts.COMPARISON_COST.format(why=error)))


async def nearest_ancestors(
    results: ResultsService,
    github: GitHub | None,
    repository: str,
    about: TargetKey,
    sha: str,
    suites: Iterable[str],
    *,
    wanted: int,
) -> dict[str, list[Baseline]]:
    """Return for each suite the nearest ancestors of a commit with results, the nearest first, at most `wanted`.

    Suites without are missing. However far away an ancestor is, one request says whether a commit is one, and the
    answer is stored (https://docs.github.com/en/rest/commits/commits#compare-two-commits).
    """
    candidates = {suite: await results.baseline_candidates(about, suite, sha) for suite in suites}
    return await searched_ancestors(results, github, repository, about.repository, sha, candidates, wanted=wanted)


async def searched_ancestors(
    results: ResultsService,
    github: GitHub | None,
    repository: str,
    stored_as: str,
    sha: str,
    candidates: Mapping[str, Sequence[Candidate]],
    *,
    wanted: int,
) -> dict[str, list[Baseline]]:
    """Return which candidates are ancestors of a commit, likewise; `stored_as` is the repository's name in app.yaml."""
    if not any(candidates.values()):
        return {}
    shas = {one.sha for every in candidates.values() for one in every}
    known = await results.relations(stored_as, {sha, *shas})
    search = AncestorSearch(sha, candidates, known, wanted)
    while github is not None and (other := search.next()) is not None:
        await _ask(github, repository, sha, other, search)
    if github is not None and (learned := [*search.learned, *search.derived()]):
        await results.learn(stored_as, learned)
    return {suite: [Baseline(one.other, one.url) for one in found] for suite, found in search.nearest().items()}


async def _ask(github: GitHub, repository: str, sha: str, other: str, search: AncestorSearch) -> None:
    try:
        answer = await github.getitem(COMPARE, url_vars={"repo": repository, "base": other, "head": sha})
    except Exception as error:
        if not is_not_found(error):
            raise
        # The commit was removed, as after a force-push, or the two have nothing in common.
        search.fail(other)
        return
    comparison = Payload(answer, "comparison")
    url = comparison.string("base_commit", "html_url")
    if comparison.string("status") == AHEAD:
        search.learn(Relation(sha, other, is_ancestor=True, url=url))
        return
    met = comparison.at("merge_base_commit")
    met_at = datetime.fromisoformat(met.string("commit", "committer", "date")).timestamp()
    search.learn(Relation(sha, other, is_ancestor=False, url=url, met_at=met_at), met.string("sha"))
