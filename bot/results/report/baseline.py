"""Find the baseline of a commit, the nearest ancestor with results, and compare with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from nightjar_formats.model import Counts, SeenTest, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.core.events import Payload
from bot.core.untrusted.limits import OverLimit
from bot.core.untrusted.queue import Owner
from bot.github.errors import is_not_found
from bot.results.compare import texts
from bot.results.compare.ancestors import AncestorSearch, Candidate, Relation
from bot.results.compare.diff import CONFIRMED_RUNS, Comparison
from bot.results.report.compared import compared_with, with_confirmed, with_flaky
from bot.results.report.findings import Baseline, ComparedSuite
from bot.results.state import SuiteState, TargetState
from bot.results.store.commit import outcomes_of_same_tests, seen_tests
from bot.results.store.history.baselines import baselines
from bot.results.store.history.flakiness import known_flaky_tests
from bot.results.store.tables import ancestry

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.results.service import ResultsService

# Only the first page has the list of changed files, which is most of the answer.
COMPARE = "/repos/{+repo}/compare/{base}...{head}?per_page=1&page=2"
AHEAD = "ahead"
Pair = tuple[Mapping[str, SeenTest], Mapping[str, SeenTest] | None]


async def compared_suites(
    results: ResultsService, github: GitHub | None, repository: str, state: TargetState, aliases: Aliases = NO_ALIASES
) -> dict[str, ComparedSuite]:
    """Compare every suite of a commit with its baseline; return the comparisons by suite.

    GitHub says which commits are ancestors. Without `github`, only the relations count that were stored when the check
    run was written. `repository` is the current `owner/name`; `aliases` are the names of tests that maintainers
    renamed.
    """
    target, sha = state.target, state.sha
    # A failure at the head of a pull request is never confirmed, so one ancestor is enough.
    most = CONFIRMED_RUNS if state.mainline else 1
    ancestors = await nearest_ancestors(results, github, repository, target, sha, state.suites, most=most)
    return {
        suite: await _without_flaky(
            results,
            state,
            await _compared(results, state, suite_state, ancestors.get(suite, []), aliases),
            suite,
            aliases,
        )
        for suite, suite_state in state.suites.items()
    }


async def _without_flaky(
    results: ResultsService, state: TargetState, compared: ComparedSuite, suite: str, aliases: Aliases
) -> ComparedSuite:
    """Mark the failures that the flakiness of their tests explains."""
    comparison = compared.comparison
    if not comparison.has_baseline or comparison.infra or not comparison.failing:
        return compared
    outcomes = {test: state.suites[suite].seen[test] for test in comparison.failing}
    return with_flaky(
        compared, await results.read(known_flaky_tests, state.target, suite, state.sha, outcomes, aliases)
    )


async def _compared(
    results: ResultsService, state: TargetState, suite: SuiteState, ancestors: Sequence[Baseline], aliases: Aliases
) -> ComparedSuite:
    """Compare a suite with its nearest ancestor, and use the next one to find confirmed failures."""

    async def seen(ancestor: Baseline) -> Mapping[str, SeenTest]:
        return await results.read(seen_tests, state.target, suite.suite, ancestor.sha)

    async def compare(pair: Pair, function: Callable[..., ComparedSuite], *arguments: object) -> ComparedSuite:
        # Details of failures may be large, and are not compared.
        bare = replace(suite, details={})
        owner = Owner(state.target.repository.lower(), f"{state.target.check_name} {state.sha}")
        return await results.compare(owner, pair, function, bare, *arguments)

    try:
        if not ancestors:
            return await compare((suite.seen, None), compared_with, None, None)
        baseline_tests = await seen(ancestors[0])
        compared = await compare((suite.seen, baseline_tests), compared_with, ancestors[0], baseline_tests, aliases)
        # For a pull request, failures that the nightly branch has too are never confirmed.
        if len(ancestors) == 1 or not (state.mainline and compared.comparison.still_failing):
            return compared
        compared = replace(compared, good=ancestors[1])
        earlier = await results.read(
            outcomes_of_same_tests, state.target, suite.suite, ancestors[0].sha, ancestors[1].sha
        ) or await seen(ancestors[1])
        return await compare((baseline_tests, earlier), with_confirmed, compared, baseline_tests, earlier, aliases)
    except OverLimit as error:
        return ComparedSuite(Comparison(Counts(), bool(ancestors), infra=texts.COMPARISON_COST.format(why=error)))


async def nearest_ancestors(
    results: ResultsService,
    github: GitHub | None,
    repository: str,
    target: TargetKey,
    sha: str,
    suites: Iterable[str],
    *,
    most: int,
) -> dict[str, list[Baseline]]:
    """Return for each suite the nearest ancestors of a commit with results, the nearest first, at most `most`.

    Suites without such ancestors are missing. One request says whether a commit is an ancestor, at any distance, and
    the answer is stored (https://docs.github.com/en/rest/commits/commits#compare-two-commits).
    """
    candidates = {suite: await results.read(baselines, target, suite, sha) for suite in suites}
    return await searched_ancestors(results, github, repository, target.repository, sha, candidates, most=most)


async def searched_ancestors(
    results: ResultsService,
    github: GitHub | None,
    repository: str,
    stored_as: str,
    sha: str,
    candidates: Mapping[str, Sequence[Candidate]],
    *,
    most: int,
) -> dict[str, list[Baseline]]:
    """Return which candidates are ancestors, as in `nearest_ancestors`. `stored_as` is the repository in app.yaml."""
    if not any(candidates.values()):
        return {}
    shas = {candidate.sha for of_suite in candidates.values() for candidate in of_suite}
    relations = await results.read(ancestry.relations, stored_as, {sha, *shas})
    search = AncestorSearch(sha, candidates, relations, most)
    while github is not None and (candidate := search.next()) is not None:
        await _ask(github, repository, sha, candidate, search)
    if github is not None and (learned := [*search.learned, *search.derived()]):
        await results.write(ancestry.learn, stored_as, learned)
    return {
        suite: [Baseline(relation.other, relation.url) for relation in relations]
        for suite, relations in search.nearest().items()
    }


async def _ask(github: GitHub, repository: str, sha: str, candidate: str, search: AncestorSearch) -> None:
    try:
        answer = await github.getitem(COMPARE, url_vars={"repo": repository, "base": candidate, "head": sha})
    except Exception as error:
        if not is_not_found(error):
            raise
        # The commit was removed, for example by a force-push, or the two have no common ancestor.
        search.fail(candidate)
        return
    comparison = Payload(answer, "comparison")
    url = comparison.string("base_commit", "html_url")
    if comparison.string("status") == AHEAD:
        search.learn(Relation(sha, candidate, is_ancestor=True, url=url))
        return
    merge_base = comparison.at("merge_base_commit")
    met_at = datetime.fromisoformat(merge_base.string("commit", "committer", "date")).timestamp()
    search.learn(Relation(sha, candidate, is_ancestor=False, url=url, met_at=met_at), merge_base.string("sha"))
