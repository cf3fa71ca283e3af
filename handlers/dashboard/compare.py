"""`/r/{owner}/{repo}/compare`: what changed on a target from one commit to another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from nightjar_formats.model import Counts, SeenTest, TargetKey
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bot.core.untrusted.limits import OverLimit
from bot.core.untrusted.queue import Owner
from bot.results.compare import texts as compare_texts
from bot.results.compare.ancestors import AncestorSearch
from bot.results.compare.diff import Comparison
from bot.results.compare.quarantine import quarantine_at
from bot.results.report.compared import compared_with_any, with_flaky
from bot.results.report.findings import Baseline, ComparedSuite
from bot.results.state import SuiteState
from bot.results.store.commits_with_results import CommitWithResults
from bot.web.page_routes import Page, PageRequest
from bot.web.problems import Problem
from handlers.dashboard import texts
from handlers.dashboard.compare_rows import (
    ChangeClass,
    ComparePage,
    ComparisonCommit,
    SuitePair,
    compare_table,
    comparison_page,
)
from handlers.dashboard.content import content_of_results
from handlers.dashboard.settings import TARGET_PATTERN, configured_targets, settings_and_target
from handlers.dashboard.wiring import DashboardParts
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.config.model import RepositoryConfig
    from bot.results.store.store import ResultsStore

Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,40}$", to_lower=True, strip_whitespace=True)]
WHOLE_SHA = 40


class CompareQuery(BaseModel):
    """The query of a comparison: what to compare, and which tests to list. All members are optional."""

    model_config = ConfigDict(extra="forbid")

    target: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="The target, as LAB/TARGET; default: the first one that has results."
    )
    base: Commit | None = Field(
        default=None, description="A commit with results, 7 digits at least; default: what `head` is compared with."
    )
    head: Commit | None = Field(
        default=None, description="A commit with results, 7 digits at least; default: the newest one."
    )
    status: ChangeClass | None = Field(default=None, description="Only tests with this change.")
    suite: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Only tests of this suite."
    )
    q: Annotated[str, StringConstraints(max_length=200)] | None = Field(
        default=None, description="Only tests whose ID contains this text, ignoring case."
    )
    page: Annotated[int, Field(ge=1, le=10_000)] = Field(default=1, description="Which page of the list.")


class Chosen(BaseModel):
    """The target and the commits to compare, and the newest commits to choose from; None where there are no results."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    about: TargetKey | None
    base: CommitWithResults | None = None
    head: CommitWithResults | None = None
    listed: list[CommitWithResults] = []


def compare_page(parts: DashboardParts) -> Page:
    """Return the page that compares two commits of a target."""

    async def load(asked: PageRequest) -> ComparePage:
        name, settings = await settings_and_target(parts, asked)
        query: CompareQuery = asked.query
        if settings.of(LAB_RESULTS) is None:
            return ComparePage.without_results()
        chosen = await asked.pages.run(choose, parts.store, name, settings, query)
        suites: list[SuitePair] = []
        if chosen.about and chosen.base and chosen.head:
            suites = await _compared(parts, asked, settings, chosen.about, chosen.base, chosen.head)
        return await asked.pages.run(
            comparison_page,
            suites,
            status=query.status,
            suite=query.suite,
            text=query.q or "",
            number=query.page,
            csv_rows=asked.most_rows(0),
            targets=configured_targets(settings),
            target=chosen.about.full_name if chosen.about else None,
            base=ComparisonCommit.of(chosen.base),
            head=ComparisonCommit.of(chosen.head),
            commits=[ComparisonCommit.from_store(one) for one in chosen.listed],
        )

    return Page(
        path="/r/{owner}/{repo}/compare",
        api_path="/api/v1/repos/{owner}/{repo}/compare",
        summary="What changed on a target from one commit to another",
        template="compare.html",
        model=ComparePage,
        query=CompareQuery,
        load=load,
        content=content_of_results(parts),
        table=compare_table,
    )


def choose(store: ResultsStore, repository: str, settings: RepositoryConfig, query: CompareQuery) -> Chosen:
    """Choose the target and the commits to compare: those of the query, defaults for what it leaves out; it blocks.

    Raises `Problem` 400 if a commit has no results, or if its digits fit several commits.
    """
    targets = [query.target] if query.target else configured_targets(settings)
    about, listed = None, list[CommitWithResults]()
    for target in targets:
        about = TargetKey(repository, *target.split("/", 1))
        if listed := store.commits.newest(about):
            break
    if about is None or not listed:
        return Chosen(about=about if query.target else None)
    head = _named(store, about, query.head, listed) if query.head else listed[0]
    base = _named(store, about, query.base, listed) if query.base else _before(store, about, head, listed)
    return Chosen(about=about, base=base, head=head, listed=listed)


def _named(
    store: ResultsStore, about: TargetKey, digits: str, listed: Sequence[CommitWithResults]
) -> CommitWithResults:
    known = [one for one in listed if one.sha == digits]
    if known:
        return known[0]
    shas = [digits] if len(digits) == WHOLE_SHA else store.timelines.commits(about, digits, 2)
    if len(shas) > 1:
        raise Problem(400, texts.AMBIGUOUS_COMMIT.format(digits=digits))
    found = store.commits.of(about, shas[0]) if shas else None
    if found is None:
        raise Problem(400, texts.COMMIT_WITHOUT_RESULTS.format(sha=digits, target=about.full_name))
    return found


def _before(
    store: ResultsStore, about: TargetKey, head: CommitWithResults, listed: Sequence[CommitWithResults]
) -> CommitWithResults | None:
    """Return the commit that a check run compares `head` with; the nightly commit before it if that is unknown.

    Only stored relations between commits count: this sends no request to GitHub.
    """
    candidates = {suite: store.baselines(about, suite, head.sha) for suite in store.timelines.suites(about)}
    shas = {one.sha for every in candidates.values() for one in every}
    search = AncestorSearch(head.sha, candidates, store.relations(about.repository, {head.sha, *shas}), 1)
    known = [one.other for found in search.found().values() for one in found]
    before = [one for every in candidates.values() for one in every if not known or one.sha in known]
    newest = max(before, key=lambda one: (one.committed_at, one.sha), default=None)
    if newest is not None:
        return CommitWithResults(newest.sha, newest.committed_at, mainline=True, pull_request=None)
    older = [one for one in listed if (one.committed_at, one.sha) < (head.committed_at, head.sha)]
    return older[0] if older else None


async def _compared(
    parts: DashboardParts,
    asked: PageRequest,
    settings: RepositoryConfig,
    about: TargetKey,
    base: CommitWithResults,
    head: CommitWithResults,
) -> list[SuitePair]:
    """Compare each suite of two commits; a long comparison runs in a process of the pool."""
    state = await asked.pages.run(parts.store.state, about, head.sha)
    quarantine, _ = quarantine_at(settings.of(QUARANTINE), about, parts.moment())
    names = sorted({*state.suites, *await asked.pages.run(parts.store.commits.suites, about, base.sha)})
    found = []
    for name in names:
        suite = state.suites.get(name)
        before = await asked.pages.run(parts.store.seen, about, name, base.sha)
        if suite is None or not suite.seen:
            found.append(SuitePair(name, {}, before, None, quarantine))
            continue
        compared = await _in_pool(parts, asked, settings, about, suite, Baseline(base.sha, ""), before)
        if tests := compared.comparison.new_failures:
            now = {test: suite.seen[test] for test in tests}
            known = await asked.pages.run(
                parts.store.failures.flakiness, about, name, head.sha, now, settings.of(RENAMES).aliases
            )
            compared = with_flaky(compared, known)
        found.append(SuitePair(name, suite.seen, before, compared, quarantine, complete=suite.complete))
    return found


async def _in_pool(
    parts: DashboardParts,
    asked: PageRequest,
    settings: RepositoryConfig,
    about: TargetKey,
    suite: SuiteState,
    base: Baseline,
    before: Mapping[str, SeenTest],
) -> ComparedSuite:
    owner = Owner(about.repository.lower(), "pages")
    # The comparison needs no output of tests, and whatever it is given must be copied to the other process.
    bare = replace(suite, details={})
    results = parts.results.running_in(asked.pages.run)
    try:
        return await results.compare(
            owner, (suite.seen, before), compared_with_any, bare, base, before, settings.of(RENAMES).aliases
        )
    except OverLimit as error:
        why = compare_texts.COMPARISON_COST.format(why=error)
        return ComparedSuite(Comparison(Counts(), has_baseline=True, infra=why))
